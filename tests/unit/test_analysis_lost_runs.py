"""Runs that time out, diverge, fail or are killed: no statistic silently becomes that of the remaining runs."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.analysis.answers.unexited_runs import UnexitedRuns
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.analysis.kit.seed_values import curves_along
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.errors import InputError
from sweeplib.pictures import figures
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.quantities import interval
from sweeplib.pictures.figures.limits_diagram import limits_map
from sweeplib.pictures.figures.risk_curves import risk_bands
from sweeplib.statistics.lost_runs import MOST_LOST
from tests.datasets import sweep_dataset, timed_out, with_outcome
from tests.unit.test_analysis_deviation import scaling_dataset
from tests.unit.test_analysis_limits import runs as limits_runs

SCAN = {"ratios": np.linspace(0.4, 1.6, 13), "d": [3000], "Delta": [0.0], "seeds": 128, "dynamics": ["sgd_chain"]}


def survival(ds: xr.Dataset) -> xr.DataArray:
    """Return the survival curves of the interactive plot."""
    return FIGURES["exit_time_distributions"].declared(ds, {}).labelled(ds, {}).survival


@pytest.fixture(scope="module")
def scan() -> xr.Dataset:
    return sweep_dataset(**SCAN)


def optimum(ds: xr.Dataset) -> xr.Dataset:
    return analysis.optimal_learning_rate(ds).squeeze()


@pytest.mark.rest
def test_runs_that_time_out_do_not_move_the_optimum(scan):
    """Half of the runs are cut off before their exit. Without them the optimum would be 1.60/12, that of fast runs."""
    whole, cut = optimum(scan), optimum(timed_out(scan, float(scan.exit_steps.median())))
    assert 12 * whole.gamma_opt == pytest.approx(1.10, abs=0.05)
    assert np.isnan(cut.gamma_opt)
    assert cut.gammas_censored == 13
    assert analysis.exit_times(timed_out(scan, float(scan.exit_steps.median()))).restricted.all()


def test_learning_rates_whose_runs_time_out_are_left_out_of_the_optimum(scan):
    """At a limit that 1.5 % of all runs exceed, the outer rates lose too many runs."""
    whole, cut = optimum(scan), optimum(timed_out(scan, float(scan.exit_steps.quantile(0.985))))
    assert 0 < cut.gammas_censored == 13 - cut.gammas_used
    assert whole.gamma_opt_low < cut.gamma_opt < whole.gamma_opt_high


@pytest.mark.rest
def test_an_early_time_limit_of_one_run_does_not_restrict_the_others(scan):
    """One run in 128 is cut off at once, at each learning rate: it gives no information and changes no other run."""
    cut = scan.seed == 7
    early = with_outcome(scan, "timeout", cut.broadcast_like(scan.status))
    early["exit_steps"] = early.exit_steps.where(~cut)
    early["end_steps"] = early.end_steps.where(~cut, 1.0)
    others = scan.sel(seed=~cut)
    np.testing.assert_allclose(
        analysis.exit_times(early).exit_steps_mean, analysis.exit_times(others).exit_steps_mean, rtol=1e-9
    )
    assert float(optimum(early).gamma_opt) == pytest.approx(float(optimum(others).gamma_opt), rel=1e-6)


@pytest.mark.parametrize("outcome", ["failed", "killed"])
def test_learning_rates_of_lost_runs_are_left_out_and_counted(scan, outcome):
    steps = scan.exit_steps.isel(threshold=0, drop=True)
    found = optimum(with_outcome(scan, outcome, (steps > steps.median()) & (scan.gamma_ratio > 1.25)))
    assert found.gammas_lost == 4
    assert found.gammas_used == 9
    assert found.attrs["max_lost"] == MOST_LOST


def test_the_gain_does_without_learning_rates_of_which_little_is_known(scan):
    wide = scan.assign(exit_steps=scan.exit_steps / 3, end_steps=scan.end_steps / 3)
    both = xr.concat([scan.assign_coords(p=1), wide.assign_coords(p=4)], "p", coords=["p"], combine_attrs="override")
    found = analysis.overparametrisation_gain(timed_out(both, float(scan.exit_steps.median())))
    assert found.gain.isnull().all()
    assert (found.gammas_censored.sel(p=1) == 13).all()


def test_distributions_are_those_of_all_runs(scan):
    """The curve ends at the fraction left by the time limit, not at zero."""
    steps = float(scan.exit_steps.median())
    where = {"gamma_ratio": 0.8}
    cut = timed_out(scan, steps)
    left = float((scan.exit_steps > steps).sel(**where).mean())
    curve = figures.exit_time_distributions(cut, where=where).axes[0].lines[0].get_ydata()
    assert curve[-1] == pytest.approx(left)
    assert left > 0.1
    assert survival(cut).sel(**where).min() == pytest.approx(left)


def test_no_distribution_is_drawn_where_many_runs_are_lost(scan):
    lost = with_outcome(scan, "killed", (scan.seed < 9).broadcast_like(scan.status))
    drawing = figures.exit_time_distributions(lost, where={"gamma_ratio": 0.8})
    assert not [line for line in drawing.axes[0].lines if line.get_drawstyle() == "steps-post"]
    assert survival(lost).isnull().all()


def test_dimensions_whose_runs_time_out_are_left_out_of_the_sample_complexity():
    ds = sweep_dataset(ratios=[1.0], d=[300, 1000, 3000, 10_000], Delta=[0.0], seeds=64, dynamics=["sgd_chain"])
    slow = ds.exit_steps.sel(d=10_000).median()
    found = analysis.sample_complexity(timed_out(ds, float(slow)), resamples=50).squeeze()
    assert found.steps_over_d.isnull().values.tolist() == [False, False, False, True]
    assert found.seeds_censored.values.tolist()[-1] == 32
    lost = with_outcome(ds, "failed", (ds.seed < 3).broadcast_like(ds.status) & (ds.d == 300))
    found = analysis.sample_complexity(lost, resamples=50).squeeze()
    assert found.steps_over_d.isnull().values.tolist() == [True, False, False, False]
    assert found.seeds_lost.values.tolist() == [3, 0, 0, 0]


@pytest.mark.rest
def test_exits_agree_in_law_whatever_the_time_limits():
    """Exits of one distribution, the chain's cut off at the median: without the cut runs p-values would be 1e-10.

    2·64 runs, 40 scans of 8 rates: fewer than 5 of the 320 p-values are below .001, except once in 10⁵.
    """
    ds = sweep_dataset(ratios=np.linspace(0.4, 1.2, 8), d=[3000], Delta=np.zeros(40), seeds=128, dynamics=["sgd_chain"])
    chain = timed_out(ds, float(ds.exit_steps.median()))
    ds = xr.concat([chain, ds.assign_coords(dynamics=["sgd"])], "dynamics", combine_attrs="override")
    pvalue = analysis.law_agreement(ds, reference="sgd_chain").exit_steps_ks_pvalue
    assert (pvalue < 1e-3).sum() < 5
    lost = with_outcome(ds, "killed", (ds.seed < 4).broadcast_like(ds.status) & (ds.dynamics == "sgd"))
    found = analysis.law_agreement(lost, reference="sgd_chain")
    assert found.exit_steps_ks_pvalue.isnull().all()
    assert found.risk_ks_pvalue.isnull().all()
    assert (found.seeds_lost >= 4).all()


def stopped(ds: xr.Dataset, outcome: str, fraction: float) -> xr.Dataset:
    """Return the dataset without values after half time for the fraction of stochastic runs of largest final risk."""
    last = ds.risk.isel(time=-1)
    gone = (last > last.quantile(1 - fraction, "seed")) & ds.dynamics.isin(["sgd", "sgd_chain"])
    late = ds.time > ds.time.mean()
    keep = ~gone if outcome == "failed" else ~(gone & late)
    ds = with_outcome(ds, outcome, gone.reset_coords(drop=True))
    changed = {name: ds[name].where(keep) for name in ("risk", "student_norm") if name in ds}
    return ds.assign({name: values.transpose(*ds[name].dims) for name, values in changed.items()})


OUTCOMES = ["timeout", "diverged", "failed"]


@pytest.mark.rest
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_floor_of_runs_that_are_left_is_no_floor(outcome):
    ds = sweep_dataset(seeds=20, d=[300], Delta=[1.0], dynamics=["sgd_chain"])
    found = analysis.risk_floor(stopped(ds, outcome, 0.2))
    assert found.risk_floor.isnull().all()
    assert (found.seeds_lost == 4).all()
    assert analysis.risk_floor(stopped(ds, outcome, 0.2), max_lost=0.2).risk_floor.notnull().all()


@pytest.mark.rest
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_deviations_of_runs_that_are_left_are_no_deviations(outcome):
    """Before runs are lost the mean is that of all runs; the largest deviation of a run needs all its times."""
    ds = scaling_dataset({"gamma": 0.5, "d": -0.5}, seeds=20)
    whole, found = analysis.deviation(ds), analysis.deviation(stopped(ds, outcome, 0.2))
    expected = [False, True] if outcome != "failed" else [True, True]
    assert (found.risk_deviation.isnull() == xr.DataArray(expected, dims="time")).all()
    if outcome != "failed":
        np.testing.assert_array_equal(found.risk_deviation.isel(time=0), whole.risk_deviation.isel(time=0))
    assert found.risk_sup_deviation.isnull().all()
    assert (found.seeds_lost == 4).all()
    assert (found.seeds_paired == 16).all()
    assert analysis.deviation_scaling(stopped(ds, outcome, 0.2), resamples=50).risk_exponent.isnull().all()


def test_a_run_that_diverges_later_counts_until_then():
    ds = scaling_dataset({"gamma": 0.5, "d": -0.5}, seeds=20)
    later = with_outcome(ds, "diverged", ((ds.seed < 9) & (ds.dynamics == "sgd")).broadcast_like(ds.status))
    np.testing.assert_array_equal(
        analysis.deviation(later).risk_sup_deviation, analysis.deviation(ds).risk_sup_deviation
    )


@pytest.mark.rest
@pytest.mark.parametrize(("outcome", "ends"), [("diverged", True), ("timeout", False)])
def test_a_mean_does_not_come_back_from_a_run_that_diverged(outcome, ends):
    """One run of 64, fewer than may be lost: its risk overflows at the middle time, and it has no value later."""
    ds = scaling_dataset({"gamma": 0.5, "d": -0.5}, seeds=64)
    ds = xr.concat([ds.assign_coords(time=ds.time + shift) for shift in (0.0, 10.0)], "time", data_vars="minimal")
    gone = (ds.seed == 5) & (ds.dynamics == "sgd")
    middle, late = ds.time == ds.time[1], ds.time > ds.time[1]
    risk = ds.risk.where(~(gone & middle), np.inf if ends else 0.0).where(~(gone & late))
    ds = with_outcome(ds, outcome, gone.broadcast_like(ds.status)).assign(risk=risk.transpose(*ds.risk.dims))
    where = dict.fromkeys(dim for dim in ds.risk.dims if dim not in ("time", "dynamics"))
    known = [True, not ends, not ends, not ends]
    for mean in (analysis.averages(ds).risk, analysis.deviation(ds).risk_deviation):
        found = mean.sel(dynamics="sgd")
        others = [dim for dim in found.dims if dim in where]
        assert np.isfinite(found).all(others).values.tolist() == known
        assert np.isfinite(found).any(others).values.tolist() == known
    assert np.isfinite(analysis.averages(ds).risk.sel(dynamics="ode")).all()


def test_runs_without_an_exit_are_counted_where_the_question_lets_more_be_lost() -> None:
    """It said "0 of 0" beside the answer of the other 60."""
    ds = sweep_dataset(ratios=[1.0], d=[300], Delta=[0.0], seeds=64, dynamics=["sgd_chain"])
    ds = with_outcome(ds, "failed", (ds.seed < 4).broadcast_like(ds.status))
    place = dict.fromkeys(ds.exit_steps.isel(seed=0).dims, 0)
    assert UnexitedRuns(ds, 0.2).why(place).startswith("0 of 60")


def test_a_point_with_an_infinite_value_has_no_mean_but_a_median() -> None:
    """One run of 64 is lost, fewer than may be: curves went through the mean of the others, averages were infinite."""
    ds = sweep_dataset(ratios=np.linspace(0.2, 0.7, 6), d=[300], Delta=[0.0], seeds=64, dynamics=["sgd"], derived=False)
    ds = ds.assign(risk=ds.risk.where((ds.seed != 5) | (ds.gamma != ds.gamma[2]), np.inf))
    known = [True, True, False, True, True, True]
    mean = analysis.averages(ds).isel(time=-1).squeeze()
    for name in ("risk", "risk_low", "risk_error"):
        assert mean[name].notnull().values.tolist() == known
    assert curves_along(ds, "risk").values.notnull().any("seed").squeeze().values.tolist() == known
    assert np.isfinite(analysis.averages(ds, statistic="median").risk).all()


@pytest.mark.filterwarnings("error")
def test_infinite_values_are_counted_by_fractions_and_quantiles_however_many() -> None:
    """From 2 % on they counted as lost: no statistic had a value. The ends of two infinite ones were subtracted."""
    ds = sweep_dataset(ratios=[0.2], d=[300], Delta=[0.0], seeds=64, dynamics=["sgd"], derived=False)
    ds = ds.assign(risk=ds.risk.where(ds.seed >= 8, np.inf))
    last = {
        name: analysis.averages(ds, statistic=statistic).isel(time=-1).squeeze()
        for name, statistic in {"above": {"above": 1e9}, "median": "median", "most": {"quantile": 0.97}}.items()
    }
    assert last["above"].risk == 8 / 64 and np.isfinite(last["median"].risk) and np.isinf(last["most"].risk)
    bars = interval(last["most"].expand_dims("point"), "risk")
    assert bars is not None and not np.isfinite(bars).any()


@pytest.mark.rest
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_limits_are_undecided_where_runs_are_lost(outcome):
    ds = limits_runs(0.0, 0.0, 0.01)
    found = analysis.limits(stopped(ds, outcome, 0.1))
    assert found.limit == 0
    assert (found.seeds_lost == 7).all()
    assert analysis.limits(ds).limit == 1


@pytest.mark.rest
def test_a_limit_that_lost_runs_leave_undecided_is_drawn_open():
    ds = limits_runs(0.0, 0.0, 0.01)
    points = [stopped(ds, "timeout", 0.1), ds, ds, ds]
    grid = xr.concat(
        [xr.concat(points[place : place + 2], "gamma", combine_attrs="override") for place in (0, 2)], "d",
        combine_attrs="override",
    ).assign_coords(gamma=[0.1, 0.2], d=[100, 200], p=1)  # fmt: skip
    drawing = figures.limits_diagram(grid)
    [axes], [legend] = drawing.axes, drawing.legends
    [open_] = [line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    np.testing.assert_allclose([*open_.get_xdata(), *open_.get_ydata()], [0.1, 100])
    reasons = [text.get_text() for text in legend.get_texts() if text.get_text().startswith("undecided")]
    assert reasons == ["undecided: runs were lost"]
    assert len(axes.patches) == 4, "a cell around each point"
    assert limits_map(grid, {"limits": analysis.limits(grid)}).limit.notnull().all()


def exponents_and_constants():
    """Return two runs at each of two d, γ0 and δ, with γ = γ0 d^-δ."""
    ds = limits_runs(0.0, 0.0, 0.01)
    for name, values in (("gamma0", [0.5, 2.0]), ("delta", [0.0, 0.5]), ("d", [100, 200])):
        ds = xr.concat([ds, ds], name, combine_attrs="override").assign_coords({name: values})
    return ds.assign_coords(gamma=ds.gamma0 * ds.d ** (-1.0 * ds.delta), p=1)


def test_a_limits_diagram_of_several_axes_is_along_the_one_that_is_not_fixed():
    ds = exponents_and_constants()
    found = {"limits": analysis.limits(ds)}
    with pytest.raises(
        InputError, match=r"where: several axes vary the learning rate; .*gamma0.*; expected a value for all but one"
    ):
        figures.limits_diagram(ds, found)
    axes = figures.limits_diagram(ds, found, where={"delta": 0.5}).axes[0]
    [points] = [line for line in axes.lines if len(line.get_xdata()) == 4]
    np.testing.assert_allclose(sorted(points.get_xdata()), sorted((ds.gamma.sel(delta=0.5)).values.ravel()))
    mapped = limits_map(with_constants(ds), {name: with_constants(one) for name, one in found.items()})
    assert mapped.ratio.dims == ("gamma0",), "γ/p depends on d and δ too"
    np.testing.assert_array_equal(mapped.ratio, ds.gamma0)


@pytest.mark.rest
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_regimes_are_told_from_dimensions_without_lost_runs(outcome):
    """Without the 3 of 16 runs with the most noise, the weight of the noise would be underestimated."""
    ds = regime_dataset([-0.25], (0.0,))
    found = analysis.regimes(stopped(ds, outcome, 0.2).where(ds.d > 300, ds)).squeeze()
    assert found.noise_weight.isnull().values.tolist() == [False] * 2 + [True] * 4
    assert found.seeds_lost.values.tolist() == [0] * 2 + [3] * 4
    assert found.noise_weight_d_high == 200


@pytest.mark.rest
@pytest.mark.parametrize("figure", ["risk_curves", "risk_fans"])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_curves_end_where_runs_are_lost(figure, outcome):
    ds = sweep_dataset(seeds=20, d=[300], Delta=[1.0], dynamics=["sgd_chain"])
    drawing = getattr(figures, figure)(stopped(ds, outcome, 0.2), where={"gamma_ratio": 0.3})
    widths = [line.get_linewidth() for line in drawing.axes[0].lines]
    median = [line.get_ydata() for line, width in zip(drawing.axes[0].lines, widths, strict=True) if width > 1.0]
    ends = 0 if outcome == "failed" else int((ds.time <= ds.time.mean()).sum())
    assert all(np.isfinite(curve).sum() == ends for curve in median)
    bands = risk_bands(stopped(ds, outcome, 0.2), {})
    assert (bands.risk.notnull().sum("time") == ends).all()
    assert (bands.seeds_lost.isel(time=-1) == 4).all()
