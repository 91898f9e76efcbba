"""Finite training sets: steps against NumPy, the choice of batches, limits, what is recorded, what is refused."""

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import erf
from scipy.stats import chisquare, ks_2samp

from sweeplib import InputError, Problem, simulate
from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.numerics.random import normals, stream_key
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.in_process import InProcess
from tests.numpy_sgd import batches
from tests.plugged import nothing_left
from tests.tiers import slow_among

FIELDS = {"gamma": 3.0, "p": 3, "k": 2, "d": 50, "Delta": 0.2, "activation": "erf"}
RECORDED = ("overlap_Q", "overlap_M", "second_layer", "training_risk", "generalisation_gap", "noise_trace")
FUNCTIONS = {
    "erf": (lambda x: erf(x / np.sqrt(2)), lambda x: np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)),
    "square": (lambda x: x**2, lambda x: 2 * x),
}


def a_case(problem, seed=3, steps=30, observables=RECORDED, **more):
    return Case(problem, "sgd", seed, Recording((0.0, steps * problem.step_time()), (), observables), **more)


class Plain:
    """SGD on a training set as one would write it down."""

    def __init__(self, case):
        problem = self.problem = case.problem
        W, self.W_star = replicas_of([case]).weights(0)
        self.W, self.a = W.copy(), np.broadcast_to(problem.a, problem.p).astype(float)
        key, d = samples_key(case), problem.d
        draws = np.array([normals(key, case.seed, m, 32 * (d // 32 + 1)) for m in range(problem.samples)])
        self.x = draws[:, :d] / np.sqrt(d)
        self.value, self.slope = FUNCTIONS[problem.activation]
        teacher = self.value(self.x @ self.W_star.T) @ np.broadcast_to(problem.a_star, problem.k) / problem.k
        self.y = teacher + np.sqrt(problem.Delta) * draws[:, d]
        self.choices = stream_key(key, "batches"), case.seed, problem.sampling == "epochs"

    def error(self):
        return self.y - self.value(self.x @ self.W.T) @ self.a / self.problem.p

    def gradients(self):
        """∇ of ½E² for each sample (n, p, d)."""
        c = self.a * self.slope(self.x @ self.W.T) * self.error()[:, None]
        return -c[:, :, None] * self.x[:, None, :] / self.problem.p

    def take(self, count):
        problem = self.problem
        key, seed, epochs = self.choices
        for batch in batches(problem.samples, problem.batch_size, range(count), key, seed, epochs):
            step = problem.gamma * self.gradients()[batch].mean(axis=0)
            second = (self.value(self.x @ self.W.T) * self.error()[:, None])[batch].mean(axis=0)
            self.W -= step
            self.a = self.a + problem.second_layer_rate * problem.step_time() * second
            if problem.spherical:
                self.W *= np.sqrt(problem.d) / np.linalg.norm(self.W, axis=1, keepdims=True)

    def recorded(self, risk):
        n, n_b, d = self.problem.samples, self.problem.batch_size, self.problem.d
        training_risk = 0.5 * (self.error() ** 2).mean()
        gradients = self.gradients()
        variance = ((gradients - gradients.mean(axis=0)) ** 2).sum() / n
        return {
            "overlap_Q": self.W @ self.W.T / d,
            "overlap_M": self.W @ self.W_star.T / d,
            "second_layer": self.a,
            "training_risk": training_risk,
            "generalisation_gap": risk + self.problem.Delta / 2 - training_risk,
            "noise_trace": variance / n_b * (n - n_b) / max(n - 1, 1),
        }


@pytest.mark.parametrize("more", [{}, {"spherical": True}, {"second_layer_rate": 0.5}], ids=["plain", "sphere", "both"])
@pytest.mark.parametrize(
    ("n", "n_b", "sampling"),
    [(40, 40, "random"), (40, 7, "random"), (40, 7, "epochs"), (300, 290, "random"), (5, 1, "epochs")],
)
def test_steps_are_those_of_plain_sgd(n, n_b, sampling, more):
    case = a_case(
        Problem(samples=n, batch_size=n_b, sampling=sampling, **FIELDS, **more), observables=(*RECORDED, "risk")
    )
    found, plain = run_cases([case]).data, Plain(case)
    for place, steps in enumerate((0, 30)):
        plain.take(steps)
        for name, values in plain.recorded(found["risk"][0, place]).items():
            np.testing.assert_allclose(found[name][0, place], values, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (2, 1, 1, 1), (3, 1, 2, 1), (3, 3, 1, 2), (9, 4, 3, 5), (2000, 6, 2, 400)]
)
def test_the_smallest_and_an_odd_number_of_everything(shape):
    n, n_b, d, p = shape
    problem = Problem(gamma=0.1, p=p, k=1, d=d, Delta=0.2, activation="square", samples=n, batch_size=n_b)
    case = a_case(problem, steps=3, observables=("overlap_Q", "training_risk", "noise_trace"))
    found, plain = run_cases([case]).data, Plain(case)
    plain.take(3)
    expected = plain.recorded(0.0)
    for name, values in found.items():
        if name in expected:
            np.testing.assert_allclose(values[0, -1], expected[name], rtol=1e-8, atol=1e-12, err_msg=name)


def test_batches_are_distinct_uniform_and_independent_of_each_other():
    """χ² of 10 pairs and of 36 successive ones, at fixed seeds; a false alarm in 1000."""
    chosen = [tuple(sorted(batch)) for batch in batches(5, 2, range(20_000))]
    assert all(len(set(batch)) == 2 for batch in chosen)
    pairs = Counter(chosen)
    assert set(pairs) == set(itertools.combinations(range(5), 2))
    assert chisquare(list(pairs.values())).pvalue > 1e-3
    successive = Counter(itertools.pairwise(tuple(sorted(batch)) for batch in batches(4, 2, range(20_000), key=7)))
    assert len(successive) == 36
    assert chisquare(list(successive.values())).pvalue > 1e-3


def test_a_batch_is_a_function_of_the_number_of_its_step():
    for epochs in (False, True):
        forth = batches(30, 4, range(40), epochs=epochs)
        order = [17, 3, 39, 0, 17, 8]
        assert batches(30, 4, order, epochs=epochs) == [forth[step] for step in order]
    assert batches(30, 4, range(5)) != batches(30, 4, range(5), seed=1) != batches(30, 4, range(5), key=6, seed=1)


@pytest.mark.parametrize(("n", "n_b"), [(12, 4), (13, 4), (7, 1), (5, 5), (5, 3)])
def test_epochs_take_each_sample_once_a_pass_in_an_order_of_their_own(n, n_b):
    steps = -(-n // n_b)
    orders = []
    for number in range(4):
        of_pass = batches(n, n_b, range(number * steps, (number + 1) * steps), epochs=True)
        assert [len(batch) for batch in of_pass[:-1]] == [n_b] * (steps - 1)
        orders.append([sample for batch in of_pass for sample in batch])
        assert sorted(orders[-1]) == list(range(n))
    assert len({tuple(order) for order in orders}) == (1 if n == n_b else 4)


def test_orders_of_a_pass_are_uniform():
    orders = Counter(tuple(itertools.chain(*batches(3, 1, range(3 * m, 3 * m + 3), epochs=True))) for m in range(3000))
    assert len(orders) == 6
    assert chisquare(list(orders.values())).pvalue > 1e-3


@pytest.mark.parametrize("sampling", ["random", "epochs"])
def test_results_depend_neither_on_records_nor_on_the_cases_beside_them(sampling):
    """Two sets of different sizes in one batch; a run that is looked at, and continued, at every step."""
    problems = [Problem(samples=n, batch_size=3, sampling=sampling, **FIELDS) for n in (10, 25)]
    times = 12 * problems[0].step_time()
    often = Recording(tuple(np.linspace(0, times, 13)), (), RECORDED)
    rarely = Recording((times,), (), RECORDED)
    together = run_cases([Case(problem, "sgd", seed, often) for problem in problems for seed in range(5)])
    for place, problem in enumerate(problems):
        alone = run_cases([Case(problem, "sgd", 4, rarely)])
        for name in RECORDED:
            np.testing.assert_array_equal(together.data[name][5 * place + 4, -1], alone.data[name][0, -1])


def test_full_batches_are_the_same_whatever_the_sampling():
    one, other = (Problem(samples=9, batch_size=9, sampling=name, **FIELDS) for name in ("random", "epochs"))
    assert a_case(one).identity() == a_case(other).identity()
    np.testing.assert_array_equal(
        run_cases([a_case(one)]).data["overlap_Q"], run_cases([a_case(other)]).data["overlap_Q"]
    )


def test_the_full_batch_lowers_the_training_risk_at_every_small_step():
    problem = Problem(samples=30, batch_size=30, **FIELDS)
    times = np.arange(200) * problem.step_time()
    ds = simulate(problem, "sgd", times=times, seeds=range(2), observables=["training_risk", "generalisation_gap"])
    assert (np.diff(ds.training_risk, axis=1) < 0).all()
    assert (ds.training_risk[:, -1] < 0.8 * ds.training_risk[:, 0]).all()
    assert (ds.generalisation_gap[:, -1] > 0.02).all()


@pytest.mark.parametrize(("sampling", "n_b"), slow_among([("random", 4), ("epochs", 3)], ("epochs", 3)))
def test_a_large_training_set_is_as_good_as_fresh_samples(sampling, n_b):
    """30 steps of 5000 samples, 250 seeds: Kolmogorov-Smirnov tests at a false alarm in 1000 each."""
    fresh = Problem(batch_size=n_b, **FIELDS | {"d": 20})
    finite = Problem(batch_size=n_b, samples=5000, sampling=sampling, **FIELDS | {"d": 20})
    W = replicas_of([a_case(fresh)]).weights(0)
    arguments = {"times": [30 * fresh.step_time()], "initial": W, "observables": ["overlap_Q", "overlap_M", "risk"]}
    one, other = (simulate(problem, "sgd", seeds=range(250), **arguments) for problem in (fresh, finite))
    for values in (lambda ds: ds.risk[:, 0], lambda ds: ds.overlap_M[:, 0, 0, 1], lambda ds: ds.overlap_Q[:, 0, 0, 2]):
        assert ks_2samp(values(one), values(other)).pvalue > 1e-3


@pytest.mark.parametrize(
    "fields",
    [{"activation": "linear", "d": 5}, {"activation": "erf", "d": 60}, {"activation": "square", "d": 60, "p": 2}],
    ids=["linear", "erf", "square"],
)
def test_the_noise_of_a_large_training_set_is_that_of_fresh_samples(fields):
    """Of 300,000 samples, within 5 standard errors over seeds and 3/d², the order of what the formula leaves out."""
    problem = Problem(**{"gamma": 0.1, "p": 1, "k": 1, "Delta": 0.3, "batch_size": 4} | fields)
    large = Problem(**{"samples": 40_000, "gamma": 0.1, "p": 1, "k": 1, "Delta": 0.3, "batch_size": 4} | fields)
    W = replicas_of([a_case(problem)]).weights(0)
    one, other = (
        simulate(some, "sgd", times=[0.0], seeds=range(8), initial=W, observables=["noise_trace"]).noise_trace[:, 0]
        for some in (problem, large)
    )
    error = float(other.std(ddof=1)) / np.sqrt(8)
    left_out = 0.0 if fields["activation"] == "linear" else 3 / problem.d**2
    assert abs(float(other.mean() / one[0]) - 1) < 5 * error / float(one[0]) + left_out < 0.06
    chain = simulate(
        Problem(**{"gamma": 0.1, "p": 1, "k": 1, "Delta": 0.3} | fields),
        "sgd_chain",
        times=[0.0],
        initial=W,
        observables=["noise_trace"],
    )
    np.testing.assert_allclose(chain.noise_trace, 4 * one[:1].values[:, None], rtol=1e-9)


def test_the_noise_of_linear_units_has_a_closed_form():
    """E = v·x + √Δ z, so that E‖∇L‖² = |a|² ((d + 2)|v|²/d² + Δ)/p² and ‖∇R‖² = |a|² |v|²/(pd)²."""
    rng, p, k, d, Delta = np.random.default_rng(3), 3, 2, 6, 0.3
    W, W_star, a, a_star = rng.normal(size=(p, d)), rng.normal(size=(k, d)), (1.0, 0.5, -2.0), (2.0, -0.7)
    problem = Problem(gamma=0.1, p=p, k=k, d=d, Delta=Delta, activation="linear", a=a, a_star=a_star, batch_size=4)
    v = np.array(a_star) @ W_star / k - np.array(a) @ W / p
    expected = np.square(a).sum() / p**2 * ((d + 1) * (v @ v) / d**2 + Delta) / 4
    ds = simulate(problem, "sgd", times=[0.0], initial=(W, W_star), observables=["noise_trace"])
    assert ds.noise_trace.item() == pytest.approx(expected, rel=1e-9)


def test_the_trace_is_that_of_all_batches():
    """Of the gradients of the 15 pairs among 6 samples."""
    case = a_case(Problem(samples=6, batch_size=2, **FIELDS), observables=("noise_trace",))
    gradients = Plain(case).gradients()
    means = np.array([gradients[list(pair)].mean(axis=0) for pair in itertools.combinations(range(6), 2)])
    trace = ((means - means.mean(axis=0)) ** 2).sum() / 15
    assert run_cases([case]).data["noise_trace"][0, 0] == pytest.approx(trace, rel=1e-9)


@pytest.mark.parametrize("spherical", [False, True])
def test_exits_are_those_of_the_risks_of_each_step(spherical):
    problem = Problem(samples=200, batch_size=5, spherical=spherical, **FIELDS)
    times = np.arange(300) * problem.step_time()
    every = simulate(problem, "sgd", times=times, seeds=range(3))
    exits = simulate(problem, "sgd", times=times[-1:], seeds=range(3), thresholds=[0.1, 0.2], stop="exit")
    for place, threshold in enumerate((0.1, 0.2)):
        below = every.risk.values <= (1 - threshold) * every.risk.values[:, :1]
        assert below.any(axis=1).all()
        np.testing.assert_array_equal(exits.exit_steps[:, place], below.argmax(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("n_b", [1, 3, 60])
def test_float32_differs_by_rounding(n_b):
    problem = Problem(samples=60, batch_size=n_b, **FIELDS)
    arguments = {"times": [60 * problem.step_time()], "observables": ["overlap_Q", "training_risk", "noise_trace"]}
    one, other = (simulate(problem, "sgd", options={"weights": kind}, **arguments) for kind in ("float64", "float32"))
    for name in arguments["observables"]:
        np.testing.assert_allclose(one[name], other[name], rtol=2e-6, atol=1e-7)
        assert (one[name] != other[name]).any() or n_b == 60


def test_too_large_a_step_diverges():
    problem = Problem(samples=20, batch_size=20, **FIELDS | {"gamma": 1e4, "activation": "square"})
    ds = simulate(problem, "sgd", times=[0, 200 * problem.step_time()], observables=["training_risk"])
    assert ds.status == 2
    assert np.isfinite(ds.training_risk[0, 0])
    assert np.isnan(ds.training_risk[0, 1])


def test_a_run_that_takes_too_long_is_given_up():
    problem = Problem(samples=20, batch_size=20, **FIELDS)
    ds = simulate(problem, "sgd", times=[0, 1e12], observables=["training_risk"], seeds=range(2), timeout=0.05)
    assert (ds.status == 5).all()
    assert (ds.end_steps > 0).all()


def test_problems_that_share_their_samples_have_nested_training_sets():
    """With `pair_by`, the first samples of the larger set are the smaller one."""
    one, other = (a_case(Problem(samples=n, **FIELDS), pair_by=("d",)) for n in (4, 9))
    np.testing.assert_array_equal(Plain(one).y, Plain(other).y[:4])
    assert samples_key(one) == samples_key(other)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"samples": 3, "batch_size": 4},
            "batch_size: a batch larger than the training set; got 4; expected at most 3",
        ),
        ({"sampling": "epochs"}, "sampling: no training set to sample; got 'epochs'; expected `samples` beside it"),
        ({"samples": 3, "sampling": "epoch"}, "sampling: .*'epoch'.*did you mean 'epochs'"),
        ({"samples": 0}, "samples: .*got 0"),
    ],
)
def test_problems_that_make_no_sense_are_refused(fields, said):
    with pytest.raises(InputError, match=said):
        Problem(**FIELDS, **fields)


@pytest.mark.parametrize("name", ["training_risk", "generalisation_gap"])
def test_observables_of_a_training_set_need_one(name):
    with pytest.raises(InputError, match=f"{name} needs samples; got '{name}'; expected `samples` in the problem"):
        simulate(Problem(**FIELDS), "sgd", times=[0.0], observables=[name])
    with pytest.raises(InputError, match="one of these dynamics: dmft, sgd"):
        simulate(Problem(**FIELDS), "ode", times=[0.0], observables=[name])


@pytest.mark.parametrize("dynamics", ["sgd_chain", "ode", "sde", "gradient_flow"])
def test_dynamics_of_fresh_samples_refuse_a_training_set(dynamics):
    with pytest.raises(InputError, match=f"{dynamics} does not act on samples.*acts on it: dmft, sgd"):
        simulate(Problem(samples=100, **FIELDS), dynamics, times=[0.1])


def test_a_training_set_beyond_any_memory_is_refused():
    with pytest.raises(InputError, match="samples: too many bytes of a training set"):
        simulate(Problem(samples=10**12, **FIELDS), "sgd", times=[0.1])


def test_memory_and_work_count_the_training_set():
    kind = DYNAMICS["sgd"]
    fresh, finite, full = (
        Problem(**FIELDS, **more) for more in ({}, {"samples": 10**6}, {"samples": 10**6, "batch_size": 10**6})
    )
    half = kind.Options(weights="float32")
    assert kind.memory(finite, kind.Options()) - kind.memory(fresh, kind.Options()) > 8 * 50 * 10**6
    assert 4 * 50 * 10**6 < kind.memory(finite, half) < 8 * 50 * 10**6
    assert kind.work(fresh, 1.0) < kind.work(finite, 1.0) < kind.work(full, 1.0)


SWEEP = """\
problem: {p: 2, k: 2, d: 50, Delta: 0.1, activation: erf}
grid: {zip: [{samples: [20, 30], batch_size: [20, 7]}], gamma: [2.0], sampling: [random, epochs]}
seeds: 3
dynamics: [sgd]
times: [0, 1, 2]
observables: [risk, training_risk, generalisation_gap, noise_trace]
cluster: {kind: in_process}
"""


class RegisteredInProcess(InProcess):
    """The cluster in this process, for configs."""

    kind: Literal["in_process"] = "in_process"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "reuse.yaml"
    path.write_text(SWEEP)
    with nothing_left():
        CLUSTERS.register("in_process", RegisteredInProcess)
        yield path


@pytest.mark.slow
def test_a_sweep_over_training_sets(config):
    """The plan states memory and time; runs of full batches are one for both samplings; all are `simulate`'s."""
    done = CliRunner().invoke(app, ["run", str(config), "--results", str(config.parent)])
    assert done.exit_code == 0, done.output
    assert "9/9 cases, 0 failed" in done.output
    assert re.search(r"sgd: a case takes up to 16 kB of memory, a step [0-9.]+ (µs|ms)", done.output)
    directory = config.parent / "reuse"
    layouts = json.loads((directory / "plan.json").read_text())["dynamics"]["sgd"]["layouts"]
    assert max(layout["memory"] for layout in layouts.values()) == 50 * 8 * (30 + 4) + 30 * 8 * 8
    ds = open_dataset(finalise(load(config), directory)).isel(dynamics=0, gamma=0)
    assert (ds.status == 1).all()
    whole = ds.sel(samples=20)
    np.testing.assert_array_equal(*(whole.training_risk.sel(sampling=name) for name in ("random", "epochs")))
    np.testing.assert_array_equal(whole.noise_trace, 0.0)
    np.testing.assert_allclose(ds.generalisation_gap, ds.risk + 0.05 - ds.training_risk, rtol=1e-12)
    fields = {"gamma": 2.0, "p": 2, "k": 2, "d": 50, "Delta": 0.1, "activation": "erf", "samples": 30, "batch_size": 7}
    passes = Problem(sampling="epochs", **fields)
    alone = simulate(passes, "sgd", times=[0, 1, 2], seeds=range(3), observables=["training_risk"])
    np.testing.assert_array_equal(ds.training_risk.sel(samples=30, sampling="epochs"), alone.training_risk)


def test_a_training_set_that_no_worker_has_the_memory_for_is_refused_in_one_line(config):
    """Whether there is a plan to make, as in a process of its own, or not."""
    large = SWEEP.replace("[20, 30], batch", "[20, 1_000_000], batch")
    config.write_text(large.replace("in_process}", 'local, memory_limit: "400MB"}'))
    said = "dynamics.sgd: a case of reuse needs more bytes of memory than a worker may take, at p=2, k=2, d=50, "
    said += "samples=1000000; got 464001600; expected at most 360000000: "
    said += "fewer samples, a smaller d, or workers with more memory"
    program = Path(sys.executable).parent / "sweeplib"
    done = subprocess.run([program, "plan", config], cwd=config.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, said)
    planned = ["--set", "cluster.block_size=5", "--results", str(config.parent)]
    ran = CliRunner().invoke(app, ["run", str(config), *planned])
    assert (ran.exit_code, ran.output.strip()) == (2, said)
