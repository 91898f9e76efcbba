"""System and Drifts: arguments and results of rules for Gaussian expectations, as NamedTuples for compiled code."""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


class System(NamedTuple):
    """A network, or many networks, whose number (lane) is then an additional last axis of every field.

    Q (p, p), M (p, k), P (k, k) : overlaps.
    a (p,), a* (k,) : second layers.
    Delta : label noise Δ.
    stretch : factor of Ω in Ψ^Var.
    """

    Q: Array
    M: Array
    P: Array
    a: Array
    a_star: Array
    Delta: Any
    stretch: Any


class Drifts(NamedTuple):
    """Ψ^M (p, k), Ψ^GF (p, p), Ψ^Var (p, p) and Ψ^a (p,) of a system; many systems have the lane as last axis."""

    M: Array
    GF: Array
    Var: Array
    a: Array


def empty_drifts(p: int, k: int, *lanes: int) -> Drifts:
    """Uninitialised drifts of a system, or of many lanes."""
    return Drifts(*(np.empty((*shape, *lanes)) for shape in ((p, k), (p, p), (p, p), (p,))))
