"""Full-batch gradient descent on a reused data set, in plain NumPy, and targets for it as plugins."""

import math

import numpy as np
from scipy.special import erf

from sweeplib.networks.maths.overlaps import lower_factors

TARGETS = """
import math

from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.problem import TARGETS, Target


def staircase(lam_star, a_star, out):
    for n in range(out.shape[0]):
        out[n] = lam_star[0, n] + lam_star[0, n] * lam_star[1, n]


def single_index(lam_star, a_star, out):
    for n in range(out.shape[0]):
        z = lam_star[0, n]
        out[n] = math.erf(z / math.sqrt(2.0)) + 0.5 * (z * z * z - 3.0 * z) / math.sqrt(6.0)


def of_staircase(teacher_activation):
    return staircase


def of_single_index(teacher_activation):
    return single_index


def unused(activation, teacher_activation):
    return expectations(activation, "linear")


TARGETS.register("staircase", Target("staircase", "f^*", of_staircase, unused))
TARGETS.register("erf and he3", Target("erf and he3", "f^*", of_single_index, unused))
"""
"""Their expectations are not theirs: tests record no risk of them."""


def staircase(lam_star):
    """λ*_1 + λ*_1 λ*_2."""
    return lam_star[0] + lam_star[0] * lam_star[1]


STUDENTS = {
    "erf": (lambda x: erf(x / math.sqrt(2)), lambda x: math.sqrt(2 / math.pi) * np.exp(-x * x / 2)),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0) * 1.0),
}


def descent(problem, overlaps, target, steps, seed):
    """M (T, p, k), C (T, T, p, p) with C(t, s) for s ≤ t, the training risk (T,) and a (T, p) after 0, 1, ... steps."""
    p, k, d, n = problem.p, problem.k, problem.d, problem.samples
    rng, (value, slope) = np.random.default_rng(seed), STUDENTS[problem.activation]
    rows = np.zeros((k + p, d))
    rows[:, : k + p] = math.sqrt(d) * lower_factors(overlaps.Q, overlaps.M, overlaps.P)
    W_star, W, a = rows[:k], rows[k:], np.broadcast_to(problem.a, p).astype(float)
    X = rng.standard_normal((n, d)) / math.sqrt(d)
    y = target(np.einsum("rd,nd->rn", W_star, X)) + math.sqrt(problem.Delta) * rng.standard_normal(n)
    weights, M, C, risk, layers = [W], [], np.full((steps + 1, steps + 1, p, p), np.nan), [], []
    for t in range(steps + 1):
        lam = np.einsum("id,nd->in", W, X)  # in one thread, as other tests run beside it
        E = y - a @ value(lam) / p
        M.append(W @ W_star.T / d)
        C[t, : t + 1] = [W @ earlier.T / d for earlier in weights]
        risk.append(0.5 * np.mean(E * E))
        layers.append(a)
        g = a[:, None] * slope(lam) * E
        W = W + problem.gamma / (p * n) * np.einsum("in,nd->id", g, X)
        a = a + problem.second_layer_rate * problem.step_time() * (value(lam) @ E) / n
        if problem.spherical:
            W = W * math.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
        weights.append(W)
    return np.array(M), C, np.array(risk), np.array(layers)
