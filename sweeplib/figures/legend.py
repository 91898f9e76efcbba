"""A legend below all panels, in columns that each say one thing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sweeplib.figures.facets import Facets, each
from sweeplib.figures.labels import dynamics_label, value_label
from sweeplib.figures.style import INK, THEORY_DASHES, dynamics_look, look

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

Entry = tuple[dict[str, Any], str]
MOST_ROWS = 3


def legend_below(figure: Figure, columns: list[list[Entry]]) -> None:
    """Draw a legend of columns of (line properties, label), those longer than `MOST_ROWS` as several of even length."""
    from matplotlib.lines import Line2D

    columns = [part for column in columns for part in _split(column)]
    if not columns:
        return
    rows = max(len(column) for column in columns)
    blank: Entry = ({"linestyle": "none"}, "")
    entries = [entry for column in columns for entry in column + [blank] * (rows - len(column))]
    handles = [Line2D([], [], **properties) for properties, _ in entries]
    labels = [label for _, label in entries]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(columns), columnspacing=1.2, handletextpad=0.6)


def _split(column: list[Entry]) -> list[list[Entry]]:
    rows = -(-len(column) // -(-len(column) // MOST_ROWS)) if column else 1
    return [column[start : start + rows] for start in range(0, len(column), rows)]


def hue_entries(data: xr.Dataset, split: Facets, **line: Any) -> list[Entry]:
    """What each colour stands for: its marker, without a line unless `line` says otherwise."""
    if split.hue is None:
        return []
    line = line or {"linestyle": "none"}
    return [(look(index) | line, value_label(one[split.hue])) for index, one in each(data, split.hues(data))]


def dynamics_entries(shown: list[str]) -> list[Entry]:
    """What each marker stands for, of the dynamics `shown`."""
    blank = {"color": INK, "marker": "o"}
    return [(dynamics_look(name, shown, blank) | {"linestyle": "none"}, dynamics_label(name)) for name in shown]


def theory_entries(kinds: Iterable[str]) -> list[Entry]:
    """What each dash stands for, of these kinds of theory of exit times."""
    return [({"color": INK, "linestyle": THEORY_DASHES[kind], "linewidth": 0.9}, f"{kind} theory") for kind in kinds]
