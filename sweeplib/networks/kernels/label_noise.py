"""Noise of labels with heavy tails, or outliers: Gaussian noise whose scale s each label draws anew, with E s² = 1.

Student's t with ν = 1/τ degrees of freedom has s² = (ν − 2)/χ², χ² ~ χ²(ν). With a share e of outliers of a scale r,
s² is 1/(1 − e + e r²), and r² times that for outliers. With both, s is the product. Steps know of it s alone, by
address; means over the noise are means over s of those with Gaussian noise of the variance Δ s².
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.binding import unbound
from sweeplib.networks.numerics.compiled import pointer
from sweeplib.networks.numerics.random import chi_square, make_fours, random_words, uniform

OF_LABELS = np.uint64(0x9FB21C651E98DF25)
"""What the key of the stream of s has beyond the key of the samples."""

SPACING, SPREAD = 0.22, 0.7
"""The largest distance of nodes over log χ², and that in units of the width √(2/ν) of its law."""
NEGLIGIBLE = 1e-18
"""A node counts if its weight, or what it adds to E s², is larger."""
SURE = 1e-10
"""What E s² lacks by more than the error of the sums."""


@cache
def stretch_address() -> Any:
    """The address of `_stretch`, the function that draws the scale s of a label's noise."""
    numbers, word = types.Array(types.float64, 1, "C"), types.uint64
    draws = {"random_words": random_words, "chi_square": chi_square, "make_fours": make_fours, "uniform": uniform}
    return pointer(_stretch, types.float64(numbers, word, word, word), **draws)


def _stretch(tails, step, seed, key):  # type: ignore[no-untyped-def]
    """Return the scale s of the noise of the label of sample number `step`; `tails` are τ, e and r.

    seed, key : with the number they name the random numbers of the sample.
    """
    tail, share, scale = tails[0], tails[1], tails[2]
    square = 1.0
    if share > 0.0:
        word, _, _, _ = random_words(np.uint64(0), step, seed, key + OF_LABELS)
        square = (scale * scale if uniform(word) < share else 1.0) / (1.0 - share + share * scale * scale)
    if tail > 0.0:
        normals = np.empty((4, 1))
        bits = normals.view(np.uint64)
        bits[0, 0], bits[1, 0], bits[2, 0], bits[3, 0] = random_words(np.uint64(1), step, seed, key + OF_LABELS)
        make_fours(normals[0], normals[1], normals[2], normals[3])
        degrees, normal = 1.0 / tail, normals[0, 0]
        square *= (degrees - 2.0) / chi_square(degrees, normal, step, seed, key + OF_LABELS, normals)
    return math.sqrt(square)


@cache
def variances(tail: float, share: float, scale: float) -> tuple[float, ...]:
    """The nodes of means over s, flat, as kernels take them: w_1, s_1², w_2, s_2², ..., with weights w.

    `tail`, `share`, `scale` are τ, e and r. Of Student's t the nodes of χ² = e^u are equally spaced in t, u = t − e^−t:
    with it the law, which falls exponentially where ν is near 2, falls doubly so.
    """
    mean_square = 1.0 - share + share * scale**2
    mixed = [(1.0 - share, 1.0 / mean_square), (share, scale**2 / mean_square)] if share > 0.0 else [(1.0, 1.0)]
    nodes = _nodes_of_student(1.0 / tail) if tail > 0.0 else [(1.0, 1.0)]
    return tuple(number for w, s in nodes for v, c in mixed for number in (w * v, s * c))


def _nodes_of_student(degrees: float) -> list[tuple[float, float]]:
    """The weights and s² of the nodes of noise with ν `degrees` of freedom."""
    # from s² = e^600 to where χ² has no weight any more
    t = np.arange(-6.4, math.log(2.0 * degrees + 160.0), min(SPACING, SPREAD * math.sqrt(2.0 / degrees)))
    u, peak = t - np.exp(-t), 0.5 * degrees * (math.log(degrees) - 1.0)
    weight = (1.0 + np.exp(-t)) * np.exp(0.5 * (degrees * u - np.exp(u)) - peak)
    weight, square = weight / weight.sum(), (degrees - 2.0) * np.exp(-u)
    # near ν = 2 a part of E s² = 1 is beyond all nodes, with no weight: the first one has it
    missing = 1.0 - weight @ square
    weight[0] += missing / square[0] if missing > SURE else 0.0
    counts = weight * np.fmax(square, 1.0) > NEGLIGIBLE
    return list(zip(weight[counts].tolist(), square[counts].tolist(), strict=True))


def with_variances(numbers: tuple[float, ...], tails: tuple[float, ...]) -> Array:
    """The numbers (m,) of a loss and, behind them, the nodes of s² for its noise; `tails` are none or τ, e and r."""
    return np.array([*numbers, *(variances(*tails) if tails else ())], float)


means = unbound
"""Bound to the means of Gaussian noise."""
OWN = 0
"""How many of the numbers are the loss's own; the nodes of s² are behind them. It is bound too."""


def over_variances(numbers, *place_and_noise):  # type: ignore[no-untyped-def]
    """The three means of a loss over noise that is not Gaussian: sums over nodes of s² of means with Gaussian noise.

    numbers : as `with_variances` returns them. place_and_noise : the other arguments of `means`, of which Δ is last.
    """
    place, Delta = place_and_noise[:-1], place_and_noise[-1]
    first = second = third = 0.0
    for n in range(OWN, numbers.shape[0], 2):
        g, square, loss = means(numbers, *place, Delta * numbers[n + 1])
        first += numbers[n] * g
        second += numbers[n] * square
        third += numbers[n] * loss
    return first, second, third
