"""Closed forms of Gaussian expectations as the plain Python that they are written in.

A system takes milliseconds, where a compiler takes seconds a pair of activations. That compiled code does the same is
tested once a family, in `unit/test_expectations_compiled.py`. Quadrature in Python would take seconds a system: it is
compiled.
"""

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from sweeplib.networks.maths.expectations import Expectations, quadrature
from sweeplib.networks.maths.expectations.expectations import drifts_in_turn
from sweeplib.networks.maths.expectations.system import Drifts, System, empty_drifts
from sweeplib.networks.numerics.binding import bound

Array = np.ndarray


@functools.cache
def plain(function: Callable[..., Any]) -> types.FunctionType:
    """The function with all that it calls, none of it compiled."""
    python = function.py_func if isinstance(function, Dispatcher) else function
    named = {name: python.__globals__.get(name) for name in python.__code__.co_names}
    called = {name: thing for name, thing in named.items() if isinstance(thing, Dispatcher | types.FunctionType)}
    return bound(python, **{name: plain(thing) for name, thing in called.items()})


def is_quadrature(needed: Expectations) -> bool:
    return needed.drifts is quadrature.drifts


def drifts(needed: Expectations, *system: Any, compiled: bool = False) -> Drifts:
    """Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of one system Q, M, P, a, a*, Δ: closed forms plain unless `compiled`."""
    given = System(*map(_contiguous, system), 1.0, needed.pair)
    if compiled or is_quadrature(needed):
        return needed.drifts_of(given)
    out = empty_drifts(*given.M.shape)
    with np.errstate(all="ignore"):
        plain(needed.drifts)(given, out)
    return out


def many_drifts(needed: Expectations, *systems: Any, compiled: bool = False) -> Drifts:
    """The same of many systems Q, M, P, a, a*, Δ, stretch, the last axis of every array; plain ones in turn."""
    given = System(*map(_contiguous, systems), needed.pair, plain(needed.drifts))
    if compiled or is_quadrature(needed):
        return needed.drifts_of_many(given)
    out = empty_drifts(*given.M.shape)
    with np.errstate(all="ignore"):
        plain(drifts_in_turn)(given.M.shape[2], given, out)
    return out


def risk(needed: Expectations, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> float:
    """The population risk of one system."""
    if is_quadrature(needed):
        return needed.risks(*(part[None] for part in (Q, M, P, a, a_star)))[0]
    out = np.empty(1)
    with np.errstate(all="ignore"):
        plain(needed.risk)(needed.pair, *(part[..., None] for part in (Q, M, P, a, a_star)), out)
    return out[0]


def blocks(omega: Array, p: int) -> Iterator[Array]:
    """Q, M and P in Ω."""
    return (np.ascontiguousarray(block) for block in (omega[:p, :p], omega[:p, p:], omega[p:, p:]))


def _contiguous(part: Any) -> Any:
    return np.ascontiguousarray(part) if isinstance(part, Array) else part
