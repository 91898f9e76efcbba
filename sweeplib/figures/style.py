"""The one style of the figures: colour-blind safe, told apart in grey by lightness, marker and dash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.analysis.recorded import is_stochastic
from sweeplib.figures.labels import number

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = ("#14365f", "#c8452b", "#e39b1f", "#2b9a93", "#8c5fb0", "#7fb8e6")
MARKERS = ("o", "s", "^", "D", "v", "P")
THEORY_DASHES: dict[str, Any] = {"annealed": (0, (1, 1.2)), "quenched": (0, (5, 2)), "noise-corrected": "solid"}
INK, DIM, FAINT, UNDECIDED = "#222222", "#5a5a5a", "#9a9a9a", "#c4c8ce"
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
COLUMN, TEXT_WIDTH = 3.4, 7.0
"""Widths in inches of a column and of the text of a two-column page."""


MULTIPLES = ((1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0, 7.0), (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0))
FEWEST_TICKS = 3
"""Ticks of a logarithmic axis, and of which multiples of powers of ten, where those asked for are fewer."""


@contextmanager
def styled() -> Iterator[None]:
    """A context in which matplotlib has this style and nothing of the user's."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def look(index: int) -> dict[str, Any]:
    """The colour and marker of the value number `index` of a hue, and the gid by which legends know it."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "gid": f"hue-{index}",
    }


def line_look(index: int, *gids: str) -> dict[str, Any]:
    """The colour of the value number `index` of a hue for a line that stands for `gids` in legends, too."""
    return {"color": COLOURS[index % len(COLOURS)], "gid": " ".join((f"hue-{index}", *gids))}


def dynamics_look(name: str, shown: list[str], looks: dict[str, Any]) -> dict[str, Any]:
    """The marker of a dynamics: filled for the first that is `shown`, open for others, crosses for deterministic ones.

    `shown` lists stochastic ones first; `looks` has colour, marker and gid of the hue.
    """
    looks = looks | {"gid": f"{looks.get('gid', '')} dynamics-{name}".strip()}
    if not is_stochastic(name):
        first = all(map(is_stochastic, shown[: shown.index(name)]))
        cross = {"marker": "x", "markersize": 3.8} if first else {"marker": "+", "markersize": 5.2}
        return looks | cross | {"markeredgewidth": 0.9, "zorder": 2}
    if shown.index(name) == 0:
        return looks | {"zorder": 4}
    return looks | {"markerfacecolor": "white", "markersize": 6.2, "zorder": 3}


def beyond_look(looks: dict[str, Any]) -> dict[str, Any]:
    """An open arrow, in the colour of the hue, for what lies beyond the learning rates scanned."""
    hue = [gid for gid in looks.get("gid", "").split() if gid.startswith("hue-")]
    gid = " ".join([*hue, "beyond"])
    return {"color": looks["color"], "marker": "^", "markersize": 5, "markerfacecolor": "white", "gid": gid}


def plain_ticks(axis: Axis, multiples: tuple[float, ...]) -> None:
    """Give a logarithmic axis ticks at these multiples of powers of ten, written out, or at more if they are too few.

    Fewer over three decades.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high > 1e3 * low:
        return
    locators = [LogLocator(subs=subs) for subs in (multiples, *MULTIPLES)]
    seen = [sum(low <= place <= high for place in locator.tick_values(low, high)) for locator in locators]
    enough = next((place for place, number in enumerate(seen) if number >= FEWEST_TICKS), -1)
    axis.set_major_locator(locators[enough])
    axis.set_major_formatter(FuncFormatter(lambda place, _: number(place)))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, stem: Path) -> list[Path]:
    """The paths of the figure written as PDF and as PNG at 300 dpi, laid out once; byte for byte reproducible."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    metadata = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}, ".png": {"Software": None}}
    paths = []
    with styled():
        for suffix, entries in metadata.items():
            paths.append(stem.with_name(stem.name + suffix))
            figure.savefig(paths[-1], metadata=entries)
            figure.set_layout_engine("none")
    return paths
