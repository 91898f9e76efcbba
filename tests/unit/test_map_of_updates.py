"""The overlap map of steps that are normalised, clipped, of AdaGrad-norm, spectral and with momentum.

Against its formulas for one linear unit, written as scalars, and against SGD on the weights in NumPy.
"""

import math

import numpy as np
import pytest
from scipy.special import erf

from sweeplib import Overlaps, Problem, simulate
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests.numpy_sgd import spectral
from tests.tiers import slow_but

D, ALPHA, STEPS = 1000, 1.5, 4
RATE = {"plain": D, "heavy_ball": D, "clipped": D, "normalised": math.sqrt(D), "adagrad_norm": 1.0}
RATE |= dict.fromkeys(("spectral", "spectral_momentum", "muon"), math.sqrt(D))
"""Of steps whose length is of order one, over p times a number."""
RULES = {
    "plain": {},
    "heavy_ball": {"momentum": 0.7},
    "clipped": {"clip_norm": 0.4 / math.sqrt(D)},
    "normalised": {},
    "adagrad_norm": {"adagrad_start": 0.3 / D**2},
    "spectral": {"spectral_ridge": 0.3 / math.sqrt(D)},
    "spectral_momentum": {"momentum": 0.7},
}
KEEP = ("heavy_ball", "spectral_momentum")
OF_SPECTRA = {"muon": {"momentum": 0.7}}
"""The clip is reached at the start, and not at the end."""


def problem_of(update, length, **fields):
    given = {"update": update, "gamma": length * RATE[update] * fields["p"], "batch_size": int(ALPHA * D)}
    return Problem(d=D, Delta=0.1, **given | (RULES | OF_SPECTRA)[update] | fields)


def of_a_linear_unit(problem, m, q):
    """m and q after each step of the map for f = λ, f* = λ*: c = λ* − λ + √Δ z, D = (−1 | 1)."""
    n, s, u, B, T = 0.0, 0.0, 0.0, problem.adagrad_start, problem.step_time()
    path = []
    for _ in range(STEPS):
        V = (1.0 + 2.0 / D) * (1.0 - 2.0 * m + q) + problem.Delta
        K = (1.0 - 1.0 / problem.batch_size) * (1.0 - 2.0 * m + q) + D / problem.batch_size * V
        square = K / D
        B += T * square
        norm = math.sqrt(square)
        factor = {"clipped": min(1.0, problem.clip_norm / norm), "normalised": 1 / norm, "adagrad_norm": B**-0.5}
        t, beta = T * factor.get(problem.update, 1.0), problem.momentum if problem.update in KEEP else 0.0
        along_w, along_v = m - q, n - s
        if problem.update in ("spectral", "spectral_momentum"):
            n, x, u = beta * n + 1.0 - m, beta * s + along_w, beta**2 * u + 2.0 * beta * along_v + K
            h = T / math.sqrt(u / D + problem.spectral_ridge**2)
            m, q, s = m + h * n, q + 2.0 * h * x + h**2 * u, x + h * u
            path.append((m, q))
            continue
        n, x = beta * n + t * (1.0 - m), beta * s + t * along_w
        u = beta**2 * u + 2.0 * beta * t * along_v + t**2 * K
        m, q, s = m + n, q + 2.0 * x + u, x + u
        path.append((m, q))
    return np.array(path).T


@pytest.mark.rest
@pytest.mark.parametrize("rule", RULES)
def test_the_map_of_a_linear_unit_has_its_numbers(rule):
    """The factor 1 + 2/d has the means E[c_i c_j ‖x‖²] of plain samples, without that of the label noise."""
    problem = problem_of(rule, 0.5, p=1, k=1, activation="linear")
    start = Overlaps(np.array([[0.8]]), np.array([[0.1]]), np.eye(1))
    times = problem.step_time() * np.arange(1, STEPS + 1)
    ds = simulate(problem, "overlap_map", times=times, initial=start, observables=("overlap_M", "overlap_Q"))
    m, q = of_a_linear_unit(problem, 0.1, 0.8)
    np.testing.assert_allclose(ds.overlap_M.values.ravel(), m, rtol=1e-9)
    np.testing.assert_allclose(ds.overlap_Q.values.ravel(), q, rtol=1e-9)
    assert bool(np.abs(np.diff(m)).min() > 0.01)


