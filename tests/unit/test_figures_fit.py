"""Everything in a figure is inside it, texts do not overlap, and the legend lists what is drawn, as Agg measures it."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.legend import Legend
from matplotlib.text import Text

from sweeplib.analysis import ANALYSES
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.fit import fitted
from sweeplib.pictures.figures.kit.legend import legend_below
from sweeplib.pictures.figures.kit.panels import panel_grid
from sweeplib.pictures.figures.kit.style import COLOURS, plain_ticks, set_log, styled
from tests.datasets import giant_steps_dataset, norms_dataset, sweep_dataset, units_dataset
from tests.tiers import slow_but

LONG = "a dynamics of a plugin whose author gave it a rather long name"


@pytest.fixture(autouse=True)
def in_style():
    """Use the style of the figure stage, which affects the ticks that matplotlib chooses."""
    with styled():
        yield


def drawn(drawing: Drawing) -> Drawing:
    """Return the figure, laid out for Agg, which measures its texts."""
    FigureCanvasAgg(drawing)
    drawing.draw_without_rendering()
    return drawing


def written(drawing: Drawing) -> list[Text]:
    """Return all texts outside the axes or on them, except legends."""
    inside = {id(text) for legend in drawing.legends for text in legend.get_texts()}
    texts = drawing.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() and artist.get_visible())
    for axes in drawing.axes:  # ticks beyond the ends of an axis exist, and are not drawn
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = (*axis.get_major_ticks(), *axis.get_minor_ticks())
            inside |= {id(tick.label1) for tick in ticks if not low <= tick.get_loc() <= high}
            inside |= {id(tick.label2) for tick in ticks}
    return [text for text in texts if id(text) not in inside]


def assert_it_fits(drawing: Drawing) -> None:
    drawn(drawing)
    canvas = drawing.bbox.padded(1.0)
    boxes = [(repr(text.get_text()), text.get_window_extent()) for text in written(drawing)]
    boxes += [("legend", legend.get_window_extent()) for legend in drawing.legends]
    for name, box in boxes:
        assert canvas.containsx(box.x0) and canvas.containsx(box.x1), f"{name} is beside the figure"
        assert canvas.containsy(box.y0) and canvas.containsy(box.y1), f"{name} is above or below the figure"
    for (one, box), (other, beside) in combinations(boxes, 2):
        assert not box.padded(-0.5).overlaps(beside.padded(-0.5)), f"{one} is over {other}"
    for axes in drawing.axes:
        whole = axes.get_tightbbox()
        assert canvas.containsx(whole.x0) and canvas.containsx(whole.x1)
        for legend in drawing.legends:
            assert not legend.get_window_extent().overlaps(whole.padded(-0.5)), "the legend is over the axes"
    for legend in drawing.legends:
        assert min(text.get_fontsize() for text in legend.get_texts()) >= 6.5


def some_panels(width: float, count: int = 1) -> Drawing:
    panels = panel_grid(count, width=2.0, alone=width, height=2.5)
    for stack in panels.stacks:
        stack[0].plot([0.0, 1.0], [0.0, 1.0])
    panels.xlabel("learning rate")
    panels.ylabel("risk")
    return panels.drawing


def entries(count: int, label: str) -> list[tuple[dict[str, str], str]]:
    return [({"color": COLOURS[index % 6], "marker": "o"}, f"{label} {index}") for index in range(count)]


QUICK = (1, 2, 3, 5, 8, 12)


@pytest.mark.parametrize(
    "counts", [QUICK, pytest.param(sorted({*range(1, 13)} - {*QUICK}), marks=pytest.mark.long)], ids=["quick", "others"]
)
@pytest.mark.parametrize("width", [3.4, 7.0])
@pytest.mark.parametrize("label", slow_but(["$d$ =", "noise-corrected theory", LONG, "one-word-" * 12], LONG))
def test_a_legend_of_one_to_twelve_entries_fits(width: float, label: str, counts: Sequence[int]) -> None:
    for count in counts:
        groups = [count] if count % 2 else [count // 3, count - count // 3 - count // 4, count // 4]
        drawing = some_panels(width)
        legend_below(drawing, [entries(some, label) for some in groups])
        assert_it_fits(fitted(drawing))
        [legend] = drawing.legends
        assert len([text for text in legend.get_texts() if text.get_text()]) == count


@pytest.mark.parametrize("panels", [2, 3, 4, 5])
def test_a_legend_below_several_panels_fits(panels: int) -> None:
    for count in (1, 12):
        drawing = some_panels(3.8, panels)
        legend_below(drawing, [entries(count, "noise-corrected theory")])
        assert_it_fits(fitted(drawing))


def test_the_figure_grows_and_the_axes_keep_their_size() -> None:
    bare, few, many = (drawn(with_legend(count)) for count in (0, 1, 12))
    sizes = [drawing.axes[0].get_window_extent().size for drawing in (bare, few, many)]
    np.testing.assert_allclose(sizes[1], sizes[0], atol=1.5)
    np.testing.assert_allclose(sizes[2], sizes[0], atol=1.5)
    assert bare.get_figheight() < few.get_figheight() < many.get_figheight()


def with_legend(count: int) -> Drawing:
    drawing = some_panels(3.8)
    legend_below(drawing, [entries(count, "noise-corrected theory")] if count else [])
    return fitted(drawing)


def test_labels_longer_than_their_panels_get_more_lines() -> None:
    panels = panel_grid(3, width=2.3, alone=4.0, height=4.0)
    for place, stack in enumerate(panels.stacks):
        stack[0].plot([1e-6, 1.0], [1e-6, 1.0])
        stack[0].set_xscale("log")
        panels.title(place, f"{LONG} = 3 $\\times 10^{{-5}}$")
    panels.xlabel(f"time in units of {LONG}")
    panels.ylabel(f"{LONG} and another one")
    panels.note(f"at {LONG} = 3, {LONG} = 4")
    assert_it_fits(fitted(panels.drawing))
    assert "\n" in panels.stacks[0][0].get_title()
    assert panels.stacks[0][0].get_ylabel().replace("\n", " ") == f"{LONG} and another one"


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_tick_labels_leave_each_other_room(scale: str) -> None:
    panels = panel_grid(5, width=2.0, alone=3.8, height=2.0)
    for stack in panels.stacks:
        stack[0].plot([2e-4, 9e4], [0.0, 1.0])
        stack[0].set_xscale(scale)
    ticks = [1e-3, 2e-3, 3e-3, 1e4, 2e4]
    panels.stacks[0][0].set_xticks(ticks, labels=["0.001", "0.002", "0.003", "10000", "20000"])
    assert_it_fits(fitted(panels.drawing))
    assert panels.stacks[0][0].get_xticks().tolist() == ticks


@cache
def datasets() -> dict[str, xr.Dataset]:
    """Return a small grid, a large one, one with widths, one of limits, one of exponents, one of batch sizes."""
    many = {"d": (100, 1000, 30_000), "Delta": (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)}
    every = ("ode", "sgd", "sgd_chain")
    parts = [sweep_dataset(seeds=6, dynamics=("ode", "sgd_chain"), random_seed=p) for p in (1, 2, 3, 4, 12, 16)]
    named = [
        part.drop_attrs(deep=False).assign_coords(p=p) for part, p in zip(parts, (1, 2, 3, 4, 12, 16), strict=True)
    ]
    fixed = {name: value for name, value in parts[0].attrs.items() if name != "p"}
    return {
        "small": sweep_dataset(seeds=6),
        "large": sweep_dataset(seeds=4, ratios=np.linspace(0.3, 1.7, 5), dynamics=every, **many),
        "widths": xr.concat(named, "p", coords=["p"], combine_attrs="override").assign_attrs(fixed),
        "limits": sweep_dataset(seeds=6, derived=False, Delta=(0.0,), dynamics=("ode", "gradient_flow", "sgd_chain")),
        "exponents": regime_dataset((-1.0, 0.0, 1.0), (0.0, 0.5), (100, 1000), seeds=6),
        "giant steps": giant_steps_dataset(steps=40),
        "norms": norms_dataset(),
        "units": units_dataset(times=5),
    }


@cache
def analysed(name: str, words: str) -> xr.Dataset:
    analysis = ANALYSES[name]
    return analysis(datasets()[words], **({"resamples": 50} if "resamples" in analysis.check({}) else {}))


def figure(name: str, words: str, **options) -> Drawing:
    analyses = {need: analysed(need, words) for need in FIGURES[name].needed({})}
    return FIGURES[name](datasets()[words], analyses, **options)


ONE = {"Delta": 1.0, "d": 3000}
PANELS = {
    "batch_tradeoff": {"one": ("giant steps", {})},
    "deviation": {"one": ("small", {"Delta": 1.0}), "many": ("large", {})},
    "distribution": {"one": ("small", ONE | {"gamma_ratio": 0.9}), "many": ("large", {})},
    "norm_density": {"one": ("norms", {"time": 4.0}), "many": ("norms", {})},
    "exit_time_distributions": {"one": ("small", ONE | {"gamma_ratio": 0.9}), "many": ("large", {})},
    "exit_time_scaling": {"one": ("small", {"Delta": 1.0, "gamma_ratio": 0.9}), "many": ("large", {})},
    "exited_fraction": {"one": ("small", ONE), "many": ("large", {})},
    "learning_rate_scan": {"one": ("small", ONE), "many": ("large", {})},
    "limits_diagram": {"one": ("limits", {})},
    "line": {"one": ("giant steps", {}), "many": ("large", {})},
    "map": {"one": ("small", {"Delta": 1.0, "dynamics": "sgd"}), "many": ("large", {})},
    "optimal_learning_rate": {"one": ("widths", ONE), "many": ("widths", {})},
    "overparametrisation_gain": {"one": ("widths", ONE), "many": ("widths", {})},
    "phase_diagram": {"one": ("exponents", {})},
    "ratio": {"one": ("giant steps", {}), "many": ("large", {})},
    "risk_curves": {"one": ("small", ONE | {"gamma_ratio": 0.9}), "many": ("large", {})},
    "risk_fans": {"one": ("limits", {}), "many": ("large", {"d": 100})},
    "risk_floor": {"one": ("small", ONE), "many": ("large", {})},
    "sample_complexity": {"one": ("small", {"Delta": 1.0, "gamma_ratio": 0.9}), "many": ("large", {})},
    "unit_clouds": {"one": ("units", {"time": 4.0}), "many": ("units", {"time": [0.0, 1.0, 2.0, 3.0, 4.0]})},
    "trajectories": {"one": ("small", ONE | {"gamma_ratio": 0.9}), "many": ("large", {})},
}
COSTLY = (
    "batch_tradeoff",
    "deviation",
    "exit_time_scaling",
    "learning_rate_scan",
    "optimal_learning_rate",
    "overparametrisation_gain",
    "phase_diagram",
    "ratio",
)
"""Figures that take longest, by their analyses; they have the parts of the others."""


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        pytest.param(
            name,
            panels,
            marks=pytest.mark.long
            if panels == "many" and "one" in PANELS.get(name, ())
            else [pytest.mark.slow] * (name in COSTLY),
        )
        for name in FIGURES
        for panels in PANELS.get(name, ["many"])
    ],
)
def test_every_figure_fits_with_one_panel_and_with_many(name: str, panels: str) -> None:
    """A figure that is not named in PANELS is drawn with default options from the first dataset that it fits."""
    words, where = PANELS[name][panels] if name in PANELS else (first_that_fits(name), {})
    drawing = figure(name, words, **({"where": where} if where else {}))
    assert_it_fits(drawing)
    assert_the_legend_lists_the_colours(drawing)


def first_that_fits(name: str) -> str:
    for words in datasets():
        with suppress(InputError):
            figure(name, words)
            return words
    pytest.fail("it fits none of the datasets")


def assert_the_legend_lists_the_colours(drawing: Drawing) -> None:
    """The colours of the lines are those of the legend, if it has any; no gid is left."""
    seen = {line.get_color() for axes in drawing.axes for line in axes.lines if finite(line)} & set(COLOURS)
    legend = next(iter(drawing.legends), None)
    if legend is None:
        return
    listed = {line.get_color() for line in legend.get_lines()} & set(COLOURS)
    assert listed <= seen
    assert seen <= listed or len(seen) == 1
    assert not any(line.get_gid() for axes in drawing.axes for line in axes.lines)


def finite(line) -> bool:
    return bool(np.isfinite(np.asarray(line.get_xydata(), float)).all(axis=1).any())


def listed(drawing: Drawing) -> list[str]:
    legend: Legend = drawing.legends[0]
    return [text.get_text() for text in legend.get_texts() if text.get_text()]


def test_a_colour_without_points_is_not_listed() -> None:
    ds = datasets()["small"].copy(deep=True)
    gone = ds.where(ds.d != 300)
    gone["status"] = ds.status.where(ds.d != 300, 0).astype(np.uint8).assign_attrs(ds.status.attrs)
    for name in ("exited_fraction", "risk_floor", "learning_rate_scan"):
        assert "$d$ = 300" in listed(FIGURES[name](ds, where={"Delta": 1.0})), name
        without = listed(FIGURES[name](gone.assign_coords(activation="erf"), where={"Delta": 1.0}))
        assert "$d$ = 300" not in without, name
        assert "$d$ = 3000" in without, name


def test_theory_that_is_not_there_is_not_listed() -> None:
    small = listed(figure("learning_rate_scan", "large", where={"d": 100, "Delta": 1.0}))
    assert "quenched theory" in small
    assert not {"noise-corrected theory", "noise-corrected optimum"} & set(small)
    large = listed(figure("learning_rate_scan", "large", where={"d": 30_000, "Delta": 1.0}))
    assert {"noise-corrected theory", "noise-corrected optimum"} <= set(large)


def test_marks_that_are_not_there_are_not_listed() -> None:
    optima = analysed("optimal_learning_rate", "widths").copy()
    for edge in (False, True):
        optima["at_edge"] = xr.full_like(optima.at_edge, edge)
        drawing = FIGURES["optimal_learning_rate"](datasets()["widths"], {"optimal_learning_rate": optima}, where=ONE)
        assert ("the optimum may lie beyond the scan" in listed(drawing)) is edge
    assert "end of linear theory" not in listed(figure("exited_fraction", "small", where=ONE))


def test_regimes_that_are_not_there_are_not_listed() -> None:
    regimes = analysed("regimes", "exponents")
    names = np.array(regimes.regime.attrs["flag_meanings"].split())[np.unique(regimes.regime)]
    words = {name.replace("_", " ").replace("ode", "ODE") for name in names}
    found = set(listed(figure("phase_diagram", "exponents")))
    assert found - {r"$\kappa+\delta=0$", r"$\kappa+\delta=-0.5$"} == words


def plain_drawing() -> Drawing:
    """A figure as a plugin may make it, too small for its labels in the margins of matplotlib."""
    drawing = Drawing(figsize=(4, 3))
    drawing.subplots().set(xlabel="learning rate γ", ylabel="mean risk at the end,\nover all seeds", xscale="log")
    return drawing


def test_a_figure_without_a_layout_fits():
    assert_it_fits(fitted(plain_drawing()))


@pytest.mark.parametrize("given", ["margins", "grid", "layout"])
def test_a_layout_of_ones_own_is_kept(given):
    drawing = plain_drawing()
    if given == "margins":
        drawing.subplots_adjust(left=0.3)
    elif given == "grid":
        drawing.clear()
        drawing.subplots(gridspec_kw={"left": 0.3})
    else:
        drawing.set_layout_engine("tight")
    layout, place = drawing.get_layout_engine(), drawing.axes[0].get_position().bounds
    assert fitted(drawing).get_layout_engine() is layout
    assert drawn(drawing).axes[0].get_position().bounds == place or given == "layout"


def test_a_title_is_not_broken_within_the_arguments_of_an_activation():
    """Their title is smaller, as are those of the other panels, if they are longer than a line."""
    names = ["piecewise(0.5, -2.5, 1.5, 7.5)", "piecewise(0, -2.5, 0.5, -4, 1.5, 7.5)"]
    ds = norms_dataset()
    several = ds.expand_dims(activation=names)
    del several.attrs["activation"]
    drawing = FIGURES["line"](several, y="risk", x="p", panel="activation")
    drawing.draw_without_rendering()
    for axes, name in zip(drawing.axes, names, strict=True):
        assert axes.get_title().split("\n")[-1].endswith(name.replace("-", "−"))
    assert len({axes.title.get_fontsize() for axes in drawing.axes}) == 1


def test_crowded_labels_of_a_logarithmic_axis_are_those_of_powers_of_ten():
    """Every second of 100, 200, 500, ... would be 100, 500, 2000, 10,000."""
    panels = panel_grid(1, width=1.6, alone=2.2, height=2.5)
    [[axes]] = panels.stacks
    axes.plot([100, 33000], [0.0, 1.0])
    set_log(axes, "x")
    plain_ticks(axes.xaxis)
    drawn(fitted(panels.drawing))
    assert [text.get_text() for text in axes.get_xticklabels() if text.get_text()] == ["100", "1000", "10000"]


def test_arrows_at_bounds_end_within_the_axes():
    ds = sweep_dataset(seeds=8, horizon=1.0)
    drawing = FIGURES["line"](ds, {"exit_times": ANALYSES["exit_times"](ds)}, y="exit_steps", x="gamma")
    drawn(fitted(drawing))
    arrows = [line for axes in drawing.axes for line in axes.lines if isinstance(line.get_marker(), tuple)]
    assert arrows
    for line in arrows:
        at = line.get_transform().transform(line.get_xydata())[:, 1]
        tip = at + 0.5 * line.get_markersize() * drawing.dpi / 72.0
        # room is made before the layout, which makes axes lower: a tip may come to lie on the line of the frame
        frame = line.axes.spines["top"].get_linewidth() * drawing.dpi / 72.0
        assert tip.max() <= line.axes.bbox.y1 + frame
