"""Checks: functions of a registered name that raise `BrokenError` with what is wrong."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

from sweeplib.errors import InputError, SweeplibError

Check = Callable[[str], None]
"""A function of a registered name; its own name is the sentence that it checks."""
Function = TypeVar("Function", bound=Callable[..., Any])

_remembered: list[Any] = []
"""The functions whose results are remembered."""


def remembered(function: Function) -> Function:
    """Return a function whose results serve several checks: each is made once, until `forget`."""
    _remembered.append(cache(function))
    return cast("Function", _remembered[-1])


def forget() -> None:
    """Forget all results, after plugins were loaded or removed."""
    for item in _remembered:
        item.cache_clear()


class BrokenError(SweeplibError):
    """Why something registered does not keep its contract."""


class LeftOutError(SweeplibError):
    """Why a check cannot be made."""


@contextmanager
def warnings_as_errors() -> Iterator[None]:
    """A context in which a warning is an error, unless it is about what later releases of a package will not have."""
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def require(condition: bool, problem: str) -> None:
    """Raise BrokenError with a problem unless a condition holds."""
    if not condition:
        raise BrokenError(problem)


def require_labelled(item: Any, name: str, *labels: str) -> None:
    """Raise BrokenError unless an item has the registered name, and no empty label; `labels` are their attributes."""
    require(item.name == name, f"its name is {item.name!r}")
    for label in labels:
        require(bool(getattr(item, label)), f"its {label} is empty")


def require_equal(result: Any, expected: Any, subject: str, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Raise BrokenError, with the worst entry, unless two arrays have one shape and agree within tolerances.

    subject : what is compared, for the message. rtol, atol : as of `numpy.isclose`; NaN agrees with NaN.
    """
    first, other = np.asarray(result), np.asarray(expected)
    if first.shape != other.shape:
        raise BrokenError(f"{subject}: shape {first.shape}; expected {other.shape}")
    apart = ~np.isclose(first, other, rtol=rtol, atol=atol, equal_nan=True)
    if apart.any():
        with np.errstate(invalid="ignore"):
            distance = np.where(apart, np.nan_to_num(np.abs(first - other), nan=np.inf), -1.0)
        worst = np.unravel_index(distance.argmax(), distance.shape)
        place = f" at {tuple(map(int, worst))}" if worst else ""
        raise BrokenError(f"{subject}: {first[worst]:.6g}{place}; expected {other[worst]:.6g}")


def require_refusal(call: Callable[[], Any], problem: str, refusal: type[Exception] = InputError) -> None:
    """Raise BrokenError with a problem unless a call raises an exception of the class `refusal`."""
    try:
        call()
    except refusal:
        return
    raise BrokenError(problem)


def checks_of(contract: ModuleType) -> tuple[Check, ...]:
    """Return the checks of a module, in their order: its public functions of `name` alone that return nothing."""
    functions = (item for item in vars(contract).values() if inspect.isfunction(item))
    checks = (item for item in functions if item.__module__ == contract.__name__ and not item.__name__.startswith("_"))
    signatures = ((item, inspect.signature(item)) for item in checks)
    nothing = None, "None"  # the annotation is text in modules that do not evaluate theirs
    return tuple(
        item for item, has in signatures if list(has.parameters) == ["name"] and has.return_annotation in nothing
    )


def sentence(check: Check) -> str:
    """Return what a check checks, in words."""
    return check.__name__.replace("_", " ")
