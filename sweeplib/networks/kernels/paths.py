"""Sums over the samples of an effective process, and combinations of its rows, for `dynamics/effective_process`.

Arrays (rows, n) have a column for each of n samples of the process.
"""

import numba
import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import specialised

BLOCK = 1024
"""Number of samples that are combined at a time, so few that they stay in the first cache."""


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc"})
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """The sum Σ_n x_n y_n of x, y (n,), in the order of vector instructions, which depends on the processor alone."""
    total = 0.0
    for n in range(x.shape[0]):
        total += x[n] * y[n]
    return total


@numba.njit(error_model="numpy", fastmath={"contract"})
def add_one(out, row, weight):  # type: ignore[no-untyped-def]
    """Add a row (n,) times its weight, a number, to out (n,)."""
    for n in range(out.shape[0]):
        out[n] += weight * row[n]


@numba.njit(error_model="numpy", fastmath={"contract"})
def add_four(out, rows, weights):  # type: ignore[no-untyped-def]
    """Add four rows (n,) times their weights (4,) to out (n,): out is read and written once instead of four times."""
    r0, r1, r2, r3 = rows
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for n in range(out.shape[0]):
        out[n] = out[n] + w0 * r0[n] + w1 * r1[n] + w2 * r2[n] + w3 * r3[n]


def means(first: Array, second: Array) -> Array:
    """The means (p, m) over n samples of the products of rows (p, n) and rows (m, n)."""
    out = np.empty((len(first), len(second)))
    specialised(_fill_means)(first, second, out)
    return out


def _fill_means(first, second, out):  # type: ignore[no-untyped-def]
    """Fill out (p, m) with the means over n of first (p, n) times second (m, n)."""
    for j in range(second.shape[0]):
        for i in range(first.shape[0]):
            out[i, j] = inner_product(first[i], second[j]) / first.shape[1]


def combinations(coefficients: Array, rows: Array) -> Array:
    """The rows (p, n) Σ_j coefficients_ij rows_j, of coefficients (p, m) and rows (m, n)."""
    out = np.zeros((len(coefficients), rows.shape[1]))
    specialised(_add_combinations)(np.ascontiguousarray(coefficients), rows, out)
    return out


def _add_combinations(coefficients, rows, out):  # type: ignore[no-untyped-def]
    """Add Σ_j coefficients_ij rows_j to out (p, n), four rows j and one block of samples at a time."""
    last_four = rows.shape[0] // 4 * 4
    for first in range(0, rows.shape[1], BLOCK):
        columns = slice(first, min(first + BLOCK, rows.shape[1]))
        for i in range(out.shape[0]):
            for j in range(0, last_four, 4):
                four = rows[j, columns], rows[j + 1, columns], rows[j + 2, columns], rows[j + 3, columns]
                add_four(out[i, columns], four, coefficients[i, j : j + 4])
            for j in range(last_four, rows.shape[0]):
                add_one(out[i, columns], rows[j, columns], coefficients[i, j])
