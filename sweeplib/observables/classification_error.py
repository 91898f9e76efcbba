"""Probability that the sign of the output is not that of the label, P(y f < 0), for labels with noise.

Where output and label have the signs of two Gaussian fields it is their angle over π. Exits can be on it there.
"""

import math
from typing import Any

from sweeplib.errors import InputError
from sweeplib.maths.activations import activation
from sweeplib.observables.observable import OBSERVABLES, Observable
from sweeplib.observables.test_loss import READS_OF_LABELS
from sweeplib.problem import DEFAULTS, Problem
from sweeplib.views import Estimate, Level, OverlapView


def classification_error(now: OverlapView) -> Estimate:
    """P(y f < 0) (n,)."""
    return now.of_labels.classification_error(now.fields)


def angles(pair: Any, Q: Any, M: Any, P: Any, a: Any, a_star: Any, out: Any) -> None:
    """Fill arccos(aᵀMa*/√(aᵀQa a*ᵀPa*))/π, ½ for an output of zero."""
    p, k, n = M.shape
    for lane in range(n):
        square = across = square_star = 0.0
        for i in range(p):
            for j in range(p):
                square += a[i, lane] * Q[i, j, lane] * a[j, lane]
            for r in range(k):
                across += a[i, lane] * M[i, r, lane] * a_star[r, lane]
        for r in range(k):
            for s in range(k):
                square_star += a_star[r, lane] * P[r, s, lane] * a_star[s, lane]
        norm = math.sqrt(square * square_star)
        out[lane] = math.acos(min(max(across / norm, -1.0), 1.0)) / math.pi if norm > 0.0 else 0.5


def level(problem: Problem) -> Level:
    """The angle; InputError unless the sign of f is that of Σ a_i λ_i, and that of y likewise."""
    for key, name, width in (("activation", problem.activation, problem.p), ("teacher", problem.teacher, problem.k)):
        if not _keeps_signs(name, width):
            expected = "linear units, or a single one of erf, in student and teacher; or misalignment"
            raise InputError("no closed classification error", key=key, value=name, expected=expected)
    for key, value in (("target", problem.target), ("Delta", problem.Delta)):
        if value != DEFAULTS.get(key, 0.0):
            expected = f"{DEFAULTS.get(key, 0)} where runs exit on it; or misalignment"
            raise InputError("no closed classification error", key=key, value=value, expected=expected)
    return Level(angles)


def _keeps_signs(name: str, width: int) -> bool:
    """Whether a committee of so many units is known to have the sign of the sum of its fields."""
    form = activation(name)
    if form.hermite is not None and len(form.hermite) == 2:
        return form.hermite[0] == 0.0 and form.hermite[1] > 0.0
    offset, terms = form.error_functions or (1.0, ())
    return width == 1 and offset == 0.0 and all(weight * slope > 0.0 for weight, slope in terms)


OBSERVABLES.register(
    "classification_error",
    Observable(
        "classification_error",
        classification_error,
        (),
        "classification error",
        r"\mathbb{P}(y f < 0)",
        reads=READS_OF_LABELS,
        needs_teacher=True,
        least=0.0,
        estimated=lambda problem: True,
        level=level,
    ),
)
