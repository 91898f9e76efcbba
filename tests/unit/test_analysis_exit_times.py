"""Exit times over the seeds: the contribution of each kind of run."""

import sys

import numpy as np
import pytest
import xarray as xr
from scipy.stats import CensoredData, ecdf

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.statistics.survival import HALF, fractions_exited, medians, survival_curve
from tests.datasets import sweep_dataset

OK, DIVERGED, FAILED, KILLED, TIMEOUT, MISSING = 1, 2, 3, 4, 5, 0


def one_cell(exits: list[float], ends: list[float], status: list[int], **options: float) -> xr.Dataset:
    """Return the statistics of one cell with these runs."""
    ds = sweep_dataset(ratios=[1.0], d=[300], Delta=[0.0], seeds=len(exits), dynamics=["sgd_chain"])
    shape = ds["exit_steps"].shape
    ds["exit_steps"] = ds["exit_steps"].copy(data=np.reshape(exits, shape))
    ds["end_steps"] = ds["end_steps"].copy(data=np.reshape(ends, shape[:-1]))
    ds["status"] = ds["status"].copy(data=np.reshape(status, shape[:-1]).astype(np.uint8))
    return ANALYSES["exit_times"](ds, **options).squeeze()


@pytest.mark.rest
def test_without_censoring_the_mean_is_the_plain_mean():
    exits = [10.0, 20.0, 40.0, 50.0]
    found = one_cell(exits, [50.0] * 4, [OK] * 4)
    assert found.exit_steps_mean == np.mean(exits)
    assert found.exit_steps_mean_error == pytest.approx(np.std(exits, ddof=1) / 2)
    assert not found.restricted
    assert found.exit_steps_mean.long_name == "mean exit steps"
    assert found.exited_fraction == 1.0


@pytest.mark.rest
def test_censored_runs_restrict_the_mean_to_the_horizon():
    found = one_cell([10.0, 20.0, np.nan, np.nan], [10.0, 20.0, 30.0, 30.0], [OK] * 4)
    assert found.restricted
    assert found.exit_steps_mean.long_name == "restricted mean exit steps"
    assert "units" not in found.exit_steps_mean.attrs, "xarray would write [1] on its plots"
    assert found.exit_steps_horizon == 30.0
    assert found.exit_steps_mean == np.mean([10.0, 20.0, 30.0, 30.0])
    assert found.seeds_censored == 2
    assert found.exited_fraction_low < found.exited_fraction == 0.5 < found.exited_fraction_high


@pytest.mark.rest
def test_runs_without_an_exit_leave_the_mean_and_its_error_open():
    """Up to 3.7 of eight (97.5 % of a Poisson law) may exit at once; their scatter, zero, said that none ever does."""
    found = one_cell([np.nan] * 8, [30.0] * 8, [OK] * 8)
    assert found.exit_steps_mean == found.exit_steps_mean_high == 30.0
    assert found.exit_steps_mean_low == pytest.approx(30.0 * (1.0 + np.log(0.025) / 8.0))
    assert found.exit_steps_mean_error.isnull()


@pytest.mark.rest
def test_the_mean_under_unequal_censoring_is_the_area_under_the_kaplan_meier_curve():
    """The curve by scipy; all observed until 60, of the four at risk one exits at 10, then one of one at 60."""
    exits, ends = np.array([10.0, 60.0]), np.array([30.0, 50.0])
    found = one_cell([*exits, np.nan, np.nan], [*exits, *ends], [OK, OK, OK, TIMEOUT])
    assert found.exit_steps_horizon == 60.0
    curve = ecdf(CensoredData(uncensored=exits, right=ends)).sf
    area = np.sum(np.diff([0.0, *curve.quantiles]) * np.append(1.0, curve.probabilities[:-1]))
    assert found.exit_steps_mean == pytest.approx(area) == 10.0 + 0.75 * 50.0
    assert found.exited_fraction == 1.0
    assert found.restricted


@pytest.mark.parametrize("left", [1, 2, 3])
def test_the_mean_of_runs_that_ended_before_the_first_exit_has_the_interval_of_the_others(left):
    """Of 20 runs 19 time out at once: the exit of the last one had an interval of no width."""
    ended = 20 - left
    exits = [*[np.nan] * ended, *np.linspace(30.0, 50.0, left)]
    found = one_cell(exits, [*[1.0] * ended, *exits[ended:]], [*[TIMEOUT] * ended, *[OK] * left])
    assert found.exit_steps_mean == pytest.approx(np.mean(exits[ended:]))
    for name in ("exit_steps_mean_low", "exit_steps_mean_high", "exit_steps_mean_error"):
        assert bool(found[name].isnull()) == (left < 3), name