def by_numpy(problem, start, eigenvalues, runs):
    """Q, M and a of runs of SGD on the weights for erf after some steps, with inputs of these variances over d."""
    rng, p, n_b = np.random.default_rng(8), problem.p, problem.batch_size
    ends = []
    for _ in range(runs):
        (W, W_star), a = (weights.copy() for weights in start), np.array(problem.a)
        v, B, T = np.zeros(W.shape), problem.adagrad_start, problem.step_time()
        for _ in range(STEPS):
            x = rng.standard_normal((n_b, D), np.float32) * np.sqrt(eigenvalues / D).astype(np.float32)
            lam, noise = x @ W.T, math.sqrt(problem.Delta) * rng.standard_normal(n_b)
            E = erf(x @ W_star.T / math.sqrt(2)).mean(axis=1) + noise - erf(lam / math.sqrt(2)) @ a / p
            c = a * math.sqrt(2 / math.pi) * np.exp(-(lam**2) / 2) * E[:, None]
            g = c.T @ x / n_b
            norm = np.linalg.norm(g)
            B += T * norm**2
            if problem.update in ("clipped", "normalised", "adagrad_norm"):
                of_rule = {"clipped": min(1.0, problem.clip_norm / norm), "normalised": 1 / norm}
                g *= of_rule.get(problem.update, B**-0.5)
            a = a + problem.second_layer_rate * T * (erf(lam / math.sqrt(2)).T @ E) / n_b
            decay = problem.weight_decay * T * W
            if problem.update in ("spectral", "spectral_momentum", "muon"):
                v = g + (0.0 if problem.update == "spectral" else problem.momentum) * v
                W = W + problem.gamma / p * spectral(problem, v) - decay
            else:
                v = (problem.momentum if problem.update == "heavy_ball" else 0.0) * v + problem.gamma / p * g - decay
                W = W + v
            if problem.spherical:
                W *= math.sqrt(D) / np.linalg.norm(W, axis=1, keepdims=True)
        ends.append([W @ W.T / D, W @ W_star.T / D, a])
    return [np.array(part) for part in zip(*ends, strict=True)]


SETTINGS = [(rule, kind) for rule in (*RULES, *OF_SPECTRA) for kind in ("both layers", "spectrum")]
SETTINGS += [(rule, kind) for rule in ("heavy_ball", "muon") for kind in ("sphere", "sphere, spectrum", "decay")]


@pytest.mark.parametrize(("rule", "kind"), slow_but(SETTINGS))
def test_the_map_is_the_mean_of_steps_in_numpy(rule, kind):
    """16 runs at d = 1000, inputs of one variance with a trained second layer, or of two variances: |z| < 4.5.

    Errors of the order 1/d are a tenth of the standard errors; a velocity that is forgotten is 50 of them.
    """
    fields = {"p": 2, "k": 2, "activation": "erf", "a": (1.0, -0.7)}
    if "spectrum" in kind:
        fields |= {"data": "two_level", "level_fraction": 0.3, "level_ratio": 4.0}
    else:
        fields |= {"second_layer_rate": 0.5}
    fields |= {"spherical": True} if "sphere" in kind else {}
    # in steps of different lengths; a fifth of the weights in all
    fields |= {"weight_decay": 0.1 / problem_of(rule, 0.6, **fields).step_time()} if kind == "decay" else {}
    problem = problem_of(rule, 0.6, **fields)
    case = Case(problem, "sgd", 3, Recording((0.0,)))
    replicas = replicas_of([case])
    eigenvalues = np.ones(D)
    if "spectrum" in kind:
        eigenvalues = np.repeat(replicas.eigenvalues[0], replicas.multiplicities[0].astype(int))
    ends = by_numpy(problem, replicas.weights(0), eigenvalues, 16)
    names, times = ("overlap_Q", "overlap_M", "second_layer"), [STEPS * problem.step_time()]
    ds = simulate(problem, "overlap_map", times=times, seeds=[3], observables=names)
    for name, runs in zip(names, ends, strict=True):
        error = runs.std(axis=0, ddof=1) / 4.0
        apart = np.abs(runs.mean(axis=0) - ds[name].values[0, -1])
        assert (apart <= 4.5 * error + 1e-12).all()
