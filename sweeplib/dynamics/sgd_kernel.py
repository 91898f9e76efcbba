"""The compiled steps of SGD on the weights of one replica."""

import math

import numba
import numpy as np

from sweeplib.dynamics.step_dynamics import OVERFLOW
from sweeplib.random import fill_normals


def _unbound(*arguments):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `specialised`")


student_value = student_derivative = teacher_value = population_risk = _unbound


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """Σ x_j y_j over the length of x."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@numba.njit(error_model="numpy", fastmath={"contract"})
def add_multiple(w, factor, x):  # type: ignore[no-untyped-def]
    """Add factor x to w."""
    for j in range(w.shape[0]):
        w[j] += factor * x[j]


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
    Projection is lazy: a row's norm is kept in `norm` and multiplied into the row only at the end.
    """
    p, d = W.shape
    k = W_star.shape[0]
    samples = np.empty(4 * ((d + 4) // 4))
    lam, lam_star, c = np.empty(p), np.empty(k), np.empty(p)
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
        fill_normals(key, seed, np.uint64(step + taken), samples)
        x = samples[:d]
        displacement = noise * samples[d]
        for r in range(k):
            lam_star[r] = root * inner_product(W_star[r], x)
            displacement += a_star[r] * teacher_value(lam_star[r]) / k
        for i in range(p):
            lam[i] = norm[i] * root * inner_product(W[i], x)
            displacement -= a[i] * student_value(lam[i]) / p
        if not abs(displacement) < OVERFLOW:
            diverged = True
            break
        square = inner_product(x, x)
        for i in range(p):
            c[i] = rate * a[i] * student_derivative(lam[i]) * displacement
            add_multiple(W[i], c[i] / (norm[i] * root), x)
        if second_rate > 0.0:
            for i in range(p):
                a[i] += second_rate * student_value(lam[i]) * displacement
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
            W[i, j] *= norm[i]
    return taken, diverged
