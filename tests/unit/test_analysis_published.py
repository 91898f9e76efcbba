"""The gain of overparametrisation, the risk floor and the law of exit times, for known truths."""

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.stats import CensoredData, chi2, ecdf

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.overparametrisation_gain import gain_of
from sweeplib.errors import InputError
from sweeplib.networks import theory
from sweeplib.statistics.survival import survival_curve
from tests.datasets import sweep_dataset

gain, floor = ANALYSES["overparametrisation_gain"], ANALYSES["risk_floor"]
RATIOS = np.linspace(0.4, 1.6, 8)


def two_widths(factor, seeds=64):
    """Return students of 1 and of 4 units, the latter `factor` times as fast; independent runs of the same law."""
    kinds = {"ratios": RATIOS, "d": [3000], "Delta": [0.0], "dynamics": ["sgd_chain"], "seeds": seeds}
    narrow, wide = (sweep_dataset(random_seed=number, **kinds) for number in (3, 4))
    wide["exit_steps"], wide["end_steps"] = wide.exit_steps / factor, wide.end_steps / factor
    return xr.concat([narrow.assign_coords(p=1), wide.assign_coords(p=4)], "p", coords=["p"], combine_attrs="override")


def test_gain_is_that_of_the_law():
    """An interval of 99.9 %: false alarm 1 in 1000."""
    found = gain(two_widths(3.0), confidence=0.999).sel(p=4).squeeze()
    assert found.gain_low < 3.0 < found.gain_high
    assert found.gain_high - found.gain_low < 2.0


def test_gain_of_one_unit_over_itself_is_one():
    found = gain(two_widths(3.0)).sel(p=1).squeeze()
    assert found.gain == found.gain_low == found.gain_high == 1.0


def test_gain_without_a_single_unit_is_refused():
    with pytest.raises(InputError, match=r"p: no width to compare with; got \[4\]; expected 1 among them"):
        gain(two_widths(3.0).sel(p=[4]))


def test_gain_of_theory_tends_to_its_limit():
    """Its finite-d forms approach the limit as 1/log d: within 3 % at T d = 10^40."""
    p, d, Delta, T = (xr.DataArray(value) for value in (4.0, 1e42, 0.5, 0.01))
    limit = float(theory.overparametrisation_gain(4.0, 0.5))
    for kind in ("quenched", "noise_corrected"):
        assert float(gain_of(kind, p, d, Delta, T)) == pytest.approx(limit, rel=0.03)


def stationary(levels, drift=0.0):
    ds = sweep_dataset(seeds=len(levels), Delta=[1.0])
    time = ds.time / ds.time.max()
    risk = xr.DataArray(levels, dims="seed") + drift * time
    ds["risk"] = risk.broadcast_like(ds.risk).transpose(*ds.risk.dims).assign_attrs(ds.risk.attrs)
    return ds


def test_floor_is_the_mean_over_the_runs():
    found = floor(stationary([1.0, 2.0, 3.0, 2.0])).isel(dynamics=0)
    np.testing.assert_allclose(found.risk_floor, 2.0)
    np.testing.assert_allclose(found.risk_floor_error, np.std([1, 2, 3, 2], ddof=1) / 2)
    np.testing.assert_allclose(found.risk_drift, 0.0, atol=1e-12)


def test_floor_that_is_not_reached_drifts():
    found = floor(stationary([1.0, 1.0], drift=1.0), last=0.5).isel(dynamics=0)
    np.testing.assert_allclose(found.risk_floor, 1.75)
    assert (found.risk_drift > 0.2).all()


def test_a_single_record_has_no_drift():
    """It was 0 with an error of 0, as of runs that have reached their floor."""
    found = floor(stationary([1.0, 2.0, 3.0, 2.0], drift=1.0), last=0.01).isel(dynamics=0)
    np.testing.assert_allclose(found.risk_floor, 3.0)
    assert found.risk_drift.isnull().all()
    assert found.risk_drift_error.isnull().all()


