"""Datasets of sweeps side by side, along an axis `sweep`: what analyses and figures make of it, and refusals."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib import ANALYSES, FIGURES, InputError
from sweeplib.engine.status import Status
from sweeplib.pictures.report.comparison import compared_figures
from tests.datasets import sweep_dataset
from tests.unit.test_combined import table

NAMES = ["quiet", "noisy"]


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=4)


@pytest.fixture(scope="module")
def parts(ds: xr.Dataset) -> list[xr.Dataset]:
    """A sweep at one value of the noise and of d, and one at the other noise with both d, fewer seeds and rates."""
    return [ds.isel(Delta=[0], d=[0]), ds.isel(Delta=[1], seed=slice(0, 3), gamma_ratio=slice(0, 6))]


@pytest.fixture(scope="module")
def both(parts: list[xr.Dataset]) -> xr.Dataset:
    return sweeplib.combine(*parts, sweep=NAMES)


def test_each_sweep_keeps_its_runs_and_lacks_those_of_the_others(parts: list[xr.Dataset], both: xr.Dataset) -> None:
    for name, part in zip(NAMES, parts, strict=True):
        labels = {dim: part[dim] for dim in ("d", "gamma_ratio", "seed")}
        mine = both.sel(sweep=name, **labels)
        for variable in part.data_vars:
            values = part[variable].isel(Delta=0, drop=True)
            np.testing.assert_array_equal(mine[variable].transpose(*values.dims), values)
        assert int((both.status.sel(sweep=name) != Status.missing).sum()) == int((part.status != Status.missing).sum())
    assert both.status.dtype == np.uint8 and both.status.attrs == parts[0].status.attrs
    assert both.attrs["k"] == 1


def test_what_each_sweep_fixes_lies_along_the_sweeps(both: xr.Dataset) -> None:
    """And what follows from it, such as the learning rates."""
    assert (both.Delta.dims, both.Delta.values.tolist()) == (("sweep",), [0.0, 1.0])
    assert both.gamma.dims == ("sweep", "gamma_ratio")
    assert both.gamma.sel(sweep="noisy").notnull().sum() == 6
    assert (both.d.dtype.kind, both.seed.dtype.kind) == ("i", "i")


@pytest.mark.parametrize("name", ["exit_times", "averages", "time_exponent"])
def test_statistics_are_those_of_each_sweep(name: str, parts: list[xr.Dataset], both: xr.Dataset) -> None:
    whole = ANALYSES[name](both)
    for label, part in zip(NAMES, parts, strict=True):
        alone = ANALYSES[name](part)
        for variable in set(alone.data_vars) - {"seeds_missing"}:
            values = alone[variable].isel(Delta=0, drop=True, missing_dims="ignore")
            labels = {dim: values[dim] for dim in ("d", "gamma_ratio") if dim in values.dims}
            mine = whole[variable].sel(sweep=label, **labels) if "sweep" in whole[variable].dims else whole[variable]
            np.testing.assert_array_equal(mine.transpose(*values.dims), values, variable)


def test_optima_and_scans_are_along_the_rates_alone(ds: xr.Dataset) -> None:
    """Though the learning rates of the sweeps differ, the axis `sweep` is no scan of them."""
    halves = [ds.isel(Delta=[place]) for place in (0, 1)]
    optima = sweeplib.combine(*halves, sweep=NAMES).sweep.optimal_learning_rate()
    assert optima.attrs["along"] == "gamma_ratio"
    for name, half in zip(NAMES, halves, strict=True):
        alone = half.sweep.optimal_learning_rate()
        for variable in ("gamma_opt", "gamma_opt_low", "gamma_opt_theory"):
            mine, values = optima[variable].sel(sweep=name), alone[variable].isel(Delta=0, drop=True)
            np.testing.assert_array_equal(mine.transpose(*values.dims), values, variable)


def test_of_dynamics_and_seeds_each_has_its_own(ds: xr.Dataset) -> None:
    one, other = ds.sel(dynamics=["sgd"]), ds.sel(dynamics=["ode", "sgd_chain"]).isel(seed=[0])
    whole = sweeplib.combine(one, other, sweep=NAMES)
    assert set(whole.dynamics.values) == {"sgd", "ode", "sgd_chain"}
    run = (whole.status != Status.missing).any(["d", "Delta", "gamma_ratio"])
    assert run.sel(sweep="quiet", dynamics="sgd").all() and not run.sel(sweep="quiet", dynamics="ode").any()
    assert run.sel(sweep="noisy", dynamics="ode").values.tolist() == [True, False, False, False]


def test_times_and_variables_are_those_that_all_have(ds: xr.Dataset) -> None:
    """At other times the runs of a sweep would count as lost."""
    shorter = ds.isel(time=slice(0, 9, 2)).drop_vars("end_time")
    whole = sweeplib.combine(ds, shorter, sweep=NAMES)
    np.testing.assert_array_equal(whole.time, shorter.time)
    assert "end_time" not in whole and "risk" in whole
    assert whole.sweep.averages().risk.sel(sweep="quiet").notnull().any()


def test_an_error_that_one_sweep_has_not_recorded_is_unknown(ds: xr.Dataset) -> None:
    error = (0.0 * ds.risk).assign_attrs(ds.risk.attrs | {"error_of": "risk"})
    whole = sweeplib.combine(ds.assign(risk_error=error), ds, sweep=NAMES)
    assert whole.risk_error.sel(sweep="noisy").isnull().all() and whole.risk_error.attrs["error_of"] == "risk"


def test_a_table_and_a_grid_meet_at_equal_parameters(ds: xr.Dataset) -> None:
    whole = sweeplib.combine(table(ds.isel(d=[0])), ds, sweep=NAMES)
    risk = whole.risk.isel(point=np.flatnonzero(whole.d == 300))
    np.testing.assert_array_equal(risk.sel(sweep="quiet"), risk.sel(sweep="noisy"))
    assert whole.risk.isel(point=np.flatnonzero(whole.d == 3000)).sel(sweep="quiet").isnull().all()


@pytest.mark.parametrize(
    ("change", "names", "words"),
    [
        (lambda ds: ds, ["one"], "not a name for each sweep"),
        (lambda ds: ds, ["one", "one"], "not a name for each sweep"),
        (lambda ds: ds.assign_attrs(stop="exit"), NAMES, "sweeps that recorded differently"),
        (lambda ds: ds.assign_coords(time=ds.time + 0.05), NAMES, "no value in common"),
        (lambda ds: ds.assign_coords(sweep="x"), NAMES, "an axis of this name already"),
        (lambda ds: ds.assign_attrs(function="ising"), NAMES, "networks and functions"),
        (lambda ds: ds.isel(d=0, drop=True), NAMES, "not a field of all sweeps"),
        (lambda ds: ds.drop_vars("status"), NAMES, "not the dataset of a sweep"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    ds: xr.Dataset, change: Callable[[xr.Dataset], xr.Dataset], names: list[str], words: str
) -> None:
    with pytest.raises(InputError, match=words) as refused:
        sweeplib.combine(ds, change(ds), sweep=names)
    assert "\n" not in str(refused.value)


def laws(drawing: object, panel: int) -> list[np.ndarray]:
    return [line.get_xydata() for line in drawing.axes[panel].lines if line.get_zorder() == 1]  # type: ignore[attr-defined]


def test_a_figure_draws_all_sweeps_and_no_law_where_nothing_ran(both: xr.Dataset) -> None:
    drawing = both.sweep.figure("line", y="exit_steps", x="gamma")
    assert [axes.get_title() for axes in drawing.axes[:2]] == NAMES
    quiet, noisy = (laws(drawing, panel) for panel in (0, 1))
    rates = both.gamma.sel(sweep="noisy").dropna("gamma_ratio")
    known = [law[np.isfinite(law[:, 1])] for law in (*quiet, *noisy)]
    assert [len(law) for law in known if len(law)] == [8, 6, 6]
    np.testing.assert_allclose(known[-1][:, 0], rates)


def test_one_axis_beside_the_sweeps_makes_these_the_colours(ds: xr.Dataset) -> None:
    whole = sweeplib.combine(ds.isel(Delta=[0], d=[0]), ds.isel(Delta=[1], d=[0]), sweep=NAMES)
    drawing = whole.sweep.figure("line", y="exit_steps", x="gamma")
    assert {text.get_text() for text in drawing.legends[0].get_texts()} >= set(NAMES)


def test_the_ratio_to_the_first_sweep_is_that_of_the_means(ds: xr.Dataset) -> None:
    parts = [ds.isel(Delta=[0], d=[0]), ds.isel(Delta=[1], d=[0])]
    whole = sweeplib.combine(*parts, sweep=NAMES)
    drawing = whole.sweep.figure(
        "ratio",
        y="risk",
        x="gamma_ratio",
        to={"sweep": "quiet"},
        where={"dynamics": "sgd", "sweep": ["quiet", "noisy"]},
    )
    means = [part.risk.sel(dynamics="sgd").isel(time=-1).mean("seed").values.ravel() for part in parts]
    drawn = [line.get_ydata() for line in drawing.axes[1].lines]
    assert any(len(y) == 8 and np.allclose(y, means[1] / means[0]) for y in drawn)


def test_a_figure_that_has_no_room_for_the_sweeps_is_drawn_for_each(ds: xr.Dataset, both: xr.Dataset) -> None:
    """At the values that only some sweeps vary, if all have them; equal entries are drawn once."""
    full = sweeplib.combine(ds, ds.isel(seed=[0]), sweep=NAMES)
    needs = {name: ANALYSES[name](full) for name in ("exit_times", "optimal_learning_rate")}
    asked = {"scan": {"kind": "learning_rate_scan"}, "line": {"y": "exit_steps"}}
    entries = compared_figures([asked, asked], NAMES, full, needs)
    assert list(entries) == ["scan_quiet", "scan_noisy", "line", "ratio_of_exit_steps", "ratio_of_gamma_opt"]
    assert entries["scan_noisy"]["where"] == {"sweep": "noisy"}
    one = compared_figures(
        [{"line": {"y": "exit_steps"}}, {}], NAMES, both, {"exit_times": ANALYSES["exit_times"](both)}
    )
    assert one["line"]["where"] == {"d": 300}
    for name, options in (entries | one).items():
        figure = FIGURES[str(options["kind"])]
        rest = {key: value for key, value in options.items() if key != "kind"}
        figure.check(rest)
        assert name
