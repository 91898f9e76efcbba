"""First passages of quantities over time: those of random walks, whose law is exact, with every way to end."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.errors import InputError
from tests.datasets import giant_steps_dataset, with_outcome

first_passages = ANALYSES["first_passages"]
STEPS, LEVEL = 60, 2.5


def walks(runs: int, seeds: int, random_seed: int = 0) -> xr.Dataset:
    """Return walks of ±1 from 0, whose place is recorded at each of STEPS steps."""
    moves = np.random.default_rng(random_seed).choice([-1.0, 1.0], (1, runs, seeds, STEPS))
    place = np.concatenate([np.zeros((1, runs, seeds, 1)), moves.cumsum(-1)], -1)
    dims = ("dynamics", "run", "seed", "time")
    ds = xr.Dataset({"x": (dims, place, {"long_name": "place", "units": "m"})})
    ds["status"] = (dims[:-1], np.ones((1, runs, seeds), np.uint8), STATUS_LABELS)
    coords = {"dynamics": ["walk"], "run": np.arange(float(runs)), "seed": np.arange(seeds)}
    ds = ds.assign_coords(coords | {"time": np.arange(STEPS + 1.0)}).assign_attrs(function="walk")
    ds["time"].attrs = {"long_name": "time", "units": "s"}
    return ds


def law() -> np.ndarray:
    """Return the probability that a walk is first above LEVEL at each step, from the master equation."""
    below, first = {0: 1.0}, [0.0]
    for _ in range(STEPS):
        moved: dict[int, float] = {}
        for place, probability in below.items():
            for step in (-1, 1):
                moved[place + step] = moved.get(place + step, 0.0) + probability / 2
        first.append(sum(each for place, each in moved.items() if place > LEVEL))
        below = {place: each for place, each in moved.items() if place < LEVEL}
    return np.array(first)


def test_statistics_are_those_of_the_exact_law_of_a_walk_and_are_covered():
    first = law()
    fraction, time = first.sum(), np.arange(STEPS + 1.0)
    mean = (first * time).sum() + (1 - fraction) * STEPS
    median = time[np.searchsorted(first.cumsum(), 0.5)]
    few, many = walks(400, 64), walks(1, 40_000, 1)
    passed = first_passages(many, of="x", when={"above": LEVEL}).squeeze()
    assert abs(passed.passed_fraction - fraction) < 4 * np.sqrt(fraction * (1 - fraction) / 40_000)
    assert abs(passed.passage_time_mean - mean) < 4 * passed.passage_time_mean_error
    assert passed.passage_time_median == median
    assert passed.passage_time_horizon == STEPS and passed.restricted
    assert passed.passage_time_mean.attrs["units"] == "s"
    assert passed.passage_time_mean.attrs["long_name"] == "restricted mean time at which the place is above 2.5"
    covered = first_passages(few, of="x", when={"above": LEVEL}).squeeze()
    for name, truth in (("passed_fraction", fraction), ("passage_time_mean", mean), ("passage_time_median", median)):
        high = covered[f"{name}_high"].fillna(np.inf)  # of medians: more than half may not pass by the horizon
        inside = (covered[f"{name}_low"] <= truth) & (truth <= high)
        assert inside.mean() > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 400), name


def test_a_level_below_is_that_above_of_the_mirrored_walk():
    ds = walks(3, 16)
    mirrored = ds.assign(x=(-ds.x).assign_attrs(ds.x.attrs))
    above = first_passages(ds, of="x", when={"above": LEVEL})
    below = first_passages(mirrored, of="x", when={"below": -LEVEL})
    for name in above:
        np.testing.assert_array_equal(above[name], below[name])


def test_runs_that_end_before_are_censored_never_pass_or_are_lost():
    ds = walks(1, 8)
    x = ds.x.copy()
    x[..., :] = 0.0
    x[0, 0, 0, 10:] = 5.0  # passes at 10
    x[0, 0, 1, 21:] = np.nan  # is stopped at 20
    x[0, 0, 2, 31:] = np.nan  # diverges after 30
    x[0, 0, 3, :] = np.nan  # returned nothing
    ds = ds.assign(x=x)
    for outcome, seed in (("timeout", 1), ("diverged", 2)):
        ds = with_outcome(ds, outcome, ds.status.copy(data=np.arange(8) == np.full((1, 1, 8), seed)))
    assert np.isnan(first_passages(ds, of="x", when={"above": LEVEL}).passed_fraction)  # one of eight is too many
    passed = first_passages(ds, of="x", when={"above": LEVEL}, max_lost=0.2).squeeze()
    assert (passed.seeds_used, passed.seeds_censored) == (7, 6)
    assert passed.passed_fraction == pytest.approx(1 / 7)
    assert passed.passage_time_horizon == STEPS
    assert passed.passage_time_mean == pytest.approx((10 + 6 * STEPS) / 7)  # none passed after one was stopped
    lost = with_outcome(ds, "failed", ds.status.copy(data=np.arange(8) == np.full((1, 1, 8), 7)))
    refused = first_passages(lost, of="x", when={"above": LEVEL}, max_lost=0.2).squeeze()
    assert np.isnan(refused.passage_time_mean) and np.isnan(refused.passage_time_horizon)
    assert first_passages(lost, of="x", when={"above": LEVEL}, max_lost=0.3).seeds_used == 6


def test_a_run_may_begin_beyond_the_level_and_then_passes_at_the_first_time():
    passed = first_passages(walks(1, 4), of="x", when={"above": -0.5}).squeeze()
    assert passed.passage_time_mean == 0.0 and passed.passed_fraction == 1.0 and not passed.restricted
    assert np.isinf(passed.passage_time_horizon)


def test_it_has_a_direction_of_the_teacher_each():
    passed = first_passages(giant_steps_dataset(), of="subspace_cosine", when={"above": 0.2})
    learned = ANALYSES["directions_learned"](giant_steps_dataset(), threshold=0.2)
    np.testing.assert_array_equal(passed.passed_fraction, learned.learned_fraction)
    assert passed.teacher.values.tolist() == learned.teacher.values.tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"of": "y"}, "not recorded over time"),
        ({"of": "x", "when": {"near": 1.0}}, "when"),
        ({"of": "x", "when": {"below": 0.0, "above": 1.0}}, "when"),
        ({"of": "x", "when": {}}, "when"),
        ({"of": "x", "when": {"above": float("nan")}}, "when"),
    ],
)
def test_what_is_no_passage_is_refused(options, words):
    with pytest.raises(InputError) as refusal:
        first_passages(walks(1, 3), **options)
    assert words in str(refusal.value)


def test_passages_are_counted_as_the_times_are():
    ds = walks(1, 8)
    ds["time"].attrs |= {"long_name": "steps in units of d", "clock": "steps", "scale": "d"}
    found = first_passages(ds, of="x", when={"above": LEVEL})
    for name in ("passage_time_mean", "passage_time_median", "passage_time_horizon"):
        assert "steps in units of d" in found[name].attrs["long_name"]
