"""The figures for any axis: line, ratio, map, distribution, trajectories; their quantities, choices and refusals."""

import re

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.engine.base.arrays import logarithmic
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.figure import requested
from sweeplib.pictures.figures.kit.facets import Facets
from sweeplib.pictures.figures.kit.labels import value_label
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.quantities import quantity
from sweeplib.pictures.figures.kit.scales import edges_of, logarithmic_time
from sweeplib.pictures.figures.kit.style import ARROWS, UNKNOWN, save, styled
from sweeplib.pictures.figures.ratio import ratios
from sweeplib.pictures.report.plots import interactive_plot
from tests.datasets import giant_steps_dataset, sweep_dataset, with_outcome
from tests.tiers import slow_but

line, ratio, heat, spread, paths = (FIGURES[n] for n in ("line", "ratio", "map", "distribution", "trajectories"))
ONE = {"Delta": 1.0, "d": 3000, "dynamics": "sgd_chain"}


@pytest.fixture(scope="module")
def ds():
    return sweep_dataset(seeds=12)


@pytest.fixture(scope="module")
def analyses(ds):
    return {name: ANALYSES[name](ds) for name in ("averages", "exit_times", "optimal_learning_rate")}


def test_a_list_of_one_value_is_no_axis_to_draw_against_unless_it_is_asked_for(ds, analyses):
    """By default the longest axis is drawn, which was that of the ratio with one value too."""
    at, y = ds.gamma_ratio.values[2].item(), "exit_steps"
    one, listed = (line(ds, analyses, y=y, where={"gamma_ratio": chosen}) for chosen in (at, [at]))
    assert one.axes[0].get_xlabel() == listed.axes[0].get_xlabel()
    assert [drawn.tolist() for drawn in points(one.axes[0])] == [drawn.tolist() for drawn in points(listed.axes[0])]
    asked = line(ds, analyses, y=y, x="gamma_ratio", where={"gamma_ratio": [at]})
    assert {len(drawn) for drawn in points(asked.axes[0])} == {1}
    assert asked.axes[0].get_xlabel() != one.axes[0].get_xlabel()


def points(axes):
    return [container.lines[0].get_xydata() for container in axes.containers]


def bars(axes):
    """Return the lower and upper ends of the error bars of each curve, (curves, points, 2)."""
    return [np.array([part[:, 1] for part in box.lines[2][0].get_segments()]) for box in axes.containers]


def test_an_infinite_end_of_an_interval_is_a_bar_to_the_edge(ds, analyses):
    """It was drawn as no bar at all: the median of few exits looked certain where it is least so."""
    exits = analyses["exit_times"].copy(deep=True)
    exits["exit_steps_median_high"][:] = np.inf
    where, y = ONE, "exit_times.exit_steps_median"
    versions = analyses["exit_times"], exits
    before, after = (line(ds, {"exit_times": each}, y=y, where=where).axes[0] for each in versions)
    [known] = points(after)
    assert [tuple(arrow.xyann) for arrow in after.texts if arrow.get_gid() == "endless"] == list(map(tuple, known))
    assert {arrow.xy[1] for arrow in after.texts if arrow.get_gid() == "endless"} == {1}
    assert not any(arrow.get_gid() == "endless" for arrow in before.texts)


def test_values_below_zero_have_no_place_on_a_logarithmic_axis(ds, analyses):
    """A line fell from their neighbours to the bottom of the axes, like a bar."""
    averages = analyses["averages"].copy(deep=True)
    averages["risk"][:] = averages["risk"].where(averages["risk"]["gamma_ratio"] > averages["gamma_ratio"][0], -1.0)
    drawing = line(ds, {"averages": averages}, y="risk", x="gamma_ratio", log_axes=["y"], where=ONE)
    [drawn] = points(drawing.axes[0])
    assert (drawn[:, 1] > 0.0).all() and len(drawn) == ds.sizes["gamma_ratio"] - 1
    assert "no value" in legend(drawing)


def texts(drawing):
    found = (text.get_text() for text in drawing.findobj(lambda artist: hasattr(artist, "get_text")))
    return [" ".join(text.split()) for text in found]


def legend(drawing):
    return [text.get_text() for legend in drawing.legends for text in legend.get_texts() if text.get_text()]


