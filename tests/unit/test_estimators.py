"""Estimators over seeds: their intervals cover, whatever the law of the values, and say when they tell nothing."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from sweeplib.analysis.kit.passages import Passages
from sweeplib.statistics.estimators import (
    Estimator,
    Fraction,
    Mean,
    Quantile,
    RestrictedMean,
    proportion_interval,
    rank_interval,
)

Law = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
LAWS: dict[str, tuple[Law, float]] = {
    "normal about 0": (lambda rng, shape: rng.standard_normal(shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "lognormal": (lambda rng, shape: rng.lognormal(-0.5, 1.0, shape), 1.0),
    "a long tail below": (lambda rng, shape: 6.0 - rng.lognormal(0.0, 1.0, shape), 6.0 - np.exp(0.5)),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
}


def over_seeds(values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, dims=("sample", "seed"))


def coverage(estimator: Estimator, law: Law, truth: float, seeds: int, confidence: float = 0.95) -> float:
    """Return the part of 10,000 intervals that contain the truth: known to .0022 at .95."""
    values = over_seeds(law(np.random.default_rng(seeds), (10_000, seeds)))
    _, low, high = estimator(values, confidence)
    return float(((low <= truth) & (truth <= high)).mean())


@pytest.mark.rest
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("seeds", "least"), [(3, 0.9), (8, 0.9), (32, 0.945), (256, 0.955)])
def test_intervals_of_means_cover(name: str, seeds: int, least: float) -> None:
    """Student's interval alone covers .83, .83, .885 and .93 of means with a long tail on either side."""
    law, truth = LAWS[name]
    assert least < coverage(Mean(), law, truth, seeds) < 0.99


def test_the_interval_of_negative_values_is_the_mirror_of_that_of_positive_ones() -> None:
    """Without it intervals of −lognormal(1) covered .90 to .92 of 3 to 8 seeds, in place of .96."""
    values = over_seeds(np.random.default_rng(2).lognormal(0.0, 1.0, (50, 5)))
    mean, low, high = Mean()(values, 0.95)
    for mirrored, other in zip(Mean()(-values, 0.95), (mean, high, low), strict=True):
        np.testing.assert_allclose(mirrored, -other, rtol=1e-12)


@pytest.mark.rest
@pytest.mark.parametrize("confidence", [0.68, 0.9, 0.99])
def test_intervals_of_means_cover_at_other_confidences(confidence: float) -> None:
    for law, truth in LAWS.values():
        assert confidence - 0.01 < coverage(Mean(), law, truth, 256, confidence) < confidence + 0.8 * (1.0 - confidence)


@pytest.mark.parametrize("seeds", [3, 8, 100])
def test_means_of_zeros_and_ones_have_intervals_of_proportions(seeds: int) -> None:
    """They cover whatever the probability: those of `ends_of_mean` reach below 0 and above 1, or have no length."""
    hits = np.arange(seeds + 1)
    values = over_seeds((np.arange(seeds) < hits[:, None]).astype(float))
    mean, low, high = Mean()(values, 0.95)
    np.testing.assert_allclose(mean, hits / seeds)
    assert (low >= 0.0).all() and (high <= 1.0).all() and ((low < mean) | (hits == 0)).all()
    for probability in np.linspace(0.01, 0.99, 25):
        inside = ((low <= probability) & (probability <= high)).values
        assert stats.binom.pmf(hits, seeds, probability)[inside].sum() >= 0.95


def test_zeros_alone_may_be_of_any_law_and_too_few_zeros_and_ones_have_no_interval() -> None:
    _, low, high = Mean()(over_seeds(np.zeros((1, 8))), 0.95)
    assert low.item() == high.item() == 0.0
    _, low, high = Mean()(over_seeds(np.array([[0.0, 1.0, np.nan, np.nan], [0.0, 1.0, 1.0, np.nan]])), 0.95)
    assert np.isnan(low.values).tolist() == np.isnan(high.values).tolist() == [True, False]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_quantiles_cover_and_are_ends_of_values(level: float) -> None:
    law, _ = LAWS["exponential"]
    assert 0.955 < coverage(Quantile(level), law, -np.log1p(-level), 200) < 0.985
    values = np.random.default_rng(1).exponential(size=(1, 200))
    value, low, high = (float(end[0]) for end in Quantile(level)(over_seeds(values), 0.95))
    assert low in values and high in values and low < value < high
    assert value == pytest.approx(np.quantile(values, level, method="median_unbiased"))


