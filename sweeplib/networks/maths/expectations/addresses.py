"""Rules for Gaussian expectations as functions with an address.

Kernels that call them are compiled once for all pairs of activations; a rule is compiled once for all its callers.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System, empty_drifts
from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.compiled import OneSignature, in_loops, inlined, over_arrays, pointer
from sweeplib.networks.numerics.vectors import WIDTH


def _matrices(dimensions: int) -> types.Type:
    return types.Array(types.float64, dimensions, "C")


_LINE = _matrices(1)
_PAIR = types.NamedTuple(
    [
        *[types.FunctionType(types.void(_LINE, _LINE))] * 2,
        types.FunctionType(types.void(types.int64, _LINE, _LINE)),
        types.Array(types.int64, 1, "C"),
        _matrices(2),
        *[_LINE] * 2,
        _matrices(2),
        types.float64,
        _matrices(2),
        types.int64,
        types.float64,
        types.float64,
        _LINE,
    ],
    Pair,
)


def system_type(lanes: int) -> types.Type:
    """The type of a System, of one (lanes = 0) or many (1)."""
    matrix, layer = _matrices(2 + lanes), _matrices(1 + lanes)
    number = _matrices(1) if lanes else types.float64
    rule = types.FunctionType(DRIFTS) if lanes else types.none
    return types.NamedTuple([matrix, matrix, matrix, layer, layer, number, number, _PAIR, rule], System)


def drifts_type(lanes: int) -> types.Type:
    """The type of Drifts, of one or many systems."""
    return types.NamedTuple([*[_matrices(2 + lanes)] * 3, _matrices(1 + lanes)], Drifts)


_RISK = types.void(_PAIR, *[_matrices(3)] * 3, *[_matrices(2)] * 2, _matrices(1))
DRIFTS = types.void(system_type(lanes=0), drifts_type(lanes=0))
"""The signature of a rule for the drifts of one system."""
_DRIFTS_IN_LANES = types.void(types.int64, system_type(lanes=1), drifts_type(lanes=1))


@cache
def risk_address(rule: Callable[..., None]) -> Any:
    """The address of a rule for the risk of many systems, `risk(pair, Q, M, P, a, a_star, out)`."""
    return pointer(rule, _RISK)


@cache
def drifts_address(rule: Callable[..., None]) -> Any:
    """The address of a rule for the drifts of one system, `drifts(system, out)`."""
    return pointer(rule, DRIFTS)


@cache
def lane_drifts_address(rule: Callable[..., None]) -> Any:
    """The address of a rule for the drifts of many systems, `rule(filled, system, out)`."""
    return pointer(rule, _DRIFTS_IN_LANES)


def ridge_address(functions: tuple[Callable[[float], float], ...]) -> Any:
    """The address of a function (which, x, out) that fills out (n,) with one of several functions at x (n,)."""
    *others, chosen = functions
    filled = _filled(chosen)
    for number, function in reversed(list(enumerate(others))):
        filled = _chosen(number, _filled(function), filled)
    return pointer(_fill_ridge, types.void(types.int64, _LINE, _LINE), fill=filled)


def fields_address(labels: Callable[..., None]) -> Any:
    """The address of a function (k, x, out) that fills out (n,) with the labels at λ* (k, n), x its flat form."""
    return pointer(_fill_labels, types.void(types.int64, _LINE, _LINE), labels=labels)


@cache
def _filled(function: Callable[[float], float]) -> Callable[..., None]:
    return bound(_fill_all, function=in_loops(function))


@cache
def _chosen(number: int, first: Callable[..., None], others: Callable[..., None]) -> Callable[..., None]:
    return bound(_fill_chosen, number=number, first=inlined(first), others=inlined(others))


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `ridge_address`")


function = fill = first = others = labels = _unbound
number = 0
"""What the templates below call and compare with, until `bound` puts other things in their place."""


def _fill_ridge(which, x, out):  # type: ignore[no-untyped-def]
    fill(which, x, out)


def _fill_labels(k, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the labels of fields x, (k, n) in one row; kernels call this by its address."""
    lam_star = x.reshape((k, out.shape[0]))
    labels(lam_star, lam_star, out)


def _fill_all(which, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the function at x (n,), whichever ridge is asked for."""
    for n in range(x.shape[0]):
        out[n] = function(x[n])


def _fill_chosen(which, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the function of the ridge `which`: the first of those left, or one of the others."""
    if which == number:
        first(which, x, out)
    else:
        others(which, x, out)


@cache
def no_functions() -> Pair:
    """The `Pair` of closed forms, which do not read it."""
    nothing = over_arrays(_same)
    empty, rows = np.empty(0), np.empty((0, 1))
    which = np.zeros(1, np.int64)
    none = np.empty((0, 0))
    return Pair(nothing, nothing, ridge_address((_same,)), which, rows, empty, empty, none, 0.0, none, 0, 0.0)


def _same(x: float) -> float:
    return x


def risks(pair: Pair, rule: Callable[..., None], Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
    """The risk of n systems (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
    matrices = (_owned(matrix.transpose(1, 2, 0)) for matrix in (Q, M, P))
    layers = (_owned(layer.T) for layer in (a, a_star))
    out = np.empty(len(M))
    _compiled_caller(_call_risk)(risk_address(rule), pair, *matrices, *layers, out)
    return out


def drifts_of(rule: Callable[..., None], system: System) -> Drifts:
    """The drifts of one system by a rule."""
    out = empty_drifts(*system.M.shape)
    _compiled_caller(_call_drifts)(drifts_address(rule), owned(system), out)
    return out


def owned(system: System) -> System:
    """A copy of one system of the type that rules take."""
    Q, M, P, a, a_star = map(_owned, system[:5])
    pair = system.pair or no_functions()
    return System(Q, M, P, a, a_star, float(system.Delta), float(system.stretch), pair, None)


def lane_drifts_of(rule: Callable[..., None], drifts: Callable[..., None], system: System) -> Drifts:
    """The drifts of many systems by a rule for them, which may call the rule `drifts` for one system."""
    p, k, lanes = system.M.shape
    whole = -lanes % WIDTH  # vectors are filled with copies of the last system
    parts = [_owned(np.concatenate([array, array[..., -1:].repeat(whole, axis=-1)], axis=-1)) for array in system[:7]]
    Q, M, P, a, a_star, Delta, stretch = parts
    out = empty_drifts(p, k, lanes + whole)
    lanes_system = System(Q, M, P, a, a_star, Delta, stretch, system.pair or no_functions(), drifts_address(drifts))
    _compiled_caller(_call_drifts_in_lanes)(lane_drifts_address(rule), lanes, lanes_system, out)
    return Drifts(*(drift[..., :lanes] for drift in out))


def no_drifts(system: System, out: Drifts) -> None:
    """Do nothing, in place of a rule for the drifts of one system."""


def _owned(array: Any) -> Array:
    """A copy of an array that is writable and contiguous, as the functions with an address require."""
    return np.array(array, dtype=float, order="C")


@cache
def _compiled_caller(template: Callable[..., None]) -> OneSignature:
    """Return the compiled form of a call; the rule is an argument, its address, so that one form serves all rules."""
    return OneSignature(template)


def _call_risk(rule, pair, Q, M, P, a, a_star, out):  # type: ignore[no-untyped-def]
    rule(pair, Q, M, P, a, a_star, out)


def _call_drifts(rule, system, out):  # type: ignore[no-untyped-def]
    rule(system, out)


def _call_drifts_in_lanes(rule, filled, system, out):  # type: ignore[no-untyped-def]
    rule(filled, system, out)
