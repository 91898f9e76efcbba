"""System and Drifts: arguments and results of rules for Gaussian expectations, as NamedTuples for compiled code."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import inlined


class Pair(NamedTuple):
    """What the rules for any activations and targets need of them: quadrature, and polynomials; others ignore it.

    The target is Σ_r c_r τ_r(v_r·λ*), a committee of ridge functions. Without directions, v_r·λ* is λ*_r and c_r is
    a*_r/k.

    student_value, student_slope : addresses of functions (x, out) that fill out with σ(x), σ'(x); x, out (n,).
    ridge_value : address of a function (which, x, out) that fills out with function number `which` of the target, or,
        for a target that is no sum of ridge functions, (k, x, out) that fills out (n,) with it at λ* (k, n), x (k n,).
    which (ridges,) : numbers of the functions τ_r; one for all without directions.
    directions (ridges, k), weights (ridges,) : v_r and c_r, or no rows.
    nodes : nodes and weights of the rules of integration, one after another.
    series (functions, numbers) : for polynomials, the c_n √n! of σ and of the target's functions Σ c_n He_n/√n!; for
        quadrature, the offset, knots and jumps in turn of their piecewise linear parts.
    reach : where equally spaced nodes end, in standard deviations.
    steps (levels, functions) : steps of fields that resolve what σ and the target's functions have beyond that part,
        infinite for nothing; of a target that is no sum of ridge functions, for each λ*_r of the variance 4^level.
    side : the most equally spaced nodes on each side of zero; where they are not enough, steps are longer.
    most : the number of nodes for λ* above which steps are longer.
    spacing : distance of the nodes over all fields, for the drifts of a loss that have no closed form.
    loss : the values of the parameters of the loss.
    """

    student_value: Any
    student_slope: Any
    ridge_value: Any
    which: NDArray[np.int64]
    directions: Array
    weights: Array
    nodes: Array
    series: Array
    reach: float
    steps: Array
    side: int
    most: float
    spacing: float = 0.0
    loss: Array = np.empty(0)


Ridges = Sequence[tuple[int, float, tuple[float, ...]]]
"""Of each ridge function c_r τ_r(v_r·λ*): the number of τ_r in a list of functions, c_r and v_r."""


def ridge_arrays(ridges: Ridges) -> dict[str, Any]:
    """The fields `which`, `directions` and `weights` of a `Pair` for a sum of ridges or, without any, a committee."""
    return {
        "which": np.array([which for which, _, _ in ridges] or [0], dtype=np.int64),
        "directions": np.array([direction for _, _, direction in ridges]) if ridges else np.empty((0, 1)),
        "weights": np.array([weight for _, weight, _ in ridges]),
    }


class System(NamedTuple):
    """A network, or many networks, whose number (lane) is then an additional last axis of every field.

    Q (p, p), M (p, k), P (k, k) : overlaps.
    a (p,), a* (k,) : second layers.
    Delta : label noise Δ.
    stretch : factor of Ω in Ψ^Var; with 0 no caller reads Ψ^Var, and the values in its array have no meaning.
    pair : the `Pair`, which has no lanes.
    drifts : of many networks, the address of the rule for one; None for one network.

    Callers of `Expectations` leave out `pair` and `drifts`.
    """

    Q: Array
    M: Array
    P: Array
    a: Array
    a_star: Array
    Delta: Any
    stretch: Any
    pair: Any = None
    drifts: Any = None


class Drifts(NamedTuple):
    """Ψ^M (p, k), Ψ^GF (p, p), Ψ^Var (p, p) and Ψ^a (p,) of a system; many systems have the lane as last axis."""

    M: Array
    GF: Array
    Var: Array
    a: Array


def empty_drifts(p: int, k: int, *lanes: int) -> Drifts:
    """Uninitialised drifts of a system, or of so many systems in lanes."""
    return Drifts(*(np.empty((*shape, *lanes)) for shape in ((p, k), (p, p), (p, p), (p,))))


@inlined
def drifts_room(p: int, k: int) -> Drifts:
    """Uninitialised drifts of one system, in compiled code."""
    return Drifts(np.empty((p, k)), np.empty((p, p)), np.empty((p, p)), np.empty(p))
