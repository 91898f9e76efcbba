"""The figures of the published pictures show the measurements, and theory where it applies."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.analysis import ANALYSES
from sweeplib.engine.base.arrays import geometric
from sweeplib.engine.files.published import Reference
from sweeplib.errors import InputError
from sweeplib.networks.theory import asymptotic_risk, learnable_range, optimal_learning_rate
from sweeplib.pictures import figures
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.references import References, _look
from sweeplib.pictures.figures.kit.style import ARROWS
from sweeplib.pictures.report.tables import optima_table
from tests.datasets import sweep_dataset, with_outcome


@pytest.fixture(scope="module")
def widths():
    """Return two widths, the wider one four times as fast."""
    narrow, wide = (sweep_dataset(seeds=32, dynamics=["ode", "sgd_chain"], random_seed=number) for number in (1, 2))
    wide["exit_steps"], wide["end_steps"] = wide.exit_steps / 4, wide.end_steps / 4
    ds = xr.concat([narrow.assign_coords(p=1), wide.assign_coords(p=8)], "p", coords=["p"], combine_attrs="override")
    ds.p.attrs = {"long_name": "student width", "symbol": "p", "units": "1"}
    return ds


@pytest.fixture(scope="module")
def ds():
    return sweep_dataset(seeds=16)


def lines(axes, count):
    """Return the lines with that many points."""
    return [line for line in axes.lines if len(line.get_xdata()) == count]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_a_function_of_the_package(name, ds):
    assert getattr(figures, name) is FIGURES[name]


def test_values_of_an_axis_may_be_chosen(ds):
    drawn = {"dynamics", "seed", "time", "gamma_ratio", "threshold"}
    split = arranged(ds, drawn, {"d": [3000, 300], "Delta": 1.0})
    assert split.selected(ds).d.values.tolist() == [3000, 300]
    assert (split.hue, split.titled) == ("d", ("Delta",))
    with pytest.raises(InputError, match=r"where\.d: not a value of the axis d; got 400; .*did you mean 300"):
        arranged(ds, drawn, {"d": [300, 400]})


def test_a_figure_says_at_which_values_it_stands(ds):
    drawing = figures.risk_curves(ds, where={"d": 3000})
    assert drawing.get_suptitle() == r"at $d$ = 3000, $\gamma_{\mathrm{ratio}}$ = 1.1"
    assert figures.risk_curves(ds.isel(d=[0], gamma_ratio=[2])).get_suptitle() == ""


def test_drawn_axes_may_be_chosen_from(ds):
    drawing = figures.exit_time_scaling(ds, where={"dynamics": "sgd_chain", "Delta": 0.0, "gamma_ratio": 0.9})
    assert len(drawing.axes[0].containers) == 1


def test_optimum_has_a_panel_a_dimension_and_ratios_below(widths):
    drawing = figures.optimal_learning_rate(widths)
    assert len(drawing.axes) == 4
    assert [axes.get_title() for axes in drawing.axes[:2]] == ["$d$ = 300", "$d$ = 3000"]
    limit = lines(drawing.axes[1], 200)[0]
    np.testing.assert_allclose(limit.get_ydata(), optimal_learning_rate(limit.get_xdata(), 0.0))
    ratio = lines(drawing.axes[3], 200)[0].get_ydata()
    assert (ratio[np.isfinite(ratio)] > 1.0).all()  # the noise of SGD moves the optimum up


def test_theory_is_drawn_for_the_colours_for_which_it_holds(widths):
    """The floor of the risk is that of one unit."""
    [axes] = FIGURES["risk_floor"](widths, where={"Delta": 1.0, "d": 300}, hue="p").axes[:1]
    [floor] = lines(axes, 200)
    np.testing.assert_allclose(floor.get_ydata(), asymptotic_risk(floor.get_xdata(), 1.0))
    assert floor.get_color() == axes.containers[0].lines[0].get_color()


def test_optima_of_the_ode_are_crosses_or_said_to_be_unknown(widths):
    """A dynamics without noise may have a single run at each learning rate, which gives no mean."""

    def legend(ds):
        drawing = figures.optimal_learning_rate(ds)
        return {text.get_text() for text in drawing.legends[0].get_texts()}, drawing.axes[0]

    both, axes = legend(widths)
    assert "ODE" in both and not any("no optimum" in text for text in both)
    assert any(box.lines[0].get_marker() == "x" for box in axes.containers)
    single = with_outcome(widths, "missing", (widths.seed > 0) & (widths.dynamics == "ode"))
    alone, axes = legend(single)
    assert "no optimum: ODE" in alone and "ODE" not in alone
    table = optima_table(ANALYSES["optimal_learning_rate"](single))
    assert "ODE" in table.headings and table.unknown


def test_optimum_without_theory_is_one_row(widths):
    assert len(figures.optimal_learning_rate(widths.assign_coords(activation="erf")).axes) == 2


def test_gain_needs_an_axis_of_widths(widths):
    zipped = widths.isel(p=0, drop=True).assign_coords(p=("d", [1, 4]))
    with pytest.raises(InputError, match="p: the widths have no axis of their own"):
        figures.overparametrisation_gain(zipped)


def test_gain_ends_at_the_limit_of_infinite_width(widths):
    marks = [line for line in figures.overparametrisation_gain(widths).axes[0].lines if line.get_linewidth() == 1.8]
    assert [mark.get_ydata()[0] for mark in marks] == [6.0, 13 / 3]


def test_distributions_fall_from_one_to_the_fraction_that_never_exits(ds):
    drawing = figures.exit_time_distributions(ds, where={"Delta": 0.0, "gamma_ratio": 0.9, "d": 3000})
    curve = drawing.axes[0].lines[0].get_ydata()
    assert len(curve) == 1 + ds.sizes["seed"]
    assert (drawing.axes[0].lines[0].get_xdata()[0], curve[0]) == (0.0, 1.0)
    assert (np.diff(curve) < 0.0).all()
    laws = lines(drawing.axes[0], 200)
    assert len(laws) == 2
    quenched, corrected = (law.get_ydata() for law in laws)
    assert (corrected <= quenched + 1e-12).all()  # noise only makes exits earlier


def out_of_time(ds, dynamics):
    """Return a dataset in which all runs of a dynamics were ended by their time limit at t = 0.1, before any exit."""
    limited, rest = ds.copy(deep=True), ds.dynamics != dynamics
    for quantity in ("steps", "time"):
        end = 0.1 * (ds.gamma * 0 + 1 if quantity == "time" else ds.p * ds.d / ds.gamma)
        limited[f"exit_{quantity}"] = ds[f"exit_{quantity}"].where(rest)
        limited[f"end_{quantity}"] = ds[f"end_{quantity}"].where(rest, end)
    limited["status"] = (
        ds.status.where(rest | (ds.status == 0), 5).astype(ds.status.dtype).assign_attrs(ds.status.attrs)
    )
    return limited


def test_distributions_show_runs_without_an_exit_to_their_end(ds):
    where = {"Delta": 0.0, "gamma_ratio": 0.9, "d": 3000}
    limited = out_of_time(ds, "sgd_chain")
    drawing = figures.exit_time_distributions(limited, where=where)
    flat = [line for line in drawing.axes[0].lines if list(line.get_ydata()) == [1.0, 1.0]]
    assert [list(line.get_xdata()) for line in flat] == [[0.0, pytest.approx(0.1)]]
    [strokes] = [line for line in drawing.axes[0].lines if line.get_marker() == "|" and len(line.get_xdata())]
    np.testing.assert_allclose(strokes.get_xydata(), [[0.1, 1.0]])
    listed = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert "end of a run\nthat did not exit" in listed
    curves = (
        FIGURES["exit_time_distributions"]
        .declared(limited, {})
        .data(limited, {})
        .sel(dynamics="sgd_chain", d=3000, Delta=0.0)
    )
    assert (curves.survival.isel(rank=[0, 1]) == 1.0).all() and curves.survival.isel(rank=slice(2, None)).isnull().all()
    np.testing.assert_allclose(curves.passed.isel(rank=1), 0.1)


def test_distributions_of_diverged_runs_never_fall(ds):
    where = {"Delta": 0.0, "gamma_ratio": 0.9, "d": 3000, "dynamics": ["sgd_chain", "ode"]}
    lost = out_of_time(ds, "sgd_chain")
    lost["status"] = lost.status.where(lost.status != 5, 2).astype(ds.status.dtype)
    axes = figures.exit_time_distributions(lost, where=where).axes[0]
    exits = ds.exit_time.sel(dynamics="ode", Delta=0.0, d=3000).sel(gamma_ratio=0.9, method="nearest")
    last = float(exits.max())
    [flat] = [line for line in axes.lines if len(line.get_ydata()) > 1 and set(line.get_ydata()) == {1.0}]
    assert flat.get_xdata()[-1] == pytest.approx(last)


def test_fractions_of_runs_out_of_time_are_lower_bounds(ds):
    for data, number in ((ds, 0), (out_of_time(ds, "sgd_chain"), ds.sizes["gamma_ratio"])):
        drawing = figures.exited_fraction(data, where={"Delta": 0.0, "d": 3000})
        bounds = [line for line in drawing.axes[0].lines if line.get_marker() == ARROWS["above"]]
        assert sum(int(np.isfinite(np.asarray(line.get_ydata(), float)).sum()) for line in bounds) == number
        listed = [text.get_text() for legend in drawing.legends for text in legend.get_texts()]
        assert ("lower bound: runs were out of time" in listed) is bool(number)


def test_an_axis_with_marked_bounds_is_that_of_plain_means(ds):
    """The dataset calls its means restricted; in these figures the bounds, drawn apart, alone are."""
    exits = analysis.exit_times(out_of_time(ds, "sgd_chain"))
    assert exits.exit_steps_mean.long_name == "restricted mean exit steps"
    drawing = figures.learning_rate_scan(ds, {"exit_times": exits}, where={"d": 3000})
    assert drawing.axes[0].get_ylabel().startswith("mean exit steps")


def test_an_analysis_under_another_name_is_not_computed_again_in_silence(ds):
    with pytest.raises(InputError, match="a mapping of their names"):
        figures.learning_rate_scan(ds, {"exits": analysis.exit_times(ds)}, where={"d": 3000})


def test_the_legend_of_distributions_shows_dashes_twice(ds):
    [legend] = figures.exit_time_distributions(ds, where={"Delta": 0.0, "gamma_ratio": 0.9, "d": 3000}).legends
    styles = [(line, dash) for line in legend.get_lines() if (dash := line._unscaled_dash_pattern[1])]
    assert len({tuple(dash) for _, dash in styles}) > 2
    for line, dash in styles:
        length = np.ptp(line.get_xdata())  # in points
        assert length > (2 * sum(dash) - dash[-1]) * line.get_linewidth(), dash


def test_distributions_of_other_problems_have_no_law(ds):
    axes = figures.exit_time_distributions(ds.assign_coords(activation="erf"), where={"Delta": 0.0, "d": 300}).axes[0]
    assert not lines(axes, 200)


def test_exit_times_against_d_leave_out_censored_means(ds):
    cut = ds.copy(deep=True)
    cut["exit_time"] = cut.exit_time.where((cut.seed != 3) | (cut.d != 300))
    cut["exit_steps"] = cut.exit_steps.where(cut.exit_time.notnull())
    axes = figures.exit_time_scaling(cut, where={"Delta": 0.0, "gamma_ratio": 0.9}).axes[0]
    assert {tuple(container.lines[0].get_xdata()) for container in axes.containers} == {(3000,)}


@pytest.mark.parametrize(("factor", "below"), [(1.0, False), (1e-9, True)])
def test_the_axis_of_exit_times_begins_at_zero_unless_that_cuts_a_marker(ds, factor, below):
    exits = ANALYSES["exit_times"](ds)
    exits["exit_time_mean"] = (exits.exit_time_mean * xr.where(ds.d == 300, factor, 1.0)).assign_attrs(
        exits.exit_time_mean.attrs
    )
    drawing = figures.exit_time_scaling(ds, {"exit_times": exits}, where={"Delta": 0.0, "gamma_ratio": 0.9})
    bottom = float(drawing.axes[0].get_ylim()[0])
    assert bottom < 0.0 if below else bottom == 0.0


def test_exit_times_against_one_dimension_are_refused(ds):
    with pytest.raises(InputError, match="the input dimension does not vary; expected an axis d in `grid`"):
        figures.exit_time_scaling(ds.isel(d=0))


def test_floor_is_drawn_over_its_formula(ds):
    drawing = figures.risk_floor(ds, where={"Delta": 1.0})
    curve = lines(drawing.axes[0], 200)[0]
    np.testing.assert_allclose(curve.get_ydata(), asymptotic_risk(curve.get_xdata(), 1.0))
    assert [axes.get_yscale() for axes in drawing.axes] == ["log", "linear"]  # of floors, and of ratios near 1


def test_fans_compare_all_stochastic_dynamics_with_the_first(ds):
    where = {"Delta": 0.0, "d": 300, "gamma_ratio": 0.3}
    first, second = figures.risk_fans(ds, where=where, runs=3).axes
    dotted = [[line for line in axes.lines if line.get_linewidth() == 0.9] for axes in (first, second)]
    assert [len(found) for found in dotted] == [0, 5]
    median = ds.risk.sel(dynamics="sgd", **where).median("seed")
    np.testing.assert_allclose(dotted[1][2].get_ydata(), median)


def test_fans_have_panels_for_each_of_several_points(ds):
    where = {"Delta": 0.0, "d": [3000, 300], "gamma_ratio": 0.3}
    axes = figures.risk_fans(ds.sel(dynamics=["sgd_chain", "ode"]), where=where).axes
    assert [each.get_title() for each in axes] == [f"SGD (overlap chain)\n$d$ = {d}" for d in (3000, 300)]
    for each, d in zip(axes, (3000, 300), strict=True):
        [median] = [line for line in each.lines if line.get_linewidth() == 1.6]
        expected = ds.risk.sel(dynamics="sgd_chain", d=d, Delta=0.0, gamma_ratio=0.3).median("seed")
        np.testing.assert_allclose(median.get_ydata(), expected)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("risk_fans", {"d": [300, 3000], "Delta": [0.0, 1.0]}),
        ("risk_curves", {"d": [300, 3000], "Delta": [0.0, 1.0], "gamma_ratio": [0.3, 0.9]}),
    ],
)
def test_several_values_that_are_not_drawn_are_refused(ds, name, where):
    with pytest.raises(InputError, match=r"where: no room for several values; .*expected one value for each"):
        FIGURES[name](ds, where=where)


def test_fans_of_the_ode_are_refused(ds):
    with pytest.raises(InputError, match="no stochastic dynamics was run"):
        figures.risk_fans(ds.sel(dynamics=["ode"]))


def test_fractions_are_in_units_of_the_optimum_with_the_end_of_theory(ds):
    axes = figures.exited_fraction(ds, where={"Delta": 1.0, "d": 300}).axes[0]
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_xdata(), float), ds.gamma_ratio)
    assert learnable_range(1.0, 1.0) / optimal_learning_rate(1.0, 1.0) == 2.0  # beyond the scan: no tick
    assert not lines(axes, 2)


def test_fractions_of_zero_and_one_are_drawn_at_their_value_beside_each_other():
    """All runs exit, of SGD and the ODE at both dimensions: the points of the ODE are larger, those of d sideways."""
    ds = sweep_dataset(seeds=16)
    ds["exit_time"] = xr.where(ds.exit_time.isnull(), 1.0, ds.exit_time, keep_attrs=True)
    ds["exit_steps"] = xr.where(ds.exit_steps.isnull(), 1.0, ds.exit_steps, keep_attrs=True)
    axes = figures.exited_fraction(ds.sel(dynamics=["sgd_chain", "ode"]), where={"Delta": 1.0}).axes[0]
    drawn = [container.lines[0] for container in axes.containers]
    assert len(drawn) == 4
    assert all(set(np.asarray(line.get_ydata())) == {1.0} for line in drawn)
    chain, ode, other, _ = drawn
    assert ode.get_marker() == "x" and ode.get_markersize() > 1.4 * chain.get_markersize()
    assert (np.asarray(other.get_xdata()) > np.asarray(chain.get_xdata())).all()


@pytest.mark.parametrize("name", ["exited_fraction", "risk_floor"])
@pytest.mark.parametrize(
    ("rates", "scale"), [(np.geomspace(0.02, 0.1, 8), "log"), (np.linspace(0.02, 0.1, 8), "linear")]
)
def test_learning_rates_are_on_the_scale_on_which_they_are_spaced(name, rates, scale):
    """The relu has no theory, so that the axis is γ itself."""
    ds = sweep_dataset(seeds=4).assign_coords(activation="relu")
    ds["gamma"] = ds.gamma.copy(data=np.broadcast_to(rates, ds.gamma.shape))
    drawing = FIGURES[name](ds, where={"Delta": 1.0})
    assert {axes.get_xscale() for axes in drawing.axes} == {scale}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (np.geomspace(0.1, 100, 7), True),
        ([0.0, 1.0, 10.0, 100.0], True),
        (np.linspace(0, 12, 61), False),
        ([0, 1], False),
    ],
)
def test_geometric_times_have_a_logarithmic_axis(times, expected):
    assert geometric(np.asarray(times, float)) is expected


def test_crosses_lie_above_floors_of_equal_height(ds):
    lines = [box.lines[0] for box in figures.risk_floor(ds, where={"d": 300}).axes[0].containers]
    crosses, dots = ([line for line in lines if (line.get_marker() == "x") is cross] for cross in (True, False))
    assert min(line.get_zorder() for line in crosses) > max(line.get_zorder() for line in dots)
    assert min(line.get_markersize() for line in crosses) > max(line.get_markersize() for line in dots)


def test_a_published_curve_is_drawn_along_x():
    """Rows in another order were joined in that order, a zigzag."""
    file = Reference(name="file", source="", columns={"x": (1.0, 3.0, 2.0), "y": (10.0, 30.0, 20.0)}, look="curve")
    axes = mpl.figure.Figure().subplots()
    References((file,), "x", "y").draw(axes, xr.Dataset())
    assert axes.containers[0].lines[0].get_xdata().tolist() == [1.0, 2.0, 3.0]


def test_eight_published_files_are_told_apart():
    """The fifth had the look of the first, in the legend too."""
    for look, number in (("curve", "linestyle"), ("points", "marker")):
        files = [Reference(name=f"{n}", source=f"{n}", columns={"x": (1.0,), "y": (1.0,)}, look=look) for n in range(8)]
        assert len({_look(file, place)[number] for place, file in enumerate(files)}) == 8
