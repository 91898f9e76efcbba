"""Panels side by side that share their axes, at the sizes of a page.

A panel is a stack of axes, its levels, from the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.facets import Facets
from sweeplib.pictures.figures.kit.labels import lines_of, number, short_label, value_label
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.style import DIM, TEXT_WIDTH, keep_within_doubles

MOST_IN_A_ROW = 5
"""The most panels in a row."""
NOTE_HEIGHT, LETTERS = 0.22, 14
"""The height of a line of text above the panels, in inches, and its letters in an inch."""
POINTS = 72.0
"""The points in an inch."""
LABEL = (26, 2)
"""The letters of a line beside a vertical axis, and the most lines of a name there."""


@dataclass(frozen=True)
class Panels:
    """A drawing and its panels, row by row, of so many columns; each panel is a stack of axes, from the top."""

    drawing: mpl.figure.Figure
    stacks: list[list[mpl.axes.Axes]]
    columns: int

    def title(self, panel: int, text: str) -> None:
        """Write a title above a panel."""
        self.stacks[panel][0].set_title(text)

    def xlabel(self, text: str) -> None:
        """Write the label of the horizontal axes below each column."""
        for stack in self.stacks[-self.columns :]:
            stack[-1].set_xlabel(text)

    def ylabel(self, text: str, level: int = 0) -> None:
        """Write the label of the vertical axes at one level of the stacks, left of each row of panels."""
        for stack in self.stacks[:: self.columns]:
            stack[level].set_ylabel(text)

    def heights(self, array: xr.DataArray, level: int = 0) -> None:
        """Write the label of the vertical axes at one level, that of `array`; a long name stands above all panels."""
        label, name = short_label(array, *LABEL)
        self.ylabel(label, level)
        for line in lines_of(name, round(LETTERS * self.drawing.get_figwidth())):
            self.note(line)

    def room_for_arrows(self, level: int) -> None:
        """Widen the vertical axes at one level of the stacks until the arrows at bounds end within them."""
        for axes in (stack[level] for stack in self.stacks):
            if arrows := [line for line in axes.lines if line.get_gid() == "bound"]:
                keep_within_doubles(axes.yaxis)
                axes.autoscale_view()
            for line in arrows:
                # corners of the marker are in halves of its size, in points
                length = 0.5 * line.get_markersize() * self.drawing.dpi / POINTS
                ends = [length * y for _, y in line.get_marker()]
                at = np.clip(axes.transData.transform(line.get_xydata())[:, 1], axes.bbox.y0, axes.bbox.y1)
                tips = [(0.0, at.min() + min(ends)), (0.0, at.max() + max(ends))]
                low, high = axes.transData.inverted().transform(tips)[:, 1]
                bottom, top = axes.get_ylim()
                if low < bottom or high > top:
                    axes.set_ylim(min(low, bottom), max(high, top))

    def note(self, text: str) -> None:
        """Write a line above all panels, below those that are there; the figure grows by its height."""
        if text:
            lines = "\n".join(filter(None, (self.drawing.get_suptitle(), text)))
            self.drawing.suptitle(lines, fontsize="medium", color=DIM)
            self.drawing.set_figheight(self.drawing.get_figheight() + NOTE_HEIGHT)


def panel_grid(
    count: int,
    *,
    width: float,
    alone: float,
    height: float,
    stack: tuple[float, ...] = (1.0,),
    share_x: bool = True,
) -> Panels:
    """Return a new drawing of `count` panels.

    `width` is that of each of several panels, `alone` that of a single one, `height` that of a row, in inches; legends
    and notes add their height. `stack` has the relative heights of the axes of a panel. Panels share the vertical axis
    of each level and, with `share_x`, the horizontal axis.
    """
    rows = -(-count // MOST_IN_A_ROW)
    columns = -(-count // rows)
    total = alone if count == 1 else min(TEXT_WIDTH, 1.0 + width * columns)
    drawing = mpl.figure.Figure(figsize=(total, height * rows), layout="constrained")
    grid = drawing.add_gridspec(rows * len(stack), columns, height_ratios=stack * rows)
    stacks: list[list[mpl.axes.Axes]] = [[] for _ in range(count)]
    for row, level, column in product(range(rows), range(len(stack)), range(columns)):
        panel = row * columns + column
        if panel >= count:
            continue
        first = stacks[0][level] if panel else None
        above = stacks[0] if share_x else stacks[panel]
        place = grid[row * len(stack) + level, column]
        axes = drawing.add_subplot(place, sharex=above[0] if above else None, sharey=first)
        axes.tick_params(labelleft=column == 0, labelbottom=level == len(stack) - 1)
        stacks[panel].append(axes)
    return Panels(drawing, stacks, columns)


def side_by_side(levels: Sequence[int], widths: Sequence[float], height: float) -> list[Panels]:
    """Return panels with these numbers of levels beside each other, in a new drawing as wide as a page."""
    drawing = mpl.figure.Figure(figsize=(TEXT_WIDTH, height), layout="constrained")
    grid = drawing.add_gridspec(max(levels), len(levels), width_ratios=list(widths))
    panels = []
    for column, count in enumerate(levels):
        stack = [drawing.add_subplot(grid[row if count > 1 else slice(None), column]) for row in range(count)]
        for axes in stack[:-1]:
            axes.tick_params(labelbottom=False)
        panels.append(Panels(drawing, [stack], 1))
    return panels


def panels_of(
    data: xr.Dataset,
    split: Facets,
    width: float = 2.3,
    alone: float = 3.8,
    height: float = 2.7,
    *,
    stack: tuple[float, ...] = (1.0,),
    share_x: bool = True,
    whole: xr.Dataset | None = None,
) -> Panels:
    """Return a new drawing with the panels of facets, their titles, and the values of the axes that are not drawn.

    data : what the figure shows. width, alone, height, stack, share_x : as those of `panel_grid`, for the first level.
    whole : the data before these values were selected, by whose other points a point of a table has its name.
    """
    parts = list(split.parts(data))
    height *= sum(stack) / stack[0]
    panels = panel_grid(len(parts), width=width, alone=alone, height=height, stack=stack, share_x=share_x)
    for place, subset in parts:
        titles = [title_of(subset, data, axis) for axis in (split.beside, split.panel) if axis]
        panels.title(place, "\n".join(titles))
    panels.note(note_of(data if whole is None else whole, split))
    return panels


def title_of(subset: xr.Dataset, data: xr.Dataset, panel: str) -> str:
    """Return the title of a panel: its value, an ODE time as its number of steps."""
    if panel == "time":
        return _steps_in_words(subset) or value_label(subset[panel], data[panel], digits=2)
    return value_label(subset[panel], data[panel])


def note_of(data: xr.Dataset, split: Facets) -> str:
    """Return the values along the axes that are not drawn; an ODE time as its number of steps, if that is one."""
    if "time" not in split.titled or not (steps := _steps_in_words(data)):
        return split.title(data)
    others = replace(split, titled=tuple(dim for dim in split.titled if dim != "time")).title(data)
    return f"{steps} {others}".strip()


def _steps_in_words(data: xr.Dataset) -> str:
    """Return 'after 3 steps' for data at one ODE time.

    It is "" where times are in samples or steps (they have a clock), or the number of steps varies or is not known.
    """
    if "steps" not in data.coords or ("time" in data.coords and "clock" in data["time"].attrs):
        return ""
    steps = np.unique(data["steps"].values)
    return f"after {number(steps[0])} step{'s' * bool(steps[0] != 1)}" if len(steps) == 1 else ""


def say(axes: mpl.axes.Axes, text: str) -> None:
    """Write a text into the middle of a panel that has nothing to draw."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=DIM)


def mark_empty(panels: Panels) -> None:
    """Write 'no value' in each panel without a curve, and remove its ticks if all panels are empty."""
    empty = [stack[0] for stack in panels.stacks if not stack[0].lines]
    for axes in empty:
        say(axes, "no value")
        if len(empty) == len(panels.stacks):
            axes.set(xticks=[], yticks=[])
