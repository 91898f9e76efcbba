"""Interactive plots and tables: what is drawn, what is left out, and the notes about it."""

import contextlib
import json

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES, Chart
from sweeplib.pictures.figures.kit import scales
from sweeplib.pictures.figures.kit.chart import Layer, Level
from sweeplib.pictures.figures.learning_rate_scan import OPTIMA
from sweeplib.pictures.report import choices, plots, tables
from sweeplib.pictures.report.choices import dynamics_looks, is_logarithmic, samples, sequence
from sweeplib.pictures.report.overview import run_counts
from sweeplib.pictures.report.plots import interactive_plot
from sweeplib.pictures.report.tables import analysis_tables, columns
from sweeplib.pictures.report.write import different
from tests.datasets import sweep_dataset, timed_out

REGIMES = ["plateau", "bad_learning", "no_ode"]


@pytest.fixture(scope="module")
def ds():
    return sweep_dataset(seeds=6)


@pytest.fixture(scope="module")
def analyses(ds):
    return analysed(ds)


def analysed(ds):
    """Return all analyses that apply to the dataset."""
    return {name: analysis(ds) for name, analysis in ANALYSES.items() if fits(analysis, outline_of(with_constants(ds)))}


def fits(analysis, outline):
    """Return whether an analysis accepts a dataset with this outline."""
    with contextlib.suppress(InputError):
        analysis.outlined(outline, {})
        return True
    return False


OUTLINE = outline_of(with_constants(sweep_dataset(seeds=6)))
FITTING = {name for name, analysis in ANALYSES.items() if fits(analysis, OUTLINE)}


def plot_of(declared, ds, data=None, **options):
    return interactive_plot("any", declared, ds, {"any": data if data is not None else ds}, options)


def test_a_plot_without_any_value_is_not_drawn(ds, analyses):
    none = analyses["averages"].assign(risk=analyses["averages"].risk * np.nan)
    plot = plot_of(Chart(x="time", y="risk", needs=("any",)), ds, none)
    assert plot.table.rows == 0 and not plot.spec and not plot.controls


def values(table, name):
    """Return a column as data."""
    [column] = [column for column in table.columns if column.name == name]
    return [column.levels[value] for value in column.values] if column.levels else column.values


def regimes():
    """Return a classified (δ, κ) diagram, as an analysis returns it."""
    shape = {"delta": np.linspace(-1, 1, 5), "kappa": [0.0, 0.25, 0.5]}
    found = xr.DataArray(np.resize(REGIMES, (5, 3)), dims=tuple(shape), coords=shape, attrs={"long_name": "regime"})
    confidence = xr.full_like(found, 0.9, float).assign_attrs(long_name="confidence")
    data = xr.Dataset({"regime": found, "confidence": confidence}, attrs={"title": "Regimes"})
    for name, symbol in (("delta", r"\delta"), ("kappa", r"\kappa")):
        data[name].attrs = {"long_name": f"exponent {name}", "units": "1", "symbol": symbol}
    status = xr.DataArray(np.ones((5, 3, 4), np.uint8), dims=(*shape, "seed"), coords=shape, attrs=STATUS_LABELS)
    return xr.Dataset({"status": status}), data


def scan_plot(ds, analyses, **options):
    return interactive_plot(
        "scan", FIGURES["learning_rate_scan"].declared(ds, analyses, **options), ds, analyses, options
    )


def drawable(name):
    """Return whether a figure has an interactive plot and draws the dataset."""
    figure = FIGURES[name]
    if figure.interactive is None or not set(figure.needed({})) <= FITTING:
        return False
    with contextlib.suppress(InputError):
        figure.check_fit(OUTLINE, {need: ANALYSES[need].outlined(OUTLINE, {}) for need in figure.needed({})}, {})
        return True
    return False


@pytest.mark.parametrize("name", list(filter(drawable, FIGURES)))
def test_every_declared_plot_has_points_and_labels(name, ds, analyses):
    plot = interactive_plot(name, FIGURES[name].declared(ds, analyses), ds, analyses, {})
    assert plot.table.rows > 0
    assert len({len(column.values) for column in plot.table.columns}) == 1
    assert plot.spec
    json.dumps(plot.json, allow_nan=False)
    assert not any(sign in column.label for column in plot.table.columns for sign in "\\${}")