@pytest.mark.parametrize(
    ("rates", "shown"),
    [
        ([0.1, 0.2, 0.4, 0.8], [0.1, 0.2, 0.4, 0.8]),
        (np.geomspace(0.05, 0.5, 4).tolist(), [0.05, 0.1, 0.2, 0.5]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_its_values_where_they_have_few_digits(rates, shown):
    ds = sweep_dataset(seeds=3, ratios=[0.4, 0.8, 1.0, 1.2]).assign_coords(gamma_ratio=rates)
    axes = line(ds, {"averages": ANALYSES["averages"](ds)}, y="risk", x="gamma_ratio").axes[0]
    low, high = axes.get_xlim()
    assert axes.get_xscale() == "log"
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == pytest.approx(shown)


def test_a_quantity_is_declared_or_observed_or_any_variable():
    assert (quantity("exit_steps").analysis, quantity("exit_steps").variable) == ("exit_times", "exit_steps_mean")
    assert (quantity("overlap_M").analysis, quantity("overlap_M").variable) == ("averages", "overlap_M")
    dotted = quantity("risk_floor.risk_drift")
    assert (dotted.analysis, dotted.variable) == ("risk_floor", "risk_drift")
    declared = [(name, variable) for name in ANALYSES for variable in ANALYSES[name].quantities]
    assert len({variable for _, variable in declared}) == len(declared), "two analyses declare one name"


def test_a_line_is_the_mean_with_its_interval(ds, analyses):
    [axes] = line(ds, analyses, y="exit_steps", where=ONE).axes
    found = analyses["exit_times"].sel(ONE).squeeze()
    np.testing.assert_allclose(points(axes)[0], np.transpose([ds.gamma_ratio, found.exit_steps_mean]))
    width = found.exit_steps_mean_high - found.exit_steps_mean_low
    np.testing.assert_allclose(bars(axes)[0][:, 1] - bars(axes)[0][:, 0], width)
    [theory] = [one.get_ydata() for one in axes.lines if one.get_linewidth() == 0.9]
    np.testing.assert_allclose(theory, found.exit_steps_theory)


def test_a_line_runs_along_any_coordinate(ds, analyses):
    """γ is derived from gamma_ratio and Δ: a curve per Δ, each at its own learning rates."""
    chosen = {"y": "exit_time", "x": "gamma", "hue": "Delta", "where": {"d": 300, "dynamics": "ode"}}
    [axes] = line(ds, analyses, **chosen).axes
    assert axes.get_xlabel() == r"learning rate $\gamma$"
    for Delta, curve in zip(ds.Delta.values, points(axes), strict=True):
        np.testing.assert_allclose(curve[:, 0], ds.gamma.sel(Delta=Delta))


def test_a_bound_has_an_arrow_and_theory_is_a_line(ds, analyses):
    optima = analyses["optimal_learning_rate"].copy()
    optima["at_edge"] = (optima.d == 300).broadcast_like(optima.at_edge).assign_attrs(optima.at_edge.attrs)
    drawing = line(ds, analyses | {"optimal_learning_rate": optima}, y="gamma_opt", x="d", where={"Delta": 1.0})
    [axes] = drawing.axes
    arrows = [one for one in axes.lines if one.get_marker() == ARROWS["either"]]
    assert {float(x) for one in arrows for x in one.get_xdata()} == {300.0}
    assert {float(x) for curve in points(axes) for x in curve[:, 0]} == {300.0, 3000.0}
    joined = [box.lines[0] for box in axes.containers if box.lines[0].get_linestyle() != "None"]
    for one in joined:
        assert np.isnan(one.get_ydata()[one.get_xdata() == 300.0]).all(), (
            "no line joins a bound to a value, or leads past it"
        )
    assert "the optimum may lie beyond the scan" in legend(drawing)
    theory = optima.gamma_opt_theory.sel(Delta=1.0).squeeze()
    assert any(np.allclose(one.get_ydata(), theory) for one in axes.lines if len(one.get_xdata()) == 2)


def test_no_line_leads_past_a_bound(ds, analyses):
    """That of three values, the second a bound, would be a line between the first and the third."""
    exits = analyses["exit_times"].copy()
    second = exits.gamma_ratio == exits.gamma_ratio.values[1]
    exits["restricted"] = second.broadcast_like(exits.restricted).assign_attrs(exits.restricted.attrs)
    at = {"Delta": 1.0, "d": 3000}
    [axes] = line(ds, analyses | {"exit_times": exits}, y="exit_steps", x="gamma_ratio", where=at).axes
    joined = [box.lines[0] for box in axes.containers if box.lines[0].get_linestyle() != "None"]
    assert joined
    for one in joined:
        np.testing.assert_array_equal(np.isnan(one.get_ydata()), np.arange(exits.gamma_ratio.size) == 1)


def test_means_of_runs_that_did_not_exit_are_bounds(ds):
    short = sweep_dataset(seeds=12, horizon=1.0)
    drawing = line(short, y="exit_steps", where=ONE)
    assert "lower bound: some runs did not exit" in legend(drawing)


def test_a_point_without_a_value_is_marked_and_one_that_was_not_run_is_nothing(ds):
    """`sgd` was run at the smallest d alone; the chain failed at one of the learning rates."""
    failed = with_outcome(ds, "failed", (ds.gamma_ratio == ds.gamma_ratio[3]) & (ds.dynamics == "sgd_chain"))
    drawing = line(failed, y="exit_steps", where={"Delta": 1.0, "d": 3000})
    [axes] = drawing.axes
    marks = [one for one in axes.lines if one.get_marker() == UNKNOWN["marker"]]
    assert [one.get_xdata().tolist() for one in marks] == [[float(ds.gamma_ratio[3])]]
    assert "no value" in legend(drawing)
    assert "no value" not in legend(line(ds, y="exit_steps", where={"Delta": 1.0, "d": 3000}))


def test_the_error_of_a_ratio_knows_the_correlation_of_the_seeds(ds):
    """Against the spread of the ratio over resamples of the seeds, for paired and for reordered seeds."""
    rng = np.random.default_rng(0)
    b = rng.gamma(20.0, size=(1, 400))
    for a in (2.0 * b * rng.gamma(400.0, 1 / 400.0, size=b.shape), 2.0 * rng.permuted(b, axis=1)):
        runs = xr.zeros_like(ds.risk).isel(seed=[0] * 400, d=[0], Delta=[0], gamma_ratio=[0, 1])
        runs = runs.isel(dynamics=[0, 2]).assign_coords(seed=range(400))
        values = np.stack([np.broadcast_to(b, (2, 400)), np.broadcast_to(a, (2, 400))])
        shaped = runs.transpose("dynamics", "gamma_ratio", "seed", "time", ...)
        whole = np.broadcast_to(values[..., None, None, None], shaped.shape)
        small = ds.isel(seed=[0] * 400, d=[0], Delta=[0], gamma_ratio=[0, 1], dynamics=[0, 2])
        small = small.assign_coords(seed=range(400)).assign(risk=shaped.copy(data=whole).transpose(*ds.risk.dims))
        _, lower = ratio(small, y="risk").axes
        curve, ends = points(lower)[0], bars(lower)[0]
        np.testing.assert_allclose(curve[:, 1], a.mean() / b.mean())
        picks = rng.integers(400, size=(4000, 400))
        expected = (a[0][picks].mean(axis=1) / b[0][picks].mean(axis=1)).std()
        np.testing.assert_allclose(0.5 * (ends[:, 1] - ends[:, 0]), expected, rtol=0.06)


def test_a_ratio_is_to_the_point_that_is_asked_for(ds, analyses):
    chosen = {"y": "exit_steps", "x": "gamma_ratio", "hue": "d", "where": {"Delta": 0.0, "dynamics": "sgd_chain"}}
    upper, lower = ratio(ds, analyses, to={"d": 300}, **chosen).axes
    mean = analyses["exit_times"].exit_steps_mean.sel(Delta=0.0, dynamics="sgd_chain").squeeze().transpose("d", ...)
    np.testing.assert_allclose([curve[:, 1] for curve in points(upper)], mean)
    np.testing.assert_allclose([curve[:, 1] for curve in points(lower)], (mean / mean.sel(d=300)).sel(d=[3000]))
    assert lower.get_ylabel() == "ratio to $d$ = 300"


@pytest.mark.filterwarnings("error:overflow encountered in exp:RuntimeWarning")
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1e-300, 1e300),
        *(pytest.param(*ends, marks=pytest.mark.slow) for ends in ((1.0, 1e300), (1e-300, 1.0), (1e300, 1e302))),
    ],
)
def test_values_near_the_ends_of_the_doubles_are_drawn(ds, low, high, tmp_path):
    """On axes and as colours; matplotlib's own limits and ticks overflow."""
    values = np.geomspace(low, high, ds.sizes["gamma_ratio"])
    far = ds.assign_coords(gamma_ratio=values)
    bright = ds.assign(risk=(xr.ones_like(ds.risk) * xr.DataArray(values, dims="gamma_ratio")).transpose(*ds.risk.dims))
    bright.risk.attrs = ds.risk.attrs
    one = {"where": {"Delta": 1.0, "dynamics": "sgd_chain"}}
    for number, data in enumerate((far, bright)):
        for figure, options in ((line, {"y": "risk", "x": "gamma_ratio"}), (heat, {"z": "risk"})):
            drawing = figure(data, **options, **one)
            save(drawing, tmp_path / f"{number}")
            axes = drawing.axes[0]
            ends, shown = (axes.get_xlim(), values) if data is far else (drawing.axes[-1].get_ylim(), values)
            assert ends[0] <= shown[0] * 1.0001 and shown[-1] <= ends[1] * 1.0001


