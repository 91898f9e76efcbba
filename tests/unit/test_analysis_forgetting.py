"""Forgetting and transfer of two tasks in turn: by hand, their intervals, what is refused."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import InputError
from sweeplib.analysis import ANALYSES
from sweeplib.statistics.estimators import Mean

forgetting = ANALYSES["forgetting"]
FLAGS = {"flag_values": [0, 1, 2], "flag_meanings": "missing ok diverged"}
LAWS = {
    "normal": lambda rng, shape: 0.3 + rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 0.7,
}
"""Laws of differences of mean .3."""


def sweep(later, *, times=(0.0, 1.0, 2.0, 3.0), switch=(1.0, 2.0)):
    """Return a sweep of two switches: R_1 is .2, at the end higher by `later` (..., seeds), and R_2 is .5 − t/10."""
    shape = later.shape[:-1]
    names = (*(f"axis_{n}" for n in range(len(shape))), "switch_time", "seed")
    first = np.full((*shape, len(switch), later.shape[-1], len(times)), 0.2)
    first[..., -1] += later[..., None, :]
    second = np.broadcast_to(0.5 - np.array(times) / 10, first.shape)
    ds = xr.Dataset({"risk_of_task": ((*names, "time", "task"), np.stack([first, second], -1))})
    ds["status"] = (names, np.ones(first.shape[:-1], np.uint8), FLAGS)
    coords = {"switch_time": list(switch), "time": list(times), "seed": np.arange(later.shape[-1])}
    return ds.expand_dims(dynamics=["sgd"]).assign_coords(coords).assign_attrs(tasks="in_turn", k=2)


def test_it_is_the_mean_of_differences_of_runs():
    later = np.array([0.1, 0.2, 0.3, 0.6])
    found = forgetting(sweep(later)).squeeze()
    np.testing.assert_allclose(found.forgetting, 0.3)
    _, low, high = Mean()(xr.DataArray(later, dims="seed"), 0.95)
    np.testing.assert_allclose([found.forgetting_low, found.forgetting_high], [[low] * 2, [high] * 2])
    np.testing.assert_allclose(found.transfer, [0.1, 0.2])
    np.testing.assert_allclose(found.risk_at_switch, 0.2)
    np.testing.assert_allclose(forgetting(sweep(later), after=1.0).squeeze().forgetting, [0.0, 0.3], atol=1e-15)


def test_a_lost_run_leaves_no_mean():
    ds = sweep(np.array([0.1, 0.2, 0.3, 0.6]))
    ds["risk_of_task"][0, 0, 1, 3, 0] = np.nan
    found = forgetting(ds).squeeze()
    np.testing.assert_array_equal(found.forgetting.isnull(), [True, False])
    np.testing.assert_array_equal(found.seeds_lost, [1, 0])
    np.testing.assert_allclose(forgetting(ds, max_lost=0.3).squeeze().forgetting[0], 1.0 / 3.0)


@pytest.mark.rest
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("seeds", "least"), [(3, 0.93), (8, 0.94), (32, 0.955)])
def test_intervals_cover(law, seeds, least):
    """5000 experiments, coverage known to .003; the least values are those of exponential differences."""
    found = forgetting(sweep(LAWS[law](np.random.default_rng(seeds), (5000, seeds))))
    covered = float(((found.forgetting_low <= 0.3) & (found.forgetting_high >= 0.3)).mean())
    assert (0.96 if law == "normal" else least) < covered < 0.985


@pytest.mark.parametrize(
    ("ds", "options", "said"),
    [
        (sweep(np.ones(4)).assign_attrs(tasks="single"), {}, "tasks: no two tasks in turn"),
        (sweep(np.ones(4)).assign_attrs(task_order="[2, 1]"), {}, "task_order: another order of tasks"),
        (sweep(np.ones(4), switch=(1.0, 1.5)), {}, "times: forgetting needs a record at the time; got 1.5"),
        (sweep(np.ones(4), times=(0.5, 1.0, 2.0, 3.0)), {}, "times: the start is not recorded; got 0.5"),
        (sweep(np.ones(4)), {"after": 2.5}, "times: forgetting needs a record at the time; got 3.5"),
        (sweep(np.ones(4)).drop_vars("risk_of_task"), {}, "risk_of_task among the `observables`"),
        (sweep(np.ones(4)).assign_attrs(clock=1.5), {}, "times: no record at the time; got 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(ds, options, said):
    with pytest.raises(InputError, match=said):
        forgetting(ds, **options)


def test_times_in_another_unit_are_odes_times():
    """With a unit of 2 the record at 1 is that at t = 2."""
    later = np.array([0.1, 0.2, 0.3, 0.6])
    found = forgetting(sweep(later, switch=(2.0, 4.0)).assign_attrs(clock=2.0), after=2.0).squeeze()
    np.testing.assert_allclose(found.transfer, [0.1, 0.2])
    np.testing.assert_allclose(found.forgetting, [0.0, 0.3], atol=1e-15)
