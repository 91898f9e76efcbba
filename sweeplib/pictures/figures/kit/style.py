"""The style of all figures: colour-blind safe, distinguishable in grey by lightness, marker and dash."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.storage.records.files import write_bytes
from sweeplib.pictures.figures.kit.labels import MINUS, number, power_of_ten
from sweeplib.pictures.figures.kit.late_matplotlib import mpl

COLOURS = ("#14365f", "#c8452b", "#e39b1f", "#2b9a93", "#8c5fb0", "#7fb8e6")
MARKERS = ("o", "s", "D", "v", "P", "h")
"""The colours and markers of the values of a hue, in their order."""
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
DASHES += ((0, (1, 3)), (0, (9, 2)), (0, (5, 1, 1, 1, 1, 1)), (0, (9, 1, 3, 1)))
"""The dashes of several dynamics, in their order."""
THEORY_DASHES: dict[str, Any] = {"annealed": (0, (1, 1.2)), "quenched": (0, (5, 2)), "noise-corrected": "solid"}
"""The dashes of theories of exit times, by name."""
INK, DIM, FAINT, UNDECIDED = "#222222", "#5a5a5a", "#9a9a9a", "#c4c8ce"
"""The colours of text, of notes, of what stands back, and of points without a decided label."""
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.formatter.useoffset": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 1.8,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "savefig.bbox": "standard",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "sweeplib",
}
TEXT_WIDTH = 7.0
"""The width in inches of the text of a two-column page."""


UPWARDS = ((0.0, 0.0), (0.0, 1.0), (-0.2, 0.68), (0.0, 1.0), (0.2, 0.68), (0.0, 1.0), (0.0, 0.0))
"""The corners of an arrow that rises from its place, and comes back to it."""
DOWNWARDS = tuple((x, -y) for x, y in UPWARDS)
ARROWS = {"above": UPWARDS, "below": DOWNWARDS, "either": UPWARDS + DOWNWARDS}
"""The corners of the marks of bounds, by the side on which the truth may lie."""
UNKNOWN: dict[str, Any] = {"linestyle": "none", "marker": r"$\varnothing$", "markersize": 6.0, "markeredgewidth": 0.2}
"""The mark of a point that was run but has no value."""
MULTIPLES = ((1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0, 7.0), (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0))
FEWEST_TICKS = 3
"""The least number of ticks of a logarithmic axis, and the multiples of powers of ten that are tried to reach it."""

PLAIN = (0.999e-3, 0.999e5)
"""Between these numbers an axis may have them written out, with some room for rounding errors."""

ENDS, NEAR_ENDS = (-323.0, 308.25), 250.0
"""The powers of ten of the least and the largest limit of a logarithmic axis, and the power that is near to them."""
MOST_POWERS, STEPS, LEAST_POWER = 6, (1, 2, 5, 10, 20, 50, 100, 200), -307
"""The most steps between ticks at powers of ten, the sizes of a step, and the least power of full precision."""


@contextmanager
def styled() -> Iterator[None]:
    """Return a context in which matplotlib has this style and none of the user's settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def look(index: int) -> dict[str, Any]:
    """Return the colour and marker of value number `index` of a hue, and the gid by which legends find it."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "gid": f"hue-{index}",
    }


def line_look(index: int, *gids: str) -> dict[str, Any]:
    """Return the colour of value number `index` of a hue, for a line that legends also list under `gids`."""
    return {"color": COLOURS[index % len(COLOURS)], "gid": " ".join((f"hue-{index}", *gids))}


CROSSES = (("x", 6.5), ("+", 8.0), ("1", 8.0), ("2", 8.0))
"""Markers of deterministic dynamics, in their order, with their sizes."""
HALVES = ("bottom", "left", "top", "right")
"""The filled halves of the markers of stochastic dynamics from the third on."""


def dynamics_look(name: str, names: list[str], looks: dict[str, Any]) -> dict[str, Any]:
    """Return the look of a dynamics: its marker is filled, open or half filled, or a cross if it is deterministic.

    names : all dynamics in their order, stochastic ones first. looks : colour, marker and gid of the hue. A dynamics
    that is drawn alone has the filled marker. Crosses lie above other markers and are larger: where theory and SGD
    agree, both are visible.
    """
    looks = looks | {"gid": f"{looks.get('gid', '')} dynamics-{name}".strip()}
    if not is_stochastic(name) and len(names) > 1:
        number = sum(not is_stochastic(other) for other in names[: names.index(name)])
        marker, size = CROSSES[number % len(CROSSES)]
        return looks | {"marker": marker, "markersize": size, "markeredgewidth": 0.9, "zorder": 5}
    if names.index(name) == 0:
        return looks | {"zorder": 4}
    if names.index(name) == 1:
        return looks | {"markerfacecolor": "white", "markersize": 6.2, "zorder": 3}
    half = HALVES[(names.index(name) - 2) % len(HALVES)]
    return looks | {"fillstyle": half, "markerfacecoloralt": "white", "markersize": 6.2, "zorder": 3}


@dataclass(frozen=True)
class Looks:
    """How dynamics are told apart.

    of : function (name, all names in their order, stochastic ones first, look of the colour) that returns a look.
    entry : function of a name that returns what its entry in a legend has beside that look. hue : the same of a colour.
    words : what stands after the name of a dynamics there.
    listed : whether a single dynamics has an entry too, in ink.
    handle : the length of the lines in the legend; 0: the usual one.
    """

    of: Callable[[str, list[str], dict[str, Any]], dict[str, Any]]
    entry: Callable[[str], dict[str, Any]] = lambda _: {}
    hue: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    listed: bool = True
    handle: float = 0.0


def by_dashes(dashes: tuple[Any, ...] = DASHES, handle: float = 0.0) -> Looks:
    """Return looks of which the first lies on top, told apart by dashes; long ones need a longer `handle`."""

    def of(name: str, names: list[str], look: dict[str, Any]) -> dict[str, Any]:
        """Return the look of a dynamics (`Looks`)."""
        place, gid = names.index(name), f"{look.get('gid', '')} dynamics-{name}".strip()
        return {"color": look["color"], "linestyle": dashes[place % len(dashes)], "zorder": 3 - place, "gid": gid}

    return Looks(of, hue={"marker": "none", "linewidth": 2.0}, handle=handle)


BY_MARKER = Looks(dynamics_look, lambda _: {"linestyle": "none"}, {"linestyle": "none"}, listed=False)
"""The looks of dynamics by markers, without lines in the legend."""


def bound_mark(side: str) -> dict[str, Any]:
    """Return the mark, on top of that of a point, of a bound, by the `side` of the truth: above, below or either."""
    return {"linestyle": "none", "marker": ARROWS[side], "markersize": 20.0, "markerfacecolor": "none", "gid": "bound"}


def mark_unknown(axes: mpl.axes.Axes, where: np.ndarray, colour: str) -> None:
    """Draw the mark of points without a value on the horizontal axis, at these places."""
    mark = UNKNOWN | {"color": colour, "gid": "unknown", "transform": axes.get_xaxis_transform()}
    if where.size:
        axes.plot(where, np.full(where.size, 0.02), **mark)


def set_log(axes: mpl.axes.Axes, axis: Literal["x", "y"]) -> None:
    """Make an axis logarithmic; curves begin at their first point with x > 0, error bars may reach below any height."""
    if axis == "x":
        axes.set_xscale("log", nonpositive="mask")
    else:
        axes.set_yscale("log")


def plain_ticks(axis: mpl.axis.Axis, multiples: tuple[float, ...] = (1.0, 2.0, 5.0)) -> None:
    """Give a logarithmic axis ticks at these multiples of powers of ten, written out, or at more if these are too few.

    A narrow one, on which there are no three of them, has evenly spaced ticks. Other axes, and those over more than
    three decades, keep their ticks.
    """
    if axis.get_scale() != "log":
        return
    keep_within_doubles(axis)
    low, high = axis.get_view_interval()
    if high > 1e3 * low:
        return
    locators: list[mpl.ticker.Locator] = [mpl.ticker.LogLocator(subs=subs) for subs in (multiples, *MULTIPLES)]
    counts = [sum(low <= place <= high for place in locator.tick_values(low, high)) for locator in locators]
    enough = (locator for locator, number in zip(locators, counts, strict=True) if number >= FEWEST_TICKS)
    axis.set_major_locator(next(enough, mpl.ticker.MaxNLocator(4)))
    axis.set_major_formatter(_one_notation(axis))
    axis.set_minor_formatter(mpl.ticker.NullFormatter())


def _one_notation(axis: mpl.axis.Axis) -> mpl.ticker.FuncFormatter:
    """Return what writes the numbers at ticks: all written out or, if one is small or large, all as powers of ten."""

    def text(place: float, _: object) -> str:
        """Return the text of the tick at a place; the second argument is that of matplotlib, the number of the tick."""
        low, high = axis.get_view_interval()
        ticks = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        is_plain = not ticks or (min(ticks) > PLAIN[0] and max(ticks) < PLAIN[1])
        return f"{place:.5g}" if is_plain else power_of_ten(place)

    return mpl.ticker.FuncFormatter(text)


def keep_within_doubles(axis: mpl.axis.Axis) -> None:
    """Give a logarithmic axis that comes near to the largest or the least double limits and ticks that are doubles.

    Those of matplotlib overflow.
    """
    if axis.get_scale() != "log":
        return
    name = _name(axis)
    is_free = getattr(axis.axes, f"get_autoscale{name}_on")()
    ends = _positive_range(axis) if is_free else axis.get_view_interval()
    if min(ends) <= 0.0:
        return
    low, high = np.log10(ends)
    if max(-low, high) < NEAR_ENDS:
        return
    margin = 0.05 * (high - low) if is_free else 0.0
    limits = 10.0 ** np.clip([low - margin, high + margin], *ENDS)
    getattr(axis.axes, f"set_autoscale{name}_on")(False)
    getattr(axis.axes, f"set_{name}lim")(*limits)
    # three decades or more have ticks at powers of ten
    if limits[1] / 1e3 > limits[0]:
        axis.set_major_locator(_powers_of_ten(*limits))
        axis.set_major_formatter(mpl.ticker.FuncFormatter(lambda place, _: number(place)))
        axis.set_minor_locator(mpl.ticker.NullLocator())


def _powers_of_ten(low: float, high: float) -> mpl.ticker.Locator:
    """Return ticks at a few evenly spaced powers of ten between two positive numbers."""
    first, last = max(int(np.ceil(np.log10(low))), LEAST_POWER), int(np.floor(np.log10(high)))
    step = next(step for step in STEPS if last - first <= MOST_POWERS * step)
    return mpl.ticker.FixedLocator([10.0**power for power in range(-(-first // step) * step, last + 1, step)])


def _positive_range(axis: mpl.axis.Axis) -> np.ndarray:
    """Return the least positive and the largest number on an axis and those that share it, or the ends of the view."""
    name = _name(axis)
    boxes = [axes.dataLim for axes in getattr(axis.axes, f"get_shared_{name}_axes")().get_siblings(axis.axes)]
    low = min(getattr(box, f"minpos{name}") for box in boxes)
    high = max(getattr(box, f"interval{name}")[1] for box in boxes)
    return np.array((low, high) if 0.0 < low <= high < np.inf else axis.get_view_interval())


def _name(axis: mpl.axis.Axis) -> str:
    return "x" if axis is axis.axes.xaxis else "y"


def ticks_at(axis: mpl.axis.Axis, places: list[float]) -> None:
    """Give an axis ticks at the values `places` alone, with their numbers written out."""
    axis.set_major_locator(mpl.ticker.FixedLocator(places))
    axis.set_minor_locator(mpl.ticker.NullLocator())
    axis.set_major_formatter(mpl.ticker.FuncFormatter(lambda place, _: number(place).replace("-", MINUS)))


def save(figure: mpl.figure.Figure, stem: Path) -> dict[Path, bytes]:
    """Write the figure as `stem`.pdf and, at 300 dpi, as `stem`.png, the same bytes each time; return these by path.

    The layout is made once, for both.
    """
    metadata = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}, ".png": {"Software": None}}
    contents = {}
    with styled(), _fonts_without_typesetting():
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)  # with one, also with "none", matplotlib draws each format twice
        for suffix, entries in metadata.items():
            figure.savefig(file := io.BytesIO(), format=suffix[1:], metadata=entries)
            contents[stem.with_name(stem.name + suffix)] = file.getvalue()
    for path, content in contents.items():
        write_bytes(path, content)
    return contents


@contextmanager
def _fonts_without_typesetting() -> Iterator[None]:
    """Return a context in which embedded fonts lack the tables by which text is set, which no PDF reader looks at.

    To cut these to the letters of a figure takes longer than all else of its PDF. fontTools has a list of tables that
    are left out; where it has another name, they stay.
    """
    from fontTools.subset import Options

    before = getattr(Options, "_drop_tables_default", [])
    Options._drop_tables_default = [*before, "GSUB", "GPOS"]
    try:
        yield
    finally:
        Options._drop_tables_default = before


def prepare() -> None:
    """Find the fonts and make what parses and writes text, which the first figure of a process does otherwise.

    `commands/sweep.py` calls it by name, in a process from which others are forked before a figure is drawn.
    """
    with styled(), _fonts_without_typesetting():
        figure = mpl.figure.Figure()
        figure.subplots().set_title("$x_0$")
        for kind in ("pdf", "png"):
            figure.savefig(io.BytesIO(), format=kind)
