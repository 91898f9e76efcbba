"""Agreement in law: p-values are uniform if laws agree, small if not; censoring and pairing are respected."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import ks_2samp, kstest

from sweeplib.analysis import ANALYSES
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.errors import InputError
from sweeplib.statistics.agreement import kolmogorov_smirnov, spread_ratio
from tests.datasets import sweep_dataset, with_outcome

analysis = ANALYSES["law_agreement"]
DIMS = ("dynamics", "seed", "time")
LABELS = {"long_name": "population risk", "units": "1", "symbol": r"\mathcal{R}"}


def runs(values) -> xr.Dataset:
    """Return a dataset of the chain and the SDE with these risks (dynamics, seed, time)."""
    variables = {
        "risk": (DIMS, values, LABELS),
        "status": (DIMS[:2], np.ones(values.shape[:2], np.uint8), STATUS_LABELS),
    }
    coords = {"dynamics": ["sgd_chain", "sde"], "seed": np.arange(values.shape[1]), "time": np.arange(values.shape[2])}
    return xr.Dataset(variables, coords)


@pytest.mark.filterwarnings("ignore:ks_2samp. Exact calculation unsuccessful")
@pytest.mark.parametrize(("n", "m"), [(7, 7), (12, 9), (40, 40)])
def test_statistics_are_those_of_scipy(n, m):
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 30, size=(25, n)) / 7.0, rng.integers(0, 33, size=(25, m)) / 7.0
    statistic, pvalue = kolmogorov_smirnov(first, second)
    expected = [ks_2samp(*pair) for pair in zip(first, second, strict=True)]
    np.testing.assert_allclose(statistic, [found.statistic for found in expected])
    np.testing.assert_allclose(pvalue, [found.pvalue for found in expected])


def test_what_is_missing_is_left_out():
    first = np.array([1.0, np.nan, 3.0, 2.0])
    second = np.array([5.0, np.inf, np.nan, np.nan])
    statistic, pvalue = kolmogorov_smirnov(first, second)
    assert statistic == 1.0
    assert pvalue == pytest.approx(ks_2samp([1, 2, 3], [5, 6]).pvalue)
    assert np.isnan(kolmogorov_smirnov(first * np.nan, second)).all()


@pytest.mark.parametrize("diverged", [39, 40])
def test_runs_that_all_diverge_have_not_the_law_of_runs_that_exit(diverged):
    ds = sweep_dataset(ratios=(1.0,), d=(300,), Delta=(0.0,), seeds=40, dynamics=("sgd_chain", "sgd"))
    lost = (ds.dynamics == "sgd") & (ds.seed < diverged)
    found = analysis(with_outcome(ds.assign(exit_steps=ds.exit_steps.where(~lost)), "diverged", lost))
    # of even against odd seeds
    assert found.exit_steps_ks.item() >= 0.9
    assert found.exit_steps_ks_pvalue.item() < 1e-4


@pytest.mark.rest
@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_pvalues_are_uniform_also_for_shared_starts(shared):
    """400 tests of 100 + 100 seeds; a Kolmogorov-Smirnov test of the p-values themselves fails once in 10⁴."""
    rng = np.random.default_rng(5)
    start = np.sqrt(shared) * rng.normal(size=(1, 200, 400))
    values = start + np.sqrt(1 - shared) * rng.normal(size=(2, 200, 400))
    p = analysis(runs(values)).risk_ks_pvalue.values.ravel()
    p = p - rng.uniform(size=400) * np.diff(np.unique(np.append(p, 0.0)), prepend=0.0)[np.searchsorted(np.unique(p), p)]
    assert kstest(p, "uniform").pvalue > 1e-4
    if shared:
        p = analysis(runs(values), seeds="shared").risk_ks_pvalue.values.ravel()
        assert kstest(p, "uniform").pvalue < 1e-10


def test_another_spread_is_seen():
    values = np.random.default_rng(6).normal(size=(2, 400, 3)) * np.array([1.0, 0.3])[:, None, None]
    found = analysis(runs(values)).sel(dynamics="sde")
    assert (found.risk_ks_pvalue < 1e-6).all()
    np.testing.assert_allclose(found.risk_spread_ratio, 0.3, atol=0.08)


def test_errors_of_the_ratio_of_spreads_cover():
    """Paired samples of correlation .8, 2000 times: two errors hold the truth in 90 to 98 % (false alarm < 10⁻⁶)."""
    rng = np.random.default_rng(7)
    first = rng.normal(size=(2000, 60))
    second = 2.0 * (0.8 * first + 0.6 * rng.normal(size=first.shape))
    ratio, error = spread_ratio(first, second)
    assert 0.90 < np.mean(np.abs(ratio - 0.5) < 2 * error) < 0.98


def test_a_common_start_agrees_up_to_rounding():
    values = np.full((2, 20, 1), 1.82)
    values[1] += 1e-15 * np.arange(20)[:, None]
    found = analysis(runs(values)).squeeze()
    assert found.risk_ks == 0.0
    assert found.risk_ks_pvalue == 1.0
    assert np.isnan(found.risk_spread_ratio)


def test_exits_are_compared_until_both_were_observed():
    """The chain is observed to 50 steps: later exits of the other dynamics do not matter."""
    ds = sweep_dataset(ratios=[1.0], d=[300], Delta=[0.0], seeds=40, dynamics=["sgd_chain", "sgd"])
    steps = np.arange(1.0, 41.0)
    late = np.where(steps > 20, steps + 1e4, steps)
    shape = ds.exit_steps.shape[1:]
    chain = np.where(steps > 20, np.nan, steps).reshape(shape)
    ds["exit_steps"] = ds.exit_steps.copy(data=np.stack([chain, late.reshape(shape)]))
    ds["end_steps"] = ds.end_steps.copy(data=np.full(ds.end_steps.shape, 50.0))
    found = analysis(ds, seeds="shared").squeeze()
    assert found.exit_steps_horizon == 50.0
    assert found.exit_steps_ks == 0.0
    assert found.exit_steps_spread_ratio == pytest.approx(1.0)


def test_exits_between_steps_are_seen_at_the_next():
    ds = sweep_dataset(ratios=[1.0], d=[300], Delta=[0.0], seeds=40, dynamics=["sgd_chain", "ode"])
    whole = np.arange(1.0, 41.0).reshape(ds.exit_steps.shape[1:])
    ds["exit_steps"] = ds.exit_steps.copy(data=np.stack([whole, whole - 0.3]))
    assert analysis(ds, seeds="shared").squeeze().exit_steps_ks == 0.0


@pytest.mark.rest
def test_the_reference_is_the_chain_or_sgd():
    ds = sweep_dataset(d=[300], Delta=[0.0], seeds=6)
    assert analysis(ds).attrs["reference"] == "sgd_chain"
    assert analysis(ds.sel(dynamics=["ode", "sgd"])).attrs["reference"] == "sgd"
    with pytest.raises(InputError, match="no stochastic dynamics"):
        analysis(ds.sel(dynamics=["ode"]))
    with pytest.raises(InputError, match="no such choice of seeds"):
        analysis(ds, seeds="half")
