"""The compiled steps of SGD on the weights of one replica."""

import math

import numba
import numpy as np

from sweeplib.kernels.lanes import OVERFLOW
from sweeplib.numerics.random import fill_normals


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_values = student_slopes = teacher_values = population_risk = _unbound


BLOCK = 4
"""Steps whose samples are drawn, and multiplied with the weights, at once."""

COLUMNS = 384
"""Of so many columns, the samples of two blocks stay in the first cache while the rows of weights pass by."""

MULTIPLE = 32
"""A sample has a multiple of so many numbers: pairs of draws, of four numbers each, in vectors of four."""

_kernel = numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, forceinline=True)


@_kernel
def products(w, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    """The products of a row of weights with four samples."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        t0 += w[j] * x0[j]
        t1 += w[j] * x1[j]
        t2 += w[j] * x2[j]
        t3 += w[j] * x3[j]
    return t0, t1, t2, t3


@_kernel
def moved_products(w, f0, f1, f2, f3, b0, b1, b2, b3, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    """`products` after adding f_s b_s, four samples times their factors, to the row."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        w[j] += (f0 * b0[j] + f1 * b1[j]) + (f2 * b2[j] + f3 * b3[j])
        t0 += w[j] * x0[j]
        t1 += w[j] * x1[j]
        t2 += w[j] * x2[j]
        t3 += w[j] * x3[j]
    return t0, t1, t2, t3


@_kernel
def add_gram(x0, x1, x2, x3, out):  # type: ignore[no-untyped-def]
    """Add the products of each of four samples with the later ones to out[earlier, later]."""
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


@_kernel
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """Σ x_j y_j."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@_kernel
def pass_by(W, factors, before, W_star, x, first, last, along, along_star, gram):  # type: ignore[no-untyped-def]
    """Move some columns of W by factors (BLOCK, p) times the samples before; add their products with the samples x.

    `along` (BLOCK, p), `along_star` (BLOCK, k) and `gram` (BLOCK, BLOCK) are those of W, W*, and x.
    """
    b0, b1, b2, b3 = before[0][first:last], before[1][first:last], before[2][first:last], before[3][first:last]
    x0, x1, x2, x3 = x[0][first:last], x[1][first:last], x[2][first:last], x[3][first:last]
    for i in range(W.shape[0]):
        f0, f1, f2, f3 = factors[0, i], factors[1, i], factors[2, i], factors[3, i]
        w = W[i][first:last]
        t0, t1, t2, t3 = moved_products(w, f0, f1, f2, f3, b0, b1, b2, b3, x0, x1, x2, x3)
        along[0, i] += t0
        along[1, i] += t1
        along[2, i] += t2
        along[3, i] += t3
    for r in range(W_star.shape[0]):
        t0, t1, t2, t3 = products(W_star[r][first:last], x0, x1, x2, x3)
        along_star[0, r] += t0
        along_star[1, r] += t1
        along_star[2, r] += t2
        along_star[3, r] += t3
    add_gram(x0, x1, x2, x3, gram)


def sgd_steps(  # type: ignore[no-untyped-def]
    W,
    W_star,
    a,
    a_star,
    rate,
    second_rate,
    noise,
    spherical,
    key,
    seed,
    step,
    count,
    Q,
    M,
    P,
    targets,
    exits,
    stop_at_exit,
):
    """Take up to `count` steps from `step` on; return the steps taken and whether the run diverged.

    W (p, d) is changed in place, and with it a (p,), Q (p, p, 1), M (p, k, 1) and exits (thresholds,), negative where
    not yet. `rate` is γ/(pd), `second_rate` ε times that, of the second layer, zero where it is frozen.
    Steps are taken in blocks: W and W* are multiplied with the samples of all steps of a block, and what the weights
    move within the block is made up for by the products of its samples with each other. The moves themselves, `factors`
    times the samples of the block `before`, are made when the next block passes by, so that W is read and written once
    a block. Projection waits too: a row's norm is kept in `norm`, and multiplied into the row at the end.
    """
    p, d = W.shape
    k = W_star.shape[0]
    padded = MULTIPLE * (d // MULTIPLE + 1)
    samples, before = np.zeros((BLOCK, padded)), np.zeros((BLOCK, padded))
    factors, along, gram = np.zeros((BLOCK, p)), np.empty((BLOCK, p)), np.empty((BLOCK, BLOCK))
    along_star, value_star = np.empty((BLOCK, k)), np.empty((BLOCK, k))
    lams_star, values_star = along_star.reshape(BLOCK * k), value_star.reshape(BLOCK * k)
    lam, value, c = np.empty(p), np.empty(p), np.empty(p)
    squared_norm, norm, shrink, risk = np.empty(p), np.ones(p), np.ones(p), np.empty(1)
    root = 1.0 / math.sqrt(d)
    second_layer, teacher_layer = a.reshape((p, 1)), a_star.reshape((k, 1))
    for i in range(p):
        squared_norm[i] = Q[i, i, 0]
    taken, diverged, pending = 0, False, False
    for t in range(targets.shape[0]):
        pending |= exits[t] < 0
    going = True
    while taken < count and going:
        fresh = min(BLOCK, count - taken)
        along[:], along_star[:], gram[:] = 0.0, 0.0, 0.0
        for s in range(fresh):
            fill_normals(key, seed, np.uint64(step + taken + s), samples[s])
        for first in range(0, d, COLUMNS):
            last = min(first + COLUMNS, d)
            pass_by(W, factors, before, W_star, samples, first, last, along, along_star, gram)
        for n in range(BLOCK * k):
            lams_star[n] *= root
        teacher_values(lams_star, values_star)
        factors[:] = 0.0
        for s in range(fresh):
            displacement = noise * samples[s, d]
            displacement += inner_product(a_star, value_star[s]) / k
            for t in range(s):
                for i in range(p):
                    along[s, i] += factors[t, i] * gram[t, s]
            for i in range(p):
                lam[i] = norm[i] * root * along[s, i]
            student_values(lam, value)
            displacement -= inner_product(a, value) / p
            if not abs(displacement) < OVERFLOW:
                diverged, going = True, False
                break
            square = inner_product(samples[s][:d], samples[s][:d]) if spherical or pending else 0.0
            student_slopes(lam, c)
            for i in range(p):
                c[i] *= rate * displacement * a[i]
                factors[s, i] = c[i] / (norm[i] * root)
            if second_rate > 0.0:
                for i in range(p):
                    a[i] += second_rate * displacement * value[i]
            if spherical:
                for i in range(p):
                    length = math.sqrt(squared_norm[i] + 2.0 * c[i] * lam[i] + c[i] * c[i] * square)
                    squared_norm[i], shrink[i] = 1.0, 1.0 / length
                    norm[i] *= shrink[i]
            taken += 1
            if pending:
                for i in range(p):
                    for j in range(p):
                        change = c[i] * lam[j] + c[j] * lam[i] + c[i] * c[j] * square
                        Q[i, j, 0] = shrink[i] * shrink[j] * (Q[i, j, 0] + change)
                    for r in range(k):
                        M[i, r, 0] = shrink[i] * (M[i, r, 0] + c[i] * along_star[s, r])
                population_risk(Q, M, P, second_layer, teacher_layer, risk)
                pending = False
                for t in range(targets.shape[0]):
                    if exits[t] < 0 and risk[0] <= targets[t]:
                        exits[t] = step + taken
                    pending |= exits[t] < 0
                if not pending and stop_at_exit:
                    going = False
                    break
        samples, before = before, samples
    for i in range(p):
        f0, f1, f2, f3 = factors[0, i], factors[1, i], factors[2, i], factors[3, i]
        for j in range(d):
            W[i, j] += (f0 * before[0, j] + f1 * before[1, j]) + (f2 * before[2, j] + f3 * before[3, j])
            W[i, j] *= norm[i]
    return taken, diverged
