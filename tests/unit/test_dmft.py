"""Dynamical mean-field theory of a reused full batch: exact solutions, simulations, limits, refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.config import load
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.networks.dynamics.dmft import BATCHES
from sweeplib.networks.dynamics.effective_process import EffectiveProcess, Setting, tails
from sweeplib.networks.kernels.numbers import COUNT, Numbers
from sweeplib.networks.numerics.low_discrepancy import WIDER, low_discrepancy_normals, with_wider_half
from tests.giant_steps import TARGETS, descent, staircase
from tests.in_process import InProcess
from tests.plugged import nothing_left, written

NUMBERS = Numbers(*[0.0] * COUNT)._replace(T=2.0, Delta=0.1)

ALIGNED = Overlaps([[1.0]], [[0.2]], [[1.0]])
TWO = Overlaps([[1.0, 0.1], [0.1, 0.9]], [[0.3, 0.1], [-0.1, 0.2]], np.eye(2))
EVERYTHING = ["overlap_M", "overlap_Q", "training_risk", "correlation", "response", "second_layer"]
FEW = {"paths": 2**17}


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    with nothing_left():
        load_plugins([written(tmp_path_factory.mktemp("targets") / "reused_targets.py", TARGETS)])
        yield


def made(alpha=2.0, length=0.5, **fields):
    """A problem of a full batch of αd samples, with steps of this length."""
    given = {"p": 1, "k": 1, "d": 1000, "Delta": 0.1, "activation": "erf", **fields}
    samples = round(alpha * given["d"])
    return Problem(gamma=length * given["p"] * given["d"], samples=samples, batch_size=samples, **given)


def run(problem, steps, initial=ALIGNED, observables=EVERYTHING, options=FEW, **more):
    times = np.arange(steps + 1) * problem.step_time()
    ds = simulate(problem, "dmft", times=times, initial=initial, observables=observables, options=options, **more)
    return ds.isel(seed=0)


def assert_within(ds, name, expected, errors=5.0, more=1e-10):
    """A recorded variable is the expected one within its standard errors, of 31 degrees of freedom."""
    found, margin = ds[name].values, errors * ds[f"{name}_error"].values + more
    assert np.isfinite(found).any()
    wrong = np.abs(found - expected) > margin
    assert not wrong.any(), (found[wrong], np.broadcast_to(expected, found.shape)[wrong], margin[wrong])


def test_published_numbers_of_a_single_index_teacher():
    """They are means of 40 runs at d = 2000; the margins are a few of their errors."""
    problem = made(length=1.5, d=2000, target="erf and he3")
    ds = run(problem, 6, options={"paths": 2**18}).isel(time=[1, 2, 3, 6])
    expected = {
        "overlap_M": [0.6059, 0.6368, 0.6358, 0.6328],
        "overlap_Q": [1.0738, 0.8971, 0.7852, 0.6680],
        "training_risk": [0.2148, 0.1656, 0.1460, 0.1285],
    }
    for name, margin in (("overlap_M", 0.004), ("overlap_Q", 0.007), ("training_risk", 0.003)):
        np.testing.assert_allclose(ds[name].values.ravel(), expected[name], rtol=0, atol=margin)
        assert (ds[f"{name}_error"] < 1.5e-3).all()


def marchenko_pastur(alpha, nodes=4000):
    """Eigenvalues of XᵀX/α and their weights; those that are zero for α < 1 among them."""
    lower, upper = (1 - alpha**-0.5) ** 2, (1 + alpha**-0.5) ** 2
    angle = (np.arange(nodes) + 0.5) * math.pi / nodes
    x = 0.5 * (lower + upper) - 0.5 * (upper - lower) * np.cos(angle)
    weight = alpha * (0.5 * (upper - lower) * np.sin(angle)) ** 2 / (2 * nodes * x)
    return np.append(x, 1e-300), np.append(weight, max(0.0, 1.0 - alpha))


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_linear_students_follow_the_spectrum_of_the_data(alpha):
    """w − w* = (1 − T XᵀX/α)^t (w_0 − w*) + noise: exact at all times, responses too."""
    T, Delta, steps = 0.3, 0.25, 6
    ds = run(made(alpha, T, activation="linear", Delta=Delta), steps)
    x, weight = marchenko_pastur(alpha)
    assert weight.sum() == pytest.approx(1.0)
    t = np.arange(steps + 1)
    decay = (1.0 - T * x) ** t[:, None]
    assert_within(ds, "overlap_M", (1 - 0.8 * decay @ weight)[:, None, None])
    kept = 1.6 * np.einsum("tx,sx,x->ts", decay, decay, weight)
    noise = Delta * np.einsum("tx,sx,x->ts", 1 - decay, 1 - decay, weight / (alpha * x))
    m = 1 - 0.8 * decay @ weight
    C = kept + noise + m[:, None] + m[None, :] - 1.0
    C = np.where(t[:, None] >= t, C, np.nan)
    assert_within(ds.fillna(0), "correlation", np.nan_to_num(C)[:, :, None, None])
    np.testing.assert_array_equal(np.isnan(ds.correlation.values[..., 0, 0]), np.isnan(C))
    R = np.where(t[:, None] > t, T / alpha * np.take(decay @ weight, np.maximum(t[:, None] - t - 1, 0)), 0.0)
    assert_within(ds.fillna(0), "response", R[:, :, None, None])
    risk = 0.8 * decay**2 @ (weight * x) + 0.5 * Delta * (decay**2 @ weight / alpha + 1 - 1 / alpha)
    assert_within(ds, "training_risk", risk)


UNITS = {"p": 2, "k": 2, "a": (1.0, -0.7)}
SIMULATED = {
    "staircase": ({"alpha": 1.0, "length": 1.0, "target": "staircase", **UNITS}, staircase),
    "both layers, sphere": (
        {"length": 0.7, "target": "staircase", "spherical": True, "second_layer_rate": 0.3, **UNITS},
        staircase,
    ),
    "relu": (
        {"alpha": 0.7, "length": 0.8, "activation": "relu", "a_star": (2.0, 1.0), "p": 2, "k": 2},
        lambda lam_star: (2.0 * np.maximum(lam_star[0], 0) + np.maximum(lam_star[1], 0)) / 2,
    ),
}
ON_SPHERE = Overlaps([[1.0, 0.1], [0.1, 1.0]], TWO.M, np.eye(2))


def largest_z(name, *, d, steps, runs, options):
    """|z| of the means of runs against theory, the largest for M, C, training risk and a at all times."""
    fields, target = SIMULATED[name]
    problem = made(d=d, **fields)
    start = ON_SPHERE if problem.spherical else TWO
    ds, scores = run(problem, steps, initial=start, options=options), []
    every = [descent(problem, start, target, steps, seed) for seed in range(runs)]
    for place, recorded in enumerate(("overlap_M", "correlation", "training_risk", "second_layer")):
        values = np.array([one[place] for one in every])
        error = np.hypot(values.std(axis=0, ddof=1) / math.sqrt(runs), ds[f"{recorded}_error"].values)
        scores.append(((values.mean(axis=0) - ds[recorded].values) / (error + 1e-9)).ravel())
    return np.nanmax(np.abs(np.concatenate(scores)))


@pytest.mark.parametrize("name", SIMULATED)
def test_it_is_the_mean_of_gradient_descent(name):
    """20 runs at d = 600."""
    assert largest_z(name, d=600, steps=4, runs=20, options=FEW) < 4.5


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SIMULATED)
def test_it_is_the_mean_of_two_hundred_large_runs(name):
    """p = k = 2, d = 4000, eight steps."""
    assert largest_z(name, d=4000, steps=8, runs=200, options={}) < 4.0


def test_infinite_data_is_descent_on_the_population_risk():
    """At α = 10⁷ w stays in the span of w* and w_0: its two components by Gauss-Hermite quadrature."""
    T, steps = 0.8, 4
    ds = run(made(1e7, T, Delta=0.0, d=1000), steps, options={"paths": 2**16})
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = np.outer(weights, weights) / (2 * math.pi)
    star, other = np.meshgrid(nodes, nodes, indexing="ij")
    value, slope = np.vectorize(math.erf), lambda x: math.sqrt(2 / math.pi) * np.exp(-x * x / 2)
    m, b, expected = 0.2, math.sqrt(0.96), []
    for _ in range(steps + 1):
        expected.append((m, m * m + b * b))
        lam = m * star + b * other
        g = weights * slope(lam) * (value(star / math.sqrt(2)) - value(lam / math.sqrt(2)))
        m, b = m + T * (g * star).sum(), b + T * (g * other).sum()
    expected = np.array(expected)
    assert_within(ds, "overlap_M", expected[:, :1, None], more=3e-5)
    assert_within(ds, "overlap_Q", expected[:, 1:, None], more=3e-5)


def test_steps_of_no_length_change_nothing():
    ds = run(made(length=1e-12, p=2, k=2), 3, initial=TWO, observables=[*EVERYTHING, "test_error"])
    np.testing.assert_allclose(ds.overlap_Q, np.broadcast_to(TWO.Q, ds.overlap_Q.shape), atol=1e-9)
    np.testing.assert_allclose(ds.training_risk, ds.test_error, atol=2e-3)
    np.testing.assert_allclose(ds.response.fillna(0), 0.0, atol=1e-9)


def test_units_that_agree_are_one_unit():
    """Two students that start alike stay alike, and are one student with half the learning rate."""
    alike = Overlaps(np.ones((2, 2)), [[0.2], [0.2]], [[1.0]])
    two, one = run(made(p=2), 5, initial=alike), run(made(), 5)
    np.testing.assert_allclose(two.overlap_M[:, 0], two.overlap_M[:, 1], atol=1e-6)
    np.testing.assert_allclose(two.overlap_Q[:, 0, 0], two.overlap_Q[:, 0, 1], atol=1e-6)
    for name in ("overlap_M", "overlap_Q"):
        errors = np.hypot(two[f"{name}_error"][:, 0, 0], one[f"{name}_error"][:, 0, 0])
        assert (np.abs(two[name][:, 0, 0] - one[name][:, 0, 0]) < 5 * errors + 1e-9).all()


def test_units_that_nearly_agree_part_as_fast_as_others():
    """Differences grow alike from 10⁻⁴ and 10⁻⁸: what they add to a step is far below the step, and no rounding."""
    growth = []
    for difference in (1e-4, 1e-8):
        L = np.array([[1.0, 0.0, 0.0], [0.2, 0.9, 0.0], [0.2, 0.9, difference]])
        setting = Setting("erf", "erf", "committee", False, 2.0, NUMBERS, np.ones(2), np.ones(1), L)
        process = EffectiveProcess(setting, 8, 1024, (0, 0, 0))
        while process.step < process.steps:
            assert process.advance()
        apart = process.U[:, 0] - process.U[:, 1]
        growth.append(np.linalg.norm(apart, axis=1) / difference)
    assert growth[0][-1] > 2.0
    np.testing.assert_allclose(growth[1], growth[0], rtol=1e-2)


def test_its_errors_are_those_of_its_means():
    """Over 20 seeds the mean squares of deviations over errors are about one, 31 degrees of freedom each.

    Losses of tanh units stated the errors of sums of error functions alone, 3·10⁻⁹ for .0008; lengths stated none.
    """
    names = ["overlap_M", "overlap_Q", "training_risk", "test_loss", "misalignment", "student_norm"]
    times = np.arange(5) * made().step_time()
    ds = simulate(
        made(p=2, k=2),
        "dmft",
        times=times,
        seeds=range(20),
        initial=TWO,
        observables=names,
        options={"paths": 2**14},
    )
    for name in names:
        last = ds[name].isel(time=-1)
        ratio = last.var("seed", ddof=1) / (ds[f"{name}_error"].isel(time=-1) ** 2).mean("seed")
        assert ((ratio > 0.3) & (ratio < 2.5)).all(), name


def test_later_steps_and_records_change_no_bit():
    problem = made(p=2, k=2)
    short, long = (run(problem, steps, initial=TWO, options={"paths": 2**15}) for steps in (2, 6))
    for name in ("overlap_M", "overlap_Q", "training_risk"):
        np.testing.assert_array_equal(short[name], long[name][:3])


def test_what_steps_add_stays_orthogonal():
    """In a settled run g changes little from step to step; fields along new directions know all earlier steps."""
    setting = Setting("erf", "erf", "committee", False, 2.0, NUMBERS, np.ones(1), np.ones(1), np.eye(2))
    process, steps = EffectiveProcess(setting, 60, 1024, (0, 0, 0)), 60
    for _ in range(steps):
        assert process.advance()
    np.testing.assert_allclose(process.h @ process.h.T / 1024, np.eye(steps), atol=1e-8)
    new = process.V[2:] - process.h / math.sqrt(2.0)
    np.testing.assert_allclose(np.triu(process.h @ new.T / 1024), 0.0, atol=1e-8)


@pytest.mark.long
def test_many_steps_stay_stable():
    ds = run(made(2.0, 2.0), 100, options={"paths": 2**17}, observables=["overlap_Q", "training_risk"])
    late = ds.training_risk.values[60:]
    assert (np.diff(late[::10]) < 0).all(), "full-batch descent lowers it once it has settled"
    assert ds.overlap_Q.values[-1, 0, 0] < 2.5


def test_exits_are_those_of_the_risks_of_each_step():
    problem, fewest = made(p=2, k=2), {"paths": 2**15}
    every = run(problem, 8, initial=TWO, observables=["risk"], options=fewest)
    times = [8 * problem.step_time()]
    for stop in ("end", "exit"):
        exits = simulate(
            problem, "dmft", times=times, initial=TWO, options=fewest, thresholds=[0.05, 0.3, 0.999], stop=stop
        ).isel(seed=0)
        below = every.risk.values[:, None] <= (1 - exits.threshold.values) * every.risk.values[0]
        expected = np.where(below.any(axis=0), below.argmax(axis=0), np.nan)
        np.testing.assert_array_equal(exits.exit_steps, expected)
        assert np.isnan(expected[-1]) and expected[0] >= 1
    early = simulate(problem, "dmft", times=times, initial=TWO, options=fewest, thresholds=[0.05], stop="exit")
    assert early.end_steps.item() == expected[0]


def test_a_divergence_is_recorded_as_such():
    problem = made(length=20.0, activation="relu", second_layer_rate=1.0)
    ds = run(problem, 6, observables=["overlap_Q", "training_risk", "risk"])
    assert ds.status == Status.diverged
    end = int(ds.end_steps)
    assert 0 < end < 6
    assert np.isfinite(ds.overlap_Q[: end + 1]).all() and np.isnan(ds.overlap_Q[end + 1 :]).all()


def test_tails_are_those_of_powers():
    """Of samples u^(−k), u uniform, k is the tail index."""
    u, k = (np.arange(2**14) + 0.5) / 2**14, np.array([[0.25], [0.5], [1.0]])
    index, share = tails(u**-k).T
    np.testing.assert_allclose(index, k[:, 0], atol=0.04)
    np.testing.assert_allclose(share, [1 / 1624, 1 / 181, 1 / 5.83], rtol=3e-3)
    assert (tails(np.ones((1, 100))) == [[0.0, 0.01]]).all() and (tails(np.zeros((1, 100))) == 0.0).all()


def test_weights_of_an_odd_number_of_samples_are_those_of_their_mixture():
    """Of three samples two are wider: the density over that of the mixture."""
    z = np.array([[0.5, -1.0, 2.0], [0.1, 0.3, -0.7]])
    weights = with_wider_half(z)
    plain, wide = (np.exp(-0.5 * (z / s) ** 2).prod(axis=0) / s**2 for s in (1.0, WIDER))
    np.testing.assert_allclose(weights, plain / (plain / 3 + 2 * wide / 3))


def test_wider_samples_have_the_means_of_normal_ones():
    """Of eight batches, E z^12 = 10395 to .2 % (three standard errors); normal samples give 9704 ± 406."""
    found = []
    for batch in range(8):
        z = low_discrepancy_normals(7, 3, batch, 2, 2**14)
        weights = with_wider_half(z)
        assert weights.max() < 2.0
        found.append([weights.mean(), (weights * z[0] ** 2 * z[1] ** 2).mean(), (weights * z[0] ** 12).mean()])
    np.testing.assert_allclose(np.mean(found, axis=0), [1.0, 1.0, 10395.0], rtol=2e-3)


def test_a_training_risk_without_a_mean_ends_a_run_that_records_it():
    """After one step of He₃ the risk is one of moments of degree ten, the training risk of degree thirty."""
    problem = made(length=1.0, activation="he3")
    for observables, status in ((["risk"], Status.ok), (["training_risk"], Status.inaccurate)):
        assert run(problem, 1, observables=observables).status == status


def test_a_run_without_time_is_a_timeout():
    ds = run(made(), 2, timeout=1e-9)
    assert ds.status == Status.timeout
    assert np.isnan(ds.overlap_Q).all() and np.isnan(ds.correlation).all()
    assert 0 < ds.end_steps < 2 / BATCHES, "a part of the work of the first batch"


@pytest.mark.parametrize(
    ("problem", "key"),
    [
        (replace(made(), samples=None), "samples"),
        (replace(made(), batch_size=1), "batch_size"),
        (replace(made(), gamma=0.5), "times"),
    ],
)
def test_what_is_no_full_batch_is_refused_in_one_line(problem, key):
    with pytest.raises(InputError) as caught:
        simulate(problem, "dmft", times=[0.0, 2.0])
    assert caught.value.key == key
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("count", [1000, 1024])
def test_low_discrepancy_normals_are_normal(count):
    """Each coordinate has one point in each of 1024 equal parts, or fewer points; means are good to 1e-3."""
    z = low_discrepancy_normals(7, 3, 0, 6, count)
    from scipy.special import ndtr

    parts = np.floor(ndtr(z) * 1024).astype(int)
    assert all(len(set(row)) == count for row in parts)
    np.testing.assert_allclose(z @ z.T / count, np.eye(6), atol=0.05)
    np.testing.assert_array_equal(low_discrepancy_normals(7, 3, 0, 2, count), z[:2])
    others = [low_discrepancy_normals(*stream, 6, count) for stream in ((7, 3, 1), (7, 4, 0), (8, 3, 0))]
    assert all((z != other).all() for other in others)


def test_batches_of_normals_scatter_about_the_mean_without_bias():
    """The means of z⁴ and of products over 400 randomisations of 64 points, within 4 of their errors."""
    z = np.array([low_discrepancy_normals(1, 0, batch, 3, 64) for batch in range(400)])
    for powers, expected in ((z**4, 3.0), (z * np.roll(z, 1, axis=1), 0.0), (z[::2] * z[1::2], 0.0)):
        means = powers.mean(axis=2)
        assert (np.abs(means.mean(axis=0) - expected) < 4 * means.std(axis=0) / math.sqrt(len(means))).all()


CONFIG = """
problem: {p: 2, k: 1, d: 100, Delta: 0.1, activation: erf, start: warm, m0: 0.2}
grid:
  alpha: [1, 2]
