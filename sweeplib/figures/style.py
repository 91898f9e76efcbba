"""The one style of the figures: colour-blind safe, told apart in grey by lightness, marker and dash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#14365f", "#c8452b", "#e39b1f", "#2b9a93", "#8c5fb0", "#7fb8e6")
MARKERS = ("o", "s", "^", "D", "v", "P")
INK, FAINT = "#222222", "#9a9a9a"
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


@contextmanager
def styled() -> Iterator[None]:
    """A context in which matplotlib has this style and nothing of the user's."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def look(index: int) -> dict[str, str]:
    """The colour and marker of the value number `index` of a hue."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def save(figure: Figure, stem: Path) -> list[Path]:
    """The paths of the figure written as PDF and as PNG at 300 dpi, byte for byte reproducible."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    metadata = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}, ".png": {"Software": None}}
    paths = []
    with styled():
        for suffix, entries in metadata.items():
            paths.append(stem.with_name(stem.name + suffix))
            figure.savefig(paths[-1], metadata=entries)
    return paths
