"""SGD of erf units in NumPy, with the samples that a case has: losses, decay, batches, training sets and updates."""

import numpy as np
from scipy.special import erf

from sweeplib.numerics.random import normals
from sweeplib.problem import problem_expectations
from sweeplib.simulation.driver import replicas_of, samples_key
from tests.losses import force


def steps_by_numpy(case, count):
    """Q, M and a of SGD for erf after some steps, with the samples of the case, and the risk after each."""
    problem, (W, W_star) = case.problem, replicas_of([case]).weights(0)
    W, key, n_b, d, p = W.copy(), samples_key(case), problem.batch_size, problem.d, problem.p
    layer, T, risks, v, B = np.broadcast_to(problem.a, p).astype(float), problem.step_time(), [], 0.0 * W, None
    for step in range(count):
        numbers = np.arange(n_b) if problem.samples else step * n_b + np.arange(n_b)
        draws = np.array([normals(key, case.seed, s, 32 * (d // 32 + 1)) for s in numbers])
        x, z = draws[:, :d] / np.sqrt(d), draws[:, d]
        lam = x @ W.T
        value = erf(lam / np.sqrt(2))
        y = erf(x @ W_star.T / np.sqrt(2)).mean(axis=1) + np.sqrt(problem.Delta) * z
        E = force(problem, value @ layer / p, y)
        c = layer * np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2) * E[:, None]
        descent = c.T @ x / n_b
        size = np.linalg.norm(descent)
        if problem.update == "normalised":
            descent /= size
        elif problem.update == "clipped":
            descent *= min(1.0, problem.clip_norm / size)
        elif problem.update == "adagrad_norm":
            B = (problem.adagrad_start if B is None else B) + T * size**2
            descent /= np.sqrt(B)
        elif problem.update == "tangent":
            descent -= np.mean(c * lam, axis=0)[:, None] * W / d
        v = problem.gamma / p * descent + (problem.momentum * v if problem.update == "heavy_ball" else 0.0)
        W = (1 - problem.weight_decay * T) * W + v
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
        layer = layer + problem.second_layer_rate * T * (
            (value * E[:, None]).mean(axis=0) - problem.second_layer_decay * layer
        )
        overlaps = W @ W.T / d, W @ W_star.T / d
        state = *overlaps, W_star @ W_star.T / d, layer, np.ones(problem.k)
        risks.append(problem_expectations(problem).risks(*(part[None] for part in state)).item())
    return (*overlaps, layer), np.array(risks)