def test_ranks_are_the_nearest_with_little_beyond_them() -> None:
    for count in (5, 20, 77, 300):
        for level in (0.1, 0.5, 0.95):
            law = stats.binom(count, level)
            low, high = rank_interval(count, level, 0.02)
            assert low == 0 or law.cdf(low - 1) < 0.02 <= law.cdf(low)
            assert law.sf(high - 1) <= 0.02 < law.sf(high - 2)


def test_an_end_that_few_seeds_do_not_tell_is_infinite() -> None:
    values = over_seeds(np.arange(64.0)[None])
    _, low, high = Quantile(0.95)(values, 0.95)
    assert 50.0 < float(low[0]) < 61.0 and float(high[0]) == np.inf
    _, low, high = Quantile(0.5)(values[:, :4], 0.95)
    assert (float(low[0]), float(high[0])) == (-np.inf, np.inf)


def test_fractions_have_the_interval_of_clopper_and_pearson() -> None:
    for count in (3, 40, 1000):
        for hits in {0, 1, count // 2, count}:
            ends = stats.binomtest(hits, count).proportion_ci(method="exact")
            values = np.where(np.arange(count) < hits, 0.0, 1.0)[None]
            found = Fraction(0.5)(over_seeds(values), 0.95)
            np.testing.assert_allclose(
                [float(each[0]) for each in found], [hits / count, ends.low, ends.high], atol=1e-12
            )
            above = Fraction(0.5, above=True)(over_seeds(1.0 - values), 0.95)
            np.testing.assert_array_equal([float(each[0]) for each in above], [float(each[0]) for each in found])


def test_fractions_are_covered_at_every_probability() -> None:
    """Wilson's interval covers .84 at a probability of .0018 and 96 runs, where such a fraction is known to .05."""
    for count in (8, 96):
        hits, total = xr.DataArray(np.arange(count + 1.0)), xr.DataArray(np.full(count + 1, float(count)))
        low, high = (end.values for end in proportion_interval(hits / total, total, 0.95))
        for p in (0.0018, 0.01, 0.3, 0.5, 0.97):
            inside = (low <= p) & (p <= high)
            assert stats.binom.pmf(hits.values[inside], count, p).sum() > 0.95


def test_seeds_without_a_value_do_not_count() -> None:
    values = np.random.default_rng(2).lognormal(size=(3, 20))
    gaps = np.concatenate([values, np.full((3, 5), np.nan)], axis=1)[:, np.random.default_rng(3).permutation(25)]
    exits = xr.DataArray((values < 2.0).sum(1), dims="sample")
    for estimator in (Mean(), Quantile(0.5), Fraction(1.0), RestrictedMean(xr.DataArray(2.0), exits)):
        for found, expected in zip(estimator(over_seeds(gaps), 0.9), estimator(over_seeds(values), 0.9), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("horizon", [0.3, 0.7, 7.1])
@pytest.mark.parametrize("runs", [3, 5, 64])
def test_a_mean_without_an_exit_is_not_certain_where_runs_were_stopped_early(runs: int, horizon: float) -> None:
    """Rounded pseudo-values a hair below the horizon were counted as exits that all agree: a width of nothing."""
    end = over_seeds(np.where(np.arange(runs) < runs // 2, 0.37, 1.0)[None] * horizon)
    seen = xr.ones_like(end, bool)
    _, low, high = Passages(end * np.nan, end, seen, ~seen, xr.DataArray([False], dims="sample")).mean(0.95)
    assert float(high[0]) == horizon
    # so many exits at the time 0 are as rare as the level says, and those of the half that is left later
    half = 0.37 * 0.025 ** (1 / runs) + 0.63 * 0.025 ** (1 / (runs - runs // 2))
    assert float(low[0]) == pytest.approx(horizon * max(0.0, min(1.0 + np.log(0.025) / runs, half)))


def exponential_passages(cells: int, left: int, early: float, horizon: float) -> Passages:
    """Return cells of 64 runs with a mean of 1, of which all but a few are stopped early."""
    exit_ = np.random.default_rng(5).exponential(size=(cells, 64))
    end = np.where(np.arange(64) < 64 - left, early, horizon) + 0.0 * exit_
    reached = exit_ <= end
    arrays = (over_seeds(array) for array in (np.where(reached, exit_, np.nan), end, np.ones_like(reached), reached))
    return Passages(*arrays, xr.DataArray(np.zeros(cells, bool), dims="sample"))


@pytest.mark.parametrize("left", [1, 4, 8])
def test_a_mean_says_what_few_runs_to_the_end_leave_open(left: int) -> None:
    """Of 64 runs all but a few are stopped at a tenth: the low end was above the truth in .6, .1, .03 of them."""
    runs = exponential_passages(400, left, 0.1, 1.0)
    mean = runs.mean(0.95)
    assert float((mean.low > 1.0 - np.exp(-runs.horizon)).mean()) < 0.01
    assert bool((mean.high <= runs.horizon).all())


def test_a_median_says_what_few_runs_beyond_it_leave_open() -> None:
    """All but 12 of 64 runs are stopped shortly before the median: .07 of the low ends were above it, not .025."""
    median = exponential_passages(1000, 12, 0.9 * np.log(2.0), 3.0).median(0.95)
    assert float((median.low > np.log(2.0)).mean()) < 0.01


def test_no_mean_of_exits_is_beyond_the_horizon() -> None:
    """Seven runs exit at 1 to 7, and one diverges: the mean of min(T, 7) was said to be 7.9 at most."""
    exit_ = over_seeds(np.append(np.arange(1.0, 8.0), np.nan)[None])
    end = exit_.fillna(np.inf)
    runs = Passages(exit_, end, end > 0.0, exit_.notnull(), xr.DataArray([False], dims="sample"))
    assert runs.mean(0.95).high == runs.horizon == 7.0


@pytest.mark.parametrize("left", [2, 16])
def test_a_fraction_says_what_few_runs_to_the_end_leave_open(left: int) -> None:
    """1500 cells of 16 exponential exits; where all but two are stopped at .1, .16 of the upper ends were too low."""
    time = np.random.default_rng(left).exponential(size=(1500, 16))
    stop = np.where(np.arange(16) < 16 - left, 0.1, 1.0)
    exit_, end = over_seeds(np.where(time <= stop, time, np.nan)), over_seeds(np.minimum(time, stop))
    seen = xr.ones_like(end, bool)
    sample = Passages(exit_, end, seen, exit_.notnull(), xr.DataArray(np.zeros(1500, bool), dims="sample"))
    value, low, high = sample.fraction(0.95)
    truth = 1.0 - np.exp(-sample.horizon.clip(max=1.0))
    assert float((high < truth).mean()) < 0.025 + 3.0 * np.sqrt(0.025 / 1500)
    if left == 16:
        for ends in zip((low, high), proportion_interval(value, xr.full_like(value, 16.0), 0.95), strict=True):
            np.testing.assert_allclose(*ends, rtol=1e-9)


@pytest.mark.parametrize("estimator", [Mean(), Quantile(0.5)])
def test_equal_values_have_an_interval_without_a_width_and_two_have_none(estimator: Estimator) -> None:
    value, low, high = estimator(over_seeds(np.full((1, 64), 0.3)), 0.95)
    assert [float(end[0]) for end in (value, low, high)] == pytest.approx([0.3] * 3, rel=1e-12)
    _, low, high = estimator(over_seeds(np.array([[1.0, 2.0]])), 0.95)
    assert np.isnan(low).all() and np.isnan(high).all()


def test_the_interval_of_a_mean_follows_its_units_and_sign() -> None:
    values = np.random.default_rng(4).lognormal(size=(1, 30)) - 1.0
    first, tiny = Mean()(over_seeds(values), 0.95), Mean()(over_seeds(1e-120 * values), 0.95)
    for found, expected in zip(tiny, first, strict=True):
        np.testing.assert_allclose(found, 1e-120 * expected, rtol=1e-9)
    value, low, high = Mean()(over_seeds(-values), 0.95)
    np.testing.assert_allclose([value, low, high], [-first.value, -first.high, -first.low], rtol=1e-9)


def test_a_fraction_of_two_runs_has_no_interval() -> None:
    values = xr.DataArray([[0.0, 1.0, np.nan], [0.0, 1.0, 1.0]], dims=("point", "seed"))
    found = Fraction(0.5)(values, 0.95)
    assert found.value.values.tolist() == pytest.approx([1 / 2, 1 / 3])
    assert np.isnan(found.low.values).tolist() == np.isnan(found.high.values).tolist() == [True, False]
