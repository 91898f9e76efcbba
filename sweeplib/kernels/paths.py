"""Sums over the samples of an effective process, and combinations of its rows: arrays (rows, n) over n samples."""

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.numerics.compiled import specialised

Array = NDArray[np.float64]

BLOCK = 1024
"""Number of samples that are combined at a time; those of a row stay in the first cache."""


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc"})
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """Σ_n x_n y_n, in the order that vector instructions take, which depends on the processor alone."""
    total = 0.0
    for n in range(x.shape[0]):
        total += x[n] * y[n]
    return total


def means(one: Array, other: Array) -> Array:
    """The means (p, m) over n samples of the products of rows (p, n) and rows (m, n)."""
    out = np.empty((len(one), len(other)))
    specialised(_fill_means)(one, other, out)
    return out


def _fill_means(one, other, out):  # type: ignore[no-untyped-def]
    for j in range(other.shape[0]):
        for i in range(one.shape[0]):
            out[i, j] = inner_product(one[i], other[j]) / one.shape[1]


def combinations(coefficients: Array, rows: Array) -> Array:
    """The rows (p, n) whose coefficients (p, m) in `rows` (m, n) are given."""
    out = np.zeros((len(coefficients), rows.shape[1]))
    specialised(_add_combinations)(np.ascontiguousarray(coefficients), rows, out)
    return out


def _add_combinations(coefficients, rows, out):  # type: ignore[no-untyped-def]
    for first in range(0, rows.shape[1], BLOCK):
        last = min(first + BLOCK, rows.shape[1])
        for j in range(rows.shape[0]):
            for i in range(out.shape[0]):
                weight = coefficients[i, j]
                for n in range(first, last):
                    out[i, n] += weight * rows[j, n]
