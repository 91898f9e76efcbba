"""The length of a sample's component outside the span of the weights, in vector lanes.

s² ~ χ²(degrees) is drawn by Marsaglia and Tsang's proposals, nearly all of which are accepted at once.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.lanes import allocating, loops
from sweeplib.networks.numerics.random import attempt_words, chi_square, chi_square_proposal, gamma_constants


class Length(NamedTuple):
    """The length s (lanes,) of a sample's component outside the span of the weights, s² ~ χ²(degrees).

    degrees, scale, width (lanes,) : constants of the sampler of χ² (`gamma_constants`).
    sure (lanes,), four (4, 1) : work arrays: whether a first proposal was accepted, and a draw of four numbers.
    """

    s: Array
    degrees: Array
    scale: Array
    width: Array
    sure: Array
    four: Array


@loops
def draw_length(stream, length, normal):  # type: ignore[no-untyped-def]
    """Fill length.s from N(0, 1) numbers `normal` (lanes,) and the stream of each lane, by accepted proposals of χ²."""
    step, seed, key = stream.step, stream.seed, stream.key
    degrees, sure, out = length.degrees, length.sure, length.s
    lanes = out.shape[0]
    # a first proposal in all lanes, by vector instructions; then others where it was refused
    certain = True
    for lane in range(lanes):
        word, _, _, _ = attempt_words(step[lane], seed[lane], key[lane])
        square, accepted = chi_square_proposal(length.scale[lane], length.width[lane], normal[lane], word)
        # with fewer degrees the draw has another factor, which `chi_square` knows
        sure[lane] = accepted & (degrees[lane] >= 2.0)
        # NaN of a proposal below zero, which is never sure and is replaced below
        out[lane] = math.sqrt(square)
    for lane in range(lanes):
        certain &= sure[lane]
    if not certain:
        for lane in range(lanes):
            if not sure[lane]:
                square = chi_square(degrees[lane], normal[lane], step[lane], seed[lane], key[lane], length.four)
                out[lane] = math.sqrt(square)


@allocating
def lengths_of_S(degrees, count):  # type: ignore[no-untyped-def]
    """The degrees, scales and widths (L, count, lanes) for the first S_jj² ~ χ²(m − j) of Bartlett's matrix S.

    degrees (L, lanes) : m in each block of inputs.
    """
    blocks, lanes = degrees.shape
    of_S, scale, width = (
        np.empty((blocks, count, lanes)),
        np.empty((blocks, count, lanes)),
        np.empty((blocks, count, lanes)),
    )
    for b in range(blocks):
        for j in range(count):
            for lane in range(lanes):
                of_S[b, j, lane] = max(degrees[b, lane] - j, 0.0)
                scale[b, j, lane], width[b, j, lane] = gamma_constants(of_S[b, j, lane])
    return of_S, scale, width
