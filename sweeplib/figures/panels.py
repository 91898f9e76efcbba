"""Panels side by side that share their axes, at the sizes of a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from sweeplib.figures.style import DIM, TEXT_WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MOST_IN_A_ROW = 5
NOTE_HEIGHT = 0.22
"""The height of a line of text above the panels, in inches."""


@dataclass(frozen=True)
class Panels:
    """A drawing and its panels, row by row; each panel is a stack of axes, from the top."""

    drawing: Drawing
    stacks: list[list[Axes]]
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

    def note(self, text: str) -> None:
        """Write a line above all panels; the figure grows by its height."""
        if text:
            self.drawing.suptitle(text, fontsize="medium", color=DIM)
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
    from matplotlib.figure import Figure as Drawing

    rows = -(-count // MOST_IN_A_ROW)
    columns = -(-count // rows)
    total = alone if count == 1 else min(TEXT_WIDTH, 1.0 + width * columns)
    drawing = Drawing(figsize=(total, height * rows), layout="constrained")
    grid = drawing.add_gridspec(rows * len(stack), columns, height_ratios=stack * rows)
    stacks: list[list[Axes]] = [[] for _ in range(count)]
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


def mark_empty(panels: Panels) -> None:
    """Write 'no value' in each panel without a curve, and remove its ticks if all panels are empty."""
    empty = [stack[0] for stack in panels.stacks if not stack[0].lines]
    for axes in empty:
        axes.text(0.5, 0.5, "no value", transform=axes.transAxes, ha="center", va="center", color=DIM)
        if len(empty) == len(panels.stacks):
            axes.set(xticks=[], yticks=[])
