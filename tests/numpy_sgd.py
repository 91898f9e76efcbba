"""SGD of erf units in NumPy, with the samples that a case has.

With losses, decay, batches, training sets, repeats, spectra, two Gaussians, offsets, tasks, updates, schedules,
dropout, and noise of inputs, weights and labels.
"""

import numpy as np
from scipy.special import erf

from sweeplib import simulate
from sweeplib.engine.language import Expression
from sweeplib.networks.kernels.disturbances import OF_INPUTS, OF_MASKS, OF_WEIGHTS
from sweeplib.networks.kernels.label_noise import OF_LABELS
from sweeplib.networks.kernels.replay import tasks_of
from sweeplib.networks.kernels.training_set import TrainingSet, choose
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.numerics.random import chi_square, normals, random_words, stream_key
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
    """Assert that 60 steps of SGD are those of NumPy, and so is an exit; return whether there was one to compare.

    There is none with offsets, tasks, spectra and data without a teacher, nor where a batch is used several times.
    """
    case, last, thresholds = Case(problem, "sgd", 3, Recording((0.0,))), 60 * problem.step_time(), []
    iterates, W_star = list(iterates_by_numpy(case, 60)), replicas_of([case]).weights(0)[1]
    W, layer, b = iterates[-1]
    expected = {"overlap_Q": W @ W.T / problem.d, "second_layer": layer}
    expected |= {"overlap_M": W @ W_star.T / problem.d} if problem.k else {}
    expected |= {"offset": b} if problem.has_offsets else {}
    if not (problem.has_offsets or problem.in_turn or problem.repeats > 1 or problem.data != "teacher_student"):
        risks, first = risks_of(problem, iterates, W_star), replicas_of([case])
        start = problem_expectations(problem).risks(first.Q, first.M, first.P, first.a, first.a_star).item()
        threshold = 1.0 - 1.0001 * risks[:30].min() / start
        thresholds = [threshold] if threshold > 0 else []
    found = simulate(problem, "sgd", times=[last], seeds=[3], thresholds=thresholds, observables=list(expected))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name][0, -1], value, rtol=rtol, atol=1e-12)
    if thresholds:
        assert found.exit_steps.item() == 1 + np.flatnonzero(risks <= (1 - threshold) * start)[0]
    return bool(thresholds)


def risks_of(problem, iterates, W_star):
    """Return the risk of each iterate."""
    risks = []
    for W, layer, _ in iterates:
        overlaps = W @ W.T / problem.d, W @ W_star.T / problem.d, W_star @ W_star.T / problem.d
        state = *overlaps, layer, np.ones(problem.k)
        risks.append(problem_expectations(problem).risks(*(part[None] for part in state)).item())
    return np.array(risks)


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


class Update:
    """The rule of the steps of a problem, with the velocities and the memory that it keeps."""

    def __init__(self, problem):
        self.problem, self.v, self.B = problem, 0.0, getattr(problem, "adagrad_start", None)

    def move(self, W, descent, along, T, rate):
        """Return what a step adds to W (p, d), with decay; descent : −g. along (p,) : means of c_i λ_i."""
        problem, size = self.problem, np.linalg.norm(descent)
        kind, keeps = problem.update, problem.update in ("spectral_momentum", "muon")
        if keeps or kind in ("spectral", "newton_schulz"):
            self.v = descent + (problem.momentum * self.v if keeps else 0.0)
            descent = spectral(problem, self.v)
        elif kind == "sign":
            descent = np.sign(descent) / np.sqrt(problem.d)
        elif kind in ("normalised", "clipped"):
            descent = descent * (1.0 if kind == "normalised" else min(size, problem.clip_norm)) / max(size, 1e-300)
        elif kind == "adagrad_norm":
            self.B += T * size**2
            descent = descent / np.sqrt(self.B)
        elif kind == "tangent":
            descent = descent - along[:, None] * W / problem.d
        move = rate * problem.gamma / problem.p * descent - problem.weight_decay * T * W
        if kind == "heavy_ball":
            self.v = move = move + problem.momentum * self.v
        return move


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
    """Q, M and a of SGD for erf after some steps, with the samples of the case."""
    (_, W_star), d = replicas_of([case]).weights(0), case.problem.d
    *_, (W, layer, _) = iterates_by_numpy(case, count)
    return W @ W.T / d, W @ W_star.T / d, layer


def weights_by_numpy(case, count):
    """W (p, d) at the start and after each of some steps, with the samples of the case, and W*."""
    W, W_star = replicas_of([case]).weights(0)
    return [W, *(W for W, *_ in iterates_by_numpy(case, count))], W_star


def batches(n, batch_size, steps, key=5, seed=0, epochs=False):
    """The batches of a training set of n samples that the kernel chooses at some steps, in this order."""
    numbers = np.arange(n), np.empty(n, np.int64), np.full(1, -1)
    data = TrainingSet(np.empty((n, 1)), np.empty(n), *numbers, np.uint64(key), epochs)
    found, batch = [], np.empty(batch_size, np.int64)
    for step in steps:
        size = specialised(_choose)(step, batch_size, np.uint64(seed), data, batch)
        found.append(batch[:size].tolist())
    return found


def _choose(step, batch_size, seed, data, batch):
    return choose(step, batch_size, seed, data, batch)