@pytest.mark.parametrize("name", list(filter(drawable, FIGURES)))
def test_other_plots_of_a_figure_need_what_it_needs_and_have_points(name, ds, analyses):
    others = FIGURES[name].declared(ds, analyses).also
    assert bool(others) == (name == "learning_rate_scan")
    for key, chart in others.items():
        assert set(chart.needs) <= set(FIGURES[name].needed({}))
        assert interactive_plot(key, chart, ds, analyses, {}).table.rows


def test_points_are_those_of_the_analysis_with_their_errors(ds, analyses):
    plot = scan_plot(ds, analyses)
    table, exits = plot.table, analyses["exit_times"]
    at = exits.sel(dynamics="sgd_chain", d=3000, Delta=1.0, threshold=0.01).isel(gamma_ratio=3)
    rows = zip(*(values(table, name) for name in ("dynamics", "d", "Delta", "gamma_ratio")), strict=True)
    row = list(rows).index(("sgd_chain", 3000, 1.0, at.gamma_ratio.item()))
    for name in ("gamma", "exit_steps_mean", "exit_steps_mean_error", "exit_steps_median"):
        assert values(table, name)[row] == pytest.approx(at[name].item(), rel=1e-8)
    [runs] = [column for column in table.columns if column.name == "runs"]
    assert (values(table, "runs")[row], runs.labels[runs.values[row]]) == (6, "6 ok")


def test_a_law_of_the_picture_is_the_theory_of_the_plot(ds, analyses):
    law = Layer("law", lambda part, gamma: gamma * part["Delta"].item(), "a law", "law")
    levels = (Level((Layer("points", "risk_floor"), law)),)
    declared = Chart(x="gamma", y="risk_floor", needs=("risk_floor",), levels=levels, theory="law")
    plot = interactive_plot("laws", declared, ds, analyses, {})
    gamma, Delta, heights = (np.array(values(plot.table, name), float) for name in ("gamma", "Delta", "law"))
    np.testing.assert_allclose(heights, gamma * Delta, rtol=1e-8)
    assert "Dashed: a law." in plot.notes and plot.spec["theory"] == "law"


def test_theories_of_runs_with_and_without_noise_have_dashes_of_their_own(ds, analyses):
    """A theory that all dynamics share is dashed."""
    declared = FIGURES["learning_rate_scan"].declared(ds, analyses)
    plot = interactive_plot("exit_steps", declared, ds, analyses, {})
    assert plot.spec["solid"] and any(
        note.startswith("Exit steps of theory") and note.endswith(": solid with noise, dashed without.")
        for note in plot.notes
    )
    chain = {name: analyses[name].sel(dynamics=["sgd_chain"]) for name in ("exit_times", "optimal_learning_rate")}
    alone = interactive_plot("exit_steps", declared, ds.sel(dynamics=["sgd_chain"]), chain, {})
    assert not alone.spec["solid"] and any(note.startswith("Dashed: exit steps of theory") for note in alone.notes)


def test_points_that_were_not_run_are_left_out_and_others_counted(ds, analyses):
    exits = analyses["exit_times"].copy(deep=True)
    exits["exit_steps_mean"] = exits.exit_steps_mean.where(exits.d != 3000)
    plot = plot_of(Chart(x="gamma", y="exit_steps_mean", needs=("any",), ys=()), ds, exits)
    assert plot.table.rows == 3 * 2 * 8  # three dynamics at d = 300, two noises, eight learning rates
    assert f"{2 * 2 * 8} points have runs but no value, and are not drawn." in plot.notes


def test_axes_become_colours_and_filters(ds, analyses):
    plot = scan_plot(ds, analyses)
    assert {control.column: bool(control.looks) for control in plot.controls} == {
        "dynamics": True,
        "d": True,
        "Delta": False,
    }
    swapped = scan_plot(ds, analyses, hue="Delta", where={"d": 3000})
    assert {control.column: control.chosen for control in swapped.controls} == {"dynamics": 0, "Delta": 0, "d": 1}


def test_filters_begin_at_what_the_picture_shows(ds, analyses):
    chart = FIGURES["exit_time_scaling"].declared(ds, analyses)
    plot = interactive_plot("times", chart, ds, analyses, {})
    [ratio] = [control for control in plot.controls if control.column == "gamma_ratio"]
    assert ratio.chosen == chart.split.at["gamma_ratio"] == ds.sizes["gamma_ratio"] // 2


