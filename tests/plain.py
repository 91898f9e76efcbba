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

from sweeplib.maths.expectations import Expectations, quadrature
from sweeplib.numerics.binding import bound
from sweeplib.numerics.compiled import specialised

Array = np.ndarray


@functools.cache
def plain(function: Callable[..., Any]) -> types.FunctionType:
    """The function with all that it calls, none of it compiled."""
    python = function.py_func if isinstance(function, Dispatcher) else function
    named = {name: python.__globals__.get(name) for name in python.__code__.co_names}
    called = {name: thing for name, thing in named.items() if isinstance(thing, Dispatcher | types.FunctionType)}
    return bound(python, **{name: plain(thing) for name, thing in called.items()})


def quick(rule: Callable[..., None]) -> Callable[..., None]:
    """A closed form as plain Python, quadrature compiled."""
    return specialised(rule) if rule.__module__ == quadrature.__name__ else plain(rule)


def drifts(rule: Callable[..., None], *system: Any, how: Callable = quick) -> tuple[Array, Array, Array, Array]:
    """Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of one system Q, M, P, a, a*, Δ."""
    p, k = system[1].shape
    out = np.empty((p, k)), np.empty((p, p)), np.empty((p, p)), np.empty(p)
    with np.errstate(all="ignore"):
        how(rule)(*map(_contiguous, system), *out)
    return out


def many_drifts(rule: Callable[..., None], *systems: Any, how: Callable = quick) -> tuple[Array, ...]:
    """The same of many systems Q, M, P, a, a*, Δ, stretch, the last axis of every array."""
    p, k, count = systems[1].shape
    out = tuple(np.zeros((*shape, count)) for shape in ((p, k), (p, p), (p, p), (p,)))
    with np.errstate(all="ignore"):
        how(rule)(count, *map(_contiguous, systems), *out)
    return out


def risk(needed: Expectations, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> float:
    """The population risk of one system."""
    out = np.empty(1)
    with np.errstate(all="ignore"):
        quick(needed.risk)(*(part[..., None] for part in (Q, M, P, a, a_star)), out)
    return out[0]


def blocks(omega: Array, p: int) -> Iterator[Array]:
    """Q, M and P in Ω."""
    return (np.ascontiguousarray(block) for block in (omega[:p, :p], omega[:p, p:], omega[p:, p:]))


def _contiguous(part: Any) -> Any:
    return np.ascontiguousarray(part) if isinstance(part, Array) else part
