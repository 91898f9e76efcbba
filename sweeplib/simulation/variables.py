"""What a case records: names, dimensions, labels."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.dynamics import DYNAMICS
from sweeplib.maths.expectations import expectations
from sweeplib.observables import OBSERVABLES
from sweeplib.simulation.recording import Status

if TYPE_CHECKING:
    from sweeplib.simulation.cases import Case

TIME_LABELS = {"long_name": "ODE time", "units": "1", "symbol": "t"}
STEP_LABELS = {"long_name": "SGD steps", "units": "steps", "symbol": r"\nu"}
STATUS_LABELS = {
    "long_name": "status of the case",
    "flag_values": [int(status) for status in Status],
    "flag_meanings": " ".join(status.name for status in Status),
}


@dataclass(frozen=True)
class Variable:
    """A recorded array of one case: the names and lengths of its dimensions, its type and labels."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    attrs: dict[str, str] = field(hash=False)
    dtype: np.dtype[np.float64] = field(default_factory=lambda: np.dtype(np.float64))


def recorded_variables(case: "Case") -> dict[str, Variable]:
    """The variables that a case records, by name, without the dimension of the cases."""
    p, k, recording = case.problem.p, case.problem.k, case.recording
    sizes = {"student": p, "student_2": p, "teacher": k, "teacher_2": k}
    found = {
        "end_steps": Variable((), (), {**STEP_LABELS, "long_name": "last step simulated"}),
        "end_time": Variable((), (), {**TIME_LABELS, "long_name": "last ODE time simulated"}),
    }
    if recording.thresholds:
        rule = {"comment": "NaN where the threshold was not reached: censored at the end of the run"}
        shape = (len(recording.thresholds),)
        steps, time = {**STEP_LABELS, "long_name": "exit time in steps"}, {**TIME_LABELS, "long_name": "exit time"}
        found["exit_steps"] = Variable(("threshold",), shape, steps | rule)
        found["exit_time"] = Variable(("threshold",), shape, time | rule)
    if DYNAMICS[case.dynamics].uses_drifts and expectations(case.problem.activation, case.problem.teacher).finer:
        rule = {"comment": "largest at a recording time, over the largest drift; estimated by a finer rule"}
        found["drift_error"] = Variable((), (), {"long_name": "error of the drifts", "units": "1"} | rule)
    if DYNAMICS[case.dynamics].estimates_error and {"risk", "test_error"}.intersection(recording.observables):
        comment = "difference to a solution at ten times the tolerance, at least a tenth of the tolerance"
        labels = {"long_name": "error of the integrated risk", "units": "1", "symbol": r"\delta\mathcal{R}"}
        shape = (len(recording.times),)
        found["risk_error"] = Variable(("time",), shape, labels | {"error_of": "risk", "comment": comment})
    for name in recording.observables:
        observable = OBSERVABLES[name]
        dims = (("time",) if observable.over_time else ()) + observable.dims
        sizes["time"] = len(recording.times)
        labels = {"long_name": observable.long_name, "units": observable.units, "symbol": observable.symbol}
        found[name] = Variable(dims, tuple(sizes[dim] for dim in dims), labels)
    return found
