"""Fits to points that scatter more than their errors: against the textbook, and against scipy's plain regression."""

import numpy as np
import pytest
from scipy.stats import linregress, t

from sweeplib import analysis
from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.statistics.bootstrap import PointErrors, Resampling, resampling_of, seed_weights
from sweeplib.statistics.fits import line_fit, misfit, power_of
from sweeplib.statistics.sums_of_powers import sum_of_powers
from tests.unit.test_analysis_coverage import POINTS, deviations

X = np.linspace(0.0, 5.0, 9)
DESIGN = np.vstack([X, np.ones(9)]).T
SEEDS = 5000


@pytest.fixture(scope="module")
def weights():
    return seed_weights(SEEDS, 4000, 0)


def points(errors, scatter, seed=0):
    """Return points 2x + 1 whose errors are known from many seeds, and that have a scatter."""
    rng = np.random.default_rng(seed)
    values = 2.0 * X + 1.0 + errors * rng.standard_normal(9) + scatter * rng.standard_normal(9)
    parts = errors * rng.standard_normal((SEEDS, 9)) / np.sqrt(SEEDS)
    return PointErrors(values, np.zeros(9), parts, np.ones((SEEDS, 9), bool), parts)


@pytest.mark.rest
def test_with_large_scatter_it_is_plain_regression(weights):
    """The interval is that of scipy's least squares with Student's t, to the 3 % of 4000 resamples."""
    given = points(0.01, 1.0)
    fit, plain = line_fit(given, DESIGN, Resampling(weights, np.random.default_rng(1), 0.95)), linregress(X, given.logs)
    low, high = fit.interval(0.95)[:, 0]
    assert fit.best[0] == pytest.approx(plain.slope, abs=1e-3)
    assert (high - low) / 2 == pytest.approx(plain.stderr * t.ppf(0.975, 7), rel=0.06)
    assert fit.misfit.freedom == pytest.approx(7.0)


def test_without_scatter_it_is_weighted_regression(weights):
    """The errors are those of numpy's weighted fit with unscaled covariance."""
    errors = np.linspace(0.05, 0.5, 9)
    given = points(errors, 0.0, seed=0)
    fit = line_fit(given, DESIGN, Resampling(weights, np.random.default_rng(1), 0.95))
    best, covariance = np.polyfit(X, given.logs, 1, w=1 / errors, cov="unscaled")
    low, high = fit.interval(0.95)
    assert not fit.misfit.is_large
    np.testing.assert_allclose(fit.best, best, atol=0.02)
    np.testing.assert_allclose((high - low) / 2, 1.96 * np.sqrt(np.diag(covariance)), rtol=0.08)


def test_the_scatter_makes_the_residuals_what_they_are_expected_to_be():
    """Σ r²/(s² + τ²) = n of numpy's fit with weights one over s² + τ² (Paule and Mandel)."""
    errors = np.linspace(0.05, 0.5, 9)
    values, *_ = points(errors, 0.6)
    found = misfit(values, DESIGN, np.diag(errors**2), lambda scatter2: 1 / (errors**2 + scatter2))
    total = np.sqrt(errors**2 + found.scatter**2)
    residuals = (values - np.polyval(np.polyfit(X, values, 1, w=1 / total), X)) / total
    assert np.sum(residuals**2) == pytest.approx(7.0, rel=1e-3)
    plain = (values - np.polyval(np.polyfit(X, values, 1, w=1 / errors), X)) / errors
    assert found.ratio == pytest.approx(np.sum(plain**2) / 7)


def test_errors_that_all_points_share_are_no_scatter():
    """A common shift of all points by 1, known as such, does not hide residuals that need an explanation."""
    errors = np.full(9, 0.05)
    values, *_ = points(errors, 0.3)
    covariance = np.diag(errors**2) + 1.0

    def weights(scatter2):
        return 1 / (np.diag(covariance) + scatter2)

    shared = misfit(values, DESIGN, covariance, weights)
    alone = misfit(values, DESIGN, np.diag(np.diag(covariance)), weights)
    assert shared.is_large
    assert not alone.is_large
    assert shared.scatter == pytest.approx(np.std(values - np.polyval(np.polyfit(X, values, 1), X), ddof=2), rel=0.1)


