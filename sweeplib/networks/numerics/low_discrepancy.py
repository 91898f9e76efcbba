"""Normal numbers from randomised Sobol' points, whose averages converge faster than those of independent samples.

The points are Sobol's with the direction numbers of Joe and Kuo (2008), as scipy has them. Each coordinate is
multiplied by a random lower triangular matrix over its bits and shifted by random bits (Matoušek, J. Complexity 14, 527
(1998)). Every point is then uniform, so averages have no bias, and the digital net is kept. Two randomisations are
independent: the scatter of the averages over some of them is an estimate of the error.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.numerics.random import random_words

Integers = NDArray[np.uint32]
"""Coordinates of points, (dimensions, count), as multiples of 2^−32."""

BITS = 32
"""The bits of a coordinate."""
_SOBOL_BITS = 30
"""The bits of a coordinate before it is randomised, as many as scipy has by default."""
WIDER = 1.5
"""The factor of the wider normal numbers of a mixture: 10⁵ samples reach seven standard deviations."""


@lru_cache(maxsize=1)
def sobol_points(dimensions: int, count: int) -> Integers:
    """The first `count` points, not yet randomised, as integers (dimensions, count) of 32 bits.

    Points in more dimensions have the same first coordinates.
    """
    engine = scipy.stats.qmc.Sobol(dimensions, scramble=False, bits=_SOBOL_BITS)
    # scipy warns of a number of points that is no power of two
    points = engine.random_base2(math.ceil(math.log2(count)))[:count]
    return np.ascontiguousarray((points.T * 2.0**BITS).astype(np.uint32))


def low_discrepancy_normals(key: int, seed: int, batch: int, dimensions: int, count: int) -> Array:
    """N(0, 1) numbers (dimensions, count) of `count` randomised points: batch number `batch` of a replica.

    key, seed : the stream, and the number of the replica. Batches, replicas and streams are independent of each other.
    """
    points = sobol_points(dimensions, count)
    words = np.empty_like(points)
    specialised(_fill_randomised)(points, np.uint64(key), np.uint64(seed), np.uint64(batch), words)
    uniform = words.astype(np.float64)
    # the middles of the cells: at 0 the normal number would be −∞
    uniform += 0.5
    uniform /= 2.0**BITS
    return np.asarray(scipy.special.ndtri(uniform, out=uniform))


def with_wider_half(z: Array) -> Array:
    """Multiply half of the samples of N(0, 1) numbers (m, n) by `WIDER`; return the weights (n,) of all samples.

    Of an odd number of samples one more is made wider.

    A weight is the density of N(0, 1) over that of the mixture. It is less than 2: the errors of means grow by a factor
    √2 at most, and tails are known farther out (Hesterberg, Technometrics 37, 185 (1995)).
    """
    wider = z[:, z.shape[1] // 2 :]
    wider *= WIDER
    share = wider.shape[1] / z.shape[1]
    excess = 0.5 * (1.0 - WIDER**-2) * np.einsum("mn,mn->n", z, z)
    return np.asarray(1.0 / ((1.0 - share) + share * WIDER ** -len(z) * np.exp(excess)))


def _fill_randomised(points, key, seed, batch, out):  # type: ignore[no-untyped-def]
    """Fill out with the points, both (dimensions, count), randomised by the stream `key`, `seed`, `batch`.

    Column j of a coordinate's matrix has random bits behind the j-th, which is one.
    """
    # nine draws of four words: 32 columns of the matrix, the shift, and three that are not used
    columns = np.empty(36, np.uint32)
    for i in range(points.shape[0]):
        step = (batch << np.uint64(32)) | np.uint64(i)
        for draw in range(9):
            words = random_words(np.uint64(draw), step, seed, key)
            for place in range(4):
                columns[4 * draw + place] = np.uint32(words[place])
        # out begins with the shift; a column is added where the point has its bit
        for n in range(points.shape[1]):
            out[i, n] = columns[32]
        for j in range(32):
            first = np.uint32(1) << np.uint32(31 - j)
            column = (columns[j] & (first - np.uint32(1))) | first
            for n in range(points.shape[1]):
                out[i, n] ^= column * ((points[i, n] >> np.uint32(31 - j)) & np.uint32(1))
