"""Checks: functions of a registered name that raise `BrokenError` with what is wrong."""

import inspect
from collections.abc import Callable
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
    for each in _remembered:
        each.cache_clear()


class BrokenError(SweeplibError):
    """What a thing does not keep, and why."""


class LeftOutError(SweeplibError):
    """Why a check cannot be made."""


def require(kept: bool, problem: str) -> None:
    """Raise BrokenError with a problem unless `kept`."""
    if not kept:
        raise BrokenError(problem)


def require_equal(found: Any, expected: Any, what: str, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Raise BrokenError, with the worst entry, unless two arrays have one shape and agree within tolerances."""
    one, other = np.asarray(found), np.asarray(expected)
    if one.shape != other.shape:
        raise BrokenError(f"{what}: shape {one.shape}; expected {other.shape}")
    apart = ~np.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
    if apart.any():
        with np.errstate(invalid="ignore"):
            distance = np.where(apart, np.nan_to_num(np.abs(one - other), nan=np.inf), -1.0)
        worst = np.unravel_index(distance.argmax(), distance.shape)
        place = f" at {tuple(map(int, worst))}" if worst else ""
        raise BrokenError(f"{what}: {one[worst]:.6g}{place}; expected {other[worst]:.6g}")


def require_refusal(call: Callable[[], Any], problem: str, refusal: type[Exception] = InputError) -> None:
    """Raise BrokenError with a problem unless a call raises a refusal."""
    try:
        call()
    except refusal:
        return
    raise BrokenError(problem)


def checks_of(contract: ModuleType) -> tuple[Check, ...]:
    """Return the checks of a module, in their order: its public functions of a name that return nothing."""
    functions = (each for each in vars(contract).values() if inspect.isfunction(each))
    own = (each for each in functions if each.__module__ == contract.__name__ and not each.__name__.startswith("_"))
    signatures = ((each, inspect.signature(each)) for each in own)
    nothing = None, "None"  # the annotation is text in modules that do not evaluate theirs
    return tuple(
        each for each, has in signatures if list(has.parameters) == ["name"] and has.return_annotation in nothing
    )


def sentence(check: Check) -> str:
    """Return what a check checks, in words."""
    return check.__name__.replace("_", " ")
