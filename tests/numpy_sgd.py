"""SGD of erf units in NumPy, with the samples that a case has.

With losses, decay, batches, training sets, updates, schedules, dropout, and noise of inputs, weights and labels.
"""

import numpy as np
from scipy.special import erf

from sweeplib import simulate
from sweeplib.engine.language import Expression
from sweeplib.networks.kernels.disturbances import OF_INPUTS, OF_MASKS, OF_WEIGHTS
from sweeplib.networks.kernels.label_noise import OF_LABELS
from sweeplib.networks.numerics.random import chi_square, normals, random_words
from sweeplib.networks.problem import problem_expectations
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.losses import force


def factor_at(text, time):
    """Return the value of a schedule, 1 without one."""
    return 1.0 if text is None else Expression(text).evaluate({"t": time})


SHOWN = ("overlap_Q", "overlap_M", "second_layer")


def takes_the_steps_of_numpy(problem, rtol):
    """Assert that 60 steps of SGD are those of NumPy, and so is an exit; return whether there was one to compare."""
    case = Case(problem, "sgd", 3, Recording((0.0,)))
    expected, risks = steps_by_numpy(case, 60)
    first = replicas_of([case])
    start = problem_expectations(problem).risks(first.Q, first.M, first.P, first.a, first.a_star).item()
    threshold = 1.0 - 1.0001 * risks[:30].min() / start
    thresholds, last = [threshold] if threshold > 0 else [], 60 * problem.step_time()
    found = simulate(problem, "sgd", times=[last], seeds=[3], thresholds=thresholds, observables=SHOWN)
    for name, value in zip(SHOWN, expected, strict=True):
        np.testing.assert_allclose(found[name][0, -1], value, rtol=rtol, atol=1e-12)
    if thresholds:
        assert found.exit_steps.item() == 1 + np.flatnonzero(risks <= (1 - threshold) * start)[0]
    return bool(thresholds)


