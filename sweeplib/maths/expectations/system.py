"""What a rule for Gaussian expectations is given, and what it fills, as NamedTuples that compiled code takes."""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


class System(NamedTuple):
    """The overlaps Q (p, p), M (p, k), P (k, k) of a network, its second layers a (p,), a* (k,), and the noise Δ.

    `stretch` is a factor of Ω in Ψ^Var. Of many systems the last axis of every array counts them, the lanes, and Δ and
    `stretch` are arrays (lanes,).
    """

    Q: Array
    M: Array
    P: Array
    a: Array
    a_star: Array
    Delta: Any
    stretch: Any


class Drifts(NamedTuple):
    """Ψ^M (p, k), Ψ^GF (p, p), Ψ^Var (p, p) and Ψ^a (p,) of a system; of many, with the lane as last axis."""

    M: Array
    GF: Array
    Var: Array
    a: Array


def empty_drifts(p: int, k: int, *lanes: int) -> Drifts:
    """Room for the drifts of a system, or of so many lanes."""
    return Drifts(*(np.empty((*shape, *lanes)) for shape in ((p, k), (p, p), (p, p), (p,))))
