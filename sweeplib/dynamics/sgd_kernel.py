"""The compiled steps of SGD on the weights of one replica."""

import math

import numba
import numpy as np

from sweeplib.dynamics.step_dynamics import OVERFLOW
from sweeplib.random import fill_normals


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_values = student_slopes = teacher_values = population_risk = _unbound


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """Σ x_j y_j over the length of x."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def moved_row(w, factor, before, x):  # type: ignore[no-untyped-def]
    """Add factor · before to w; return w·x."""
    total = 0.0
    for j in range(w.shape[0]):
        w[j] += factor * before[j]
        total += w[j] * x[j]
    return total


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def four_moved_rows(W, i, factor, before, x):  # type: ignore[no-untyped-def]
    """`moved_row` of rows i to i + 3, in one loop."""
    w0, w1, w2, w3 = W[i], W[i + 1], W[i + 2], W[i + 3]
    f0, f1, f2, f3 = factor[i], factor[i + 1], factor[i + 2], factor[i + 3]
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(W.shape[1]):
        w0[j] += f0 * before[j]
        t0 += w0[j] * x[j]
        w1[j] += f1 * before[j]
        t1 += w1[j] * x[j]
        w2[j] += f2 * before[j]
        t2 += w2[j] * x[j]
        w3[j] += f3 * before[j]
        t3 += w3[j] * x[j]
    return t0, t1, t2, t3


@numba.njit(error_model="numpy", fastmath={"contract"})
def move_rows(W, factor, before, x, out):  # type: ignore[no-untyped-def]
    """Add factor_i · before to each row of W, then fill out with W x: W is read and written once."""
    p = W.shape[0]
    fours = p // 4 * 4
    for i in range(0, fours, 4):
        out[i], out[i + 1], out[i + 2], out[i + 3] = four_moved_rows(W, i, factor, before, x)
    for i in range(fours, p):
        out[i] = moved_row(W[i], factor[i], before, x)


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
    Projection is lazy: a row's norm is kept in `norm` and multiplied into the row only at the end. So is a step's move,
    `factor` times the sample of the step `before`, made when the next sample is multiplied with the row.
    """
    p, d = W.shape
    k = W_star.shape[0]
    padded = 4 * ((d + 4) // 4)
    sample, before, factor = np.empty(padded), np.zeros(padded), np.zeros(p)
    lam, lam_star, c = np.empty(p), np.empty(k), np.empty(p)
    value, value_star = np.empty(p), np.empty(k)
    norm, risk = np.ones(p), np.empty(1)
    root = 1.0 / math.sqrt(d)
    second_layer, teacher_layer = a.reshape((p, 1)), a_star.reshape((k, 1))
    squared_norm, shrink = np.empty(p), np.ones(p)
    for i in range(p):
        squared_norm[i] = Q[i, i, 0]
    taken, diverged, pending = 0, False, False
    for t in range(targets.shape[0]):
        pending |= exits[t] < 0
    going = True
    while taken < count and going:
        fill_normals(key, seed, np.uint64(step + taken), sample)
        x = sample[:d]
        displacement = noise * sample[d]
        for r in range(k):
            lam_star[r] = root * inner_product(W_star[r], x)
        teacher_values(lam_star, value_star)
        displacement += inner_product(a_star, value_star) / k
        move_rows(W, factor, before[:d], x, lam)
        for i in range(p):
            lam[i] *= norm[i] * root
        student_values(lam, value)
        displacement -= inner_product(a, value) / p
        if not abs(displacement) < OVERFLOW:
            diverged = True
            factor[:] = 0.0
            break
        square = inner_product(x, x) if spherical or pending else 0.0
        student_slopes(lam, c)
        for i in range(p):
            c[i] *= rate * displacement * a[i]
            factor[i] = c[i] / (norm[i] * root)
        sample, before = before, sample
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
                    M[i, r, 0] = shrink[i] * (M[i, r, 0] + c[i] * lam_star[r])
            population_risk(Q, M, P, second_layer, teacher_layer, risk)
            pending = False
            for t in range(targets.shape[0]):
                if exits[t] < 0 and risk[0] <= targets[t]:
                    exits[t] = step + taken
                pending |= exits[t] < 0
            going = pending or not stop_at_exit
    for i in range(p):
        for j in range(d):
            W[i, j] = norm[i] * (W[i, j] + factor[i] * before[j])
    return taken, diverged