def tasks_by_hand(problem, at):
    """Return the task of a time, those before it, and how many there are."""
    if not problem.in_turn:
        return 0, [], 1
    times = problem.switch_time if isinstance(problem.switch_time, tuple) else (problem.switch_time,)
    order, phase = problem.task_order or range(1, len(times) + 2), sum(time <= at for time in times)
    return order[phase] - 1, sorted({task - 1 for task in order[:phase]} - {order[phase] - 1}), max(order)


def inputs_by_numpy(problem, key, seed, samples):
    """√d x, the part of each label that comes with its input, and the noise z of the labels of some samples."""
    d, (values, sizes) = problem.d, problem.blocks
    draws = np.array([normals(key, seed, s, 32 * (d // 32 + 1)) for s in samples])
    x, label = draws[:, :d] * np.repeat(np.sqrt(values), np.array(sizes, int)), np.zeros(len(samples))
    if problem.data == "two_gaussians":
        own = np.uint64(stream_key(int(key), "data", "two_gaussians"))
        words = [int(random_words(np.uint64(0), np.uint64(s), np.uint64(seed), own)[0]) for s in samples]
        label = np.where(np.array(words) % 2, 1.0, -1.0)
        x = (1.0 + problem.contrast * label)[:, None] * x
    return x, label, draws[:, d]


def numbers_of(case, key, turn):
    """The numbers of the samples of a batch, and those that name their masks and noise."""
    problem = case.problem
    names = turn * problem.batch_size + np.arange(problem.batch_size)
    if not problem.samples:
        return names, names
    choices = stream_key(int(key), "batches"), case.seed, problem.sampling == "epochs"
    [numbers] = batches(problem.samples, problem.batch_size, [turn], *choices)
    return numbers, names[: len(numbers)]


def tasks_of_samples(case, key, middle, names):
    """The task of each sample, by the time of its step; replayed tasks are drawn."""
    problem, (present, earlier, count) = case.problem, tasks_by_hand(case.problem, middle)
    if not (earlier and problem.replay):
        return np.full(len(names), present)
    shares = np.zeros(count)
    shares[earlier], shares[present] = problem.replay / len(earlier), 1.0 - problem.replay
    seed, key = np.uint64(case.seed), np.uint64(key)
    return np.array([tasks_of(shares.cumsum(), int(name), 1, seed, key)[0] for name in names])


def iterates_by_numpy(case, count):
    """Yield W, a and b after each of some steps of SGD for erf, with the samples of the case."""
    problem, replicas = case.problem, replicas_of([case])
    (W, W_star), b, seed = replicas.weights(0), replicas.offsets()[0], np.uint64(case.seed)
    W, key, d, p, k, update = W.copy(), samples_key(case), problem.d, problem.p, problem.k, Update(problem)
    T_plain, (_, _, tasks_in_all) = problem.step_time(), tasks_by_hand(problem, 0.0)
    head_of = np.arange(tasks_in_all) if problem.in_turn and problem.heads == "separate" else np.zeros(2, int)
    heads = np.tile(np.broadcast_to(problem.a, p).astype(float), (tasks_in_all, 1))
    rows = np.arange(k) * tasks_in_all // max(k, 1) == np.arange(tasks_in_all)[:, None]
    a_stars = np.where(rows, tasks_in_all * np.broadcast_to(problem.a_star, k).astype(float), 0.0)
    for step in range(count):
        turn, use = divmod(step, problem.repeats)
        of_masks, of_inputs, of_weights, of_labels = (
            np.uint64((int(key) + more) % 2**64)
            for more in (*(int(more) * (use + 1) for more in (OF_MASKS, OF_INPUTS, OF_WEIGHTS)), int(OF_LABELS))
        )
        middle = (turn + 0.5) * problem.repeats * T_plain
        rate, chi = (factor_at(text, middle) for text in (problem.schedule, problem.noise_schedule))
        T, (numbers, names) = rate * T_plain, numbers_of(case, key, turn)
        x, y, z = inputs_by_numpy(problem, key, case.seed, numbers)
        tasks, x = tasks_of_samples(case, key, middle, names), x / np.sqrt(d)
        y = y + np.sqrt(chi * problem.Delta) * z * scales_of(problem, of_labels, seed, np.array(numbers))
        y = y + (erf(x @ W_star.T / np.sqrt(2)) * a_stars[tasks]).sum(axis=1) / max(k, 1)
        if problem.input_noise:
            xi = np.array([normals(of_inputs, case.seed, s, 32 * (d // 32 + 1))[:d] for s in names])
            x = x + np.sqrt(problem.input_noise / d) * xi
        lam, layer = x @ W.T, heads[head_of[tasks]]
        masks = np.array([masks_of(problem, of_masks, case.seed, s) for s in names])
        value = masks * erf((lam + b) / np.sqrt(2))
        E = force(problem, (value * layer).sum(axis=1) / p, y)
        c = layer * masks * np.sqrt(2 / np.pi) * np.exp(-((lam + b) ** 2) / 2) * E[:, None]
        W = W + update.move(W, c.T @ x / len(numbers), (c * lam).mean(axis=0), T, rate)
        W = W + np.sqrt(2 * problem.temperature * T) * noise_of(W, of_weights, case.seed, turn)
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
        b = b + problem.offset_rate * T * c.mean(axis=0)
        pull = value * E[:, None] - problem.second_layer_decay * layer
        heads = heads.copy()
        np.add.at(heads, head_of[tasks], problem.second_layer_rate * T * pull / len(numbers))
        # what is recorded at a switch is of the next task
        yield W, heads[head_of[tasks_by_hand(problem, (step + 1.0 + 1e-6) * T_plain)[0]]], b
