"""The risk of a student on classes of equal odds, with the label y_c and inputs x ~ N(0, s_c² I_d/d) in class c.

R = ½ E[(y − f)²] = ½ mean_c (y_c² − 2 y_c E_c[f] + E_c[f²]), where the fields of class c have the covariance s_c² Q.
E_c[f²] is twice the risk of the pair σ, σ at a* = 0. E[σ(λ)] of one field is in closed form for piecewise linear σ;
otherwise a Gauss rule on each half line, exact for polynomials, odd functions and those with a kink at zero.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sweeplib.maths.activations import activation as activation_of
from sweeplib.maths.expectations import gauss
from sweeplib.maths.expectations.expectations import expectations
from sweeplib.maths.expectations.hinges import hinge_means
from sweeplib.numerics.compiled import called, over_arrays

Array = NDArray[np.float64]

NODES = 40


@dataclass(frozen=True, eq=False)
class ClassExpectations:
    """Expectations over classes of equal odds.

    activation : the student's.
    labels (classes,) : y_c.
    deviations : s_c (n,) of n replicas, one array a class.
    """

    activation: str
    labels: tuple[float, ...]
    deviations: tuple[Array, ...]

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def risks(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The population risk (n,) of n students, Q (n, p, p) and a (n, p); M, P and a* of a teacher are not read."""
        n, p = a.shape
        pair, no_teacher = expectations(self.activation), np.zeros((n, 1))
        scales, total = np.sqrt(np.einsum("nii->ni", Q)), np.zeros(n)
        for label, deviation in zip(self.labels, self.deviations, strict=True):
            stretched = Q * (deviation**2)[:, None, None]
            square = 2.0 * pair.risks(stretched, np.zeros((n, p, 1)), np.ones((n, 1, 1)), a, no_teacher)
            mean = (a * field_means(self.activation, deviation[:, None] * scales)).sum(axis=1) / p
            total += label**2 - 2.0 * label * mean + square
        return 0.5 * total / len(self.labels)


def field_means(activation: str, scales: Array) -> Array:
    """E[σ(s u)], u ~ N(0, 1), for each s of an array."""
    form = activation_of(activation)
    if form.hinges is not None:
        return hinge_means(form, scales)
    nodes, weights = _rule()
    fields = np.multiply.outer(scales, nodes)
    values = np.empty(fields.size)
    called(over_arrays(form.value), fields.ravel(), values)
    return values.reshape(fields.shape) @ weights


@cache
def _rule() -> tuple[Array, Array]:
    """Nodes and weights of E[f(u)], u ~ N(0, 1), on both half lines."""
    nodes, weights = map(np.array, gauss.half_normal(NODES))
    return np.concatenate([-nodes, nodes]), 0.5 * np.concatenate([weights, weights])