def test_a_ratio_to_a_dynamics_that_was_not_run_is_absent(ds):
    """At the fourth learning rate; at the second one the reference failed, and there is no value."""
    rates, reference = ds.gamma_ratio.values, ds.dynamics == "ode"
    partly = with_outcome(ds, "missing", (ds.gamma_ratio == rates[3]) & reference)
    partly = with_outcome(partly, "failed", (ds.gamma_ratio == rates[1]) & reference)
    partly = partly.assign(risk=partly.risk.where(partly.status == 1))
    _, lower = ratio(partly, y="risk", x="gamma_ratio", where={"Delta": 1.0, "d": 3000}).axes
    marks = [one.get_xdata().tolist() for one in lower.lines if one.get_marker() == UNKNOWN["marker"]]
    assert marks == [[float(rates[1])]]
    assert all(rates[3] not in curve[:, 0] for curve in points(lower))


def test_a_dynamics_has_one_marker_above_and_below(ds):
    """An open circle for the second stochastic dynamics, also where the first has no ratio."""
    absent = with_outcome(ds, "missing", (ds.d == 300) & (ds.dynamics == "ode"))
    _, lower = ratio(absent, y="risk", x="d", where={"Delta": 1.0, "gamma_ratio": float(ds.gamma_ratio[0])}).axes
    assert lower.containers[0].lines[0].get_markerfacecolor() == "white"


def test_the_error_of_a_ratio_counts_the_seeds_of_both():
    """Of 400 runs over 50 others, of which 50 seeds are shared and correlated: against the spread of such ratios."""
    rng, n, draws = np.random.default_rng(3), 400, 2000
    shared = rng.normal(size=(draws, n))
    runs = 10.0 + np.stack([shared + rng.normal(size=(draws, n)), 2.0 * shared])
    runs[1, :, 50:] = np.nan
    runs = xr.DataArray(runs, dims=("d", "draw", "seed"), coords={"d": [1, 2]}, name="risk")
    run = runs.notnull().astype(int).rename("status").assign_attrs(flag_values=[0, 1], flag_meanings="missing ok")
    ds = xr.Dataset({"risk": runs, "status": run})
    mean, error = runs.mean("seed"), runs.std("seed", ddof=1) / runs.count("seed") ** 0.5
    result = xr.Dataset({"risk": mean, "risk_error": error}).assign_attrs(max_lost=1.0)
    found = ratios(ds, result, "averages", "risk", {"d": 0})
    assert found["ratio_error"].isel(d=1).mean().item() == pytest.approx(
        found["ratio"].isel(d=1).std().item(), rel=0.06
    )


