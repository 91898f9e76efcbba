"""What every observable keeps, in each view that it names.

A view that a plugin defines itself is not checked: nobody but its dynamics can make it.

Public functions of `name`, the registered name of an observable, that return nothing are checks: each raises
BrokenError with what is wrong, and its own name is the sentence that it checks.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sweeplib.contracts.check import BrokenError, LeftOutError, require, require_equal, require_labelled
from sweeplib.contracts.problems import OTHERS, two_values
from sweeplib.contracts.views import REPLICAS, SIZES, VIEWS, of_one_replica, parts
from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.observables import OBSERVABLES, Observable
from sweeplib.networks.problem import PARAMETERS, Problem
from sweeplib.networks.simulation.labelled_runs import simulate
from sweeplib.networks.views import Estimate, TrainingView, View

EXITS = (0.02, 0.05, 0.2)
"""The thresholds at which runs are tried to exit on an observable."""
LEVELLED = "erf", "linear"
"""The activations of the problems on which exits are tried."""


def quick(names: tuple[str, ...], *problems: Problem) -> tuple[str, ...]:
    """Return those of the observables `names` that are exact in all problems: estimates take long."""
    return tuple(item for item in names if not any(map(OBSERVABLES[item].estimated, problems)))


def _views(observable: Observable) -> Iterator[type[View]]:
    """Yield the views of sweeplib that an observable supports."""
    yield from (view for view in VIEWS if observable.is_of(view))


def _values(observable: Observable, view: type[View], now: View, replicas: int = REPLICAS, **other: Any) -> Array:
    """Return the values (replicas, ...) of an observable in `now`, a view of the class `view`.

    other : its own parameters, where they are not those of `two_values`.
    """
    parameters = {name: two_values(name)[1] for name in observable.parameter_names} | other
    result = observable.function_of(view)(now, **{name: np.full(replicas, value) for name, value in parameters.items()})
    result = result.value if isinstance(result, Estimate) else result
    if not isinstance(result, np.ndarray):
        raise BrokenError(f"of {view.__name__} it returns {type(result).__name__}; expected an array")
    return result


def it_names_views_and_their_dimensions(name: str) -> None:
    """Check that `functions` and `dims` have the same views, and that a view has the dimensions."""
    observable = OBSERVABLES[name]
    for view in observable.views:
        is_view = isinstance(view, type) and issubclass(view, View)  # type: ignore[redundant-expr]
        require(is_view, f"{view!r} is no view")
        try:
            dims = observable.dims_of(view)
        except StopIteration:
            raise BrokenError(f"`dims` has no entry for {view.__name__}") from None
        for dim in dims:
            listed = ", ".join(view.dims)
            require(dim in view.dims, f"{view.__name__} has no dimension {dim!r}; it has {listed}")


def its_array_has_the_dimensions_that_it_declares(name: str) -> None:
    """Check its shape behind the axis of the replicas, of which there are three."""
    observable = OBSERVABLES[name]
    for view in _views(observable):
        result, dims = _values(observable, view, VIEWS[view]()), observable.dims_of(view)
        expected = (REPLICAS, *(SIZES[dim] for dim in dims))
        declared = ", ".join(("replica", *dims))
        problem = f"of {view.__name__} its shape is {result.shape}; `dims` says ({declared}), here {expected}"
        require(result.shape == expected, problem)


def it_is_real_and_finite(name: str) -> None:
    """Check its values for overlaps and particles of drawn weights."""
    observable = OBSERVABLES[name]
    for view in _views(observable):
        result = _values(observable, view, VIEWS[view]())
        require(
            result.dtype.kind in "biuf", f"of {view.__name__} it has the type {result.dtype}; expected real numbers"
        )
        require(bool(np.isfinite(result).all()), f"of {view.__name__} it is not finite")


def a_replica_does_not_depend_on_the_others(name: str) -> None:
    """Check that the value of a replica is the same without the others, up to rounding."""
    observable = OBSERVABLES[name]
    for view in _views(observable):
        together = _values(observable, view, VIEWS[view]())
        for replica in range(REPLICAS):
            alone = _values(observable, view, of_one_replica(view, replica), 1)
            words = f"of {view.__name__}, replica {replica} alone"
            require_equal(alone[0], together[replica], words, rtol=1e-9, atol=1e-12)


def it_leaves_the_view_alone(name: str) -> None:
    """Check that the arrays of the view are the same afterwards."""
    observable = OBSERVABLES[name]
    for view in _views(observable):
        now = VIEWS[view]()
        before = parts(now)
        _values(observable, view, now)
        for array, values in before.items():
            problem = f"of {view.__name__} it changes {array.lstrip('_')}"
            require(np.array_equal(getattr(now, array), values, equal_nan=True), problem)


def it_depends_only_on_the_fields_that_it_reads(name: str) -> None:
    """Check that it ignores Δ, a* and the activations unless it `reads` them, which decides which cases are one."""
    observable = OBSERVABLES[name]
    changed = {"Delta": np.full(REPLICAS, 0.9), "a_star": np.full((REPLICAS, SIZES["teacher"]), 2.5)}
    unread = {field: {field: value} for field, value in changed.items() if field not in observable.acts_on}
    for view in _views(observable):
        others: dict[str, dict[str, Any]] = dict(unread)
        if "activation" not in observable.acts_on and "expectations" in vars(VIEWS[view]()):
            others["activation"] = {"expectations": expectations("square", "erf")}
        before = _values(observable, view, VIEWS[view]()) if others else np.zeros(0)
        for field, other in others.items():
            problem = f"of {view.__name__} it changes with {field}, which its `reads` does not name"
            require(np.array_equal(before, _values(observable, view, VIEWS[view](**other))), problem)


def it_changes_with_its_parameters(name: str) -> None:
    """Check that it changes with each of them, in a run of SGD or in a view that SGD does not have."""
    observable = OBSERVABLES[name]
    for field in observable.parameter_names:
        first, other = (_recorded(observable, {field: value}) for value in two_values(field))
        require(not np.array_equal(first, other, equal_nan=True), f"it is the same with another {field}")


def _recorded(observable: Observable, parameters: dict[str, Any]) -> Array:
    """Return the values of an observable with some of its own parameters, in a run of SGD or, without, in a view."""
    if not observable.is_of(TrainingView):
        view = next(_views(observable))
        return _values(observable, view, VIEWS[view](), **parameters)
    needed = {name: OTHERS[name] for name in observable.needs} | {
        name: two_values(name)[0] for name in observable.parameter_names
    }
    values: dict[str, Any] = (
        {"gamma": 0.2, "p": 3, "k": 2, "d": 40, "Delta": 0.1, "activation": "erf"} | needed | parameters
    )
    return simulate(Problem(**values), "sgd", times=[0.5], observables=[observable.name])[observable.name].values


def runs_exit_on_its_level(name: str) -> None:
    """Check that, with a `level`, runs exit at the first step at which its value has fallen by a threshold."""
    observable, refusals = OBSERVABLES[name], list[InputError]()
    for activation in LEVELLED if observable.level is not None else ():
        problem = Problem(gamma=2.0, p=2, k=2, d=20, Delta=0.1, activation=activation)
        steps = np.arange(40) * problem.step_time()
        try:
            run = simulate(problem, "sgd_chain", times=steps, observables=[name], thresholds=EXITS, exit_on=name)
        except InputError as refusal:
            refusals.append(refusal)
            continue
        thresholds = _thresholds(run[name].values)
        run = simulate(problem, "sgd_chain", times=steps, observables=[name], thresholds=thresholds, exit_on=name)
        values = run[name].values[:, None]
        low = values <= (1.0 - np.array(thresholds)[:, None]) * values[:, :, :1]
        first = np.where(low.any(axis=2), low.argmax(axis=2), np.nan)
        result = run.exit_steps.values
        text = (
            f"at thresholds {thresholds} runs exit after {result.tolist()} steps; by recorded values {first.tolist()}"
        )
        require(np.array_equal(result, first, equal_nan=True), text)
        return
    if refusals:
        raise LeftOutError(f"its level is of none of the problems that are tried: {refusals[0]}")


def _thresholds(values: Array) -> tuple[float, ...]:
    """Return `EXITS`, and half of the largest fall of the values if that is less; LeftOutError if they never fall."""
    if bool(np.isnan(values).all()):
        raise LeftOutError("its level is NaN on the test's dataset")
    fall = float(np.nanmax(1.0 - values / values[:, :1]))
    if fall <= 0.0:
        raise LeftOutError("its level never falls on the test's dataset")
    return EXITS if fall >= EXITS[0] else (fall / 2.0, *EXITS)


def what_is_recorded_once_is_constant(name: str) -> None:
    """Check that an observable that is not `over_time` is the same at the start and at the end of a run of SGD."""
    observable = OBSERVABLES[name]
    if observable.over_time or observable.needs or not observable.is_of(TrainingView):
        return
    problem = Problem(gamma=0.2, p=3, k=2, d=40, Delta=0.1, activation="erf")
    early, late = (simulate(problem, "sgd", times=[time], observables=[name])[name] for time in (0.0, 1.0))
    require_equal(late, early, "it is recorded once, but changes along a run")


def it_reads_fields_of_a_problem(name: str) -> None:
    """Check that `reads` and `needs` have names of fields only."""
    observable = OBSERVABLES[name]
    unknown = sorted((observable.reads | observable.needs) - set(PARAMETERS))
    require(not unknown, f"a problem has no field {', '.join(unknown)}")


def it_is_labelled(name: str) -> None:
    """Check that it has a `long_name`, a `symbol` and `units`, and its registered name."""
    require_labelled(OBSERVABLES[name], name, "long_name", "symbol", "units")