def test_diverged_runs_never_exit():
    """Censoring at the divergence would give a median of 20 from three exits."""
    found = one_cell(
        [10.0, 20.0, 30.0, np.nan, np.nan, np.nan, np.nan], [30.0] * 3 + [1.0] * 4, [OK] * 3 + [DIVERGED] * 4
    )
    assert np.isnan(found.exit_steps_median)
    assert found.seeds_diverged == 4
    assert found.exited_fraction == pytest.approx(3 / 7)
    assert found.exit_steps_mean == pytest.approx(np.mean([10, 20, 30, 30, 30, 30, 30]))


@pytest.mark.rest
def test_a_run_that_exited_and_then_diverged_has_exited():
    found = one_cell([10.0, 20.0, 30.0], [30.0, 30.0, 40.0], [OK, OK, DIVERGED])
    assert found.exited_fraction == 1.0
    assert found.exit_steps_mean == 20.0


@pytest.mark.rest
def test_a_run_that_timed_out_is_censored_where_it_came():
    """Dropping the run would give a mean of 20 without a warning."""
    found = one_cell([10.0, 30.0, np.nan, np.nan], [50.0, 50.0, 50.0, 50.0], [OK, OK, TIMEOUT, TIMEOUT])
    assert found.restricted
    assert found.seeds_censored == found.seeds_timeout == 2
    assert found.seeds_used == 4
    assert found.exit_steps_mean == np.mean([10.0, 30.0, 50.0, 50.0])
    assert found.exited_fraction == 0.5
    assert found.exit_steps_median == 30.0


@pytest.mark.rest
def test_a_run_that_exited_and_then_timed_out_has_exited():
    found = one_cell([10.0, 20.0, 30.0], [30.0, 30.0, 40.0], [OK, OK, TIMEOUT])
    assert found.exited_fraction == 1.0
    assert found.exit_steps_mean == 20.0
    assert not found.restricted


LOST = ([10.0, 30.0, np.nan, np.nan, np.nan], [30.0, 30.0, np.nan, np.nan, np.nan], [OK, OK, FAILED, KILLED, MISSING])


def test_where_many_are_lost_statistics_are_refused_and_say_so():
    found = one_cell(*LOST)
    assert found.refused
    assert found.seeds_lost == 2
    assert found.seeds_missing == 1
    assert found.seeds_used == 0
    for name in ("exit_steps_mean", "exit_steps_median", "exit_time_mean", "exited_fraction", "exited_fraction_high"):
        assert np.isnan(found[name]), name


@pytest.mark.rest
def test_what_is_lost_is_left_out_where_one_says_so():
    found = one_cell(*LOST, max_lost=0.5)
    assert not found.refused
    assert found.attrs["max_lost"] == 0.5
    assert found.seeds_used == 2
    assert found.exit_steps_mean == 20.0


@pytest.mark.rest
def test_one_lost_run_of_fifty_is_no_refusal():
    assert not one_cell([10.0] * 49 + [np.nan], [10.0] * 50, [OK] * 49 + [KILLED]).refused
    assert one_cell([10.0] * 48 + [np.nan], [10.0] * 49, [OK] * 48 + [KILLED]).refused


