"""The population risk of any two activations, by quadrature in polar coordinates, split where a field is zero.

The templates' activations and rules are bound by `quadrature`.
"""

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `quadrature`")


student_value = teacher_value = square_mean = product_mean = _unbound
angles = angular = radii = radial = line = half = (0.0,)


def mean_of_square(own: bool, variance: float) -> float:
    """E[σ(z)²] of a field of the student's own or of the teacher."""
    scale, total = math.sqrt(variance), 0.0
    for node in range(len(line)):
        for sign in (-1.0, 1.0):
            field = sign * scale * line[node]
            value = student_value(field) if own else teacher_value(field)
            total += 0.5 * half[node] * value * value
    return total


def mean_of_product(own: bool, own_other: bool, variance: float, other: float, covariance: float) -> float:
    """E[σ(z) σ(z')] by the plane's rule, either field the student's own or the teacher's."""
    scale, scale_other, total = math.sqrt(variance), math.sqrt(other), 0.0
    bound = scale * scale_other
    opening = math.acos(0.0 if bound == 0.0 else max(min(covariance / scale / scale_other, 1.0), -1.0))
    for sector in range(2):
        start = opening - 0.5 * math.pi if sector == 0 else 0.5 * math.pi
        width = math.pi - opening if sector == 0 else opening
        for node in range(len(angles)):
            angle = start + width * angles[node]
            first, second = scale * math.cos(angle), scale_other * math.cos(angle - opening)
            row = 0.0
            for r in range(len(radii)):
                for sign in (-1.0, 1.0):
                    field, field_other = sign * radii[r] * first, sign * radii[r] * second
                    value = student_value(field) if own else teacher_value(field)
                    row += radial[r] * value * (student_value(field_other) if own_other else teacher_value(field_other))
            total += 0.5 * width / math.pi * angular[node] * row
    return total


def risk(Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """R = ½ Σ_mn b_m b_n E[σ_m σ_n], every lane on its own."""
    p, k, lanes = M.shape
    for lane in range(lanes):
        out[lane] = 0.0
    for r in range(k):
        for lane in range(lanes):
            factor = 0.5 / (k * k) * a_star[r, lane]
            out[lane] += factor * a_star[r, lane] * square_mean(False, P[r, r, lane])
        for s in range(r):
            for lane in range(lanes):
                mean = product_mean(False, False, P[r, r, lane], P[s, s, lane], P[r, s, lane])
                out[lane] += a_star[r, lane] * a_star[s, lane] / (k * k) * mean
    for i in range(p):
        for lane in range(lanes):
            out[lane] += 0.5 / (p * p) * a[i, lane] * a[i, lane] * square_mean(True, Q[i, i, lane])
        for r in range(k):
            for lane in range(lanes):
                mean = product_mean(True, False, Q[i, i, lane], P[r, r, lane], M[i, r, lane])
                out[lane] -= a[i, lane] * a_star[r, lane] / (p * k) * mean
        for j in range(i):
            for lane in range(lanes):
                mean = product_mean(True, True, Q[i, i, lane], Q[j, j, lane], Q[i, j, lane])
                out[lane] += a[i, lane] * a[j, lane] / (p * p) * mean