@pytest.mark.parametrize(("d", "x", "title"), [([0], "Delta", "label-noise variance"), ([0, 1], "d", "dimension")])
def test_points_are_against_an_axis_that_varies(ds, d, x, title):
    part = ds.isel(d=d)
    analyses = {"optimal_learning_rate": ANALYSES["optimal_learning_rate"](part)}
    plot = interactive_plot("optima", OPTIMA, part, analyses, {})
    assert plot.spec["x"] == x
    assert title in plot.title


@pytest.mark.parametrize("d", [[0], [0, 1]])
def test_optima_of_two_figures_are_shown_once_if_one_axis_varies(ds, d):
    """Optima against d and against p, which has one value, as the figures of the two axes declare them."""

    def shown(data):
        analyses = {"optimal_learning_rate": ANALYSES["optimal_learning_rate"](data)}
        charts = {
            "widths": FIGURES["optimal_learning_rate"].declared(data, analyses),
            "dimensions": OPTIMA,
        }
        return different([interactive_plot(name, chart, data, analyses, {}) for name, chart in charts.items()])

    part = ds.isel(d=d)
    assert [plot.name for plot in shown(part)] == ["widths"]
    assert len(shown(part.expand_dims(p=[1, 2]))) == len(d)


def test_a_map_has_a_cell_a_point_and_its_classes_as_a_legend():
    ds, data = regimes()
    declared = Chart(
        x="delta",
        y="kappa",
        z="regime",
        needs=("any",),
        hover=("confidence",),
        lines=((-1.0, 0.0, "κ + δ = 0"),),
        colors={"bad_learning": "#111111", "plateau": "#222222", "no_ode": "#333333"},
    )
    plot = plot_of(declared, ds, data)
    assert plot.table.rows == 15
    [control] = plot.controls
    assert [look.color for look in control.looks] == ["#111111", "#333333", "#222222"]
    assert control.labels == sorted(REGIMES)
    assert plot.spec["range"] is None
    assert plot.spec["cells"] == {"x": [-1.25, -0.75, -0.25, 0.25, 0.75, 1.25], "y": [-0.125, 0.125, 0.375, 0.625]}
    assert "Dashed lines: κ + δ = 0." in plot.notes


def test_variables_of_other_axes_are_no_trouble():
    ds, data = regimes()
    data["probability"] = data.confidence.expand_dims(candidate=REGIMES)
    plot = plot_of(Chart(x="delta", y="kappa", z="regime", needs=("any",), hover=("probability",)), ds, data)
    assert [column.name for column in plot.table.columns] == ["kappa", "delta", "regime", "runs"]


def test_a_map_of_numbers_has_their_range():
    ds, data = regimes()
    plot = plot_of(Chart(x="delta", y="kappa", z="confidence", needs=("any",)), ds, data)
    assert plot.controls == []
    assert plot.spec["range"] == [0.9, 0.9]


def test_classes_may_be_flags():
    ds, data = regimes()
    codes = xr.zeros_like(data.delta * data.kappa, np.int8).assign_attrs(
        long_name="regime", flag_values=[0, 1], flag_meanings="plateau no_ode"
    )
    [table] = analysis_tables("regimes", data.assign(regime=codes), ds)
    assert set(values(table, "regime")) == {"plateau"}
    plot = plot_of(Chart(x="delta", y="kappa", z="regime", needs=("any",)), ds, data.assign(regime=codes))
    assert plot.spec["range"] is None
    assert [control.labels for control in plot.controls] == [["plateau"]]


def test_dynamics_have_the_colours_where_nothing_else_varies(ds):
    one = ds.isel(gamma_ratio=[0], Delta=[0], d=[0])
    [control] = plot_of(FIGURES["risk_curves"].declared(one, {}), one).controls
    assert control.column == "dynamics"
    assert len({look.color for look in control.looks}) == len({look.dash for look in control.looks}) == 3


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([300, 1000, 3000], True), ([1, 2, 3, 4, 5, 6, 8, 10], False), ([1, 100], True), ([0, 9], False)],
)
def test_an_axis_is_logarithmic_where_that_spaces_it_evenly(values, logarithmic):
    data = xr.Dataset(coords={"d": values})
    assert is_logarithmic(data, "d", "points", Chart("time", "y")) is logarithmic
    assert scales.logarithmic(data.d.values) is logarithmic


