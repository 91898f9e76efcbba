"""The digest of the code that computes the results of a case: part of its identity, so that new code computes anew."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from sweeplib.engine.base.registry import Registry
from sweeplib.engine.code.sources import modules_digest
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.maths.activations import ACTIVATIONS, activation
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import DATA, LOSSES, STARTS, TARGETS, TASKS, UPDATES, Problem, registered_target
from sweeplib.networks.problem import target as target_of

OPTIMISER = "sweeplib.networks.simulation.optima", "sweeplib.networks.dynamics.optimal_schedule"
"""The modules that find optimal schedules: code of a case that has one."""


def numerics_version(problem: Problem, dynamics: str, observables: Iterable[str]) -> str:
    """A digest of the code that computes results of the problem.

    It covers the driver, dynamics, activations, target, start, data law, loss, step, observables and what optimises.
    """
    optimiser = () if problem.optimal is None else OPTIMISER
    return _numerics_version(dynamics, tuple(observables), optimiser, *names_of(problem))


def names_of(problem: Problem) -> tuple[str, ...]:
    """The names in a problem on which the code that computes its results depends."""
    parts = problem.student_start, problem.data, problem.loss, problem.update, problem.tasks
    return problem.activation, problem.teacher, problem.learned, *parts


@lru_cache(maxsize=1024)
def _numerics_version(dynamics: str, observables: tuple[str, ...], optimiser: tuple[str, ...], *of_problem: str) -> str:
    """Return the digest of the modules that define or register a function that makes numbers, and of what they import.

    of_problem : the names of `names_of`, in its order: activations, target, start, data, loss, update, tasks.
    """
    student, teacher, target, *parts = of_problem
    kind, target_, law, samples = DYNAMICS[dynamics], target_of(target), STARTS[parts[0]], DATA[parts[1]]
    pair, forms = target_.expectations(student, teacher), (activation(student), activation(teacher))
    functions: list[Callable[..., Any] | None] = [
        *(function for form in forms for function in (form.value, form.derivative)),
        *(pair.risk, pair.drifts, pair.of_many(1)[0], *((pair.finer.drifts,) if pair.finer else ())),
        *(unwrapped(target_.labels), unwrapped(target_.expectations), law.weights),
        *(samples.inputs, samples.expectations),
        *(OBSERVABLES[name].function_of(kind.view) for name in observables),
    ]
    # where these functions are defined, and where all names are registered: a plugin may register others' functions
    modules = {"sweeplib.networks.simulation.driver", kind.__module__, kind.view.__module__, DYNAMICS.origin(dynamics)}
    modules |= {function.__module__ for function in functions if function is not None}
    registries: tuple[Registry[Any], ...] = (STARTS, DATA, LOSSES, UPDATES, TASKS)
    modules |= {registry.origin(name) for registry, name in zip(registries, parts, strict=True)}
    modules |= {*optimiser, *([TARGETS.origin(key)] if (key := registered_target(target)) else [])}
    names = student, teacher, *target_.activations
    modules |= {ACTIVATIONS.origin(name) for name in names if name in ACTIVATIONS}
    return modules_digest(modules | {OBSERVABLES.origin(name) for name in observables})


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The plain function in a partial or cached one, which has the module."""
    function = getattr(function, "__wrapped__", function)
    return function.func if isinstance(function, partial) else function