def test_points_on_a_line_without_errors_have_no_misfit():
    nothing = np.zeros((10, 9))
    exact = PointErrors(2.0 * X + 1.0, np.zeros(9), nothing, np.ones((10, 9), bool), nothing)
    fit = line_fit(exact, DESIGN, resampling_of(10, 100, 0, 0.95))
    np.testing.assert_allclose(fit.best, [2.0, 1.0], atol=1e-12)
    assert not fit.misfit.is_large
    np.testing.assert_allclose(fit.interval(0.95), [fit.best, fit.best], atol=1e-12)


def test_two_points_tell_no_misfit(weights):
    two = points(0.1, 1.0).at(np.arange(9) < 2)
    assert np.isnan(line_fit(two, DESIGN[:2], Resampling(weights, np.random.default_rng(0), 0.95)).misfit.ratio)


@pytest.mark.rest
def test_analyses_say_how_far_points_scatter():
    """Of 200 fits to 27 points that scatter by .1, besides errors of .05: the mean is known to .001."""
    ds = deviations(POINTS["27 points"], seeds=64, noise=0.4, shared=0.0, misfit=0.1, experiments=200)
    found = analysis.deviation_scaling(ds, resamples=200).sel(variable="coupling")
    assert float((found.risk_scatter**2).mean()) == pytest.approx(0.01, rel=0.1)
    assert float(found.risk_reduced_chi2.mean()) == pytest.approx(1 + 0.01 / 0.0027, rel=0.1)


@pytest.mark.rest
@pytest.mark.parametrize("seeds", [3, 8])
def test_the_exponent_of_points_that_share_seeds_has_the_error_of_a_scatter_that_grows(seeds):
    """300 experiments; .73 and .82 by pooled variances, which are alike at all points: measured .94 with 400."""
    rng, x, resampling = np.random.default_rng(seeds), np.geomspace(1.0, 100.0, 5), resampling_of(seeds, 400, 0, 0.95)
    scatter, covered = 0.4 * np.sqrt(np.arange(1, 6) / 5.0), 0
    for _ in range(300):
        noise = 0.97 * rng.standard_normal((seeds, 1)) + 0.22 * rng.standard_normal((seeds, 5))
        found = power_of(x**-0.8 * np.exp(scatter * noise - scatter**2 / 2.0), x, resampling)
        covered += found.low <= -0.8 <= found.high
    assert covered / 300 > 0.89


@pytest.mark.parametrize("seeds", [3, 8])
def test_a_sum_of_one_power_has_the_interval_of_that_power(seeds):
    """Also where points share seeds and the scatter grows: pooled variances make a half or less of it."""
    rng, x, resampling = np.random.default_rng(seeds), np.geomspace(1.0, 100.0, 5), resampling_of(seeds, 50, 0, 0.95)
    scatter, ratios = 0.4 * np.sqrt(np.arange(1, 6) / 5.0), []
    for _ in range(5):
        noise = 0.97 * rng.standard_normal((seeds, 1)) + 0.22 * rng.standard_normal((seeds, 5))
        values = x**-0.8 * np.exp(scatter * noise - scatter**2 / 2.0)
        power, total = power_of(values, x, resampling), sum_of_powers(values, np.log(x)[None], resampling)
        ratios.append(float(total.high[0] - total.low[0]) / (power.high - power.low))
    assert 0.8 < np.exp(np.mean(np.log(ratios))) < 1.25


@pytest.mark.parametrize(
    ("options", "fewest"),
    [
        ({"resamples": 39}, 40),
        ({"resamples": np.int64(39), "confidence": np.float32(0.95)}, 40),
        ({"confidence": 0.9999}, 20_000),
        ({"resamples": 40}, None),
    ],
)
def test_ends_of_intervals_are_not_the_extreme_draws(options: dict[str, float], fewest: int | None) -> None:
    """One draw was an interval of no width; of 2000 the interval of .9999 was narrower than that of .999 should be."""
    for name in ("batch_tradeoff", "deviation_scaling", "sample_complexity"):
        if fewest is None:
            assert ANALYSES[name].check(options)["resamples"] == options["resamples"]
            continue
        with pytest.raises(InputError, match=f"{fewest} or more") as error:
            ANALYSES[name].check(options)
        assert error.value.key == "resamples"
