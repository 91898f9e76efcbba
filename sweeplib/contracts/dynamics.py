"""What every dynamics keeps, on the first problems of a list to which it applies.

Public functions of `name`, the registered name of a dynamics, that return nothing are checks: each raises BrokenError
with what is wrong, and its own name is the sentence that it checks. Runs are those of `suited` problems.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from sweeplib.contracts.check import BrokenError, remembered, require, require_equal, require_refusal
from sweeplib.contracts.observables import quick
from sweeplib.contracts.problems import CHANGED, CHANGED_OF, OTHERS, PROBLEMS, variants
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.status import Status
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS, Dynamics
from sweeplib.networks.dynamics.dynamics import NumericalOptions
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import AVERAGES, DATA, DEFAULTS, Problem, names_with_parts, parameters_of
from sweeplib.networks.problem.parameters import any_problem
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulation.cases import needs_teacher
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.labelled_runs import simulate
from sweeplib.networks.simulation.recording import EXIT_ERRORS
from sweeplib.networks.views import OverlapView, ParticleView, View

CHEAPER: dict[str, dict[str, Any]] = {"dmft": {"paths": 2**15}, "nonlinear_dynamics": {"particles": 16}}
"""Options of dynamics that take long with their defaults."""
LAW_SEEDS, LAW_LEVEL = 300, 1e-6
"""The seeds of a test of a law, and the p-value below which it fails: tests are many."""
TIMES, SEEDS = (0.0, 0.5, 1.0, 1.5, 2.0), (0, 1)
"""The recording times and the seeds of runs."""


def readable(name: str, problem: Problem, *names: str) -> Problem:
    """Return the problem with the default of each field that a dynamics does not read, but for these `names`."""
    unread = DEFAULTS.keys() - names_with_parts(DYNAMICS[name].reads) - set(names)
    return replace(problem, **{field: DEFAULTS[field] for field in unread})


@remembered
def suited(name: str) -> tuple[Problem, ...]:
    """Return the problems to which a dynamics applies, at most one of each geometry; BrokenError if there are none."""
    result, refusals = [], []
    for problem in PROBLEMS:
        for variant in variants(readable(name, problem)):
            try:
                Case(variant, name, 0, Recording(TIMES, (), recordable(name)), options=_options(name)).check()
            except InputError as refusal:
                refusals.append(str(refusal))
            else:
                result.append(variant)
                break
    if not result:
        raise BrokenError(f"it applies to none of the problems that are tried: {refusals[0]}")
    return tuple(result)


def recordable(name: str) -> tuple[str, ...]:
    """Return the observables of a dynamics that apply to every problem."""
    suited = (item for item in OBSERVABLES.values() if item.is_of(DYNAMICS[name].view) and not item.needs)
    return tuple(item.name for item in suited if item.check is any_problem and not item.limits)


def _options(name: str) -> tuple[tuple[str, Any], ...]:
    """Return the options of a case of a dynamics that make it cheap."""
    return tuple(CHEAPER.get(name, {}).items())


def _simulated(name: str, problem: Problem, **settings: Any) -> xr.Dataset:
    """Return runs of a dynamics; `settings` replace the arguments of `simulate`."""
    values = {"times": TIMES, "seeds": SEEDS, "observables": recordable(name), "options": CHEAPER.get(name)}
    return simulate(problem, name, **(values | settings))


@remembered
def runs(name: str) -> tuple[xr.Dataset, ...]:
    """Return runs of a dynamics, for each of its problems."""
    return tuple(_simulated(name, problem) for problem in suited(name))


@remembered
def states(name: str) -> tuple[tuple[Problem, Dynamics], ...]:
    """Return a state of a dynamics at a later time, for each of its problems."""
    result = []
    for problem in suited(name):
        cases = [Case(problem, name, seed, Recording((0.5,)), options=_options(name)) for seed in SEEDS]
        state = DYNAMICS[name](replicas_of(cases), cases[0].numerical_options())
        state.advance(0)
        result.append((problem, state))
    return tuple(result)


def it_runs(name: str) -> None:
    """Check that all runs end ok, with finite numbers and a risk that is not negative."""
    for run in runs(name):
        statuses = {Status(int(status)).name for status in run.status.values}
        require(statuses == {"ok"}, f"runs end {', '.join(sorted(statuses - {'ok'}))}; expected ok")
        for item in recordable(name):
            if "instant" not in run[item].dims:
                require(bool(np.isfinite(run[item]).all()), f"{item} is not finite")
        if "risk" in run:
            require(bool((run.risk >= 0.0).all()), "the risk is negative")


def it_starts_where_all_dynamics_start(name: str) -> None:
    """Check that overlaps or particles at time zero are those of the drawn weights."""
    kind = DYNAMICS[name]
    if kind.sampled:
        return
    for problem, run in zip(suited(name), runs(name), strict=True):
        cases = [Case(problem, name, seed, Recording(TIMES), options=_options(name)) for seed in SEEDS]
        replicas = replicas_of(cases)
        if issubclass(kind.view, OverlapView):
            expected = {"overlap_Q": replicas.Q, "overlap_M": replicas.M}
        elif issubclass(kind.view, ParticleView):
            count = kind.sizes(problem, cases[0].numerical_options())["student"]
            expected = {"overlap_M": np.array([replicas.particles(i, count)[0] for i in range(len(SEEDS))])}
        else:
            return
        for item, values in expected.items():
            if item in run:
                require_equal(run[item][:, 0], values, f"{item} at time zero", rtol=1e-6, atol=1e-9)


def its_view_is_the_declared_one(name: str) -> None:
    """Check that `look` returns pairs of weights, whose sum is one, and views of the class `view`."""
    for _, state in states(name):
        pairs_of_views = state.look()
        declared = type(state).view
        for _, view in pairs_of_views:
            require(isinstance(view, declared), f"`look` returns {type(view).__name__}; `view` is {declared.__name__}")
        total = sum(weight for weight, _ in pairs_of_views)
        require_equal(total, np.ones(len(SEEDS)), "sum of the weights", rtol=1e-12)


def its_views_are_possible(name: str) -> None:
    """Check that overlaps are a covariance, and that particles have the weight one and overlaps within their norms."""
    for _, state in states(name):
        for _, view in state.look():
            _require_possible(view)


def _require_possible(view: View) -> None:
    """Raise BrokenError unless vectors can have the overlaps, or shapes, weights and norms of particles fit."""
    if isinstance(view, OverlapView):
        Q, M, P = view.Q, view.M, view.P
        require_equal(view.q, np.einsum("nii->ni", Q), "q is not the diagonal of Q", rtol=1e-12)
        _require_covariance(Q, M, P)
    elif isinstance(view, ParticleView):
        n, N, k = view.m.shape
        shapes = {"q": (n, N), "a": (n, N), "weight": (n, N), "P": (n, k, k)}
        for array, shape in shapes.items():
            result = getattr(view, array).shape
            require(result == shape, f"{array} has the shape {result}; expected {shape}")
        require_equal(view.weight.sum(axis=1), np.ones(n), "sum of the weights of particles", rtol=1e-12)
        within = np.einsum("nir,nrs,nis->ni", view.m, np.linalg.inv(view.P), view.m)
        least = float((view.q - np.maximum(within - 1e-9, 0.0)).min())
        require(least >= 0.0, "a particle has a longer overlap with the teacher than its norm")


def _require_covariance(Q: Array, M: Array, P: Array) -> None:
    """Raise BrokenError unless Q (..., p, p), M (..., p, k) and P (..., k, k) make a covariance."""
    require_equal(Q, np.swapaxes(Q, -1, -2), "Q is not symmetric", atol=1e-12)
    lowest = float(np.linalg.eigvalsh(np.block([[Q, M], [np.swapaxes(M, -1, -2), P]])).min())
    require(lowest > -1e-7, f"[[Q, M], [M', P]] is no covariance: its lowest eigenvalue is {lowest:.3g}")


def its_overlaps_are_a_covariance_at_all_times(name: str) -> None:
    """Check the overlaps of every run that records Q, M and P."""
    for run in runs(name):
        if {"overlap_Q", "overlap_M", "overlap_P"} <= set(run.data_vars):
            Q, M = run.overlap_Q.values, run.overlap_M.values  # P (seed, k, k) is the same at all times
            P = np.broadcast_to(run.overlap_P.values[:, None], (*M.shape[:2], M.shape[-1], M.shape[-1]))
            _require_covariance(Q, M, P)


def a_spherical_student_stays_on_the_sphere(name: str) -> None:
    """Check that squared norms over d are one at all times."""
    for problem, run in zip(suited(name), runs(name), strict=True):
        if problem.spherical and "student_norm" in run:
            require_equal(run.student_norm, np.ones(run.student_norm.shape), "student_norm", atol=1e-9)


def the_same_seed_gives_the_same_bits(name: str) -> None:
    """Check the bits of a seed beside other seeds: its random numbers are to be those of the replica alone."""
    for problem, run in zip(suited(name), runs(name), strict=True):
        again = _simulated(name, problem, seeds=(5, 1), observables=(names := quick(recordable(name), problem)))
        for item in names:
            require_equal(again[item].sel(seed=1), run[item].sel(seed=1), f"{item} of the same seed again")


def recording_does_not_change_the_run(name: str) -> None:
    """Check that the last values are the same, up to rounding, with one recording time instead of many."""
    for problem, run in zip(suited(name), runs(name), strict=True):
        names = quick(recordable(name), problem)
        rarely = _simulated(name, problem, times=TIMES[-1:], seeds=SEEDS[:1], observables=names)
        for item in names:
            if "instant" not in run[item].dims and OBSERVABLES[item].over_time:
                require_equal(rarely[item][0, -1], run[item][0, -1], f"{item} recorded once", rtol=1e-6, atol=1e-9)


def no_bit_depends_on_what_it_is_unaffected_by(name: str) -> None:
    """Check that fewer times or thresholds change no bit of what remains, as far as `unaffected_by` names them."""
    declared = DYNAMICS[name].unaffected_by
    require(declared <= {"times", "thresholds"}, f"`unaffected_by` is {sorted(declared)}; expected times, thresholds")
    for problem in suited(name) if declared else ():
        names = (many := quick(recordable(name), problem))[:1]
        whole = _simulated(name, problem, seeds=SEEDS[:1], thresholds=(0.01, 0.02, 0.5), observables=many)
        fewer: dict[str, Any] = {"times": TIMES[1::3]} if "times" in declared else {}
        fewer |= {"thresholds": (0.5, 0.01) if "thresholds" in declared else (0.01, 0.02, 0.5)}
        array = _simulated(name, problem, seeds=SEEDS[:1], observables=names, **fewer)
        along = {dim: array[dim] for dim in ("time", "instant", "threshold") if dim in array.dims}
        errors = EXIT_ERRORS if DYNAMICS[name].states_exit_errors else ()
        for item in (*names, "end_steps", "end_time", "exit_steps", "exit_time", *errors):
            same = whole[item].sel({dim: at for dim, at in along.items() if dim in whole[item].dims})
            require(array[item].values.tobytes() == same.values.tobytes(), f"{item} depends on what else is recorded")


def runs_of_one_solution_have_the_bits_of_each_alone(name: str) -> None:
    """Check that runs which differ in γ alone have the same bits together as alone, where it `solves_all_rates`."""
    for problem in suited(name)[:1]:
        names = tuple(item for item in quick(recordable(name), problem) if "gamma" not in OBSERVABLES[item].acts_on)
        recording, other = Recording(TIMES, (0.01, 0.5), names), replace(problem, gamma=0.37 * problem.gamma)
        cases = [Case(at_rate, name, SEEDS[0], recording, options=_options(name)) for at_rate in (problem, other)]
        if DYNAMICS[name].solves_all_rates(problem, cases[0].numerical_options()):
            alone, together = run_cases(cases[1:]).data, run_cases(cases).data
            changed = _first_change(alone, {item: values[1:] for item, values in together.items()})
            require(changed is None, f"`solves_all_rates` says that γ only counts steps, but {changed} depends on it")


def seeds_of_one_start_differ_if_it_is_stochastic(name: str) -> None:
    """Check that seeds of one start have other numbers if it is `stochastic`, and the same numbers otherwise."""
    problem, kind = suited(name)[0], DYNAMICS[name]
    names = quick(recordable(name), problem)
    # samples that depend on γ too are others
    same = _first_change(*(_numbers(name, problem, names, pair_by) for pair_by in (("d",), ("d", "gamma")))) is None
    require(same or kind.stochastic, "`stochastic` is False, but the numbers depend on the samples")
    require(not same or not kind.stochastic, "`stochastic` is True, but the numbers do not depend on any samples")


def it_depends_on_the_fields_that_it_reads_and_on_no_other(name: str) -> None:
    """Check `reads`, which decides what is refused and which cases are one, by changing each field of a problem.

    A field that no problem can set for the dynamics is left out.
    """
    require(any(any(pairs(name, field)) for field in OTHERS), "no two of the problems that are tried differ for it")
    for field in sorted(OTHERS, key=lambda field: field not in names_with_parts(DYNAMICS[name].reads)):
        its_numbers_change_with_a_field_that_it_reads(name, field)


def its_numbers_change_with_a_field_that_it_reads(name: str, field: str) -> None:
    """Raise BrokenError unless its numbers change with a field exactly if its `reads` names it.

    Observables that read the field themselves do not count. Fields with a default that are not read must be refused.
    """
    if (pair := next(pairs(name, field), None)) is None:
        return
    names, options = _unmoved(name, pair, field), _case(name, pair[1], ()).numerical_options()
    is_read = field in DYNAMICS[name].reads_of(pair[1], options)
    # no step depends on averages of the weights: the observable of the average does
    names = (*names, "average_M") if field in AVERAGES and is_read else names
    # one observable that changes is enough for a field that is read: quick ones are tried first
    tried = (quick(names, *pair), names) if is_read else (names,)
    changed = next(
        filter(None, (_first_change(*(_numbers(name, item, some) for item in pair)) for some in tried)), None
    )
    values = " or ".join(repr(getattr(problem, field)) for problem in pair)
    if is_read:
        require(changed is not None, f"its `reads` names {field}, but its numbers are the same with {values}")
    else:
        require(field not in DEFAULTS, f"it takes {field} = {values}, which its `reads` does not name")
        require(changed is None, f"{changed} changes with {field}, which its `reads` does not name")


def pairs(name: str, field: str) -> Iterator[tuple[Problem, Problem]]:
    """Yield pairs of problems to which a dynamics applies and that differ in a field alone.

    Fields that depend on it change too: a full batch with its training set, parameters of another data law.
    """
    # problems in which the field can be set at all
    candidates = CHANGED_OF.get(field, CHANGED), *PROBLEMS
    # what keeps its value though the dynamics may not read it: the field, and parts whose parameter it may be
    names = field, "data", *parameters_of("data"), "samples", "loss", "outlier_share", "update", "tasks"
    names = *names, *parameters_of("tasks")
    for first in (variant for problem in candidates for variant in variants(readable(name, problem, *names))):
        is_full_batch = first.batch_size == first.samples and field in ("batch_size", "samples")
        value = {"gamma": first.gamma / 2.0, "d": first.d + 1}.get(field, OTHERS[field])
        value = "tanh" if value == first.activation else value
        changed: dict[str, Any] = dict.fromkeys(("batch_size", "samples") if is_full_batch else (field,), value)
        changed |= {"switch_time": 0.2} if field == "tasks" else {}
        try:
            sizes = {size: getattr(first, size) for size in ("d", "batch_size", "samples")}
            other = replace(CHANGED_OF["contrast"], **sizes) if field == "data" else replace(first, **changed)
            pair = first, readable(name, other, *names)
            for problem in pair:
                _case(name, problem, _unmoved(name, pair, field)).check()
        except InputError:
            continue
        if pair[0].canonical() != pair[1].canonical():
            yield pair


def _unmoved(name: str, problems: tuple[Problem, ...], field: str) -> tuple[str, ...]:
    """Return the names of observables that some problems have and that do not read a field themselves."""
    observables = {item: OBSERVABLES[item] for item in recordable(name) if field not in OBSERVABLES[item].acts_on}
    undriven = any(p.has_offsets or p.is_disturbed or p.has_spectrum or not p.criterion.is_plain for p in problems)
    taught = all(DATA[problem.data].teacher for problem in problems)
    return tuple(
        item
        for item, observable in observables.items()
        if not (undriven and observable.uses_drifts) and (taught or not needs_teacher(observable, DYNAMICS[name].view))
    )


def _case(name: str, problem: Problem, recorded: tuple[str, ...], pair_by: tuple[str, ...] = ()) -> Case:
    """Return a case whose samples do not depend on the problem, or only on `pair_by`."""
    return Case(problem, name, 0, Recording((0.0, 0.5), (), recorded), options=_options(name), pair_by=pair_by)


def it_has_the_law_that_it_says(name: str) -> None:
    """Check that its observables at a time have the law of those of the dynamics `law_of`, if it names one.

    By Kolmogorov-Smirnov tests of independent runs.
    """
    other = DYNAMICS[name].law_of
    if other is None:
        return
    both = [item for item in recordable(name) if item in recordable(other)]
    names = tuple(item for item in both if OBSERVABLES[item].over_time and not OBSERVABLES[item].uses_drifts)
    for problem in suited(name):
        runs = (
            simulate(problem, item, times=TIMES[1:2], seeds=seeds, observables=names, options=CHEAPER.get(item))
            for item, seeds in ((name, range(LAW_SEEDS)), (other, range(LAW_SEEDS, 2 * LAW_SEEDS)))
        )
        columns = [{item: run[item].values.reshape(LAW_SEEDS, -1).T for item in names} for run in runs]
        for item in names:
            for x, y in zip(*(column[item] for column in columns), strict=True):
                if np.ptp(y) > 1e-9 * np.abs(y).max() or np.ptp(x) > 1e-9 * np.abs(x).max():
                    p_value = scipy.stats.ks_2samp(x, y, method="asymp").pvalue
                    require(p_value > LAW_LEVEL, f"{item} has not the law of {other}: p = {p_value:.1g}")


def _numbers(
    name: str, problem: Problem, recorded: tuple[str, ...], pair_by: tuple[str, ...] = ()
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the numbers of a case whose samples do not depend on the problem, or only on `pair_by`."""
    return run_cases([_case(name, problem, recorded, pair_by)]).data


