"""Matrices h(GGᵀ) of spectral steps, from a lower triangular factor R of GGᵀ, which is never squared.

G (p, d) is the gradient of the weights; a spectral step is along h(GGᵀ) G. Rotations of pairs of rows of R, Jacobi's
from one side, make the rows orthogonal: J R with the singular values s as norms. Then h(GGᵀ) = Jᵀ h(s²) J, whose
singular values have relative errors of 1e-16 times the largest over the own. `work` is the `Spectrum`.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.lanes import allocating, loops

ORTHOGONAL = 1e-14
"""The cosine of two rows that count as orthogonal."""
NEGLIGIBLE = 1e-28
"""The squared norm of a row that is a rounding error, over the other row's: it need not be orthogonal."""
MOST_SWEEPS = 40
"""The most rounds of rotations of all pairs of rows; a few are needed."""


class Spectrum(NamedTuple):
    """Work arrays for the spectra of p × p matrices in lanes.

    R, J (p, p, lanes) : a factor, and the rotations of its rows.
    values (p, lanes) : eigenvalues, then their factors.
    cosine, sine, largest, total (lanes,) : a rotation, the largest eigenvalue and the sum of all.
    """

    R: Array
    J: Array
    values: Array
    cosine: Array
    sine: Array
    largest: Array
    total: Array


@allocating
def empty_spectrum(p, lanes):  # type: ignore[no-untyped-def]
    """Work arrays for the spectra of p × p matrices in so many lanes."""
    of_pairs, rows = np.empty((2, p, p, lanes)), np.empty((4, lanes))
    return Spectrum(of_pairs[0], of_pairs[1], np.empty((p, lanes)), rows[0], rows[1], rows[2], rows[3])


@loops
def fill_rotation(x, y, work):  # type: ignore[no-untyped-def]
    """Fill the rotation that makes two rows x, y (n, lanes) orthogonal; return whether it turns any lane.

    Where rows are orthogonal up to rounding it is the identity.
    """
    # the norms of rows have the arrays of the largest eigenvalue and the sum, which come later
    cosine, sine, xx, yy = work.cosine, work.sine, work.largest, work.total
    turns_any, lanes = False, cosine.shape[0]
    xx[:], yy[:], sine[:] = 0.0, 0.0, 0.0
    for j in range(x.shape[0]):
        for lane in range(lanes):
            xx[lane] += x[j, lane] * x[j, lane]
            yy[lane] += y[j, lane] * y[j, lane]
            sine[lane] += x[j, lane] * y[j, lane]
    for lane in range(lanes):
        # comparisons are false for NaN, of runs that diverged
        slanted = abs(sine[lane]) > ORTHOGONAL * math.sqrt(xx[lane]) * math.sqrt(yy[lane])
        turns = slanted & (min(xx[lane], yy[lane]) > NEGLIGIBLE * max(xx[lane], yy[lane]))
        half = 0.5 * (yy[lane] - xx[lane]) / (sine[lane] if turns else 1.0)
        tangent = math.copysign(1.0, half) / (abs(half) + math.sqrt(1.0 + half * half)) if turns else 0.0
        cosine[lane] = 1.0 / math.sqrt(1.0 + tangent * tangent)
        sine[lane] = tangent * cosine[lane]
    for lane in range(lanes):
        turns_any |= sine[lane] != 0.0
    return turns_any


@loops
def rotate_rows(x, y, cosine, sine):  # type: ignore[no-untyped-def]
    """Replace the rows x, y (n, lanes) by c x − s y, s x + c y, with c `cosine` and s `sine` (lanes,)."""
    for j in range(x.shape[0]):
        for lane in range(cosine.shape[0]):
            first, second = x[j, lane], y[j, lane]
            x[j, lane] = cosine[lane] * first - sine[lane] * second
            y[j, lane] = sine[lane] * first + cosine[lane] * second


@loops
def fill_spectral_matrix(rule, scale, work):  # type: ignore[no-untyped-def]
    """Replace work.R (p, p, lanes) by h(S), S = scale · R Rᵀ, with scale (lanes,).

    h multiplies the eigenvectors of S by factors that `rule.spectrum` makes of the eigenvalues.
    """
    R, J, values, cosine, sine, largest, total = work
    p, _, lanes = R.shape
    J[:] = 0.0
    for i in range(p):
        J[i, i, :] = 1.0
    turns = p > 1
    for _ in range(MOST_SWEEPS):
        if not turns:
            break
        turns = False
        for i in range(1, p):
            for j in range(i):
                if fill_rotation(R[i], R[j], work):
                    rotate_rows(R[i], R[j], cosine, sine)
                    rotate_rows(J[i], J[j], cosine, sine)
                    turns = True
    # rows are orthogonal now: their squared norms are the eigenvalues
    values[:], largest[:], total[:] = 0.0, 0.0, 0.0
    for i in range(p):
        for j in range(p):
            for lane in range(lanes):
                values[i, lane] += scale[lane] * R[i, j, lane] * R[i, j, lane]
        for lane in range(lanes):
            largest[lane] = max(largest[lane], values[i, lane])
            total[lane] += values[i, lane]
    R[:] = 0.0
    for m in range(p):
        rule.spectrum(rule.numbers, values[m], largest, total)
        for i in range(p):
            for j in range(p):
                for lane in range(lanes):
                    R[i, j, lane] += values[m, lane] * J[m, i, lane] * J[m, j, lane]
