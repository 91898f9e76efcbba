"""Networks: the simulator of all dynamics of two-layer networks, as the engine asks for it.

Methods are those of the `Simulator`, where the engine says when it calls them; they pass its questions on.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.design.design import Design
from sweeplib.engine.records import Begun, Checkpoints, Records
from sweeplib.engine.simulator import NETWORKS, Measurement, Simulator
from sweeplib.engine.storage.dataset.coordinates import Constant, Coordinate
from sweeplib.engine.variable import Variable
from sweeplib.networks import coordinates, pilots, rows
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.hints import NetworkHints
from sweeplib.networks.parameters import NetworkParameters
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.simulation import driver, labels
from sweeplib.networks.simulation.cases import CHECKS, Case
from sweeplib.networks.simulation.columns import Cases
from sweeplib.networks.simulation.recording import Recording
from sweeplib.networks.simulation.variables import stored_variables

SECONDS_A_WEIGHT = 1e-8
"""Seconds that it takes to draw one weight of a start, for the cost of a case."""


SHARED_DIMS = frozenset({"time", "threshold", "quantile", "knot", "task", "block"})
"""The dimensions of variables that have the same shape for all p and k."""


class Networks(Simulator):
    """Cases of problems; the kinds of runs are the dynamics."""

    name = NETWORKS
    about = "one-pass SGD in two-layer networks and its limits"
    ends = ("end_steps", "end_time")
    parameters = NetworkParameters()
    hints = NetworkHints()

    def shares(self, dims: Collection[str]) -> bool:
        """Return whether arrays with these dimensions have one shape for all p and k: no dimension counts units."""
        return SHARED_DIMS.issuperset(dims)

    def run(
        self,
        cases: Sequence[Case],
        *,
        timeout: float | None = None,
        begun: Begun | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> Records:
        """Return the records of cases of one shape (`run_cases`).

        Runs of networks keep no states on their way: `checkpoints` are not used.
        """
        return driver.run_cases(cases, timeout=timeout, begun=begun)

    def variables(self, case: Case) -> dict[str, Variable]:
        """Return the variables that are stored of a case, by name."""
        return stored_variables(case)

    def group(self, case: Case) -> Mapping[str, int]:
        """Return the widths, on which the shapes of arrays over units depend."""
        return {"p": case.problem.p, "k": case.problem.k}

    def work(self, case: Case) -> float:
        """Return the nominal floating-point operations of a case that runs to its last recording time."""
        return driver.case_work(case)

    def seconds(self, case: Case) -> float:
        """Return the seconds of one core of 3 GHz for a case that runs to its last recording time, with its start.

        A model (`Dynamics.cost_seconds`), by which the cheapest dynamics is chosen, not a measurement.
        """
        kind, problem = DYNAMICS[case.dynamics], case.problem
        of_work, of_step, of_unit = kind.cost_seconds
        steps = driver.case_steps(case) / kind.step_length(problem, case.numerical_options())
        weights = (2.0 * problem.p + problem.k) * problem.d if "start" in kind.reads else 0.0
        of_steps = steps * (of_step + of_unit * problem.p)
        return of_work * driver.case_work(case) + of_steps + SECONDS_A_WEIGHT * weights

    def checks(self) -> Sequence[Callable[[Any], None]]:
        """Return the checks of a case but for its steps and schedules, functions that raise InputError."""
        return CHECKS

    def cases_at(self, points: Table, columns: Mapping[str, Column]) -> Cases:
        """Return the cases at some `points` of a grid, which have the problems; `columns` have the other fields."""
        fields = {name: column for name, column in points.columns.items() if name in PARAMETERS}
        return Cases(fields | dict(columns), len(points))

    def steps(self, case: Case) -> float:
        """Return the number of SGD steps to the last recording time."""
        return driver.case_steps(case)

    def memory(self, case: Case) -> int:
        """Return the bytes of the large arrays that a case has while it runs, such as weights and a training set."""
        return driver.case_memory(case)

    def peak_memory(self, case: Case) -> int:
        """Return the bytes of a case's large arrays, or of the weights from which its start is made, if that is more.

        W takes its size twice, as rows that are drawn and as a matrix.
        """
        problem = case.problem
        start = 8 * (2 * problem.p + problem.k) * problem.d if "d" in DYNAMICS[case.dynamics].reads else 0
        return max(driver.case_memory(case), start)

    def lanes(self, case: Case) -> tuple[int, int]:
        """Return the smallest and the largest number of cases that the dynamics computes in one group of lanes."""
        return DYNAMICS[case.dynamics].lanes

    def compiled(self, case: Case) -> tuple[Hashable, ...]:
        """Return the names that determine which kernels are compiled: cases that agree in them share the kernels."""
        problem = case.problem
        return (case.dynamics, problem.activation, problem.teacher, problem.target)

    def title(self, case: Case) -> str:
        """Return the dynamics, the activations and the widths in words."""
        problem = case.problem
        taught = problem.teacher if problem.target == "committee" else problem.target
        pair = problem.activation if taught == problem.activation else f"{problem.activation} of {taught}"
        return f"{case.dynamics} ({pair}, p = {problem.p}, k = {problem.k})"

    def sizes(self, case: Case) -> Mapping[str, Any]:
        """Return the widths, the dimension and the size of the training set, if there is one."""
        fields = {name: getattr(case.problem, name) for name in ("p", "k", "d", "samples")}
        return {name: value for name, value in fields.items() if value is not None}

    def warm_up(self, cases: Sequence[Case]) -> None:
        """Compile the kernels of cases, or load them from numba's cache, where they are afterwards."""
        pilots.compiled(cases)

    def measured(self, cases: Sequence[Case], limit: float, ended: float = 1.0) -> Measurement:
        """Return the cost of a case, measured for about `limit` seconds, and after which part of its times a case ends.

        ended : the part that is known of similar cases.
        """
        return pilots.measured(cases, limit, ended)

    def label(self, name: str) -> dict[str, Any]:
        """Return the long name, the units and the symbol of a coordinate."""
        return labels.label(name)

    def coordinates(self, sweep: Design, case: Case) -> list[Coordinate]:
        """Return the coordinates of a sweep's dataset."""
        return coordinates.coordinates(sweep, case.problem)

    def constants(self, sweep: Design, case: Case) -> dict[str, Constant]:
        """Return the fields and numbers of expressions that are the same at all points."""
        return coordinates.constants(sweep, case.problem)

    def index(self, cases: Cases) -> dict[str, np.ndarray]:
        """Return the problems as texts, the seeds and the clocks of cases."""
        return rows.index_of(cases)

    def shared(self, case: Case) -> dict[str, Any]:
        """Return the fields of a case that its layout shares."""
        return rows.shared_fields(case)

    def cases(self, shared: Mapping[str, Any], index: Mapping[str, np.ndarray]) -> Cases:
        """Return the cases of a layout, from what `shared` and `index` returned."""
        return rows.cases_of(shared, index)

    def recording(self, shared: Mapping[str, Any]) -> Recording | None:
        """Return the recording in what `shared` returned; None if it has observables that are not known here."""
        return rows.recording_of(shared)


SIMULATOR = Networks()
"""The one simulator of networks, by whose name the engine imports this module."""


def simulator_of(_: str, code: str | None = None) -> Networks:
    """Return the simulator of networks, the same for all configs."""
    return SIMULATOR
