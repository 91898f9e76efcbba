"""The variables that a case records: names, dimensions, labels.

The error of a variable NAME is the variable NAME_error, with the attribute `error_of`.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from sweeplib.engine.variable import END_STATE, Variable
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES, Observable
from sweeplib.networks.simulation.labels import exit_words, label

if TYPE_CHECKING:
    from sweeplib.networks.simulation.cases import Case

STEPS = label("steps") | {"units": "steps"}
"""The labels of a number of SGD steps."""
SCHEDULE_LABELS = {
    "schedule_rate": {
        "long_name": "factor of the learning rate at a knot of the optimal schedule",
        "units": "1",
        "symbol": r"\xi_k",
        "comment": "the schedule is linear between knots, which are equally spaced from time zero to the last time",
    },
    "schedule_risk": {
        "long_name": "risk of the ODE at the last time with the optimal schedule",
        "units": "1",
        "symbol": r"\mathcal{R}_\xi",
        "comment": "mean over the starts for which it is optimal",
    },
    "schedule_gradient": {
        "long_name": "largest change of the logarithm of the risk with a knot of the optimal schedule",
        "units": "1",
        "comment": "derivative of ln R by a factor, times the largest factor; 0 at the minimum",
    },
}
"""The labels of what is recorded of an optimal schedule."""


EXIT_ERROR = {"comment": "error of the level there, over the rate at which it falls"}
"""The label of errors of exits: how they are found."""


def recorded_variables(case: "Case") -> dict[str, Variable]:
    """The variables that a case records, by name, without the dimension of the cases."""
    kind, recording = DYNAMICS[case.dynamics], case.recording
    options = case.numerical_options()
    sizes = kind.sizes(case.problem, options) | dict.fromkeys(("time", "instant"), len(recording.times))
    variables = {
        "end_steps": Variable((), (), STEPS | {"long_name": "last step simulated"}),
        "end_time": Variable((), (), label("time") | {"long_name": "last ODE time simulated"}),
    }
    # exits, with their errors
    if recording.thresholds:
        rule = {"comment": "NaN where the threshold was not reached: censored at the end of the run"}
        shape, whose = (len(recording.thresholds),), exit_words(recording.exit_on)
        for unit, labels, long_name in (("steps", STEPS, "exit time in steps"), ("time", label("time"), "exit time")):
            named = {"long_name": f"{long_name}{whose}"} | rule
            variables[f"exit_{unit}"] = Variable(("threshold",), shape, labels | named)
            if kind.states_exit_errors:
                of_error = {"long_name": f"error of the {long_name}{whose}", "error_of": f"exit_{unit}"} | EXIT_ERROR
                variables[error_of(f"exit_{unit}")] = Variable(
                    ("threshold",), shape, {"units": labels["units"]} | of_error
                )
    for name, diagnostic in kind.diagnostics(case.problem, options, recording.observables).items():
        dims = (("time",) if diagnostic.over_time else ()) + diagnostic.dims
        variables[name] = Variable(dims, tuple(sizes[dim] for dim in dims), dict(diagnostic.attrs))
    if (optimal := case.problem.optimal) is not None:
        for name, attrs in SCHEDULE_LABELS.items():
            inner = {"knot": optimal.knots} if name == "schedule_rate" else {}
            variables[name] = Variable(tuple(inner), tuple(inner.values()), attrs)
    # observables, with their errors unless a diagnostic is their error already
    for name in recording.observables:
        observable = observable_of(name, case.dynamics)
        dims = (("time",) if observable.over_time else ()) + observable.dims_of(kind.view)
        labels = {"long_name": observable.long_name, "units": observable.units, "symbol": observable.symbol}
        variables[name] = Variable(dims, tuple(sizes[dim] for dim in dims), labels)
        estimated, batches = observable.estimated(case.problem), kind.batches if observable.over_time else 0
        if (estimated or batches) and error_of(name) not in variables:
            standard = f"standard error, from {batches} independent batches of samples"
            of_rule = "of quadrature and, by a second solution where there is one, of the state"
            parts = [standard] * bool(batches) + [of_rule] * estimated
            of_error = {"long_name": f"error of the {observable.long_name}", "units": observable.units}
            of_error |= {"error_of": name, "comment": "; ".join(parts)}
            variables[error_of(name)] = replace(variables[name], attrs=of_error)
    return variables


def stored_variables(case: "Case") -> dict[str, Variable]:
    """The variables that are stored of a case: those that it records and, if it keeps it, the state of its end."""
    size = DYNAMICS[case.dynamics].state_size(case.problem, case.numerical_options())
    if not (case.recording.keep_ends and size and case.problem.optimal is None):
        return recorded_variables(case)
    labels = {"long_name": "state from which the run goes on", "comment": "NaN for runs that have stopped"}
    return recorded_variables(case) | {END_STATE: Variable(("state",), (size,), labels)}


def error_of(name: str) -> str:
    """The name of the variable of the error of a variable."""
    return f"{name}_error"


def observable_of(name: str, dynamics: str) -> Observable:
    """The observable `name`; InputError if it does not support the view of the `dynamics`."""
    observable, view = OBSERVABLES[name], DYNAMICS[dynamics].view
    if not observable.is_of(view):
        of_dynamics = ", ".join(other for other in OBSERVABLES if OBSERVABLES[other].is_of(view)) or "none"
        suited = ", ".join(other for other in DYNAMICS if observable.is_of(DYNAMICS[other].view)) or "none"
        expected = f"for {name} one of these dynamics: {suited}; or of {dynamics}: {of_dynamics}"
        raise InputError(f"{dynamics} has no such observable", key="observables", value=name, expected=expected)
    return observable
