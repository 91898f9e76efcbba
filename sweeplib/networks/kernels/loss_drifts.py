"""The drifts of the overlaps by any loss, and by steps with a factor: sums over equally spaced nodes of all fields.

Ψ^M_ir = a_i E[σ'_i λ*_r g], Ψ^GF_ij = a_i E[σ'_i λ_j g] + (i ↔ j), Ψ^Var_ij = a_i a_j E[σ'_i σ'_j g²] and Ψ^a_i =
E[σ_i g], where g = −∂L/∂f is the force and g and g² are averaged over the noise of the label first. With a factor h of
the gradient all but Ψ^a have h g in place of g, averaged too, at given |c| = |g| √Σ (a_i σ'_i)². Nodes are those of a
cubic grid in a ball of orthonormal coordinates, the teacher's first.

Functions of means have the arguments (numbers (m,), size, f_star, f, Delta): the parameters of the loss or of the
update, √Σ (a_i σ'_i)², the outputs of teacher and student, and the variance of the label's noise.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from sweeplib.networks.kernels.label_noise import over_variances, with_variances
from sweeplib.networks.kernels.losses import means_of
from sweeplib.networks.kernels.steps import factor_of
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import Expectations
from sweeplib.networks.maths.expectations.expectations import FINER, refined
from sweeplib.networks.maths.expectations.system import Pair
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import in_loops, inlined
from sweeplib.networks.problem import LOSSES, UPDATES, Criterion, Rule
from sweeplib.networks.problem import target as target_of

REACH = 7.5
"""The radius of the ball, in standard deviations."""
SPACINGS = {2: 0.2, 3: 0.3}
"""The distance of the nodes by the number of fields; with more fields there are too many nodes."""
SMOOTH = 0.25
"""The deviation √Δ of labels below which nodes are closer, up to twice as close: means over labels are less smooth."""
MOST_FIELDS = max(SPACINGS)
"""The largest p + k for which there are such drifts."""


value = slope = labels = means = rescale = pulling = unbound
"""Bound by `expectations_of_steps`."""
OF_SIGNS = math.sqrt(2.0 / math.pi)
"""The overlap c₀ of the sign of an entry of √d x with this entry."""


def expectations_of_steps(
    criterion: Criterion,
    step: Rule,
    needed: Expectations,
    fields: int,
    student: str,
    target: str,
    teacher: str,
    *,
    closed: bool = True,
) -> Expectations:
    """The expectations `needed` of a student and a target, with the drifts by the force of a loss and a step.

    criterion, step : the loss, and the rule of the steps, with their numbers.
    fields : their number p + k, on which the distance of nodes depends.
    student, target, teacher : names of the activations, and of the function f* of the teacher's fields.
    closed : whether drifts are by the closed form of the loss, if it has one.
    Finer rules, for errors, have closer nodes, and finer rules of what is `needed`.
    """
    drifts = LOSSES[criterion.loss].drifts
    # the rule has a factor h of the gradient, and a loss whose force is h g: its means (`Update.loss`)
    rescales = UPDATES[step.update].loss is not None
    if closed and criterion.is_closed and drifts is not None and not rescales:
        return drifts(needed)
    # the parameters of label noise that is not Gaussian
    tails = len(criterion.tails) > 0
    means = _rescaled_means(step.update, tails) if rescales else _plain_means(criterion.loss, criterion.signs, tails)
    pulling = _sign_of_product if UPDATES[step.update].takes_signs else _product
    rule = replace(needed, drifts=_rule(means, pulling, student, target, teacher), in_lanes=None)
    spacing = SPACINGS[fields]
    numbers = with_variances(step.numbers if rescales else criterion.numbers, criterion.tails)

    def pair(finer: float) -> Pair:
        """Return the rules' argument at the level that is finer by the factor `finer` of `FINER`."""
        level = needed
        # closed forms, and the finest rules, are the same at all finer levels
        for _ in FINER[: FINER.index(finer)]:
            level = level.finer or level
        return level.pair._replace(spacing=spacing / finer, loss=numbers)

    return refined(rule, pair)


@cache
def _plain_means(loss: str, signs: bool, tails: bool) -> Callable[..., Any]:
    """A compiled function that returns E g, E g again and E g².

    loss : its name. signs : whether labels are signs. tails : whether their noise is not Gaussian.
    """
    # without a factor of the gradient the force of Ψ^a is that of the other drifts
    return inlined(bound(_of_plain_steps, means=means_of(loss, signs, tails)))


@cache
def _rescaled_means(step: str, tails: bool) -> Callable[..., Any]:
    """A compiled function that returns E g, E h g and E h² g² by the factor h of a step, for the square loss.

    step : the name of the update. tails : whether the noise of labels is not Gaussian.
    """
    update = UPDATES[step]
    assert update.loss is not None  # by `expectations_of_steps`
    if update.takes_signs:
        return inlined(bound(_of_signs, means=means_of(update.loss, False, tails)))
    means = inlined(LOSSES[update.loss].means)
    if tails:
        means = inlined(bound(over_variances, means=means, OWN=len(update.parameter_names)))
    return inlined(bound(_of_rescaled_steps, means=means, rescale=inlined(factor_of(step))))


