"""Inner products of rows of weights with samples, in loops that the compiler may reorder.

Four samples, x0 to x3 (d,), are taken at once, so that a weight is read once for four products; w (d,) is a row.
"""

import numba
import numpy as np

from sweeplib.networks.numerics.inner_functions import OPTIMISED_APART

loop = numba.njit(
    error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, forceinline=True, _nrt=False, **OPTIMISED_APART
)
"""For loops over coordinates: sums are in any order, so that the compiler may use vector instructions."""


@loop
def products(w, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    """The inner products of a row of weights (d,) with each of four samples (d,)."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        a = np.float64(w[j])
        t0 += a * np.float64(x0[j])
        t1 += a * np.float64(x1[j])
        t2 += a * np.float64(x2[j])
        t3 += a * np.float64(x3[j])
    return t0, t1, t2, t3


@loop
def moved_products(w, factors, before, samples):  # type: ignore[no-untyped-def]
    """Add four samples times their factors to a row of weights, and return its inner products with four others.

    w (d,) : the row, which changes. factors (4 numbers), before (4 samples) : of the update. samples : the four others.
    """
    f0, f1, f2, f3 = factors
    b0, b1, b2, b3 = before
    x0, x1, x2, x3 = samples
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        w[j] += (f0 * b0[j] + f1 * b1[j]) + (f2 * b2[j] + f3 * b3[j])
        t0 += w[j] * x0[j]
        t1 += w[j] * x1[j]
        t2 += w[j] * x2[j]
        t3 += w[j] * x3[j]
    return t0, t1, t2, t3


@loop
def add_gram(x0, x1, x2, x3, out):  # type: ignore[no-untyped-def]
    """Add the inner product of each of four samples (d,) with each later one to out (4, 4), at [earlier, later]."""
    g01, g02, g03, g12, g13, g23 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(x0.shape[0]):
        g01 += x0[j] * x1[j]
        g02 += x0[j] * x2[j]
        g03 += x0[j] * x3[j]
        g12 += x1[j] * x2[j]
        g13 += x1[j] * x3[j]
        g23 += x2[j] * x3[j]
    out[0, 1] += g01
    out[0, 2] += g02
    out[0, 3] += g03
    out[1, 2] += g12
    out[1, 3] += g13
    out[2, 3] += g23


@loop
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """The inner product Σ_j x_j y_j of two arrays (d,), in double precision, also of single-precision data."""
    total = 0.0
    for j in range(x.shape[0]):
        total += np.float64(x[j]) * np.float64(y[j])
    return total
