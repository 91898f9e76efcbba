"""Probability that the sign of the output is not that of the label, P(y f < 0), for labels with noise.

An output of zero, as one of relu units may be, is half an error; so is a label of zero without noise.

Where the output has the sign of one Gaussian field and f* that of another, it increases with their angle: exits can be
on it. Angles are in units of π: at the angle u in [0, 1] the fields have the correlation cos πu. The labels' field is
that of f*.
"""

import math
from functools import lru_cache, partial

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.observables.test_loss import READS_OF_LABELS
from sweeplib.networks.problem import DEFAULTS, Problem
from sweeplib.networks.problem.combinations import GAUSSIAN_NOISE
from sweeplib.networks.views import Estimate, ExitLevel, OverlapView

NODES = np.exp(np.linspace(-40.0, 2.12, 1001))
"""Nodes z > 0 of the labels' field, in standard deviations: their equal steps of log z resolve steps of any width."""
UNKNOWN = "no closed form of the classification_error to exit on"
DENSITY = NODES * np.exp(-0.5 * NODES**2) / (NODES * np.exp(-0.5 * NODES**2)).sum()
"""The weights of `NODES` in means over |z|, z ~ N(0, 1): σ* is odd, so errors at −z are those at z."""


def classification_error(now: OverlapView) -> Estimate:
    """P(y f < 0) + ½ P(y f = 0) (n,), and its error."""
    return now.of_labels.classification_error(now.fields)


def angles(pair, Q, M, P, a, a_star, out):  # type: ignore[no-untyped-def]
    """Fill out (n,) with the angles arccos(aᵀMa*/√(aᵀQa a*ᵀPa*))/π of n networks, ½ for an output of zero.

    It is a rule of exits (`ExitLevel`): Q (p, p, n), M (p, k, n), P (k, k, n), a (p, n), a_star (k, n); no use of pair.
    """
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


@lru_cache(maxsize=64)
def _plus(Delta: float, teacher: str, amplitude: float, scale: float) -> Array:
    """The probabilities P(y > 0) at the `NODES` z, f* = amplitude σ*(scale z), of labels with noise of variance Δ.

    teacher : the name of σ*.
    """
    value = activation(teacher).value
    f_star = amplitude * np.array([value(scale * z) for z in NODES.tolist()])
    return np.asarray(scipy.special.ndtr(f_star / math.sqrt(Delta)))


def _error(angle: float, plus: Array) -> float:
    """The probability P(y f < 0) at an `angle`, with the probabilities `plus` of positive labels at `NODES`."""
    # the probabilities of f < 0; the tangent of the angle 0 is zero: then f has the sign of the labels' field
    negative = scipy.special.ndtr(-NODES / math.tan(math.pi * angle)) if angle > 0.0 else 0.0
    return float(DENSITY @ (plus * negative + (1.0 - plus) * (1.0 - negative)))


def _with_noise(Delta: float, teacher: str, value: float, share: float, P: Array, a_star: Array) -> float:
    """The angle at which the error is `share` of the error at the angle `value`; −∞ if it is larger at all angles.

    Delta, teacher : the variance of the noise, and σ* by name. P (k, k), a_star (k,) : the teacher. It is the `target`
    of an `ExitLevel`, with the first two bound.
    """
    k = len(a_star)
    spread = math.sqrt(a_star @ P @ a_star) / k  # units of several are linear
    plus = _plus(Delta, teacher, *((abs(a_star[0]), math.sqrt(P[0, 0])) if k == 1 else (1.0, spread)))
    goal = share * _error(value, plus)
    if not _error(0.0, plus) < goal:
        return -math.inf
    return float(scipy.optimize.brentq(lambda u: _error(u, plus) - goal, 0.0, value))


def level(problem: Problem) -> ExitLevel:
    """The level of exits, by the angle; InputError unless f and f* have the signs of Σ a_i λ_i and Σ a*_r λ*_r."""
    for key, name, width in (
        ("activation", problem.activation, problem.p),
        ("teacher_activation", problem.teacher, problem.k),
    ):
        if not _keeps_signs(name, width):
            expected = "linear units, or a single one of erf, in student and teacher; or misalignment"
            raise InputError(UNKNOWN, key=key, value=name, expected=expected)
    if problem.target != DEFAULTS["target"]:
        expected = f"{DEFAULTS['target']} where runs exit on it; or misalignment"
        raise InputError(UNKNOWN, key="target", value=problem.target, expected=expected)
    if problem.Delta == 0.0:
        return ExitLevel(angles)
    return ExitLevel(angles, partial(_with_noise, problem.Delta, problem.teacher))


def _keeps_signs(name: str, width: int) -> bool:
    """Whether a committee of `width` units, of the activation `name`, is known to have the sign of Σ a_i λ_i.

    Linear units have it, and a single unit of an odd function that increases.
    """
    form = activation(name)
    if form.hermite is not None and len(form.hermite) == 2:
        return form.hermite[0] == 0.0 and form.hermite[1] > 0.0
    offset, terms = form.error_functions or (1.0, ())
    return width == 1 and offset == 0.0 and all(weight * slope > 0.0 for weight, slope in terms)


OBSERVABLES.add(
    Observable(
        "classification_error",
        classification_error,
        (),
        "classification error",
        r"\mathbb{P}(y f < 0)",
        reads=READS_OF_LABELS,
        limits=(GAUSSIAN_NOISE,),
        needs_teacher=True,
        least=0.0,
        estimated=lambda problem: True,
        level=level,
    ),
)