def test_floor_is_refused_where_runs_stopped_early():
    """The mean of the remaining runs would be 1.5, that of all runs 8/3."""
    ds = stationary([1.0, 2.0, 5.0])
    ds["risk"] = ds.risk.where((ds.seed != 2) | (ds.time < 1.0))
    found, others = floor(ds).isel(dynamics=0), floor(ds, max_lost=0.5).isel(dynamics=0)
    assert found.risk_floor.isnull().all()
    assert (found.seeds_lost == 1).all()
    np.testing.assert_allclose(others.risk_floor, 1.5)
    assert (others.seeds_used == 2).all()


def test_floor_of_theory_is_that_of_one_unit():
    ds = sweep_dataset(seeds=2)
    np.testing.assert_allclose(floor(ds).risk_floor_theory, theory.asymptotic_risk(ds.gamma, ds.Delta))
    assert floor(ds.assign_coords(p=2)).risk_floor_theory.isnull().all()


def test_floor_over_no_time_is_refused():
    with pytest.raises(InputError, match="last: not a part of the times; got 0"):
        floor(sweep_dataset(seeds=2), last=0.0)


@pytest.mark.parametrize("p", [1, 4])
def test_quenched_law_has_the_quenched_mean(p):
    gamma = 0.6 * theory.optimal_learning_rate(p, 0.5)
    mean = quad(lambda t: theory.quenched_survival(t, gamma, p, 3000, 0.5, 0.01), 0.0, 20.0, limit=400)[0]
    assert mean == pytest.approx(theory.quenched_exit_time(gamma, p, 3000, 0.5, 0.01), rel=2e-3)


def test_noise_corrected_law_has_the_noise_corrected_mean_at_large_d():
    """The two differ by O(1/(T d)) of the time: the former accounts for the time in which the noise accumulates."""
    mean = quad(lambda t: theory.noise_corrected_survival(t, 0.05, 1, 1e7, 0.0, 0.01), 0.0, 30.0, limit=400)[0]
    assert mean == pytest.approx(theory.noise_corrected_exit_time(0.05, 1, 1e7, 0.0, 0.01), rel=1e-3)


def test_noise_corrected_law_of_one_unit_is_that_of_a_gaussian_overlap():
    """m² of variance (e^{2ωt}(1+s) − s)/d has passed T (1 − m0²) + m0²; the start counts 1 − T of itself."""
    t, gamma, d, T = 0.4, 0.05, 3000, 0.01
    rate = theory.escape_rate(gamma, 1, 0.0)
    s = gamma * 48 / (2 * rate)
    growth = np.exp(2 * rate * t) * (1 + s) - s - (1 - T)
    assert theory.noise_corrected_survival(t, gamma, 1, d, 0.0, T) == pytest.approx(chi2.cdf(T * d / growth, 1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of scipy: the band is undefined where the curve is 1 or 0
@pytest.mark.parametrize("seed", range(10))
def test_survival_curve_is_that_of_scipy(seed):
    """Also with equal times. Runs that never exit count as seen until the last time of the others.

    The low end is at most what all that are left come to with a probability of .05.
    """
    numbers = np.random.default_rng(seed)
    exits, ends = numbers.exponential(size=numbers.integers(1, 20)), numbers.exponential(size=numbers.integers(1, 20))
    if seed % 2:
        exits, ends = np.ceil(5 * exits), np.ceil(5 * ends)
    ends[0] = np.inf
    last = max(exits.max(), ends[1:].max(initial=0.0))
    law = ecdf(CensoredData(uncensored=exits, right=np.minimum(ends, last))).sf
    band = law.confidence_interval(0.9, method="log-log")
    left = (np.append(exits, np.minimum(ends, last)) > law.quantiles[:, None]).sum(1)
    low = np.fmin(band.low.probabilities, np.where(left > 0, law.probabilities * 0.05 ** (1 / np.maximum(left, 1)), 0))
    wanted = law.quantiles, law.probabilities, low, band.high.probabilities
    np.testing.assert_allclose(survival_curve(exits, ends, 0.9), wanted, rtol=1e-12, atol=1e-14)