derive: {gamma: p * d, samples: alpha * d, batch_size: alpha * d}
seeds: 2
dynamics: {dmft: {paths: 32768}}
times: [0, 1, 2]
observables: [risk, overlap_M, overlap_Q, training_risk, correlation, response]
"""


def test_a_sweep_records_labelled_functions_of_two_times(tmp_path):
    sweep = load(written(tmp_path / "reused.yaml", CONFIG))
    run_sweep(replace(sweep, cluster=InProcess(block_size=4)), tmp_path / "results", progress=False)
    path = finalise(sweep, tmp_path / "results")
    shared, of_shape = xr.open_zarr(path), xr.open_zarr(path, group="p2_k1")
    assert {"risk", "risk_error", "training_risk", "training_risk_error"} <= set(shared.data_vars)
    for name in ("correlation", "response"):
        variable = of_shape[name]
        assert variable.dims == ("dynamics", "alpha", "seed", "time", "instant", "student", "student_2")
        assert variable.attrs["long_name"] and variable.attrs["symbol"]
        assert of_shape[f"{name}_error"].attrs["error_of"] == name
    np.testing.assert_array_equal(of_shape.instant, [0, 1, 2])
    assert of_shape.instant.attrs["long_name"] == "earlier ODE time"
    now = of_shape.correlation.sel(time=2, instant=2)
    np.testing.assert_allclose(now, of_shape.overlap_Q.sel(time=2))
    assert not of_shape.correlation.sel(time=1, instant=2).notnull().any()


def test_the_number_of_batches_is_what_errors_say():
    ds = run(made(), 1)
    assert f"{BATCHES} independent batches" in ds.overlap_M_error.attrs["comment"]