def ratio_to_first(value, low, high):
    """Return the ratios of numbers (2, n) with intervals to the first of each pair, as the figure has them."""
    numbers = {"gain": value, "gain_low": low, "gain_high": high}
    result = xr.Dataset({name: (("d", "pair"), one) for name, one in numbers.items()}, coords={"d": [300, 3000]})
    found = ratios(xr.Dataset(), result, "gain_over_width", "gain", {"d": 0})
    assert found.keys() == {"ratio", "ratio_low", "ratio_high"}
    return found["ratio_low"], found["ratio_high"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_ratio_of_intervals_has_an_interval_that_covers_as_often(sign):
    """Of numbers with normal logarithms of unequal errors, whose intervals cover with 95 %; within 4 errors of it."""
    error, n = np.array([[0.3], [0.1]]), 8000
    log = error * np.random.default_rng(1).normal(size=(2, n))
    ends = np.sort(sign * np.exp(log + 1.96 * error * np.array([[[-1.0]], [[1.0]]])), axis=0)
    low, high = ratio_to_first(sign * np.exp(log), *ends)
    covered = ((low <= 1.0) & (high >= 1.0)).mean("pair")
    assert covered[0] == 1.0 and covered[1].item() == pytest.approx(0.95, abs=0.01)


def test_a_ratio_to_a_number_that_may_be_zero_has_no_upper_end():
    low, high = ratio_to_first(np.ones((2, 1)), np.array([[-0.5], [0.8]]), 2.0 * np.ones((2, 1)))
    assert high.values.ravel().tolist() == [1.0, np.inf]
    np.testing.assert_allclose(low.values.ravel(), [1.0, np.exp(-np.hypot(np.log(0.8), np.log(2.0)))])


def test_a_ratio_of_bounds_has_no_value():
    short = sweep_dataset(seeds=12, horizon=0.01)
    drawing = ratio(short, y="exit_steps", where={"Delta": 1.0, "d": 3000, "dynamics": ["ode", "sgd_chain"]})
    assert not any(len(curve) for curve in points(drawing.axes[1]))
    assert {"no value", "lower bound: some runs did not exit"} <= set(legend(drawing))


def test_a_map_has_a_colour_per_cell(ds, analyses):
    drawing = heat(ds, analyses, z="exit_steps", y="d", where={"Delta": 0.0, "dynamics": "ode"})
    axes, bar = drawing.axes
    mean = analyses["exit_times"].exit_steps_mean.sel(Delta=0.0, dynamics="ode").squeeze()
    mesh = axes.collections[0]
    np.testing.assert_allclose(mesh.get_array(), mean.transpose("d", "gamma_ratio"))
    assert (axes.get_yscale(), axes.get_xscale()) == ("log", "linear")
    assert bar.get_ylabel().startswith("mean exit steps")
    corners = mesh.get_coordinates()
    assert (np.sqrt(corners[0, 0, 1] * corners[1, 0, 1]), np.sqrt(corners[1, 0, 1] * corners[2, 0, 1])) == (
        pytest.approx(300),
        pytest.approx(3000),
    )


def test_a_map_tells_cells_that_were_not_run_from_cells_without_a_value(ds):
    failed = with_outcome(ds, "failed", (ds.gamma_ratio == ds.gamma_ratio[3]) & (ds.d == 300) & (ds.dynamics == "sgd"))
    drawing = heat(failed, z="exit_steps", where={"Delta": 0.0, "dynamics": "sgd"})
    axes = drawing.axes[0]
    [mark] = [one for one in axes.lines if one.get_marker() == UNKNOWN["marker"]]
    assert mark.get_xydata().tolist() == [[float(ds.gamma_ratio[3]), 300.0]]
    assert {"not run", "no value"} <= set(legend(drawing))
    assert "not run" not in legend(heat(ds, z="exit_steps", where={"Delta": 0.0, "dynamics": "ode"}))


def test_cells_end_half_way_to_their_neighbours():
    np.testing.assert_allclose(edges_of(np.array([1.0, 2.0, 4.0]), logarithmic=False), [0.5, 1.5, 3.0, 5.0])
    np.testing.assert_allclose(edges_of(np.array([1.0, 4.0]), logarithmic=True), [0.5, 2.0, 8.0])
    np.testing.assert_allclose(edges_of(np.array([3.0]), logarithmic=False), [2.5, 3.5])
    np.testing.assert_allclose(edges_of(np.array([100.0]), logarithmic=True), 100.0 * np.exp([-0.5, 0.5]))


@pytest.mark.parametrize(
    ("values", "scale", "edges"),
    [
        ([2.0, 8.0], "log", [1.0, 16.0]),
        ([1.0, 2.0, 3.0], "linear", [0.5, 3.5]),
        ([-0.5, 0.0, 0.25], "linear", [-0.75, 0.375]),
    ],
)
def test_a_map_over_few_values_has_ticks_at_them_and_no_cell_beyond_zero(values, scale, edges):
    ds = sweep_dataset(seeds=3, ratios=[0.4, 0.8, 1.0, 1.2][: len(values)]).assign_coords(gamma_ratio=values)
    options = {"z": "risk", "x": "gamma_ratio", "y": "d", "where": {"dynamics": "ode", "Delta": 1.0}}
    analyses = {"averages": ANALYSES["averages"](ds)}
    axes = heat(ds, analyses, **options).axes[0]
    assert axes.get_xscale() == scale
    assert axes.get_xticks().tolist() == values
    assert axes.get_xlim() == pytest.approx(edges)
    figure = FIGURES["map"]
    spec = interactive_plot("map", figure.interactive(ds, analyses, **figure.check(options)), ds, analyses, {}).spec
    assert spec["cell_ticks"]["x"]["places"] == values and spec["log"]["x"] == (scale == "log")
    assert spec["cells"]["x"] == pytest.approx([edges[0], *spec["cells"]["x"][1:-1], edges[1]])
    assert spec["cell_ticks"]["x"]["texts"] == [f"{value:g}" for value in values]
    assert spec["labels"]["y"] == "Input dimension d"


def test_a_map_over_many_values_has_no_tick_at_each():
    values = np.geomspace(0.3, 10.0, 8)
    ds = sweep_dataset(seeds=3).assign_coords(gamma_ratio=values)
    axes = heat(ds, z="risk", x="gamma_ratio", y="d", where={"dynamics": "ode", "Delta": 1.0}).axes[0]
    assert {0.5, 1.0, 2.0, 5.0} <= set(axes.get_xticks().round(9))


def test_a_distribution_is_the_fraction_of_runs_below(ds):
    [axes] = spread(ds, y="exit_steps", where=ONE | {"gamma_ratio": 0.9}).axes
    values = np.sort(ds.exit_steps.sel(ONE).sel(gamma_ratio=0.9, method="nearest").values.ravel())
    x, y = axes.lines[0].get_data()
    np.testing.assert_allclose(x[1:], values)
    np.testing.assert_allclose(y, np.arange(13) / 12)


def test_a_distribution_of_censored_exits_ends_below_one():
    short = sweep_dataset(seeds=40, horizon=1.0)
    [axes] = spread(short, y="exit_time", where=ONE | {"gamma_ratio": 0.9}).axes
    exits = short.exit_time.sel(ONE).sel(gamma_ratio=0.9, method="nearest").values
    exited = np.isfinite(exits).mean()
    assert 0.0 < exited < 1.0
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(exited)


def test_trajectories_are_single_runs_with_their_end_and_the_median(ds):
    stopped = ds.copy()
    stopped["risk"] = ds.risk.where((ds.seed != 2) | (ds.time < 1.0))
    drawing = paths(stopped, where=ONE | {"gamma_ratio": 0.9}, runs=5)
    [axes] = drawing.axes
    runs = [one for one in axes.lines if one.get_linewidth() == 0.5]
    wanted = stopped.risk.sel(ONE).sel(gamma_ratio=0.9, method="nearest").isel(seed=slice(5)).transpose("seed", "time")
    np.testing.assert_allclose([one.get_ydata() for one in runs], wanted)
    [dot] = [one for one in axes.lines if one.get_marker() == "o"]
    assert dot.get_xdata()[0] == ds.time.where(ds.time < 1.0).max()
    assert {"single runs", "last record of a run\nthat stopped"} <= set(legend(drawing))
    median = next(one for one in axes.lines if one.get_linewidth() == 1.8)
    early = (ds.time < 1.0).values
    np.testing.assert_allclose(
        median.get_ydata()[early], ds.risk.sel(ONE).sel(gamma_ratio=0.9, method="nearest").median("seed").values[early]
    )
    assert np.isnan(median.get_ydata()[~early]).all()


@pytest.mark.parametrize("chosen", slow_but([[], ["x"], ["y"], ["x", "y"]], ["x"]))
@pytest.mark.parametrize("name", ["line", "trajectories", "risk_curves", "risk_fans"])
def test_axes_are_logarithmic_as_chosen_and_curves_begin_above_zero(ds, analyses, name, chosen):
    figure, options = FIGURES[name], {"log_axes": chosen}
    if name == "line":
        options |= {"y": "risk", "x": "time"}
    axes = figure(ds, analyses, **options).axes[0]
    assert [axis for axis in "xy" if getattr(axes, f"get_{axis}scale")() == "log"] == chosen
    if "x" in chosen:
        assert min(ds.time.values) == 0.0 < axes.get_xlim()[0]
        assert not np.isfinite(axes.get_xaxis_transform().transform((0.0, 0.5))[0])
    plot = interactive_plot(name, figure.declared(ds, analyses, **options), ds, analyses, options)
    assert [axis for axis in "xy" if plot.spec["log"][axis]] == chosen


@pytest.mark.parametrize(("decades", "kept"), [(1.0, 6), (0.01, 21)])
def test_a_value_that_is_not_above_its_error_has_no_place_on_a_logarithmic_axis(ds, decades, kept):
    """Curves end there, in figures and plots; on linear axes they do not."""
    risk = (0.0 * ds.risk + 10.0 ** (-decades * np.arange(21.0))).assign_attrs(ds.risk.attrs)
    error = xr.full_like(ds.risk, 5e-6 if decades == 1.0 else 2.0).assign_attrs(error_of="risk", long_name="error")
    learned = ds.assign(
        risk=risk.where(ds.dynamics != "ode", risk - 1e-25).assign_attrs(ds.risk.attrs), risk_error=error
    )
    known = ANALYSES["averages"](learned)
    for name, figure in (("risk_curves", {}), ("trajectories", {"y": "risk"}), ("line", {"y": "risk", "x": "time"})):
        made = FIGURES[name](
            learned, {"averages": known}, where={"Delta": 1.0, "d": 3000, "gamma_ratio": 0.9}, **figure
        )
        lines = [one.get_xydata() for one in made.axes[0].lines if len(one.get_xdata()) == 21]
        drawn = [int(np.isfinite(np.asarray(one, float)[:, 1]).sum()) for one in (points(made.axes[0]) or lines)]
        assert set(drawn) == {kept}, name
        assert (made.axes[0].get_yscale() == "log") == (decades == 1.0)
    bands = FIGURES["risk_curves"].declared(learned, {}).labelled(learned, {}).risk
    assert set(np.unique(bands.notnull().sum("time"))) == {0, kept}  # zero where no run was made


def test_the_colours_of_a_plot_are_logarithmic_where_those_of_the_picture_are(ds):
    """A value that is not above its error, which the picture leaves out, does not make them linear."""
    risk = (0.0 * ds.risk + 10.0 ** (-0.2 * np.arange(21.0))).assign_attrs(ds.risk.attrs)
    learned = ds.assign(risk=risk - 2e-4, risk_error=xr.full_like(risk, 1e-4).assign_attrs(error_of="risk"))
    options = {"z": "risk", "x": "time", "y": "gamma_ratio", "where": {"Delta": 1.0, "d": 3000}}
    known = {"averages": ANALYSES["averages"](learned)}
    assert float(known["averages"].risk.min()) < 0.0
    plot = interactive_plot("map", FIGURES["map"].declared(learned, known, **options), learned, known, options)
    assert plot.spec["log_colours"] and plot.spec["range"][0] > 1e-4


def test_a_list_of_one_value_selects_it(ds):
    whole, alone = (paths(ds, where=ONE | {"gamma_ratio": chosen}) for chosen in (1.5, [1.5]))
    assert [len(drawing.axes[0].lines) for drawing in (whole, alone)] == [9, 9]
    assert [axes.get_title() for axes in alone.axes] == [""]


def test_an_axis_is_logarithmic_if_its_values_ask_for_it():
    assert [logarithmic(np.array(values, float)) for values in ([1, 10, 100], [1, 50], [1, 4], [1, 2, 3], [-1, 1])] == [
        True, True, False, False, False,
    ]  # fmt: skip
    steps = xr.DataArray(np.outer([1.0, 100.0], np.arange(5.0)), dims=("d", "time"))
    assert logarithmic_time(steps)
    assert not logarithmic_time(steps.isel(d=0))


@pytest.mark.parametrize(
    ("figure", "options", "message"),
    [
        (
            line,
            {"y": "exit_stps"},
            "y: no such quantity; got 'exit_stps'; expected .*, or a quantity of an.*did you mean 'exit_steps'",
        ),
        (line, {"y": "exit_tims.x"}, "y: no such analysis; got 'exit_tims'.*did you mean 'exit_times'"),
        (line, {"y": "exit_times.restrict"}, "y: no such quantity.*expected one of exit_times.exit_steps_mean, "),
        (line, {"y": "exit_steps", "x": "gama"}, "x: no such axis of numbers; got 'gama'.*did you mean 'gamma'"),
        (line, {"x": "gamma", "hue": "gamma_ratio", "dash": "Delta"}, "x: it varies along no free axis"),
        (line, {"reference": ["none.csv"]}, r"reference\[0\]"),
        (line, {"guide": float("nan")}, "guide: not a valid option"),
        (ratio, {"to": {"delta": 1}}, "to.delta: no such axis"),
        (ratio, {"to": {"d": 301}}, "to.d: not a value of the axis d; got 301"),
        (ratio, {"to": {}}, "to: no point"),
        (ratio, {"to": {"gamma_ratio": 0.9}}, "to: the axis that is drawn"),
        (heat, {"x": "d", "y": "d"}, "y: drawn twice"),
        (heat, {"y": "activation"}, "y: no such axis of numbers"),
        (heat, {"x": "gamma"}, "x: not an axis of the sweep"),
        (
            spread,
            {"y": "student_norm"},
            "a number at each time; got 'student_norm'",
        ),
        (
            paths,
            {"y": "exit_time"},
            "a number at each time; got 'exit_time'; expected one of risk",
        ),
    ],
)
def test_wrong_choices_are_refused_before_anything_runs(ds, figure, options, message):
    def foresee():
        outlines = {
            need: ANALYSES[need].outlined(outline_of(with_constants(ds)), {}) for need in figure.needed(options)
        }
        figure.check_fit(outline_of(with_constants(ds)), outlines, options)

    with pytest.raises(InputError, match=message) as foreseen:
        foresee()
    with pytest.raises(InputError) as drawn:
        figure(ds, **options)
    said = [re.split("; (?:expected|did you mean)", str(each.value))[0] for each in (drawn, foreseen)]
    assert said[0] == said[1]


def test_a_ratio_needs_something_to_compare_with():
    noisy = sweep_dataset(seeds=4, dynamics=("sgd", "sgd_chain"))
    with pytest.raises(InputError, match=r"to: nothing to compare with; expected the point .* \{gamma: 0.1\}"):
        ratio(noisy)


def test_an_entry_has_the_name_of_a_figure_or_a_kind():
    assert requested("line", {"x": "d"}) == (line, {"x": "d"})
    assert requested("mine", {"kind": "map", "x": "d"}) == (heat, {"x": "d"})
    for name, options, message in (
        ("mine", {"kind": "lin"}, "kind: unknown figure; got 'lin'.*did you mean 'line'"),
        ("../mine", {"kind": "line"}, "not a name of a figure"),
        ("lin", {}, "unknown figure; got 'lin'"),
    ):
        with pytest.raises(InputError, match=message):
            requested(name, options)


def test_a_zero_is_on_a_horizontal_axis_that_is_logarithmic_above_it():
    """Δ = 0 is the point without noise: it is drawn beside Δ = 0.01, 0.1, 1."""
    noise = (0.0, 0.01, 0.1, 1.0)
    short = sweep_dataset(seeds=4, Delta=noise, ratios=(1.0,), dynamics=("ode", "sgd_chain"))
    [axes] = line(short, y="exit_steps", x="Delta", where={"d": 300}).axes
    assert axes.get_xscale() == "symlog"
    assert all(curve[:, 0].tolist() == list(noise) for curve in points(axes))
    left, right = axes.get_xlim()
    assert left < noise[0]
    assert right > noise[-1]
    assert not logarithmic(np.array([-1.0, 0.01, 0.1, 1.0]))


def test_a_value_that_is_not_finite_is_no_value(ds):
    at = {"Delta": 1.0, "d": 300}
    risk = ds.risk.where(ds.gamma_ratio < 1.6, np.inf).where(ds.risk.notnull()).assign_attrs(ds.risk.attrs)
    [axes] = line(ds.assign(risk=risk), y="risk", where=at).axes
    marks = [one for one in axes.lines if one.get_marker() == UNKNOWN["marker"]]
    assert {float(x) for one in marks for x in one.get_xdata()} == {float(ds.gamma_ratio[-1])}
    cells = heat(ds.assign(risk=risk), z="risk", where={"Delta": 1.0, "dynamics": "ode"})
    [mark] = [one for one in cells.axes[0].lines if one.get_marker() == UNKNOWN["marker"]]
    assert {x for x, _ in mark.get_xydata().tolist()} == {float(ds.gamma_ratio[-1])}


def test_a_map_names_its_dynamics(ds):
    assert r"at $\Delta$ = 0, ODE" in texts(heat(ds, z="exit_steps", where={"Delta": 0.0, "dynamics": "ode"}))


def test_an_axis_without_a_coordinate_is_drawn_by_number():
    """The directions of the teacher have no coordinate in a dataset."""
    steps = giant_steps_dataset(seeds=4)
    for figure in (spread, paths):
        drawing = figure(steps, y="subspace_cosine", hue="teacher", where={"batch_size": 10})
        assert {"$r$ = 1", "$r$ = 2", "$r$ = 3"} <= set(legend(drawing))


def test_what_analyses_add_has_labels_where_xarray_lost_its_attributes():
    """As xarray of 2025 does."""
    teacher = xr.DataArray(2, name="teacher")
    assert value_label(teacher) == "$r$ = 2" and value_label(teacher.assign_attrs(symbol="s")) == "$s$ = 2"
    assert value_label(xr.DataArray(2, name="unknown")) == "unknown = 2"


def test_a_quantity_without_dynamics_is_refused():
    regimes = regime_dataset(seeds=3, d=(100, 1000))
    for figure in (line, ratio):
        with pytest.raises(InputError, match=r"y: not a quantity of single dynamics; got 'regimes.regime'"):
            figure(regimes, y="regimes.regime", x="delta")


def test_runs_that_all_stay_are_a_fraction_of_zero_and_none_is_said():
    stay = sweep_dataset(seeds=6, horizon=1e-6)
    chosen = ONE | {"gamma_ratio": 0.9}
    [axes] = spread(stay, y="exit_time", where=chosen).axes
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0.0, 0.0], [1e-6, 0.0]])
    dead = with_outcome(stay, "failed", stay.status > 0)
    for figure, name in ((spread, "exit_time"), (paths, "risk")):
        assert "no value" in texts(figure(dead, y=name, where=chosen))


