"""A sweep whose runs have too short a time limit, from its file to its analyses, compared to runs without a limit."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib.analysis import write_analysis
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage import open_dataset
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.errors import InputError
from sweeplib.networks.dynamics.dynamics import Dynamics
from tests.in_process import InProcess

SWEEP = """
name: limited
problem: {p: 1, k: 1, d: 300, Delta: 0, activation: square, spherical: true, gamma: 0.05}
seeds: 64
dynamics: [sgd_chain, sgd]
times: {linspace: [0, 8, 9]}
thresholds: [0.5]
stop: exit
timeout: 0.13
analyses: [exit_times, law_agreement]
"""
PROBLEM = sweeplib.Problem(p=1, k=1, d=300, Delta=0, activation="square", spherical=True, gamma=0.05)
OVER = 5


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the sweep; its clock counts calls, so that always the same runs time out."""
    folder = tmp_path_factory.mktemp("limited")
    (folder / "limited.yaml").write_text(SWEEP)
    sweep = replace(load(folder / "limited.yaml"), cluster=InProcess(block_size=64))
    with pytest.MonkeyPatch.context() as patch:
        ticks = count()
        patch.setattr(Dynamics, "clock", staticmethod(lambda: float(next(ticks))))
        patch.setattr("sweeplib.networks.dynamics.sgd.WORK_A_ROUND", 1e6)
        run_sweep(sweep, folder, progress=False)
    finalise(sweep, folder)
    for name in sweep.analyses:
        write_analysis(sweep, name, folder)
    return folder


@pytest.fixture(scope="module")
def unlimited() -> xr.DataArray:
    """Return the exits of the same runs without a time limit."""
    options = {"times": np.linspace(0, 8, 9), "seeds": range(64), "thresholds": [0.5], "stop": "exit"}
    runs = [sweeplib.simulate(PROBLEM, name, **options) for name in ("sgd_chain", "sgd")]
    return xr.concat([run.exit_steps for run in runs], "dynamics").squeeze("threshold")


def dataset(directory: Path) -> xr.Dataset:
    return open_dataset(directory).load().squeeze()


def result(directory: Path, name: str) -> xr.Dataset:
    return open_dataset(directory / "analysis" / f"{name}.zarr").load().squeeze()


@pytest.mark.rest
def test_a_run_over_its_time_limit_is_censored_where_it_came(directory, unlimited):
    """Every exit is that of the run without a limit; runs without an exit had none before their end."""
    ds = dataset(directory)
    over = (ds.status == OVER).values
    assert (over.sum(axis=1) > 8).all()
    assert (over.sum(axis=1) < 56).all()
    np.testing.assert_array_equal(ds.exit_steps, unlimited.where(~over))
    assert ((ds.end_steps.values > 1000) & (ds.end_steps.values < unlimited.values))[over].all()
    np.testing.assert_allclose(ds.end_time, ds.end_steps * PROBLEM.step_time())


@pytest.mark.rest
def test_means_count_the_runs_over_their_limit(directory, unlimited):
    """The chain's runs are cut off at one limit: their mean is that of min(exit, limit) of runs without a limit."""
    ds, found = dataset(directory), result(directory, "exit_times")
    over = ds.status == OVER
    assert found.restricted.all()
    assert not found.refused.any()
    assert (found.seeds_used == 64).all()
    np.testing.assert_array_equal(found.seeds_timeout, over.sum("seed"))
    limit = np.unique(ds.end_steps.where(over).isel(dynamics=0).dropna("seed"))
    assert len(limit) == 1
    seen = np.minimum(unlimited.isel(dynamics=0), limit[0])
    assert found.exit_steps_mean[0].item() == pytest.approx(seen.mean().item(), rel=1e-12)
    of_all, of_the_fast = unlimited.mean("seed").values, ds.exit_steps.mean("seed").values
    assert (found.exit_steps_mean.values > of_the_fast).all()
    assert (found.exit_steps_mean.values < of_all).all()
    middle = np.nanmedian(unlimited, axis=1)
    assert (np.isclose(found.exit_steps_median, middle, rtol=0.1) | found.exit_steps_median.isnull()).all()


@pytest.mark.rest
def test_there_is_no_floor_of_runs_that_were_stopped(directory):
    with pytest.raises(InputError, match="runs stop at their exits, and risk_floor needs what they do later"):
        sweeplib.analysis.risk_floor(dataset(directory))
    assert sweeplib.analysis.risk_floor(dataset(directory).assign_attrs(stop="end")).risk_floor.isnull().all()


@pytest.mark.rest
def test_sgd_and_its_chain_agree_in_law_as_far_as_both_were_seen(directory):
    """One test of one law, at 10⁻³."""
    assert result(directory, "law_agreement").exit_steps_ks_pvalue > 1e-3
