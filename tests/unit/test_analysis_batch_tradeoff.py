"""Steps and samples against the batch size: known powers, censoring, undecidable cases."""

import numpy as np
import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.statistics.bootstrap import Resampling, seed_weights
from sweeplib.statistics.fits import power_of
from tests.datasets import giant_steps_dataset, with_outcome

analysis = ANALYSES["batch_tradeoff"]


@pytest.mark.rest
@pytest.mark.parametrize("slope", [-1.0, -0.5, 0.0])
def test_the_power_of_the_batch_size_is_found(slope):
    found = analysis(giant_steps_dataset(slope=slope, seeds=64), resamples=500)
    assert (found.exponent_low < slope + 0.01).all()
    assert (found.exponent_high > slope - 0.01).all()
    np.testing.assert_allclose(found.exponent, slope, atol=0.03)
    np.testing.assert_allclose(found.prefactor, 1e4, rtol=0.1)


def test_steps_and_samples_are_means():
    ds = giant_steps_dataset()
    found = analysis(ds, resamples=40)
    np.testing.assert_allclose(found.steps, ds.exit_steps.mean("seed"))
    np.testing.assert_allclose(found.samples, (ds.exit_steps * ds.batch_size).mean("seed"))
    np.testing.assert_allclose(found.samples_error, found.steps_error * ds.batch_size)


def test_samples_that_are_used_again_count_once():
    ds = giant_steps_dataset()
    found = analysis(ds.assign_attrs(repeats=4), resamples=40)
    np.testing.assert_allclose(found.samples, (ds.exit_steps * ds.batch_size).mean("seed") / 4)


def test_the_last_batch_of_a_pass_may_be_smaller():
    """A training set of 100 samples is a parameter `samples`, as one of the variables is called."""
    ds = giant_steps_dataset().assign_attrs(samples=100, sampling="epochs")
    ds = ds.isel(batch_size=slice(3)).assign_coords(batch_size=[1, 16, 64])
    found = analysis(ds, resamples=40)
    a_step = (found.samples / found.steps).transpose("batch_size", ...).values.reshape(3, -1)
    np.testing.assert_allclose(a_step, np.broadcast_to([[1], [100 / 7], [50]], a_step.shape))
    with pytest.raises(InputError, match="an axis has the name of a variable of batch_tradeoff; got 'samples'"):
        analysis(ds.expand_dims(samples=[100]))


@pytest.mark.rest
def test_the_fit_can_end_before_a_bend():
    ds = giant_steps_dataset(seeds=64)
    bent = ds.assign(exit_steps=ds.exit_steps.clip(min=500.0).assign_attrs(ds.exit_steps.attrs))
    np.testing.assert_allclose(analysis(bent, largest_batch=10.0, resamples=100).exponent, -1.0, atol=0.05)
    assert (analysis(bent, resamples=100).exponent > -0.6).all()
    assert analysis(bent, largest_batch=1.0, resamples=40).exponent.isnull().all()


@pytest.mark.rest
def test_intervals_cover():
    """300 experiments of 16 seeds: of 95 % intervals fewer than 89 % cover once in 10⁴."""
    rng, sizes = np.random.default_rng(3), np.array([1.0, 10.0, 100.0, 1e3])
    resampling = Resampling(seed_weights(16, 300, 0), rng, 0.95)
    found = [power_of(1e4 / sizes * rng.gamma(9.0, size=(16, 4)), sizes, resampling) for _ in range(300)]
    assert np.mean([one.low <= -1.0 <= one.high for one in found]) > 0.89


def test_censored_and_lost_batch_sizes_are_left_out():
    ds = giant_steps_dataset()
    late = (ds.batch_size == 1) & (ds.seed > 4)
    found = analysis(with_outcome(ds.assign(exit_steps=ds.exit_steps.where(~late)), "killed", (ds.batch_size == 10)))
    assert found.steps.sel(batch_size=[1, 10]).isnull().all()
    assert found.steps.sel(batch_size=[100, 1000]).notnull().all()
    assert (found.seeds_censored.sel(batch_size=1) == 3).all()
    assert found.exponent.notnull().all()


@pytest.mark.rest
def test_nothing_is_known_if_no_run_exits_or_one_seed_runs():
    ds = giant_steps_dataset()
    found = analysis(ds.assign(exit_steps=ds.exit_steps.where(False)), resamples=40)
    assert found.steps.isnull().all()
    assert found.exponent.isnull().all()
    one = analysis(giant_steps_dataset(seeds=1), resamples=40)
    assert one.steps.notnull().all()
    assert one.steps_error.isnull().all()
    assert one.exponent.isnull().all()


def test_the_batch_size_must_vary():
    with pytest.raises(InputError, match="the samples of a step does not vary"):
        analysis(giant_steps_dataset(batch_size=[4]))