def test_trajectories_have_the_same_seeds_for_all_dynamics(ds):
    lost = ds.assign(risk=ds.risk.where((ds.seed != 1) | (ds.dynamics != "sgd_chain")))
    [axes] = paths(lost, where={"Delta": 1.0, "d": 3000, "gamma_ratio": 0.9}, runs=3).axes
    runs = [one.get_ydata()[-1] for one in axes.lines if one.get_linewidth() == 0.5]
    wanted = lost.risk.sel(Delta=1.0, d=3000).sel(gamma_ratio=0.9, method="nearest").isel(time=-1, seed=slice(3))
    expected = wanted.sel(dynamics=["sgd_chain", "ode"]).values.ravel()
    np.testing.assert_allclose(sorted(runs), sorted(expected[np.isfinite(expected)]))


def test_a_value_twice_in_a_list_is_drawn_once(ds):
    [axes] = line(ds, y="exit_steps", where={"Delta": 1.0, "d": [300, 300], "dynamics": "ode"}).axes
    assert len(points(axes)) == 1
    with pytest.raises(InputError, match="no such quantity"):
        line(ds, y="exit_times.")


def test_interactive_plots_of_runs_without_values_and_against_steps(ds):
    """A map without a value is not drawn; against the steps a curve runs along the time."""

    def plot(figure, data, **options):
        analyses = {need: ANALYSES[need](data) for need in figure.needed(options)}
        parts = (with_constants(data), {name: with_constants(one) for name, one in analyses.items()})
        return interactive_plot("x", figure.interactive(*parts, **figure.check(options)), data, analyses, options)

    dead = with_outcome(ds, "failed", ds.status > 0)
    assert not plot(heat, dead, z="exit_steps").spec
    brief = ds.isel(time=slice(0, None, 5))
    assert brief.sizes["time"] < brief.sizes["gamma_ratio"]
    assert "gamma_ratio" in plot(line, brief, y="risk", x="steps").spec["series"]