def test_an_axis_is_logarithmic_as_that_of_the_picture():
    """Quantities above the ranges of pictures of points and of runs, times by their spacing; none with a zero."""
    data = xr.Dataset({"y": ("d", [1.0, 15.0])}, {"d": [1.0, 2.0], "time": np.linspace(1.0, 100.0, 5)})
    plot = Chart("time", "y")
    assert [is_logarithmic(data, "y", kind, plot) for kind in ("points", "curves")] == [False, True]
    assert is_logarithmic(data * 1.0 + xr.Dataset({"y": ("d", [0.0, 20.0])}), "y", "points", plot)
    assert not is_logarithmic(data, "time", "curves", plot)
    assert is_logarithmic(xr.Dataset(coords={"time": np.geomspace(1.0, 8.0, 5)}), "time", "curves", plot)
    assert not is_logarithmic(data.assign(y=data.y - 1.0), "y", "curves", plot)


def test_one_value_of_x_is_a_plot_too(ds, analyses):
    one = analyses["optimal_learning_rate"].sel(d=300)
    plot = plot_of(Chart(x="d", y="gamma_opt", needs=("any",)), ds.sel(d=[300]), one)
    assert set(values(plot.table, "d")) == {300}


def test_long_curves_are_thinned_and_it_is_said(ds, monkeypatch):
    monkeypatch.setattr(plots, "MOST_CELLS", 4000)
    times = np.linspace(0.0, 2.0, 2001)
    long = ds.interp(time=times, assume_sorted=True).assign(status=ds.status)
    long["risk"].attrs, long["time"].attrs = ds.risk.attrs, ds.time.attrs
    one = long.isel(gamma_ratio=[0], Delta=[0], d=[0])
    plot = plot_of(FIGURES["risk_curves"].declared(one, {}), one)
    shown = len(set(values(plot.table, "time")))
    assert 40 <= shown < 200
    assert any("Thinned for this page: one of" in note and "2001" in note for note in plot.notes)


def test_points_of_a_table_are_not_joined_along_a_column(ds):
    """Neighbours may be rows of other problems; over time they are."""
    one = ds.isel(Delta=0, d=0, gamma_ratio=[0, 3, 5]).rename(gamma_ratio="point")
    table = one.assign_coords(point=np.arange(3), gamma=("point", [0.1, 0.2, 0.1], ds.gamma.attrs))
    found = {"any": ANALYSES["averages"](table)}
    over_gamma, over_time = (
        interactive_plot("any", Chart(x=x, y="risk", needs=("any",)), table, found, {}) for x in ("gamma", "time")
    )
    assert (over_gamma.spec["joined"], over_time.spec["joined"]) == (False, True)
    joined = {each["name"]: each["joined"] for each in over_time.spec["choice"]["x"]}
    assert (joined["time"], joined["gamma"]) == (True, False)


def test_what_is_too_large_for_a_page_is_not_drawn(ds, analyses, monkeypatch):
    monkeypatch.setattr(plots, "MOST_CELLS", 100)
    plot = scan_plot(ds, analyses)
    assert plot.spec == {}
    assert plot.table.rows > 0


@pytest.mark.parametrize("name", sorted(FITTING))
def test_tables_hold_every_variable_once(name, analyses, ds):
    found = analysis_tables(name, analyses[name], ds)
    columns = [column.name for table in found for column in table.columns]
    for variable in analyses[name].data_vars:
        assert columns.count(variable) == 1, variable
    assert len({table.name for table in found}) == len(found)


def test_a_table_has_a_row_a_point_that_was_run(ds, analyses):
    [table] = analysis_tables("optimal_learning_rate", analyses["optimal_learning_rate"], ds)
    optima = analyses["optimal_learning_rate"]
    run = (ds.status > 0).any(["seed", "gamma_ratio"]).broadcast_like(optima.gamma_opt)
    assert table.rows == int(run.sum()) < optima.gamma_opt.size
    found = [value for value in values(table, "gamma_opt") if value is not None]
    assert sorted(found) == pytest.approx(sorted(optima.gamma_opt.values[np.isfinite(optima.gamma_opt.values)]))


