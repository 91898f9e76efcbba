"""Figures: legible, reproducible, and with clear errors if they cannot be drawn."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure as Drawing

from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.labels import axis_label, number, value_label
from sweeplib.pictures.figures.kit.marks import AFTER
from sweeplib.pictures.figures.kit.style import COLOURS, MARKERS, plain_ticks, save, styled
from tests.datasets import sweep_dataset

scan, risk = FIGURES["learning_rate_scan"], FIGURES["risk_curves"]


@pytest.fixture(scope="module")
def ds():
    return sweep_dataset(seeds=8)


def texts(drawing):
    """Return all texts of a figure."""
    return [text.get_text() for text in drawing.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.rest
def test_scan_has_a_panel_a_noise_and_a_strip_below(ds):
    drawing = scan(ds)
    assert len(drawing.axes) == 2 * ds.sizes["Delta"]
    assert [axes.get_title() for axes in drawing.axes[: ds.sizes["Delta"]]] == [r"$\Delta$ = 0", r"$\Delta$ = 1"]


@pytest.mark.rest
def test_scan_draws_every_mean_with_its_error(ds):
    """Three dynamics at the smallest d, two at the other, in each panel."""
    above = scan(ds).axes[0]
    assert len(above.containers) == 5
    for container in above.containers:
        assert container.has_yerr
        assert len(container.lines[0].get_xdata()) == ds.sizes["gamma_ratio"]


@pytest.mark.rest
def test_scan_is_in_units_of_the_theoretical_optimum(ds):
    drawing = scan(ds)
    x = drawing.axes[1].containers[0].lines[0].get_xdata()
    np.testing.assert_allclose(np.asarray(x, float), ds.gamma_ratio)
    assert any("gamma_{\\mathrm{opt}}" in text for text in texts(drawing))


@pytest.mark.rest
def test_scan_without_theory_is_in_gamma(ds):
    drawing = scan(ds.assign_coords(activation="erf"))
    assert r"learning rate $\gamma$" in texts(drawing)
    assert not any("theory" in text for text in texts(drawing))


@pytest.mark.rest
def test_scan_without_optima_has_nothing_below(ds):
    few = ds.isel(gamma_ratio=slice(0, 3)).assign_coords(activation="erf")
    assert len(scan(few).axes) == ds.sizes["Delta"]


@pytest.mark.rest
def test_an_optimum_at_the_end_of_a_scan_has_its_mark_beside_the_arrow(ds):
    """The legend says what the arrow is."""
    drawing = scan(ds.isel(gamma_ratio=slice(0, 5)))
    below = [axes for axes in drawing.axes if len(axes.get_yticklabels()) == ds.sizes["d"]]
    ends = [line for axes in below for line in axes.lines if line.get_marker() == AFTER]
    marks = [box.lines[0] for axes in below for box in axes.containers]
    assert ends
    assert any(mark.get_xdata()[0] == end.get_xdata()[0] for end in ends for mark in marks)
    assert all(mark.get_marker() not in ("", "none", "None", None) for mark in marks)
    assert "the optimum may lie beyond the scan" in texts(drawing)


@pytest.mark.rest
def test_an_arrow_stands_at_the_last_learning_rate_at_which_its_dynamics_was_run(ds):
    whole = ds.isel(gamma_ratio=slice(0, 6)).sel(Delta=[1.0], d=[300])
    last, chain = whole.gamma_ratio == whole.gamma_ratio[-1], whole.dynamics == "sgd_chain"
    status = whole.status.where(~(last & chain), 0).astype(np.uint8).assign_attrs(whole.status.attrs)
    every, without = (
        {round(line.get_xdata()[0], 6) for axes in drawing.axes for line in axes.lines if line.get_marker() == AFTER}
        for drawing in (scan(whole), scan(whole.assign(status=status)))
    )
    assert every == set(whole.gamma_ratio.values[-1:].round(6))
    assert without == set(whole.gamma_ratio.values[-2:].round(6))


@pytest.mark.rest
def test_scan_with_one_problem_has_one_panel(ds):
    assert len(scan(ds, where={"Delta": 1.0, "d": 300}).axes) == 2


@pytest.mark.rest
def test_panel_and_hue_may_be_exchanged(ds):
    drawing = scan(ds, panel="d", hue="Delta")
    assert [axes.get_title() for axes in drawing.axes[:2]] == ["$d$ = 300", "$d$ = 3000"]


@pytest.mark.rest
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"where": {"Delta": 0.3}},
            "where.Delta: not a value of the axis Delta; got 0.3; expected one of 0.0, 1.0; did",
        ),
        ({"where": {"dynamics": "sdg"}}, "did you mean 'sgd'"),
        ({"where": {"Dleta": 0.3}}, "did you mean 'Delta'"),
        ({"panel": "p"}, "panel: no such axis to draw; got 'p'"),
        ({"panel": "d", "hue": "d"}, "hue: drawn twice"),
        ({"scale": "log"}, "scale: not a valid option of the figure 'learning_rate_scan'; got 'log'; expected one of"),
        ({"hue": 3}, "hue: not a valid option of the figure 'learning_rate_scan'; got 3; expected a text"),
        ({"color": 1}, "color: unknown option of the figure 'learning_rate_scan'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ds, options, problem):
    with pytest.raises(InputError, match=problem.replace(".", r"\.")):
        scan(ds, **options)


def test_too_many_axes_are_refused(ds):
    data = ds.expand_dims(p=[1, 2])
    with pytest.raises(InputError, match="too many axes for one figure"):
        arranged(data, {"dynamics", "gamma_ratio", "seed", "time"}, spare=False)


def test_too_many_values_are_refused(ds):
    with pytest.raises(InputError, match="too many values of gamma_ratio"):
        arranged(ds, {"dynamics", "seed", "time", "d", "Delta"}, spare=False)


def test_risk_curves_end_where_the_first_run_stopped(ds):
    cut = ds.copy(deep=True)
    cut["risk"] = cut.risk.where((cut.seed != 3) | (cut.time < 1.0))
    line = risk(cut, where={"Delta": 0.0, "d": 300, "gamma_ratio": 0.3}).axes[0].lines[0]
    assert line.get_xdata()[np.isfinite(line.get_ydata())].max() < 1.0


@pytest.mark.rest
def test_files_are_reproducible_and_embed_their_fonts(ds, tmp_path):
    files = [list(save(scan(ds, where={"Delta": 0.0, "d": 300}), tmp_path / name / "scan")) for name in "ab"]
    for once, again in zip(*files, strict=True):
        assert once.read_bytes() == again.read_bytes()
    pdf = files[0][0].read_bytes()
    assert b"/CreationDate" not in pdf
    assert b"/Type3" not in pdf


def test_colours_differ_in_lightness_or_marker():
    def lightness(colour):
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    first = [lightness(colour) for colour in COLOURS[:3]]
    assert min(np.diff(sorted(first))) > 0.15
    assert len(set(MARKERS)) == len(COLOURS)


def test_labels_come_from_the_attributes(ds):
    assert axis_label(ds.gamma) == r"learning rate $\gamma$"
    assert axis_label(ds.time.assign_attrs(units="s")) == "ODE time $t$ (s)"
    assert value_label(ds.Delta[1]) == r"$\Delta$ = 1"
    assert value_label(-0.5 * ds.Delta[1]) == "$\\Delta$ = \N{MINUS SIGN}0.5"
    assert value_label(ds.Delta[1] / 7.0) == r"$\Delta$ = 0.1429"


@pytest.mark.rest
@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.021867241, 0.1], ["0.02187", "0.1"]),
        ([0.021867241, 0.02187], ["0.021867", "0.02187"]),
        ([0.123456789, 0.123456788], ["0.123456789", "0.123456788"]),
        ([1234567, 1234568], ["1234567", "1234568"]),
        ([1.5e300, 1.0], [r"$1.5\times 10^{300}$", "1"]),
    ],
)
def test_titles_and_legends_have_the_digits_that_tell_values_apart(ds, values, shown):
    axis = ds.assign_coords(Delta=values).Delta
    assert [value_label(one, axis).partition(" = ")[2] for one in axis] == shown
    drawing = FIGURES["risk_curves"](ds.assign_coords(Delta=values), panel="d", hue="Delta", where={"dynamics": "sgd"})
    panels = FIGURES["risk_curves"](ds.assign_coords(Delta=values), panel="Delta", hue="d", where={"dynamics": "sgd"})
    assert {text.get_text() for text in drawing.legends[0].get_texts()} >= {axes.get_title() for axes in panels.axes}


@pytest.mark.parametrize(
    ("value", "text"), [(3000, "3000"), (0.5, "0.5"), (10**6, "$10^{6}$"), (2e5, r"$2\times 10^{5}$"), ("erf", "erf")]
)
def test_numbers_as_one_writes_them(value, text):
    assert number(value) == text


@pytest.mark.rest
@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (4e-4, 0.01, [r"$5\times 10^{-4}$", r"$10^{-3}$"]),
        (1e-3, 0.1, ["0.001", "0.002"]),
        (90, 2.1e4, ["100", "20000"]),
        (0.97, 1.11, ["1", "1.04", "1.08"]),
    ],
)
def test_logarithmic_axes_have_numbers_in_one_notation(low, high, texts):
    with styled():
        drawing = Drawing()
        axes = drawing.add_subplot(xscale="log", xlim=(low, high))
        plain_ticks(axes.xaxis, (1.0, 2.0, 5.0))
        drawing.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert set(texts) <= set(labels) and len({"10^" in label for label in labels}) == 1


def test_a_point_of_a_table_is_named_by_what_points_differ_in():
    columns = {
        "gamma": [0.1, 0.2],
        "p": [4, 4],
        "a": [np.nan, np.nan],
        "target": ["committee", "lam1"],
        "round": [0, 1],
    }
    points = xr.DataArray([0, 1], dims="point", name="point").assign_coords(point=[0, 1])
    points = points.assign_coords({name: ("point", values) for name, values in columns.items()})
    assert value_label(points[1], points) == r"$\gamma$ = 0.2, target = $\lambda^*_{1}$"
    assert value_label(points[1].drop_vars(columns), points.drop_vars(columns)) == "point = 1"


def test_ticks_are_written_out_without_an_offset():
    with styled():
        drawing = Drawing()
        axes = drawing.add_subplot()
        axes.plot([0.0, 1.0], [2.0, 2.0 - 1e-9])
        drawing.draw_without_rendering()
    assert axes.yaxis.get_offset_text().get_text() == ""
    assert len({label.get_text() for label in axes.get_yticklabels()}) == len(axes.get_yticks())


@pytest.mark.rest
def test_names_of_figures_are_known_without_matplotlib():
    code = "import sys, sweeplib.pictures.figures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