def test_a_name_of_three_lines_stands_above_the_panels_and_its_symbol_beside_the_axis(ds, analyses):
    """The label of an axis may not be longer than the axis."""
    averages = analyses["averages"].copy()
    averages["risk"] = averages.risk.assign_attrs(long_name="mean largest deviation of the risk from the mean field")
    drawing = line(ds, analyses | {"averages": averages}, y="risk", x="time", where={**ONE, "gamma_ratio": 0.9})
    [axes] = drawing.axes
    assert axes.get_ylabel() == r"$\mathcal{R}$"
    above = " ".join(drawing.get_suptitle().split())
    assert above.endswith(r"$\mathcal{R}$: mean largest deviation of the risk from the mean field")
    assert line(ds, analyses, y="risk", x="time", where=ONE).axes[0].get_ylabel() == r"population risk $\mathcal{R}$"


def test_the_page_has_the_axes_of_the_picture_and_its_runs_are_in_their_units(ds, analyses):
    figure, options = FIGURES["learning_rate_scan"], {"where": {"Delta": 1.0}}
    declared = figure.declared(ds, analyses, **options)
    plot = interactive_plot("learning_rate_scan", declared, ds, analyses, options)
    axes = figure(ds, analyses, **options).axes[0]
    columns = {column.name: column for column in plot.table.columns}

    def of(name):
        values, levels = columns[name].values, columns[name].levels
        return np.array([levels[value] for value in values] if levels else values)

    shown = (of("d") == 3000) & (of("Delta") == 1.0) & (of("dynamics") == "sgd_chain")
    x, y = (of(plot.spec[axis])[shown].astype(float) for axis in "xy")
    drawn = {tuple(np.round(point, 6)) for curve in points(axes) for point in curve}
    assert {tuple(np.round(point, 6)) for point in zip(x, y, strict=True)} <= drawn
    assert plot.spec["log"] == {"x": axes.get_xscale() == "log", "y": axes.get_yscale() == "log"}
    runs = plot.spec["samples"][plot.spec["sampled"][plot.spec["y"]]]
    whole = analyses["exit_times"].restricted.sel(d=3000, Delta=1.0, dynamics="sgd_chain").squeeze().values
    means = [np.mean(np.array(runs[row], float)) for row in np.flatnonzero(shown)]
    np.testing.assert_allclose(np.array(means)[~whole], y[~whole], rtol=1e-4)