def masks_of(problem, key, seed, sample):
    """Return the factors b_i/π of the units in the step of a sample."""
    words = [random_words(np.uint64(i // 4), np.uint64(sample), np.uint64(seed), key)[i % 4] for i in range(problem.p)]
    kept = (np.array(words, float) + 0.5) / 2.0**32 < problem.keep_probability
    return kept / problem.keep_probability


def spectral(problem, G):
    """Return the polar factor of G, that with a ridge, or what Muon's iteration makes of G."""
    if problem.update in ("newton_schulz", "muon"):
        X = G / np.linalg.norm(G)
        for _ in range(5):
            A = X @ X.T
            X = 3.4445 * X - 4.7750 * A @ X + 2.0315 * A @ A @ X
        return X
    left, sizes, right = np.linalg.svd(G, full_matrices=False)
    sizes = np.where(sizes > 1e-6 * sizes.max(), sizes, 0.0)
    return left @ np.diag(sizes / np.maximum(np.hypot(sizes, problem.spectral_ridge), 1e-300)) @ right


def by_rule(problem, descent, size):
    """Return a gradient of a norm, `size`, divided by it or clipped, or its signs over √d."""
    if problem.update == "sign":
        return np.sign(descent) / np.sqrt(problem.d)
    return descent * (1.0 if problem.update == "normalised" else min(size, problem.clip_norm)) / size


def noise_of(W, key, seed, step):
    """Return ξ (p, d) of the noise of the weights in a step."""
    p, d = W.shape
    return np.array([normals(key, seed, step * p + i, 32 * (d // 32 + 1))[:d] for i in range(p)])


def scales_of(problem, key, seed, samples):
    """Return the scales s of the noise of the labels of samples: Student's t, outliers, or ones."""
    scales = np.ones(len(samples))
    for n, sample in enumerate(np.uint64(samples)):
        if problem.outlier_share:
            is_outlier = (random_words(np.uint64(0), sample, seed, key)[0] + 0.5) / 2.0**32 < problem.outlier_share
            whole = 1.0 - problem.outlier_share + problem.outlier_share * problem.outlier_scale**2
            scales[n] *= (problem.outlier_scale if is_outlier else 1.0) / np.sqrt(whole)
        if problem.noise_tail:
            degrees, draws = 1.0 / problem.noise_tail, np.empty((4, 1))
            normal = normals(key, seed, sample, 8)[1]
            square = chi_square(degrees, normal, sample, seed, key, draws)
            scales[n] *= np.sqrt((degrees - 2.0) / square)
    return scales


def steps_by_numpy(case, count):
    """Q, M and a of SGD for erf after some steps, with the samples of the case, and the risk after each."""
    problem, (_, W_star) = case.problem, replicas_of([case]).weights(0)
    risks = []
    for W, layer in iterates_by_numpy(case, count):
        overlaps = W @ W.T / problem.d, W @ W_star.T / problem.d
        state = *overlaps, W_star @ W_star.T / problem.d, layer, np.ones(problem.k)
        risks.append(problem_expectations(problem).risks(*(part[None] for part in state)).item())
    return (*overlaps, layer), np.array(risks)


def weights_by_numpy(case, count):
    """W (p, d) at the start and after each of some steps, with the samples of the case, and W*."""
    W, W_star = replicas_of([case]).weights(0)
    return [W, *(W for W, _ in iterates_by_numpy(case, count))], W_star


def iterates_by_numpy(case, count):
    """Yield W and a after each of some steps of SGD for erf, with the samples of the case."""
    problem, (W, W_star) = case.problem, replicas_of([case]).weights(0)
    W, key, n_b, d, p = W.copy(), samples_key(case), problem.batch_size, problem.d, problem.p
    layer, v, B = np.broadcast_to(problem.a, p).astype(float), 0.0 * W, None
    keeps = problem.update in ("spectral_momentum", "muon")
    streams = [np.uint64((int(key) + int(more)) % 2**64) for more in (OF_MASKS, OF_INPUTS, OF_WEIGHTS, OF_LABELS)]
    for step in range(count):
        middle = (step + 0.5) * problem.step_time()
        rate, Delta = (factor_at(text, middle) for text in (problem.schedule, problem.noise_schedule))
        T, gamma, Delta = rate * problem.step_time(), rate * problem.gamma, Delta * problem.Delta
        numbers = np.arange(n_b) if problem.samples else step * n_b + np.arange(n_b)
        draws = np.array([normals(key, case.seed, s, 32 * (d // 32 + 1)) for s in numbers])
        x, z = draws[:, :d] / np.sqrt(d), draws[:, d]
        z = z * scales_of(problem, streams[3], np.uint64(case.seed), numbers)
        y = erf(x @ W_star.T / np.sqrt(2)).mean(axis=1) + np.sqrt(Delta) * z
        if problem.input_noise:
            xi = np.array([normals(streams[1], case.seed, s, 32 * (d // 32 + 1))[:d] for s in numbers])
            x = x + np.sqrt(problem.input_noise / d) * xi
        lam = x @ W.T
        masks = np.array([masks_of(problem, streams[0], case.seed, s) for s in numbers])
        value = masks * erf(lam / np.sqrt(2))
        E = force(problem, value @ layer / p, y)
        c = layer * masks * np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2) * E[:, None]
        descent = c.T @ x / n_b
        size = np.linalg.norm(descent)
        if keeps or problem.update in ("spectral", "newton_schulz"):
            v = descent + (problem.momentum * v if keeps else 0.0)
            descent = spectral(problem, v)
        if problem.update in ("normalised", "clipped", "sign"):
            descent = by_rule(problem, descent, size)
        elif problem.update == "adagrad_norm":
            B = (problem.adagrad_start if B is None else B) + T * size**2
            descent /= np.sqrt(B)
        elif problem.update == "tangent":
            descent -= np.mean(c * lam, axis=0)[:, None] * W / d
        move = gamma / p * descent
        if problem.update == "heavy_ball":
            v = move = move + problem.momentum * v
        W = (1 - problem.weight_decay * T) * W + move
        W = W + np.sqrt(2 * problem.temperature * T) * noise_of(W, streams[2], case.seed, step)
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
        layer = layer + problem.second_layer_rate * T * (
            (value * E[:, None]).mean(axis=0) - problem.second_layer_decay * layer
        )
        yield W, layer