@pytest.mark.slow
@pytest.mark.parametrize("limits", ["equal", "some", "random"])
def test_means_of_runs_that_time_out_are_unbiased(limits):
    """1000 cells of 40 exponential times of mean 1, restricted to the last time seen.

    The mean of min(t, 1) is 1 − 1/e; the mean of the cells is within 4 of its standard errors of that but once in 10⁴,
    the standard error of a cell the scatter of the cells to 9 % (four of its own errors of 2.2 %), and the interval of
    the exited fraction covers 92 to 98 % (four of the errors of .95 ± .007).
    """
    rng = np.random.default_rng(3)
    times = rng.exponential(size=(1000, 40))
    end = {
        "equal": np.ones(times.shape),
        "some": np.where(np.arange(40) < 6, 0.4, 1.0) * np.ones(times.shape),
        "random": np.minimum(rng.exponential(size=times.shape), 1.0),
    }[limits]
    ds = sweep_dataset(ratios=[1.0], d=[300], Delta=np.arange(1000.0), seeds=40, dynamics=["sgd_chain"])
    shape = ds.end_steps.shape
    reached = times <= end
    ds["exit_steps"] = ds.exit_steps.copy(data=np.where(reached, times, np.nan).reshape(ds.exit_steps.shape))
    ds["end_steps"] = ds.end_steps.copy(data=np.where(reached, times, end).reshape(shape))
    ds["status"] = ds.status.copy(data=np.where(reached | (end == 1.0), OK, TIMEOUT).reshape(shape).astype(np.uint8))
    found = ANALYSES["exit_times"](ds).squeeze()
    truth, mean = 1 - np.exp(-1), found.exit_steps_mean
    assert (found.exit_steps_horizon == 1.0).mean() > 0.99
    assert abs(mean.mean() - truth) < 4 * mean.std() / np.sqrt(mean.size)
    assert float(np.sqrt((found.exit_steps_mean_error**2).mean()) / mean.std()) == pytest.approx(1.0, abs=0.09)
    covered = (found.exited_fraction_low <= truth) & (truth <= found.exited_fraction_high)
    assert 0.92 < covered.mean() < 0.98


def test_no_runs_give_nan_not_an_error():
    found = one_cell([np.nan] * 3, [np.nan] * 3, [MISSING] * 3)
    for name in ("exit_steps_mean", "exit_steps_median", "exited_fraction", "exited_fraction_low"):
        assert np.isnan(found[name]), name


def median(exits: np.ndarray, ends: np.ndarray) -> tuple[float, ...]:
    """Return the median of one sample and its interval."""
    exit_, end = np.append(exits, np.full(len(ends), np.nan)), np.append(np.zeros(len(exits)), ends)
    return tuple(found.item() for found in medians(exit_[None], end[None], np.ones((1, len(end)), bool), 0.95))