def test_a_ratio_has_no_line_through_noise_and_none_of_what_it_is_to(ds, analyses):
    upper, lower = ratio(ds, analyses, y="risk", x="time", where={"Delta": 1.0, "d": 3000, "gamma_ratio": 0.9}).axes
    assert "-" in {box.lines[0].get_linestyle() for box in upper.containers}
    assert {box.lines[0].get_linestyle() for box in lower.containers} == {"None"}
    assert len(lower.containers) == len(upper.containers) - 1


def test_rows_of_a_table_have_their_parameters_below_them_and_theory_no_line_between_them(ds):
    rows = ds.isel(d=[0, 1], gamma_ratio=[1, 3], Delta=0).stack(point=("d", "gamma_ratio")).reset_index("point")
    rows = rows.assign_coords(point=np.arange(rows.sizes["point"])).assign_coords(clock=("point", [1.0, 2.0, 3.0, 4.0]))
    [axes] = line(rows, y="exit_steps", x="point", where={"dynamics": "sgd_chain"}).axes
    texts_below = [label.get_text() for label in axes.get_xticklabels()]
    assert len(texts_below) == 4
    assert all("$d$ = " in text and "clock" not in text for text in texts_below)
    assert {one.get_linestyle() for one in axes.lines} == {"None"}


