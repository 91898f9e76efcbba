"""Regimes: results for known scalings, error rates, and undecidable cases."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.regime_samples import regime_samples, sgd_values
from sweeplib.analysis.regimes import probabilities
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.errors import InputError
from sweeplib.networks.theory.regimes import REGIMES
from sweeplib.statistics.bootstrap import Resampling, log_deviations, seed_weights
from sweeplib.statistics.exponents import exponents, interval, means

analysis = ANALYSES["regimes"]
D = (100, 200, 500, 1000, 3000, 10_000, 30_000)
LINE = tuple(np.linspace(-1.0, 1.0, 13))


def line(s) -> xr.Dataset:
    """Return the regimes along κ = 0, at these values of δ = κ + δ."""
    return analysis(regime_dataset(s, (0.0,), D, seeds=32)).squeeze("kappa")


def experiments(s) -> list[str]:
    """Return the regimes that 60 experiments find at δ = κ + δ = s."""
    parts = [regime_dataset([s], (0.0,), D, seeds=32, random_seed=seed) for seed in range(60)]
    ds = xr.concat(parts, "experiment", combine_attrs="override", coords="minimal", compat="override")
    return names(analysis(ds, resamples=500).regime.values.ravel())


def names(codes):
    return [REGIMES[int(code)] for code in codes]


@pytest.mark.rest
def test_the_regimes_of_theory_are_found_far_from_the_boundaries():
    """Of the points farther than .15 from a boundary at least 95 % are right, and none is wrong."""
    found = analysis(regime_dataset(LINE, tuple(np.linspace(0.0, 0.5, 7)), D, seeds=32), resamples=1000)
    s = found.coupling_exponent
    far = (abs(s) > 0.15) & (abs(s + 0.5) > 0.15)
    right = (found.regime == found.regime_theory).where(far)
    assert right.mean() >= 0.95
    assert not ((found.regime != found.regime_theory) & (found.regime > 0) & far).any()


def test_the_plateau_is_found_on_its_line():
    found = line([0.0])
    assert names(found.regime) == ["plateau"]
    assert found.confidence >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("s", "theory"), [(0.0, "plateau"), (-0.5, "no_ode")])
def test_false_alarms_at_a_boundary(s, theory):
    """60 experiments on a boundary, at most 5 % wrong: more than 9 once in 10³."""
    found = experiments(s)
    assert sum(name not in (theory, "undecided") for name in found) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("s", [0.06, -0.06, -0.44])
def test_at_the_resolution_itself_either_answer_is_rare(s):
    """60 experiments at the limit of what counts as zero: each answer has 5 %, more than 9 once in 10³."""
    found = experiments(s)
    for name in REGIMES[1:]:
        assert found.count(name) <= 9


@pytest.mark.rest
@pytest.mark.parametrize("measure", [means, log_deviations])
def test_intervals_of_an_exponent_cover(measure):
    """300 experiments of 16 seeds: of 95 % intervals fewer than 90 % cover once in 10⁴; the tolerance widens them."""
    rng, weights, d = np.random.default_rng(3), seed_weights(16, 500, 0), np.array(D, float)
    covered = 0
    for _ in range(300):
        sample = (
            d**-0.5 * rng.standard_normal((16, len(d))) if measure is log_deviations else 1 + rng.random((16, len(d)))
        )
        _, low, high = interval(exponents(measure(sample), d, 0.01, Resampling(weights, rng, 0.95)), 0.95)
        covered += low <= (0.5 if measure is log_deviations else 0.0) <= high
    assert covered / 300 > 0.9


def test_points_off_a_power_widen_its_interval():
    weights, d = seed_weights(64, 500, 0), np.array(D, float)
    sample = 1.0 + 0.01 * np.random.default_rng(0).standard_normal((64, len(d)))
    bent = sample * (1.0 + 0.3 * np.cos(np.arange(len(d)) * 2.0))
    width = [
        np.ptp(interval(exponents(means(part), d, 0.03, Resampling(weights, np.random.default_rng(1), 0.95)), 0.95)[1:])
        for part in (sample, bent)
    ]
    assert width[1] > 3.0 * width[0]


def test_a_mean_that_is_not_seen_is_left_out():
    rng, weights = np.random.default_rng(0), seed_weights(64, 100, 0)
    sample = np.vstack([5.0 + rng.standard_normal(64), 0.01 * rng.standard_normal(64) - 1.0]).T
    assert np.isfinite(means(sample).logs).tolist() == [True, False]
    assert np.isnan(exponents(means(sample), np.array([100.0, 200.0]), 0.03, Resampling(weights, rng, 0.95))).all()


def test_draws_that_contradict_each_other_say_nothing():
    """The variance term loses weight, but the risk does not fall; or its weight grows, and the risk falls."""
    risk, weight = np.array([0.0, 1.0]), np.array([1.0, -1.0])
    np.testing.assert_array_equal(probabilities(risk, weight, np.ones(2), 0.05), np.zeros(4))
    np.testing.assert_array_equal(probabilities(risk, weight, np.zeros(2), 0.05), [0.0, 0.0, 0.0, 1.0])


@pytest.mark.rest
def test_it_says_where_more_seeds_would_decide():
    """At the resolution itself none do: the law may be off by 3 % at each d. Six seeds decide little elsewhere."""
    hopeless = analysis(regime_dataset([0.055, 0.06, 0.065], (0.0,), D, seeds=4096), resamples=500)
    assert (hopeless.regime == 0).all()
    assert (hopeless.decidable < 0.1).all()
    few = analysis(regime_dataset([-0.15, 0.1, 0.15], (0.0,), D, seeds=6), resamples=500)
    assert (few.regime == 0).any()
    assert (few.decidable > 0.5).all()
    many = analysis(regime_dataset([-0.15, 0.1, 0.15], (0.0,), D, seeds=512), resamples=500)
    assert (many.regime > 0).all()
    assert (many.decidable > 0.95).all()


def test_few_seeds_and_a_short_range_leave_it_undecided():
    ds = regime_dataset([-0.25], (0.0,), (100, 150), seeds=6)
    assert names(analysis(ds).regime.values.ravel()) == ["undecided"]


@pytest.mark.rest
def test_nothing_is_taken_from_the_exponents_of_the_config():
    ds = regime_dataset([-0.75, -0.25, 0.0, 0.5], (0.0,), D)
    renamed = ds.rename(delta="first", kappa="second")
    np.testing.assert_array_equal(analysis(renamed).probability, analysis(ds).probability)
    assert "regime_theory" not in analysis(renamed)


def test_runs_of_which_nothing_is_known_do_not_count():
    ds = regime_dataset([0.5], (0.0,), D)
    lost = (ds.seed < 4) & (ds.dynamics == "sgd_chain")
    ds["risk"] = ds.risk.where(~lost, 1e3)
    ds["status"] = ds.status.where(~lost, 3).astype(np.uint8).assign_attrs(ds.status.attrs)
    assert names(analysis(ds, max_lost=0.3).regime.values.ravel()) == ["perfect_learning"]
    assert names(analysis(ds).regime.values.ravel()) == ["undecided"]
    assert regime_samples(ds, 0.3)["excess"].sel(seed=[0, 1, 2, 3]).isnull().all()


def test_sgd_is_the_weights_where_the_chain_was_not_run():
    ds = regime_dataset([0.5], (0.0,), D)
    chain = ds.sel(dynamics=["sgd_chain"])
    both = xr.concat([chain.where(chain.d > 200), chain.assign_coords(dynamics=["sgd"]) + 1.0], "dynamics").risk
    run = both.isel(time=-1).notnull()
    found = sgd_values(both.isel(time=-1), run) - chain.risk.isel(time=-1, dynamics=0)
    np.testing.assert_allclose(found.mean("seed").squeeze(), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_without_an_ode_the_spread_is_that_of_sgd():
    ds = regime_dataset([0.5], (0.0,), D)
    absent = (ds.dynamics == "ode") & (ds.d > 1000)
    ds["status"] = ds.status.where(~absent, 0).astype(np.uint8).assign_attrs(ds.status.attrs)
    growth = regime_samples(ds)["growth"].mean("seed").squeeze()
    np.testing.assert_allclose(growth.sel(d=D[-1]), 0.3, atol=0.05)
    np.testing.assert_allclose(growth.sel(d=1000), 0.0, atol=0.05)


@pytest.mark.parametrize("missing", ["ode", "gradient_flow"])
def test_the_limits_must_have_been_run(missing):
    ds = regime_dataset([0.5], (0.0,), D)
    with pytest.raises(InputError, match=f"dynamics: not among the dynamics that were run.*{missing}"):
        analysis(ds.sel(dynamics=ds.dynamics != missing))


def test_the_dimension_must_vary_and_seeds_be_several():
    with pytest.raises(InputError, match="the input dimension does not vary"):
        analysis(regime_dataset([0.5], (0.0,), (100,)))
    with pytest.raises(InputError, match="too few replicas"):
        analysis(regime_dataset([0.5], (0.0,), D, seeds=2))


def test_the_start_must_be_recorded():
    with pytest.raises(InputError, match="times: the start is not recorded"):
        analysis(regime_dataset([0.5], (0.0,), D).isel(time=slice(1, None)))


@pytest.mark.parametrize("seeds", [3, 8])
def test_logarithms_of_standard_deviations_have_no_bias(seeds):
    """5000 deviations of normal values, whose logarithms have the error .007 together, or less."""
    found = log_deviations(np.random.default_rng(0).standard_normal((seeds, 5000)))
    assert abs(found.values.mean()) < 0.03
