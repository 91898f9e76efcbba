"""simulate: runs of one problem as a labelled Dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.seeds import checked_seed
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.variable import stored_attributes
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.dynamics.dynamics import Dynamics
from sweeplib.networks.numerics.compiled import compilation_message
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import Problem, meaningful, parts_of
from sweeplib.networks.simulation.cases import Case, option_pairs
from sweeplib.networks.simulation.columns import Cases
from sweeplib.networks.simulation.driver import run_checked
from sweeplib.networks.simulation.initial import Initial
from sweeplib.networks.simulation.labels import label
from sweeplib.networks.simulation.numerics_version import numerics_version
from sweeplib.networks.simulation.recording import Recording
from sweeplib.networks.simulation.variables import recorded_variables
from sweeplib.networks.views import QUANTILES


def simulate(
    problem: Problem,
    dynamics: str,
    *,
    times: Iterable[float],
    seeds: Iterable[int] | int | np.integer[Any] = (0,),
    initial: Initial = None,
    observables: Iterable[str] = ("risk",),
    thresholds: Iterable[float] = (),
    stop: Literal["end", "exit"] = "end",
    exit_on: str = "risk",
    root_seed: int = 0,
    pair_by: Iterable[str] | None = None,
    options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> xr.Dataset:
    """Runs of a problem by a dynamics, one per seed, as a Dataset with dims `seed`, `time` (and `threshold`, ...).

    Parameters
    ----------
    problem : the problem.
    dynamics : a name in `DYNAMICS`.
    times : ODE times t = ν γ/(p d), ascending, at which to record; SGD records at the nearest step ν.
    seeds : the replicas, or their number. Random numbers of a replica depend only on the root seed, its seed and the
        problem.
    initial : overlaps or weights (W, W*) from which all replicas start; by default the random starts of the problem,
        which are the same for all dynamics.
    observables : names in `OBSERVABLES`, such as risk, test_error, overlap_Q, overlap_M, overlap_P.
    thresholds : T is reached when `exit_on` first is at most (1−T) of its initial value: `exit_time`,
        `exit_steps`, at the resolution of one step (of all uses of a batch, of a step of the SDE); NaN where it was not
        reached by the end (`end_steps`).
    stop : "exit" ends a run at its last threshold, with NaN at later times.
    exit_on : the excess risk, or another observable with a `level`, such as test_error or misalignment, recorded or
        not.
    root_seed : the seed from which all random numbers derive.
    pair_by : problem fields on which the samples depend; all by default. With `["d"]`, problems that differ in γ
        have the same samples.
    options : numerical options of the dynamics, such as `{"rtol": 1e-10}` for `ode`.
    timeout : seconds that a run may take, on average over the seeds.

    A run that diverges has `status` diverged and NaN afterwards, without an exception; so has one whose error
    exceeds its bound, with `status` inaccurate. Invalid input raises InputError.
    """
    lists = _listed("times", times), _listed("thresholds", thresholds), _listed("observables", observables)
    recording = Recording(*lists, stop, exit_on=exit_on)
    shared: dict[str, Any] = {
        "options": option_pairs(dynamics, options or {}),
        "root_seed": checked_seed(root_seed, "root_seed", 63),
        "pair_by": None if pair_by is None else _listed("pair_by", pair_by),
    }
    counted = isinstance(seeds, int | np.integer) and not isinstance(seeds, bool)
    chosen = range(int(seeds)) if counted else _listed("seeds", seeds)  # type: ignore[arg-type]
    replicas = tuple(map(checked_seed, chosen))
    if not replicas:
        raise InputError("no replicas", key="seeds", value=seeds, expected="one seed or more")
    case = Case(problem, dynamics, 0, recording, **shared)
    runs = _runs(case, problem.text, DYNAMICS[dynamics])
    with compilation_message(f"{dynamics} for {problem.activation}"):
        records = run_checked(Cases.with_seeds(runs.case, replicas), timeout, initial)
    ds = _frame(runs, replicas).copy(data=records.data | {"status": records.status})
    ds.attrs = dict(runs.attributes)
    return ds


def _listed(key: str, values: Any) -> tuple[Any, ...]:
    """The values as a tuple; InputError, with the key, for a single one."""
    try:
        if not isinstance(values, str):
            return tuple(values)
    except TypeError:  # of a number, and of an array without an axis
        pass
    raise InputError("not a list", key=key, value=values, expected=f"a list, such as [{values!r}]")


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs that differ in their seed only: a valid `case` of one of them, and the attributes of their datasets."""

    case: Case

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of a dataset: the fields of the problem, and what else the numbers depend on, by name."""
        case, problem = self.case, self.case.problem
        recorded = [OBSERVABLES[name] for name in case.recording.measured]
        named = meaningful([*parts_of(problem).values(), *recorded])
        fields = {name: value for name in named if (value := getattr(problem, name)) is not None}
        version = numerics_version(problem, case.dynamics, case.recording.measured)
        others = {"dynamics": case.dynamics, "root_seed": case.root_seed, "numerics_version": version}
        others |= case.recording.of_runs
        options = case.numerical_options().model_dump(exclude_defaults=True)
        others |= {f"{case.dynamics}.{name}": value for name, value in options.items()}
        if case.pair_by is not None and DYNAMICS[case.dynamics].stochastic:
            others["pair_by"] = ", ".join(["seed", *sorted({*case.pair_by} - {"seed"})])
        # netCDF knows no truth values
        return {name: int(value) if isinstance(value, bool) else value for name, value in (fields | others).items()}


@lru_cache(maxsize=64)
def _runs(case: Case, text: str, dynamics: type[Dynamics]) -> _Runs:
    """The runs of a case, whose check is remembered; InputError if the case is not valid.

    text, dynamics : only tell cases apart: the text of the problem, as a noise of 0.0 and one of -0.0 are equal
        numbers, and the class, as a dynamics may be registered anew under its name.
    """
    case.check()
    return _Runs(case)


@lru_cache(maxsize=64)
def _frame(runs: _Runs, seeds: tuple[int, ...]) -> xr.Dataset:
    """A dataset with the variables and coordinates of runs with some `seeds`, whose data are to be replaced.

    It is remembered, as building one takes as long as a short run. All datasets made of it share its coordinates.
    """
    recording = runs.case.recording
    variables: dict[str, Any] = {
        name: xr.Variable(("seed", *variable.dims), np.empty((len(seeds), *variable.shape)), variable.attrs)
        for name, variable in recorded_variables(runs.case).items()
    }
    variables["status"] = xr.Variable("seed", np.empty(len(seeds), np.uint8), STATUS_LABELS)
    steps = np.rint(np.array(recording.times) / runs.case.problem.step_time())
    steps.flags.writeable = False  # shared by all datasets
    axes = {"seed": np.array(seeds), "time": np.array(recording.times)}
    if recording.thresholds:
        axes["threshold"] = np.array(recording.thresholds)
    of_observables = {"instant": axes["time"], "quantile": QUANTILES}
    recorded = {dim for variable in variables.values() for dim in variable.dims}
    axes |= {name: values for name, values in of_observables.items() if name in recorded}
    coords: dict[str, Any] = {name: xr.IndexVariable(name, values, label(name)) for name, values in axes.items()}
    coords["steps"] = xr.Variable("time", steps, label("steps"))
    frame = xr.Dataset(variables, coords)
    for variable in frame.variables.values():
        variable.attrs = stored_attributes(variable.attrs)
    return frame
