"""Closed forms of Gaussian expectations as plain Python, uncompiled.

A system takes milliseconds, where the compiler takes seconds per pair of activations. Compiled and plain code are
compared once per family, in `unit/test_expectations_compiled.py`. Quadrature stays compiled, because plain Python would
take seconds per system.
"""

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from sweeplib.maths.expectations import Expectations, addresses, quadrature
from sweeplib.maths.expectations.system import Drifts, System, empty_drifts
from sweeplib.numerics.binding import bound

Array = np.ndarray


@functools.cache
def plain(function: Callable[..., Any]) -> types.FunctionType:
    """Return the function with all functions that it calls, none of them compiled."""
    python = function.py_func if isinstance(function, Dispatcher) else function
    named = {name: python.__globals__.get(name) for name in python.__code__.co_names}
    called = {name: thing for name, thing in named.items() if isinstance(thing, Dispatcher | types.FunctionType)}
    return bound(python, **{name: plain(thing) for name, thing in called.items()})


def is_quadrature(rule: Callable[..., None]) -> bool:
    return rule.__module__ == quadrature.__name__


def drifts(rule: Callable[..., None], *system: Any, compiled: bool | None = None, stretch: float = 1.0) -> Drifts:
    """Return Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of one system Q, M, P, a, a*, Δ; by default only quadrature is compiled."""
    given = System(*map(_contiguous, system), stretch)
    if is_quadrature(rule) if compiled is None else compiled:
        return addresses.drifts_of(rule, given)
    out = empty_drifts(*given.M.shape)
    with np.errstate(all="ignore"):
        plain(rule)(given, out)
    return out


def many_drifts(rule: Callable[..., None], *systems: Any, compiled: bool | None = None) -> Drifts:
    """Return the same for many systems Q, M, P, a, a*, Δ, stretch, with the system as last axis of every array."""
    given = System(*map(_contiguous, systems))
    if is_quadrature(rule) if compiled is None else compiled:
        return addresses.lane_drifts_of(rule, given)
    out = empty_drifts(*given.M.shape)
    with np.errstate(all="ignore"):
        plain(rule)(given.M.shape[2], given, out)
    return out


def risk(needed: Expectations, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> float:
    """Return the population risk of one system."""
    if is_quadrature(needed.drifts):
        return needed.risks(*(part[None] for part in (Q, M, P, a, a_star)))[0]
    out = np.empty(1)
    with np.errstate(all="ignore"):
        plain(needed.risk)(*(part[..., None] for part in (Q, M, P, a, a_star)), out)
    return out[0]


def blocks(omega: Array, p: int) -> Iterator[Array]:
    """Return Q, M and P of Ω."""
    return (np.ascontiguousarray(block) for block in (omega[:p, :p], omega[:p, p:], omega[p:, p:]))


def _contiguous(part: Any) -> Any:
    return np.ascontiguousarray(part) if isinstance(part, Array) else part