def _first_change(first: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Return the name of the first number that differs between two runs in any bit; None if all are the same."""
    return next((item for item in first if not np.array_equal(first[item], other[item], equal_nan=True)), None)


def exits_are_steps_of_the_run(name: str) -> None:
    """Check that `exit_steps` are NaN, or not after `end_steps`, which reach the last recording time."""
    for problem in suited(name):
        run = _simulated(name, problem, seeds=SEEDS[:1], thresholds=(0.01, 0.5), observables=())
        require(not bool((run.exit_steps > run.end_steps + 1e-6).any()), "`exit_steps` are after `end_steps`")
        least = TIMES[-1] * (1.0 - 1e-9) - problem.step_time()
        require(bool((run.end_time >= least).all()), f"it ends at {run.end_time.min().item():g}, before {TIMES[-1]:g}")


def its_diagnostics_are_labelled(name: str) -> None:
    """Check that what it records itself has a `long_name` and `units`."""
    for problem in suited(name):
        case = Case(problem, name, 0, Recording(TIMES, (), recordable(name)), options=_options(name))
        for item, parameters in DYNAMICS[name].diagnostics(problem, case.numerical_options(), recordable(name)).items():
            for label in ("long_name", "units"):
                require(bool(parameters.attrs.get(label)), f"the diagnostic {item} has no `{label}`")


def its_work_grows_with_time(name: str) -> None:
    """Check that `work`, by which the plan shares cases among blocks, is positive and no less at a later time."""
    for problem in suited(name):
        early, late = (DYNAMICS[name].work(problem, time) for time in (1.0, 10.0))
        require(0.0 < early <= late, f"`work` is {early:g} to time 1 and {late:g} to time 10")


def its_options_are_checked(name: str) -> None:
    """Check that `Options` is a model of options, which refuses unknown ones."""
    require(issubclass(DYNAMICS[name].Options, NumericalOptions), "`Options` is no subclass of NumericalOptions")
    simulated = partial(_simulated, name, suited(name)[0], options={"no_such_option": 1})
    require_refusal(simulated, "it takes unknown options")


def it_says_what_it_is(name: str) -> None:
    """Check that it has its registered name, a label and a docstring."""
    kind = DYNAMICS[name]
    require(getattr(kind, "name", None) == name, f"its `name` is {getattr(kind, 'name', None)!r}")
    require(bool(getattr(kind, "label", "")), "it has no `label`")
    require(bool(kind.__doc__) and kind.__doc__ != Dynamics.__doc__, "it has no docstring")
