"""Rules for Gaussian expectations as functions with an address.

Kernels that call them are compiled once for all pairs of activations; a rule is compiled once for all its callers. A
rule for risks is a function (pair, Q, M, P, a, a_star, out) of many systems, one for drifts (system, out) of one.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System, empty_drifts
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import in_loops, inlined, over_arrays, pointer
from sweeplib.networks.numerics.python_calls import compiled
from sweeplib.networks.numerics.vectors import WIDTH


def _matrices(dimensions: int) -> types.Type:
    """The type of arrays of so many dimensions."""
    return types.Array(types.float64, dimensions, "C")


_LINE = _matrices(1)
# the types of the fields of `Pair`, in their order
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
    # Q, M, P; a, a_star; Delta, stretch; pair; drifts
    return types.NamedTuple([matrix, matrix, matrix, layer, layer, number, number, _PAIR, rule], System)


def drifts_type(lanes: int) -> types.Type:
    """The type of Drifts, of one or many systems."""
    # M, GF, Var; a
    return types.NamedTuple([*[_matrices(2 + lanes)] * 3, _matrices(1 + lanes)], Drifts)


# pair; Q, M, P; a, a_star; out
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
    """The address of a function (which, x, out) that fills out (n,) with one of these functions at x (n,), by number.

    It compares `which` with one number after the other, as compiled code has no list of functions.
    """
    *others, last = functions
    fill = _filled(last)
    for number, function in reversed(list(enumerate(others))):
        fill = _chosen(number, _filled(function), fill)
    return pointer(_fill_ridge, types.void(types.int64, _LINE, _LINE), fill=fill)


def fields_address(labels: Callable[..., None]) -> Any:
    """The address of a function (k, x, out) that fills out (n,) with labels at x (k n,), the flat form of λ* (k, n)."""
    return pointer(_fill_labels, types.void(types.int64, _LINE, _LINE), labels=labels)


@cache
def _filled(function: Callable[[float], float]) -> Callable[..., None]:
    """The template `_fill_all` with this function."""
    return bound(_fill_all, function=in_loops(function))


@cache
def _chosen(number: int, first: Callable[..., None], others: Callable[..., None]) -> Callable[..., None]:
    """The template `_fill_chosen`: `first` for the ridge of this number, `others` for the rest."""
    return bound(_fill_chosen, number=number, first=inlined(first), others=inlined(others))


function = fill = first = others = labels = unbound
number = 0
"""What the templates below call and compare with, until `bound` puts other things in their place."""


def _fill_ridge(which, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the function number `which` at x (n,), by the bound `fill`."""
    fill(which, x, out)


def _fill_labels(k, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the bound `labels` of fields x, (k, n) in one row; kernels call this by its address."""
    lam_star = x.reshape((k, out.shape[0]))
    labels(lam_star, lam_star, out)


def _fill_all(which, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) to the bound `function` at x (n,), the last one: `which` was compared before (`_fill_chosen`)."""
    for n in range(x.shape[0]):
        out[n] = function(x[n])


def _fill_chosen(which, x, out):  # type: ignore[no-untyped-def]
    """Set out (n,) at x (n,) to the function `first` if `which` is the bound number, else by `others`."""
    if which == number:
        first(which, x, out)
    else:
        others(which, x, out)


@cache
def no_functions() -> Pair:
    """The `Pair` of closed forms, which do not read it: of the type of all, with empty arrays."""
    identity = over_arrays(_same)
    empty, rows = np.empty(0), np.empty((0, 1))
    which = np.zeros(1, np.int64)
    none = np.empty((0, 0))
    return Pair(identity, identity, ridge_address((_same,)), which, rows, empty, empty, none, 0.0, none, 0, 0.0)


def _same(x: float) -> float:
    """The identity, in place of functions that are not read."""
    return x


def risks(pair: Pair, rule: Callable[..., None], Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
    """The risk of n systems (n,): Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k)."""
    matrices = (_owned(matrix.transpose(1, 2, 0)) for matrix in (Q, M, P))
    layers = (_owned(layer.T) for layer in (a, a_star))
    out = np.empty(len(M))
    compiled(_call_risk)(risk_address(rule), pair, *matrices, *layers, out)
    return out


def drifts_of(rule: Callable[..., None], system: System) -> Drifts:
    """The drifts of one system by a rule."""
    out = empty_drifts(*system.M.shape)
    compiled(_call_drifts)(drifts_address(rule), owned(system), out)
    return out


def owned(system: System) -> System:
    """A copy of one system of the type that rules take: arrays of its own, contiguous, and a `Pair`."""
    Q, M, P, a, a_star = map(_owned, system[:5])
    pair = system.pair or no_functions()
    return System(Q, M, P, a, a_star, float(system.Delta), float(system.stretch), pair, None)


def lane_drifts_of(rule: Callable[..., None], drifts: Callable[..., None], system: System) -> Drifts:
    """The drifts of many systems (last axis) by a rule for many, which may call the rule `drifts` for one."""
    p, k, lanes = system.M.shape
    copies = -lanes % WIDTH  # vectors are filled with copies of the last system
    parts = [_owned(np.concatenate([array, array[..., -1:].repeat(copies, axis=-1)], axis=-1)) for array in system[:7]]
    Q, M, P, a, a_star, Delta, stretch = parts
    out = empty_drifts(p, k, lanes + copies)
    lanes_system = System(Q, M, P, a, a_star, Delta, stretch, system.pair or no_functions(), drifts_address(drifts))
    compiled(_call_drifts_in_lanes)(lane_drifts_address(rule), lanes, lanes_system, out)
    return Drifts(*(drift[..., :lanes] for drift in out))


def no_drifts(system: System, out: Drifts) -> None:
    """Do nothing, in place of a rule for the drifts of one system."""


def _owned(array: Any) -> Array:
    """A copy of an array that is writable and contiguous, as the functions with an address require."""
    return np.array(array, dtype=float, order="C")


# the rule is an argument of calls, its address, so that one compiled form serves all rules
def _call_risk(rule, pair, Q, M, P, a, a_star, out):  # type: ignore[no-untyped-def]
    """Call a rule for risks by its address."""
    rule(pair, Q, M, P, a, a_star, out)


def _call_drifts(rule, system, out):  # type: ignore[no-untyped-def]
    """Call a rule for the drifts of one system by its address."""
    rule(system, out)


def _call_drifts_in_lanes(rule, filled, system, out):  # type: ignore[no-untyped-def]
    """Call a rule for the drifts of many systems by its address."""
    rule(filled, system, out)
