"""The optimum of any quantity along an axis, and its crossing of a level: covered, or open where values leave it."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.headlines import headline
from sweeplib.analysis.kit.seed_values import curves_along
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.errors import InputError
from sweeplib.statistics.optima import MeanCurve, first_crossing
from tests import datasets
from tests.datasets import sweep_dataset

optimum, crossing = ANALYSES["optimum"], ANALYSES["crossing"]
RNG = np.random.default_rng
LAWS = {
    "normal": lambda rng, shape: 1.0 + 0.3 * rng.standard_normal(shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
}
CURVES = {
    "pole": (lambda x: 1.0 / (x * (2.0 - x)), 1.0),
    "powers": (lambda x: 1.0 / x + x**2 / 2.0, 1.5),
    "flat": (lambda x: 1.0 + 0.03 * np.log(x) ** 2 + 0.01 * np.log(x) ** 3, 1.0),
}


def at_least(part: float, trials: int) -> float:
    """Return a number of trials below which a part of them lies once in 3·10⁴."""
    return part - 4.0 * np.sqrt(part * (1.0 - part) / trials)


@pytest.mark.rest
@pytest.mark.parametrize("spacing", [np.linspace, np.geomspace])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("curve", CURVES)
def test_intervals_of_optima_and_least_values_cover(curve, law, spacing):
    """60 scans of 8 rates with 64 seeds; measured .95 to .99 with 400 (docs/how-to/answers.md)."""
    rng, x, (mean, least) = RNG(1), spacing(0.35, 1.7, 8), CURVES[curve]
    found = [MeanCurve(mean(x) * LAWS[law](rng, (64, 8)), x).optimum(0.95) for _ in range(60)]
    low, high, edge = np.array([(one.low, one.high, one.at_edge) for one in found]).T
    assert np.mean((low <= 1.0) & (high >= 1.0) | (edge > 0)) > at_least(0.95, 60)
    values = np.array([(one.value_low, one.value_high) for one in found]).T
    assert np.mean((values[0] <= least) & (least <= values[1])) > at_least(0.95, 60)


def test_a_run_that_was_stopped_early_is_no_run_without_an_exit():
    """All runs exit; of those at the two largest rates a time limit stops some before."""
    ds = sweep_dataset(ratios=np.linspace(0.3, 1.7, 7), d=(300,), Delta=(0.0,), seeds=8, dynamics=("sgd_chain",))
    stopped = (ds.seed < 3) & (ds.gamma_ratio > 1.3)
    cut = datasets.with_outcome(ds.assign(exit_steps=ds.exit_steps.where(~stopped)), "timeout", stopped)
    values = curves_along(cut, "exited", "gamma_ratio").values
    assert (values.isel(gamma_ratio=slice(5)) == 1.0).all()
    assert values.isel(gamma_ratio=slice(5, None)).isnull().all()
    allowed = curves_along(cut, "exited", "gamma_ratio", max_lost=0.5).values
    assert (allowed.fillna(1.0) == 1.0).all()
    assert (allowed.isel(gamma_ratio=-1).isnull().sum("seed") == 3).all()


def test_the_greatest_fraction_is_no_more_than_one():
    """Nine rates of 40 runs; nearly all pass in the middle."""
    x = np.linspace(0.3, 1.7, 9)
    passed = (RNG(0).random((40, 9)) < 1.0 / (1.0 + np.exp(8.0 * (x - 1.0) ** 2 - 3.0))).astype(float)
    found = MeanCurve(passed, x, greatest=True).optimum(0.95)
    assert found.low <= 1.0 <= found.high
    assert 0.8 < found.value_low < 1.0 / (1.0 + np.exp(-3.0)) < found.value_high <= 1.0
    least = MeanCurve(1.0 - passed, x).optimum(0.95)
    assert (least.at, least.value_high) == pytest.approx((found.at, 1.0 - found.value_low))


def test_an_optimum_at_the_edge_or_beyond_is_said_to_be_there():
    x = np.linspace(0.3, 0.9, 8)
    found = MeanCurve(CURVES["pole"][0](x) * RNG(2).lognormal(0.0, 0.1, (64, 8)), x).optimum(0.95)
    assert found.at_edge
    assert found.high == pytest.approx(0.9)


def test_values_of_any_sign_have_an_optimum_and_a_greatest_value():
    x, rng = np.linspace(-2.0, 3.0, 9), RNG(3)
    values = (x - 0.5) ** 2 - 4.0 + 0.5 * rng.standard_normal((64, 9))
    least, greatest = MeanCurve(values, x).optimum(0.999), MeanCurve(-values, x, greatest=True).optimum(0.999)
    assert least.low < 0.5 < least.high
    assert least.value_low < -4.0 < least.value_high
    assert greatest.at == pytest.approx(least.at)
    assert greatest.value == pytest.approx(-least.value)
    assert least.high - least.low < 0.5


def test_results_say_at_which_time_they_are():
    """Two of one quantity at two times had the same names and attributes."""
    ds = sweep_dataset(seeds=8, dynamics=("sgd_chain",))
    first, last = float(ds.time[1]), float(ds.time[-1])
    for name, variable, asked in (
        ("crossing", "crossing", {"along": "gamma_ratio", "level": 0.1}),
        ("optimum", "optimum", {"along": "gamma_ratio"}),
        ("extrapolation", "limit", {"axis": "d"}),
    ):
        default, early = (ANALYSES[name](ds, of="risk", **asked, **at) for at in ({}, {"time": first}))
        assert (default.attrs["time"], early.attrs["time"]) == (last, first)
        assert f" at time {first:.6g}" in early[variable].attrs["long_name"]
        assert " at time " not in default[variable].attrs["long_name"]
    assert "time" not in crossing(ds, of="exited", along="gamma_ratio").attrs


def test_two_minima_that_are_not_told_apart_are_in_one_interval():
    x = np.geomspace(0.25, 4.0, 11)
    values = np.exp(4 * (np.log(x) ** 2 - 0.5) ** 2)
    exact, noisy = (MeanCurve(values * (1.0 + noise * RNG(4).standard_normal((16, 11))), x) for noise in (0.0, 0.2))
    found = noisy.optimum(0.95)
    assert found.low < np.exp(-np.sqrt(0.5)) < np.exp(np.sqrt(0.5)) < found.high
    assert len(exact.crossings(1.5, 0.95)) == 4


@pytest.mark.parametrize("greatest", [False, True])
def test_an_optimum_at_the_end_of_the_values_is_within_its_interval(greatest):
    """The exponential of a logarithm may be a hair beyond the value, where a bar would have a negative length."""
    for random_seed in range(20):
        x = np.sort(RNG(random_seed).uniform(0.01, 0.02, 9))
        values = (x / x[0]) ** -3 * RNG(random_seed).lognormal(0.0, 0.05, (32, 9))
        found = MeanCurve(values, x, greatest=greatest).optimum(0.95)
        assert x[0] <= found.low <= found.at <= found.high <= x[-1]
        assert found.at == pytest.approx(x[0 if greatest else -1], rel=1e-12) and found.at_end


def outcomes(probability: np.ndarray, seeds: int, random_seed: int) -> np.ndarray:
    return (RNG(random_seed).random((seeds, len(probability))) < probability).astype(float)


def test_intervals_of_the_crossing_of_a_fraction_cover():
    """The rates at both ends have outcomes that are all equal, which does not make their fractions certain."""
    x = np.linspace(0.0, 2.0, 9)
    probability = 1.0 / (1.0 + np.exp(-6.0 * (x - 1.1)))
    found = [MeanCurve(outcomes(probability, 64, at), x).crossings(0.5, 0.95) for at in range(80)]
    assert all(len(one) == 1 and one[0].rises for one in found)
    low, high = np.array([(one[0].low, one[0].high) for one in found]).T
    assert np.mean((low <= 1.1) & (high >= 1.1)) > at_least(0.95, 80)
    assert np.median(high - low) < 0.35  # 4 standard errors of a logistic regression: .25


def test_a_level_is_passed_never_or_twice():
    x = np.linspace(0.3, 1.7, 9)
    values = CURVES["pole"][0](x) * RNG(5).lognormal(0.0, 0.02, (32, 9))
    assert not MeanCurve(values, x).crossings(0.5, 0.95)
    twice = MeanCurve(values, x).crossings(1.3, 0.95)
    assert [one.rises for one in twice] == [False, True]
    for one, place in zip(twice, (1 - np.sqrt(1 - 1 / 1.3), 1 + np.sqrt(1 - 1 / 1.3)), strict=True):
        assert one.low < place < one.high


@pytest.mark.parametrize("power", [-500, -60, 40, 500])
def test_places_do_not_depend_on_units(power: int) -> None:
    """Of values below 10⁻¹² errors were nothing, a quarter of the width; of an axis below 10⁻⁸ all were ends."""
    x, noise, unit = np.geomspace(0.1, 6.4, 7), 0.5 * RNG(1).standard_normal((16, 7)), 2.0**power
    for mean in (np.log(x) + 0.3, np.log(x) ** 2 - 0.5):
        curve, other = (MeanCurve((mean + noise) * factor, x) for factor in (1.0, unit))
        assert other.crossings(0.0, 0.95) == curve.crossings(0.0, 0.95)
        least, of_other = curve.optimum(0.95), other.optimum(0.95)
        assert of_other[:3] + of_other[6:] == least[:3] + least[6:]
        assert of_other[3:6] == pytest.approx(np.multiply(least[3:6], unit), rel=1e-12)
    unit = 2.0 ** max(-60, min(power, 40))
    elsewhere = MeanCurve(mean + noise, x * unit).optimum(0.95)
    assert elsewhere[:3] == pytest.approx(np.multiply(least[:3], unit), rel=1e-6)
    assert not elsewhere.at_end and elsewhere.at_edge == least.at_edge


@pytest.mark.rest
@pytest.mark.parametrize(("first", "last"), [(0.05, 0.5), (0.5, 0.05)])
def test_intervals_of_the_crossing_of_a_mean_of_shared_runs_cover(first, last):
    """150 scans of 8 seeds; .83 to .84 by weights of the whole covariance, measured .94 to .98 with 200."""
    rng, x = RNG(4), np.linspace(0.0, 1.0, 9)
    parts = np.linspace(first, last, 9) * (
        0.97 * rng.standard_normal((150, 8, 1)) + 0.22 * rng.standard_normal((150, 8, 9))
    )
    found = [MeanCurve(x - 0.53 + each, x).crossings(0.0, 0.95) for each in parts]
    covered = [any(one.low <= 0.53 <= one.high for one in crossings) for crossings in found if crossings]
    assert np.mean(covered) > at_least(0.95, 150)
    assert len(covered) > 135


def with_outcome(seeds: int = 64) -> xr.Dataset:
    """Return runs of two dynamics whose risk at the end is least at gamma 0.8 and 1.2; at the largest some diverge."""
    gamma, rng = np.geomspace(0.3, 3.0, 9), RNG(6)
    best = np.array([0.8, 1.2])[:, None, None, None]
    level = 0.1 * (gamma / best + best / gamma).transpose(0, 1, 3, 2) * rng.lognormal(0.0, 0.2, (2, 1, 9, seeds))
    status = np.ones(level.shape, np.uint8)
    codes = dict(zip(STATUS_LABELS["flag_meanings"].split(), STATUS_LABELS["flag_values"], strict=True))
    status[:, :, -1, ::8] = codes["diverged"]
    level[status == codes["diverged"]] = np.nan
    dims = ("dynamics", "d", "gamma", "seed")
    risk = np.stack([np.ones_like(level), level], axis=-1)
    ds = xr.Dataset({"risk": ((*dims, "time"), risk, {"long_name": "population risk", "units": "1"})})
    ds["status"] = (dims, status, STATUS_LABELS)
    coords = {
        "dynamics": ["sgd_chain", "ode"],
        "d": [100],
        "gamma": gamma,
        "seed": np.arange(seeds),
        "time": [0.0, 1.0],
    }
    return ds.assign_coords(coords)


def test_the_optimum_of_a_recorded_observable_leaves_out_rates_at_which_runs_diverge():
    found = optimum(with_outcome(), of="risk", along="gamma").squeeze()
    assert (found.values_used == 8).all()
    np.testing.assert_array_less(found.optimum_low, [0.8, 1.2])
    np.testing.assert_array_less([0.8, 1.2], found.optimum_high)
    np.testing.assert_allclose(found.best, 0.2 * np.exp(0.02), rtol=0.05)
    assert found.optimum.attrs["long_name"] == "learning rate of the least mean population risk"
    passed = crossing(with_outcome(), of="risk", along="gamma", level=0.27).squeeze()
    assert passed.crossings.values.tolist() == [2, 1]
    assert passed.unsettled.values.tolist() == [True, False]
    assert passed.crossing_low[1] < 1.2 * 0.4565 < passed.crossing_high[1]  # x + 1/x = 2.7 exp(-.02)


def test_the_steps_of_exits_have_the_optimum_of_the_optimal_learning_rate():
    ds = sweep_dataset(ratios=np.linspace(0.3, 1.7, 10), d=[3000], Delta=[0.0], seeds=64)
    found = optimum(ds, of="exit_steps", along="gamma_ratio").squeeze()
    rates = ANALYSES["optimal_learning_rate"](ds).squeeze()
    np.testing.assert_allclose(found.optimum / 12, rates.gamma_opt, rtol=1e-6)
    np.testing.assert_allclose(found.best, rates.exit_steps_min, rtol=1e-6)


def test_samples_of_exits_are_those_of_all_batches():
    ds = sweep_dataset(ratios=np.linspace(0.3, 1.7, 10), d=[3000], Delta=[0.0], seeds=64)
    steps = optimum(ds, of="exit_steps", along="gamma_ratio").squeeze()
    batches = optimum(ds.assign_attrs(batch_size=10, repeats=2), of="exit_samples", along="gamma_ratio").squeeze()
    passes = ds.assign_attrs(batch_size=10, samples=25, sampling="epochs")
    np.testing.assert_allclose(batches.best, 5 * steps.best)
    np.testing.assert_allclose(batches.optimum, steps.optimum)
    np.testing.assert_allclose(
        optimum(passes, of="exit_samples", along="gamma_ratio").squeeze().best, 25 / 3 * steps.best
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"of": "rsik"}, "of: not recorded in this sweep; got 'rsik'; expected one of .*did you mean 'risk'"),
        ({"along": "gama"}, "along: no such axis of numbers; got 'gama'; expected one of gamma"),
        ({"time": 0.5}, "time: not a recorded time"),
    ],
)
def test_what_has_no_curve_is_refused(options, problem):
    with pytest.raises(InputError, match=problem):
        optimum(with_outcome(seeds=3), **options)


def test_the_headline_of_a_crossing_that_is_not_one_says_so():
    passed = crossing(with_outcome(), of="risk", along="gamma", level=0.27)
    [first, second] = headline(passed, "crossing").lines
    assert first.startswith("learning rate at which the mean population risk passes 0.27 0.5")
    assert first.endswith("(ode)")
    assert second.endswith("at 1 of 2 points the level is passed more than once, never, or too near to the last values")
    assert "At 1 of 2 points of all dynamics the level is passed more than once" in headline(passed, "crossing").text


def test_an_axis_has_the_name_and_the_units_that_the_dataset_gives_it():
    """A parameter of a function may be called `a`, as the second layer of a student is."""
    ds = with_outcome().isel(gamma=slice(8)).rename(gamma="a").assign_coords(d=[100])
    ds["a"] = ds["a"].assign_attrs(long_name="temperature", units="K", symbol="")
    found, passed = optimum(ds, of="risk", along="a"), crossing(ds, of="risk", along="a", level=0.27)
    assert found.optimum.attrs["long_name"] == "temperature of the least mean population risk"
    assert passed.crossing.attrs["long_name"].startswith("temperature at which")
    assert {found.optimum.units, found.optimum_low.units, passed.crossing_high.units} == {"K"}


def test_of_four_values_it_is_not_said_that_the_level_is_passed_twice_or_never() -> None:
    x = np.linspace(1.0, 4.0, 4)
    found = first_crossing(np.tile(x, (8, 1)) + 0.1 * RNG(0).standard_normal((8, 4)), x, 2.5, 0.95)
    assert np.isnan(found.at)
    assert not found.unsettled
