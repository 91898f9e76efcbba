"""Rules for Gaussian expectations as functions with an address.

Kernels that call them are compiled once for all pairs of activations; a rule is compiled once for all its callers.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from sweeplib.maths.expectations.system import Drifts, System, empty_drifts
from sweeplib.numerics.compiled import OneSignature, called, pointer

Array = np.ndarray[Any, np.dtype[np.float64]]


def _matrices(dimensions: int) -> types.Type:
    return types.Array(types.float64, dimensions, "C")


def _system_type(lanes: int) -> types.Type:
    """The type of a System, of one (lanes = 0) or many (1)."""
    matrix, layer = _matrices(2 + lanes), _matrices(1 + lanes)
    number = _matrices(1) if lanes else types.float64
    return types.NamedTuple([matrix, matrix, matrix, layer, layer, number, number], System)


def _drifts_type(lanes: int) -> types.Type:
    return types.NamedTuple([*[_matrices(2 + lanes)] * 3, _matrices(1 + lanes)], Drifts)


_RISK = types.void(*[_matrices(3)] * 3, *[_matrices(2)] * 2, _matrices(1))
_DRIFTS = types.void(_system_type(0), _drifts_type(0))
_DRIFTS_IN_LANES = types.void(types.int64, _system_type(1), _drifts_type(1))


def risk_address(rule: Callable[..., None]) -> Any:
    """A rule for the risk of many systems, `risk(Q, M, P, a, a_star, out)`, as an argument of compiled code."""
    return pointer(rule, _RISK)


def drifts_address(rule: Callable[..., None]) -> Any:
    """A rule for the drifts of one system, `drifts(system, out)`."""
    return pointer(rule, _DRIFTS)


def lane_drifts_address(rule: Callable[..., None]) -> Any:
    """A rule for the drifts of many systems, `in_lanes(filled, system, out)`."""
    return pointer(rule, _DRIFTS_IN_LANES)


def risks(rule: Callable[..., None], Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
    """The risk of n systems (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
    matrices = (_owned(matrix.transpose(1, 2, 0)) for matrix in (Q, M, P))
    layers = (_owned(layer.T) for layer in (a, a_star))
    out = np.empty(len(M))
    _call_risk()(risk_address(rule), *matrices, *layers, out)
    return out


def _owned(part: Any) -> Array:
    """A copy of an array that is writable and contiguous, as the functions with an address require."""
    return np.array(part, dtype=float, order="C")


@cache
def _call_risk() -> OneSignature:
    return OneSignature(_call)


def _call(rule, Q, M, P, a, a_star, out):  # type: ignore[no-untyped-def]
    rule(Q, M, P, a, a_star, out)


def drifts_of(rule: Callable[..., None], system: System) -> Drifts:
    """The drifts of one system by a rule."""
    Q, M, P, a, a_star = map(_owned, system[:5])
    out = empty_drifts(*system.M.shape)
    called(drifts_address(rule), System(Q, M, P, a, a_star, float(system.Delta), float(system.stretch)), out)
    return out


def lane_drifts_of(rule: Callable[..., None], system: System, filled: int | None = None) -> Drifts:
    """The drifts of many systems by a rule; at least the first `filled` are computed."""
    lanes = system.M.shape[2]
    out = empty_drifts(*system.M.shape)
    given = System(*map(_owned, system))
    called(lane_drifts_address(rule), lanes if filled is None else filled, given, out)
    return out