def test_csv_files_have_all_parameters_and_runs_as_numbers(ds, analyses):
    """Those along axes as columns, constant ones beside them; the runs are words in the page alone."""
    [table] = analysis_tables("exit_times", analyses["exit_times"], ds)
    shown = scan_plot(ds, analyses).table
    for each in (table, shown):
        assert {"gamma", "gamma_ratio", "Delta", "d", "runs"} <= {column.name for column in each.columns}
        assert {"p": 1, "activation": "square", "spherical": True}.items() <= each.json()["constants"].items()
        rows = zip(values(each, "runs"), values(each, "exit_steps_mean"), strict=True)
        assert {runs for runs, mean in rows if mean is not None} == {6}


def test_axes_that_few_variables_have_repeat_none_of_the_others():
    dataset, data = regimes()
    data["probability"] = data.confidence.expand_dims(candidate=REGIMES)
    data["level"] = data.confidence.expand_dims(d=[10, 20])
    found = analysis_tables("regimes", data, dataset)
    assert [(table.name, table.rows) for table in found] == [
        ("regimes", 15),
        ("regimes_candidate", 45),
        ("regimes_d", 30),
    ]
    assert [column.name for column in found[0].columns] == ["delta", "kappa", "regime", "confidence", "runs"]


def test_large_tables_have_their_size_alone(analyses, ds, monkeypatch):
    monkeypatch.setattr(tables, "MOST_CELLS", 100)
    [table] = analysis_tables("exit_times", analyses["exit_times"], ds)
    assert (table.columns, table.rows) == ([], int((ds.status > 0).any("seed").sum()))


def test_runs_are_counted_by_status_and_summed_over_what_is_gone(ds):
    troubled = ds.copy(deep=True)
    troubled["status"][{"dynamics": 0, "d": 0, "Delta": 0, "gamma_ratio": 0, "seed": [0, 1]}] = 2
    counts = run_counts(troubled, troubled[["d", "Delta", "gamma_ratio", "dynamics"]])
    assert counts.isel(dynamics=0, d=0, Delta=0, gamma_ratio=0).item() == "4 ok, 2 diverged"
    summed = run_counts(troubled, troubled[["dynamics"]])
    assert summed.isel(dynamics=0).item() == f"{2 * 2 * 8 * 6 - 2} ok, 2 diverged"
    assert run_counts(ds, ds[["d", "dynamics"]]).isel(dynamics=1, d=1).item() == "none"  # sgd at d = 3000


def test_a_sequence_of_colours_gets_lighter():
    shades = [
        sum(int(colour[at : at + 2], 16) * weight for at, weight in ((1, 0.299), (3, 0.587), (5, 0.114)))
        for colour in sequence(9)
    ]
    assert len(shades) == 9
    assert min(np.diff(shades)) > 5


def test_axes_and_colours_are_choices_among_what_the_data_have(ds, analyses):
    plot = scan_plot(ds, analyses)
    choice = plot.spec["choice"]
    horizontal = {each["name"]: each["along"] for each in choice["x"]}
    assert horizontal["gamma"] == "gamma_ratio"
    assert {"d", "Delta", "gamma_ratio"} <= set(horizontal)
    assert not {"seed", "dynamics", "threshold"} & set(horizontal)
    vertical = {each["name"]: each for each in choice["y"]}
    assert (choice["x"][0]["name"], choice["y"][0]["name"]) == (plot.spec["x"], plot.spec["y"])
    assert vertical["exit_steps_median"]["interval"] == ["exit_steps_median_low", "exit_steps_median_high"]
    assert vertical["exit_time_mean"]["error"] == "exit_time_mean_error"
    assert not any(name.endswith(("_error", "_low", "_high")) for name in vertical)
    assert {each["name"] for each in plot.spec["hues"]} == {"dynamics", "d", "Delta", "gamma_ratio"}
    others = {(control.column, bool(control.looks)) for control in plot.others}
    assert others == {("d", False), ("Delta", True), ("gamma_ratio", False), ("gamma_ratio", True)}


