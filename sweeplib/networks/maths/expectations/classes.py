"""The risk of a student on classes of equal odds, with the label y_c and inputs x ~ N(0, s_c² I_d/d) in class c.

R = ½ E[(y − f)²] = ½ mean_c (y_c² − 2 y_c E_c[f] + E_c[f²]), where the fields of class c have the covariance s_c² Q.
E_c[f²] is twice the risk of the pair σ, σ at a* = 0. E[σ(λ)] of one field is in closed form for piecewise linear σ,
error functions and polynomials; else by equally spaced nodes, at a step that resolves σ.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations import activation as activation_of
from sweeplib.networks.maths.activations.activation import kink
from sweeplib.networks.maths.expectations import gauss
from sweeplib.networks.maths.expectations.expectations import expectations
from sweeplib.networks.maths.expectations.grids import REACH, WIDEST, rest_step, rest_values
from sweeplib.networks.maths.expectations.hinges import hinge_means

MOST_SCALE = 1024.0
"""The largest standard deviation of a field that nodes follow."""


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
        p, scales, total = a.shape[1], np.sqrt(np.einsum("nii->ni", Q)), self._squares(Q, a, errors=False)
        for label, deviation in zip(self.labels, self.deviations, strict=True):
            mean = (a * field_means(self.activation, deviation[:, None] * scales)).sum(axis=1) / p
            total += (label**2 - 2.0 * label * mean) / len(self.labels)
        return 0.5 * total

    def risk_errors(self, risks: Array, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The errors (n,) of these `risks`: errors of E[f²], as means of one field have none beyond 10⁻⁹."""
        return 0.5 * self._squares(Q, a, errors=True)

    def _squares(self, Q: Array, a: Array, *, errors: bool) -> Array:
        """The mean over the classes (n,) of E_c[f²], or its error; Q (n, p, p), a (n, p)."""
        (n, p), pair, total = a.shape, expectations(self.activation), np.zeros(len(a))
        for deviation in self.deviations:
            silent = np.zeros((n, p, 1)), np.ones((n, 1, 1)), a, np.zeros((n, 1))
            stretched = Q * (deviation**2)[:, None, None]
            risks = pair.risks(stretched, *silent)
            total += 2.0 * (pair.risk_errors(risks, stretched, *silent) if errors else risks)
        return total / len(self.deviations)


def field_means(activation: str, scales: Array) -> Array:
    """The means E[σ(s u)], u ~ N(0, 1), for each s of an array, of an activation by name."""
    sigma = activation_of(activation)
    if sigma.hinges is not None:
        return hinge_means(sigma, scales)
    if sigma.error_functions is not None:  # odd, but for the offset
        return np.full(scales.shape, sigma.error_functions[0])
    # the kink at zero in closed form; the rest by nodes, which scales up to the same power of two share
    result = kink(sigma) * scales / math.sqrt(2.0 * math.pi)
    levels = np.ceil(np.log2(np.clip(np.nan_to_num(scales, nan=1.0), 1.0, MOST_SCALE))).astype(int)
    for level in np.unique(levels):
        of_level = levels == level
        nodes, weights = map(np.array, _rule(activation, 2.0**level))
        fields = np.multiply.outer(scales[of_level], nodes)
        result[of_level] += rest_values(sigma, fields.ravel()).reshape(fields.shape) @ weights
    return result


@cache
def _rule(activation: str, scale: float) -> gauss.Rule:
    """A rule for E[σ(s u)], s ≤ scale: Gauss's for polynomials, equally spaced nodes for others without their kink."""
    sigma = activation_of(activation)
    if sigma.hermite is not None:
        return gauss.normal(len(sigma.hermite))
    step = min(WIDEST, rest_step(sigma) / scale)
    return gauss.trapezoidal(2 * math.ceil(REACH / step) + 1, step)
