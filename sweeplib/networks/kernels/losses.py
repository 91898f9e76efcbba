"""The force g = −∂L/∂f of a loss by address, and its means over the noise of a label.

E = y − f is the displacement. Of labels that are signs, steps draw y = f* + √Δ z as always: the force takes sign(y) for
y, and sign(y) − f for y − f. Templates have the functions `force` and `value` of a loss, (numbers, E, y) → g and L,
bound to these names; numbers (m,) are the values of the loss's parameters. Means are over z, at f_star, f and Delta.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types

from sweeplib.networks.kernels.label_noise import over_variances
from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import in_loops, inlined, pointer
from sweeplib.networks.problem import LOSSES

_LINE = types.Array(types.float64, 1, "C")
"""The type of arrays (n,) of numbers."""
# 1e-15 of the weight is beyond; equal steps of ¼ are exact to rounding for what is smooth
REACH, SPACING = 8.0, 0.25
"""Where equally spaced nodes over the noise of a label end, and their distance."""


force = value = means = unbound
"""Bound by `force_address` or `means_of`."""


@cache
def force_address(loss: str, signs: bool) -> Any:
    """The address of a function (numbers (m,), E (n,), y (n,)) that replaces displacements E = y − f by forces.

    numbers : the values of the loss's parameters. signs : whether labels are the signs of y.
    """
    template = _fill_force_of_signs if signs else _fill_force
    return pointer(template, types.void(_LINE, _LINE, _LINE), force=in_loops(LOSSES[loss].force))


def _fill_force(numbers, E, y):  # type: ignore[no-untyped-def]
    """Replace the displacements E (n,) by forces, for real labels y (n,)."""
    for n in range(E.shape[0]):
        E[n] = force(numbers, E[n], y[n])


def _fill_force_of_signs(numbers, E, y):  # type: ignore[no-untyped-def]
    """Replace the displacements E = y − f (n,) by forces, for the labels sign(y)."""
    for n in range(E.shape[0]):
        # decisions: An output or a label of zero has either sign
        sign = 1.0 if y[n] > 0.0 else -1.0
        E[n] = force(numbers, E[n] + (sign - y[n]), sign)


@cache
def means_of(loss: str, signs: bool, tails: bool = False) -> Callable[..., Any]:
    """A compiled function (numbers (m,), f*, f, Δ) that returns E g, E g² and E L over the noise √Δ z of the label.

    numbers : those of the loss and, with `tails`, behind them the law of z (`with_variances`).
    """
    law = LOSSES[loss]
    if tails:
        return inlined(bound(over_variances, means=means_of(loss, signs), OWN=len(law.parameter_names)))
    functions = {"force": inlined(law.force), "value": inlined(law.value)}
    if signs:
        return inlined(bound(_means_of_signs, **functions))
    over_noise = (
        bound(_means_by_nodes, **functions) if law.means is None else bound(_closed_means, means=inlined(law.means))
    )
    return inlined(bound(_means, **functions, means=inlined(over_noise)))


def _closed_means(numbers, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """E g, E g² and E L by the closed form of the loss, `means`: here a function (numbers, f* − f, Δ)."""
    return means(numbers, f_star - f, Delta)


def _means(numbers, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """E g, E g² and E L for a label f* + √Δ z, by `means`, a function (numbers, f*, f, Δ); g, g² and L for Δ = 0."""
    if Delta > 0.0:
        return means(numbers, f_star, f, Delta)
    g = force(numbers, f_star - f, f_star)
    return g, g * g, value(numbers, f_star - f, f_star)


def _means_by_nodes(numbers, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """Return E g, E g² and E L of the force g and the loss L for a label f* + √Δ z, as sums over equally spaced z."""
    first = second = loss = 0.0
    most = int(REACH / SPACING)
    for n in range(-most, most + 1):
        z = SPACING * n
        weight, y = SPACING / math.sqrt(2.0 * math.pi) * math.exp(-0.5 * z * z), f_star + math.sqrt(Delta) * z
        g = force(numbers, y - f, y)
        first += weight * g
        second += weight * g * g
        loss += weight * value(numbers, y - f, y)
    return first, second, loss


def _means_of_signs(numbers, f_star, f, Delta):  # type: ignore[no-untyped-def]
    """E g, E g² and E L for the label sign(f* + √Δ z), which is 1 with the probability `plus`."""
    if Delta > 0.0:
        plus = 0.5 * math.erfc(-f_star / math.sqrt(2.0 * Delta))
    else:
        plus = 0.5 if f_star == 0.0 else (1.0 if f_star > 0.0 else 0.0)
    above, below = force(numbers, 1.0 - f, 1.0), force(numbers, -1.0 - f, -1.0)
    loss = plus * value(numbers, 1.0 - f, 1.0) + (1.0 - plus) * value(numbers, -1.0 - f, -1.0)
    return plus * above + (1.0 - plus) * below, plus * above * above + (1.0 - plus) * below * below, loss