def _of_plain_steps(numbers, size, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """E g, E g again for E h g, and E g² over the noise of the label; `size` is for rescaled steps alone."""
    g, square, _ = means(numbers, f_star, f, Delta)
    return g, g, square


def _of_rescaled_steps(numbers, size, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """E g, E h g and E h² g² over the noise of the label, for the square loss, whose force is g = y − f.

    The gradient has the norm |g| `size`, and h g `size` is the force of the update's loss at a displacement g `size`.
    """
    r = f_star - f
    if not size > 0.0:
        return r, 0.0, 0.0
    if Delta > 0.0:
        first, second, _ = means(numbers, r * size, Delta * size * size)
        return r, first / size, second / (size * size)
    h, _ = rescale(numbers, 0.0, r * r * size * size, 0.0)
    return r, h * r, h * h * r * r


def _of_signs(numbers, size, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """E g, c₀ E sgn(g), c₀ = √(2/π), and E sgn(g)² over the noise of the label, for the square loss."""
    sign, _, _ = means(numbers, f_star, f, Delta)
    return f_star - f, OF_SIGNS * sign, 1.0


def _product(a, slope):  # type: ignore[no-untyped-def]
    return a * slope


def _sign_of_product(a, slope):  # type: ignore[no-untyped-def]
    return np.sign(a * slope)


@cache
def _rule(
    means: Callable[..., Any], pulling: Callable[..., float], student: str, target: str, teacher: str
) -> Callable[..., None]:
    """The rule (system, out) for drifts by `means` over labels, of a student, a target and a teacher by name.

    pulling : function (a_i, σ'_i) that returns c_i/g of a unit, or its sign.
    """
    sigma = activation(student)
    functions = {"value": in_loops(sigma.value), "slope": in_loops(sigma.derivative), "means": means}
    functions["pulling"] = inlined(pulling)
    return bound(_drifts, **functions, labels=inlined(target_of(target).labels(teacher)), factor=inlined(_factor))


def _factor(Q, M, P):  # type: ignore[no-untyped-def]
    """The lower triangular factor (k + p, k + p) of Ω = (Q, M, P), teacher first.

    Fields without variance have zeros.
    """
    p, k = M.shape
    L = np.zeros((k + p, k + p))
    for i in range(k + p):
        for j in range(i + 1):
            remainder = P[i, j] if i < k else (Q[i - k, j - k] if j >= k else M[i - k, j])
            for l in range(j):  # noqa: E741
                remainder -= L[i, l] * L[j, l]
            if i == j:
                L[i, i] = math.sqrt(max(remainder, 0.0))
            elif L[j, j] > 0.0:
                L[i, j] = remainder / L[j, j]
    return L


factor: Any = _factor
"""Bound in `_drifts`: the compiled `_factor`."""


def _drifts(system, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the drifts of one system: sums over the nodes of orthonormal coordinates z of all fields.

    One or two of three coordinates are 0 where there are fewer fields. The labels depend on the teacher's coordinates
    alone: with k = 1 they are computed once for each value of the first.
    """
    Q, M, P, a, a_star, Delta, _, pair, _ = system
    p, k = M.shape
    count, L, spacing = p + k, factor(Q, M, P), pair.spacing * min(max(math.sqrt(Delta) / SMOOTH, 0.5), 1.0)
    lam, lam_star, f_star, layer = np.empty(p), np.empty((k, 1)), np.empty(1), np.empty((k, 1))
    sigma, pull, G, z = np.empty(p), np.empty(p), np.zeros((p, p)), np.zeros(3)
    for r in range(k):
        layer[r, 0] = a_star[r]
    for i in range(p):
        out.a[i] = 0.0
        for r in range(k):
            out.M[i, r] = 0.0
        for j in range(p):
            out.Var[i, j] = 0.0
    most = int(REACH / spacing)
    ends = most, most if count > 1 else 0, most if count > 2 else 0
    unit = (spacing / math.sqrt(2.0 * math.pi)) ** count
    # with k = 1 the label is computed at the first of the second coordinates, as only the first one counts
    for first in range(-ends[0], ends[0] + 1):
        z[0] = spacing * first
        for second in range(-ends[1], ends[1] + 1):
            z[1] = spacing * second
            if k > 1 or second == -ends[1]:
                for r in range(k):
                    lam_star[r, 0] = L[r, 0] * z[0] + (L[r, 1] * z[1] if r > 0 else 0.0)
                labels(lam_star, layer, f_star)
            for third in range(-ends[2], ends[2] + 1):
                z[2] = spacing * third
                square = z[0] * z[0] + z[1] * z[1] + z[2] * z[2]
                if square > REACH * REACH:
                    continue
                f = size = 0.0
                for i in range(p):
                    lam[i] = 0.0
                    for j in range(k + i + 1):
                        lam[i] += L[k + i, j] * z[j]
                    sigma[i], pull[i] = value(lam[i]), pulling(a[i], slope(lam[i]))
                    f += a[i] * sigma[i] / p
                    size += pull[i] * pull[i]
                # E g, E h g and E h² g² of a step with the factor h
                g, pulled, squared = means(pair.loss, math.sqrt(size), f_star[0], f, Delta)
                weight = unit * math.exp(-0.5 * square)
                for i in range(p):
                    out.a[i] += weight * g * sigma[i]
                    for r in range(k):
                        out.M[i, r] += weight * pulled * pull[i] * lam_star[r, 0]
                    for j in range(p):
                        G[i, j] += weight * pulled * pull[i] * lam[j]
                        out.Var[i, j] += weight * squared * pull[i] * pull[j]
    for i in range(p):
        for j in range(p):
            out.GF[i, j] = G[i, j] + G[j, i]