def test_a_panel_of_the_reference_itself_says_so(ds, analyses):
    axes = ratio(ds, analyses, y="exit_steps", panel="d", to={"d": 300}, where={"Delta": 0.0, "dynamics": "ode"}).axes
    texts_of = [[text.get_text() for text in one.texts] for one in axes]
    assert texts_of == [[], [], ["compared with this"], []], "below the panel of d = 300"


def crosses(drawing):
    return [one for one in drawing.axes[0].lines if one.get_marker() == "x"]


def test_quenched_theory_stands_for_what_is_near_to_it_alone_and_the_legend_says_how_near(ds, analyses):
    scan, where, exits = FIGURES["learning_rate_scan"], {"where": {"Delta": 1.0}}, analyses["exit_times"]

    def drawn(factor, **options):
        """Return the scan with an ODE at a factor from its theory, but for one mean, which is a bound."""
        of_ode = exits.exit_steps_theory.where(
            exits.gamma_ratio < exits.gamma_ratio.max(), 9.0 * exits.exit_steps_theory
        )
        mean = xr.where(exits.dynamics == "ode", factor * of_ode, exits.exit_steps_mean).transpose(*of_ode.dims)
        bound = (exits.restricted & (exits.dynamics != "ode")) | (exits.gamma_ratio == exits.gamma_ratio.max())
        restricted = bound.transpose(*exits.restricted.dims).assign_attrs(exits.restricted.attrs)
        with_ode = exits.assign(exit_steps_mean=mean.assign_attrs(exits.exit_steps_mean.attrs), restricted=restricted)
        return scan(ds, analyses | {"exit_times": with_ode}, **where, **options)

    near = drawn(1.05)
    assert not crosses(near)
    assert "quenched theory, 5 % from runs without noise" in legend(near)
    assert "ODE" in legend(near), "its optimum is a cross below"
    for other in (drawn(1.3), drawn(1.05, theories=["noise-corrected"])):
        assert crosses(other)
        assert not [text for text in legend(other) if "without noise" in text]


def test_the_texts_of_values_are_the_values():
    """Whole numbers that are floats were rounded to four digits; two dollars in a text were read as mathematics."""
    long, short = (value_label(xr.DataArray(value, name="T")) for value in (123456.0, 0.123456))
    assert long.endswith(" = 123456") and short.endswith(" = 0.1235")
    axis = xr.DataArray([1.00001, 1.00002], {"T": [1.00001, 1.00002]}, ["T"], name="T")
    assert Facets({"T": 0}, titled=("T",)).title(xr.Dataset(coords={"T": axis})).endswith("= 1.00001")
    axes = mpl.figure.Figure().subplots()
    with styled():
        title = axes.set_title(value_label(xr.DataArray(r"$\foo$", name="name")))
        axes.figure.draw_without_rendering()  # it raised ValueError
    assert title.get_text() == r"name = \$\foo\$"


def test_a_dot_is_the_end_of_a_run_and_not_of_its_values_above_their_error(ds):
    """A run that fell below its error had the dot of one that stopped, and the median of all runs ended with it."""
    late, one = ds.time > ds.time[2], ds.seed == 0
    below = ds.assign(risk=ds.risk.where(~(late & one), 1e-12).assign_attrs(ds.risk.attrs))
    error = xr.full_like(below.risk, 1e-9).assign_attrs(long_name="error", error_of="risk")
    stopped = below.assign(risk=below.risk.where(~(late & (ds.seed == 1))).assign_attrs(ds.risk.attrs))
    drawn = {}
    for name, data in {"below": below, "stopped": stopped}.items():
        axes = paths(data.assign(risk_error=error), y="risk", where=ONE, log_axes=["y"]).axes[0]
        drawn[name] = [line.get_xdata().item() for line in axes.lines if line.get_markersize() == 2.6]
        [median] = [line.get_xydata() for line in axes.lines if line.get_linewidth() == 1.8]
        assert np.isfinite(median[-1, 1]) == (name == "below")
    assert drawn == {"below": [], "stopped": [ds.time[2].item()]}
