"""Networks: the simulator of all dynamics of two-layer networks, as the engine asks for it.

Methods are those of the `Simulator`, where the engine says when it calls them; many are functions of other modules.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.design.design import Design
from sweeplib.engine.records import Begun, Checkpoints, Records
from sweeplib.engine.simulator import NETWORKS, Simulator
from sweeplib.engine.storage.dataset.coordinates import Constant, Coordinate
from sweeplib.networks import coordinates, pilots, rows
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.hints import NetworkHints
from sweeplib.networks.parameters import NetworkParameters
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.simulation import driver, labels
from sweeplib.networks.simulation.cases import CHECKS, Case
from sweeplib.networks.simulation.columns import Cases
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
    variables = staticmethod(stored_variables)
    work = staticmethod(driver.case_work)
    steps = staticmethod(driver.case_steps)
    memory = staticmethod(driver.case_memory)
    warm_up = staticmethod(pilots.compiled)
    measured = staticmethod(pilots.measured)
    label = staticmethod(labels.label)
    index = staticmethod(rows.index_of)
    shared = staticmethod(rows.shared_fields)
    cases = staticmethod(rows.cases_of)
    recording = staticmethod(rows.recording_of)

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

    def group(self, case: Case) -> Mapping[str, int]:
        """Return the widths, on which the shapes of arrays over units depend."""
        return {"p": case.problem.p, "k": case.problem.k}

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

    def coordinates(self, sweep: Design, case: Case) -> list[Coordinate]:
        """Return the coordinates of a sweep's dataset."""
        return coordinates.coordinates(sweep, case.problem)

    def constants(self, sweep: Design, case: Case) -> dict[str, Constant]:
        """Return the fields and numbers of expressions that are the same at all points."""
        return coordinates.constants(sweep, case.problem)


SIMULATOR = Networks()
"""The one simulator of networks, by whose name the engine imports this module."""


def simulator_of(_: str, code: str | None = None) -> Networks:
    """Return the simulator of networks, the same for all configs."""
    return SIMULATOR