@pytest.mark.parametrize("runs", [1, 3, 12])
def test_many_cells_at_once_have_the_statistics_of_scipys_curves(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with equal times, runs that are not used, and ends of which some are before the last exit."""
    monkeypatch.setattr("sweeplib.statistics.survival.AT_ONCE", 100)
    rng = np.random.default_rng(0)
    exit_ = rng.choice([1.0, 2.0, 3.0, 4.5, 7.0, 9.0, 9.5], (20, 10, runs))
    end = rng.choice([2.0, 5.0, 10.0, np.inf], exit_.shape)
    exit_ = np.where(exit_ <= end, exit_, np.nan)
    used = rng.random(exit_.shape) > 0.2
    found, (fractions, worth, _) = medians(exit_, end, used, 0.95), fractions_exited(exit_, end, used)
    for cell in np.ndindex(20, 10):
        exits, ends = exit_[cell][used[cell]], end[cell][used[cell]]
        if not np.isfinite(exits).any():
            assert fractions[cell] == 0.0 if len(ends) else np.isnan(fractions[cell])
            assert np.isnan([each[cell] for each in found[:2]]).all()
            assert np.isnan(found[2][cell]) if len(ends) < 6 else found[2][cell] == np.inf
            continue
        times, *curves = survival_curve(exits[np.isfinite(exits)], ends[np.isnan(exits)], 0.95)
        # where no run is left the band goes from 0 to the fraction at which that has the probability .025
        bands = [*curves[:2], np.where(curves[0] > 0.0, curves[2], 1.0 - 0.025 ** (1.0 / worth[cell]))]
        expected = [times[curve <= HALF][0] if (curve <= HALF).any() else np.nan for curve in bands]
        expected[2] = np.inf if np.isnan(expected[2]) else expected[2]
        expected[1:] = expected[1:] if len(exits) > 5 else [np.nan, np.nan]
        np.testing.assert_array_equal([each[cell] for each in found], expected)
        assert fractions[cell] == pytest.approx(1.0 - curves[0][-1])
        if np.isfinite(exits).all() or ends[np.isnan(exits)].min() >= np.nanmax(exits):
            regular = ends[np.isnan(exits)]
            same = len(set(regular[np.isfinite(regular)])) <= 1
            assert not same or worth[cell] == pytest.approx(len(ends))


@pytest.mark.rest
def test_points_are_not_taken_one_by_one():
    """90,000 points took 71 s, now 1.3 s: no function of Python is called once for each point."""

    def calls(points: int) -> int:
        ds = sweep_dataset(ratios=[1.0], d=[300], Delta=np.linspace(0.0, 1.0, points).tolist(), seeds=4)
        made: list[str] = []
        sys.setprofile(lambda frame, event, _: made.append(frame.f_code.co_name) if event == "call" else None)
        try:
            ANALYSES["exit_times"](ds)
        finally:
            sys.setprofile(None)
        return len(made)

    calls(3)  # imports
    assert calls(300) < calls(3) + 100


@pytest.mark.parametrize("runs", [3, 5, 6, 9])
def test_no_end_of_the_median_of_few_runs_is_told_that_does_not_hold(runs: int) -> None:
    """The low end of three runs, of which all may be later than the median, held in .875 of the cases, not in .975."""
    exits = np.random.default_rng(runs).exponential(size=(20_000, runs))
    _, low, high = medians(exits, np.full_like(exits, np.inf), np.ones_like(exits, bool), 0.95)
    assert np.isnan(low).all() == (runs < 6)
    for beyond in (low > np.log(2.0), high < np.log(2.0)):
        assert beyond.mean() < 0.025


@pytest.mark.parametrize(("runs", "ended"), [(6, 3), (6, 4), (8, 5), (12, 8), (20, 19), (64, 60)])
def test_runs_that_ended_before_most_exits_say_nothing_of_the_median(runs: int, ended: int) -> None:
    """Of 6 runs of which 4 ended at the start the low end was the first exit of two, beyond the median in a quarter."""
    exits = np.random.default_rng(runs).exponential(size=(6000, runs))
    end = np.full_like(exits, np.inf)
    end[:, :ended] = 0.01
    _, low, high = medians(np.where(exits <= end, exits, np.nan), end, np.ones_like(exits, bool), 0.95)
    for beyond in (low > np.log(2.0), high < np.log(2.0)):
        assert beyond.mean() < 0.03
    assert np.isfinite(low).mean() > 0.95


def test_median_of_a_published_example():
    """Remission times of 6-mercaptopurine (Freireich 1963; Kalbfleisch and Prentice, table 1.1): median 23 weeks."""
    exits = np.array([6, 6, 6, 7, 10, 13, 16, 22, 23], dtype=float)
    censored = np.array([6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35], dtype=float)
    middle, low, high = median(exits, censored)
    assert middle == 23.0
    assert low == 13.0
    assert high == np.inf


def test_the_median_of_equal_and_of_tied_exits_has_an_interval():
    """Of 64 runs 54 exit at the last of all times, or at the last but one recorded time: no other median is likely."""
    for exits in (np.full(64, 5.0), np.r_[np.full(10, 4.0), np.full(54, 5.0)]):
        assert median(exits, np.array([])) == (5.0, 5.0, 5.0)
    # of five runs all may be on one side of the median
    assert np.isnan(median(np.full(5, 5.0), np.array([]))[1:]).all()


def test_intervals_of_the_median_cover():
    """400 samples of 40 exponential times, a quarter censored: at a coverage of 0.93, below 0.88 once in 10⁴."""
    rng = np.random.default_rng(1)
    times = rng.exponential(size=(400, 40))
    horizon = np.log(4.0)
    covered = 0
    for sample in times:
        _, low, high = median(sample[sample <= horizon], np.full(int((sample > horizon).sum()), horizon))
        covered += low <= np.log(2.0) <= (high if np.isfinite(high) else np.inf)
    assert covered / 400 > 0.88


def test_steps_and_times_agree():
    ds = sweep_dataset(d=[300], Delta=[0.5], seeds=9, dynamics=["sgd_chain"])
    found = ANALYSES["exit_times"](ds)
    time = found.exit_steps_median * found.gamma / 300
    np.testing.assert_allclose(time.squeeze(), found.exit_time_median.squeeze())


def test_thresholds_must_have_been_recorded():
    ds = sweep_dataset(d=[300], Delta=[0.0], seeds=2).drop_vars(["exit_steps", "exit_time"])
    with pytest.raises(InputError, match="thresholds"):
        ANALYSES["exit_times"](ds)


def test_unknown_option_is_refused_with_a_suggestion():
    with pytest.raises(InputError, match="did you mean 'confidence'"):
        ANALYSES["exit_times"](sweep_dataset(d=[300], seeds=2), confidense=0.9)
