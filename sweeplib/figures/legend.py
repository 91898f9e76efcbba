"""A legend below all panels, in columns that each say one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Entry = tuple[dict[str, Any], str]


def legend_below(figure: Figure, columns: list[list[Entry]]) -> None:
    """Draw a legend of columns of (line properties, label); empty columns are left out, short ones filled up."""
    from matplotlib.lines import Line2D

    columns = [column for column in columns if column]
    if not columns:
        return
    rows = max(len(column) for column in columns)
    blank: Entry = ({"linestyle": "none"}, "")
    entries = [entry for column in columns for entry in column + [blank] * (rows - len(column))]
    handles = [Line2D([], [], **properties) for properties, _ in entries]
    labels = [label for _, label in entries]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(columns), columnspacing=1.2, handletextpad=0.6)