def test_choices_are_left_out_before_the_plot_is(ds, analyses, monkeypatch):
    whole = scan_plot(ds, analyses)
    cells = whole.table.rows * len(whole.table.columns)
    monkeypatch.setattr(plots, "MOST_CELLS", cells * 4 // 5)
    fewer = scan_plot(ds, analyses)
    assert fewer.spec
    assert len(fewer.spec["choice"]["y"]) < len(whole.spec["choice"]["y"])
    assert fewer.table.rows * len(fewer.table.columns) <= cells * 4 // 5


def test_points_have_the_values_of_their_seeds(ds, analyses):
    plot = scan_plot(ds, analyses)
    assert plot.spec["sampled"]["exit_steps_median"] == plot.spec["sampled"]["exit_steps_mean"] == "exit_steps"
    rows = list(zip(*(values(plot.table, name) for name in ("dynamics", "d", "Delta", "gamma_ratio")), strict=True))
    ratio = ds.gamma_ratio.values[3]
    found = plot.spec["samples"]["exit_steps"]
    assert len(found) == plot.table.rows
    expected = ds.exit_steps.sel(dynamics="sgd_chain", d=3000, Delta=1.0, gamma_ratio=ratio, threshold=0.01)
    assert found[rows.index(("sgd_chain", 3000, 1.0, ratio))] == pytest.approx(expected.values, rel=1e-4)
    assert found[rows.index(("ode", 3000, 1.0, ratio))] == []  # without noise all seeds are alike


def test_seeds_that_are_too_many_for_the_page_are_left_out_and_it_is_said(ds, analyses, monkeypatch):
    monkeypatch.setattr(choices, "MOST_RUNS", 100)
    plot = scan_plot(ds, analyses)
    assert plot.spec["samples"] == plot.spec["sampled"] == {}
    assert any("The seeds of single points are not in this page" in note for note in plot.notes)


def figure_plot(name, ds, **options):
    figure = FIGURES[name]
    return interactive_plot(name, figure.interactive(with_constants(ds), {}, **figure.check(options)), ds, {}, {})


def test_the_distribution_is_that_of_the_figure(ds):
    plot = figure_plot("distribution", ds, y="exit_steps")
    keys = zip(*(values(plot.table, name) for name in ("dynamics", "d", "Delta")), strict=True)
    chosen = [row for row, key in enumerate(keys) if key == ("sgd_chain", 3000, 1.0)]
    ratios = values(plot.table, "gamma_ratio")
    rows = [row for row in chosen if ratios[row] == ds.gamma_ratio.values[3]]
    at = {"dynamics": "sgd_chain", "d": 3000, "Delta": 1.0, "gamma_ratio": ds.gamma_ratio.values[3]}
    steps = np.sort(ds.exit_steps.sel(at).isel(threshold=0).values)
    shown, fractions = (np.array(values(plot.table, name))[rows] for name in ("value", "fraction"))
    np.testing.assert_allclose(shown.astype(float), [steps[0], *steps], rtol=1e-8)
    np.testing.assert_allclose(fractions.astype(float), np.arange(7) / 6, atol=1e-8)
    assert plot.spec["steps"]
    assert [each["name"] for each in plot.spec["choice"]["y"]] == ["fraction", "fraction_left"]


def test_the_distribution_of_equal_values_has_no_tick_that_is_no_number(ds):
    """Its curves have fewer places than runs; the rest of them is NaN."""
    ds = ds.assign(exit_steps=xr.full_like(ds.exit_steps, 3.0).assign_attrs(ds.exit_steps.attrs))
    plot = figure_plot("distribution", ds, y="exit_steps")
    assert plot.spec["ticks"]["x"] == [3.0]
    json.dumps(plot.json, allow_nan=False)


def test_trajectories_are_runs_with_the_median_of_all(ds):
    plot = figure_plot("trajectories", ds, y="risk", runs=3)
    assert set(values(plot.table, "seed")) == {0, 1, 2}
    keys = zip(*(values(plot.table, name) for name in ("dynamics", "d", "seed", "time")), strict=True)
    time = float(ds.time.values[5])
    row = [*keys].index(("sgd_chain", 3000, 1, time))
    at = {
        name: values(plot.table, name)[row]
        for name in ("dynamics", "d", "Delta", "gamma_ratio", "time")
        if name in ds.dims
    }
    held = [column.name for column in plot.table.columns]
    one = ds.risk.sel({name: value for name, value in at.items() if name in held})
    assert values(plot.table, "risk_seeds")[row] == pytest.approx(one.sel(seed=1).item(), rel=1e-8)
    assert values(plot.table, "risk_of_all")[row] == pytest.approx(one.median("seed").item(), rel=1e-8)
    assert [each["name"] for each in plot.spec["choice"]["x"]] == ["time", "steps"]


def test_every_run_of_a_dynamics_has_a_look_of_its_own():
    names = ["sgd", "sgd-2", "sgd-3", "sgd-4", "ode", "ode-2", "ode-3", "ode-4"]
    looks = dynamics_looks(names, "points")
    assert len({(look.marker, look.filled) for look in looks}) == len(names)
    assert len({tuple(look.swatch.items()) for look in looks}) == len(names)
    assert [look.filled for look in looks[:3]] == [1.0, 0.0, 0.5]


def test_seeds_that_a_point_was_not_given_are_not_among_its_seeds() -> None:
    """Of 40 seeds one point has 8, as after rounds, and one of these failed."""
    ds = sweep_dataset(ratios=(0.5, 1.0), d=(300,), Delta=(0.0,), seeds=40, dynamics=("sgd_chain",))
    few = (ds.seed > 7) & (ds.gamma_ratio == 0.5)
    ds = ds.assign(status=ds.status.where(~few, 0).astype(np.uint8), risk=ds.risk.where(~few & (ds.seed != 3)))
    last = ds.risk.mean("seed").isel(time=-1).to_dataset(name="risk")
    _, values, _ = samples(ds, last, ["risk"], [str(dim) for dim in last.risk.dims], np.ones(2, bool))
    assert sorted((len(point), point.count(None)) for point in values["risk"]) == [(8, 1), (40, 1)]


def test_an_infinite_end_of_an_interval_is_not_an_unknown_one():
    """The page drew no bar for both, so that the median of few exits looked certain."""
    ends = {"y_low": [-np.inf, 1.0, np.nan], "y_high": [2.0, np.inf, np.nan], "y": [1.0, np.inf, 3.0]}
    ds = xr.Dataset({name: ("a", values) for name, values in ends.items()}, {"a": [1, 2, 3]})
    _, low, high, y = columns(ds, ["a"], ends, np.ones(3, bool))
    assert low.values == ["-Infinity", 1.0, None] and high.values == [2.0, "Infinity", None]
    assert y.values == [1.0, None, 3.0]


def test_values_of_an_axis_that_agree_in_six_digits_have_other_labels():
    ds = xr.Dataset({"y": ("a", [1.0, 2.0, 3.0])}, {"a": [1.0000001, 1.0000002, 2.0]})
    assert columns(ds, ["a"], ["y"], np.ones(3, bool))[0].labels == ["1.0000001", "1.0000002", "2"]


def test_whole_numbers_that_a_script_would_round_are_texts():
    """A browser's numbers have 53 bits: the CSV file of the page had 2**60 in place of 2**60 + 1."""
    ds = xr.Dataset({"y": ("a", [1.0, 2.0, 3.0])}, {"a": [2**60, 2**60 + 1, 2**60 + 2]})
    axis = columns(ds, ["a"], ["y"], np.ones(3, bool))[0].json()
    assert axis["levels"] == ["1152921504606846976", "1152921504606846977", "1152921504606846978"]
    assert len(set(axis["labels"])) == 3
    table = tables.PageTable("t", "t", 3, [], {"n": 2**53 + 1, "few": 2**53, "x": np.inf, "flag": True})
    assert table.json()["constants"] == {"n": "9007199254740993", "few": 2**53, "x": "inf", "flag": True}


def test_each_quantity_has_the_notes_that_explain_it(ds):
    """Those of the first stayed where a reader chose another one: its arrows had no meaning."""
    censored = timed_out(ds, 2000.0)
    exits = {"exit_times": ANALYSES["exit_times"](censored)}
    declared = FIGURES["exited_fraction"].declared(censored, exits, where={"Delta": 1.0})
    plot = interactive_plot("exits", declared, censored, exits, {})
    choice = {each["name"]: each for each in plot.spec["choice"]["y"]}
    assert choice["exited_fraction"]["bound"] == "cut_short"  # which the picture alone had
    assert "Arrows: lower bound: runs were out of time." in choice["exited_fraction"]["note"]
    assert "Arrows: lower bound: runs were out of time." in plot.notes
    reason = exits["exit_times"]["restricted"].attrs["reason"]
    assert f"Arrows: {reason}." in choice["exit_steps_mean"]["note"]
    assert "Arrows" not in choice["exit_steps_median"]["note"]


def test_dynamics_of_curves_have_a_dash_each():
    """The fifth had that of the first."""
    names = ["sgd_chain", "sgd", "sde", "ode", "gradient_flow"]
    swatches = [look.swatch for look in dynamics_looks(names, "curves")]
    assert len({swatch.get("stroke-dasharray") for swatch in swatches}) == len(names)
