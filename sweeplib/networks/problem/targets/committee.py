"""The committee, f* = (1/k) Σ a*_r σ*(λ*_r): a two-layer network like the student."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.problem.targets.target import TARGET_FIELDS, TARGETS, Target

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations


value = unbound
"""Bound by `labels`."""


def fill(lam_star: Array, a_star: Array, out: Array) -> None:
    """Fill out (n,) with f* of lam_star (k, n) and a_star (k, n)."""
    k, n = lam_star.shape
    share, values = 1.0 / k, np.empty((k, n))
    out[:] = 0.0
    for r in range(k):
        for i in range(n):
            values[r, i] = value(lam_star[r, i])
        for i in range(n):
            out[i] += share * a_star[r, i] * values[r, i]


@cache
def labels(teacher_activation: str) -> Any:
    """Return `fill` for teachers with this activation: the compiled function in whose loops σ* is."""
    from sweeplib.networks.maths.activations import activation
    from sweeplib.networks.numerics.compiled import in_loops

    return bound(fill, value=in_loops(activation(teacher_activation).value))


def expectations(activation: str, teacher_activation: str) -> "Expectations":
    """Return the expectations of a student and a teacher with these activations."""
    from sweeplib.networks.maths.expectations import expectations as of_pair

    return of_pair(activation, teacher_activation)


TARGETS.add(
    Target("committee", r"\frac{1}{k} \sum_r a^*_r \sigma^*(\lambda^*_r)", labels, expectations, reads=TARGET_FIELDS),
)
