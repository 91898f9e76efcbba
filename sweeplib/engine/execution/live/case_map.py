"""The cases of a dynamics, counted by status in the cells of a map over the axes of the grid.

A cell is numbered by its flat index, in C order, over the numbers of cells along the axes; so is a point of the grid.
A place is an index: of a case in the inventory, or of a value on its axis. A block is some cases, a worker's task.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.status import Status

if TYPE_CHECKING:
    from sweeplib.engine.execution.blocks import Block, BlockReport
    from sweeplib.engine.storage.store.inventory import Inventory

MOST_CELLS = 20_000
"""The largest number of cells of a map; with more points than that, a cell holds several of them."""


def cell_widths(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return how many values of each axis a cell holds: more on the longest axes, so that at most `MOST_CELLS` remain.

    lengths : the numbers of values of the axes.
    """
    widths = [1] * len(lengths)
    while math.prod(cells := map_shape(lengths, widths)) > MOST_CELLS:
        widths[max(range(len(lengths)), key=cells.__getitem__)] *= 2
    return tuple(widths)


def map_shape(lengths: Sequence[int], widths: Sequence[int]) -> tuple[int, ...]:
    """Return the number of cells along each axis of some `lengths`, each cell of some `widths`."""
    return tuple(-(-length // width) for length, width in zip(lengths, widths, strict=True))


class CaseMap:
    """The cells of the cases that a sweep needs of a dynamics; all seeds of a point are in one cell.

    before (cells, statuses) : the number of cases before the run. A case that stands for several points is in one cell.
    _lengths, _widths : the number of values of each axis of the grid, and how many neighbours of them share a cell.
    """

    def __init__(self, wanted: "Inventory") -> None:
        """Count the cases of an inventory, each different one once, at its first point, by their present status."""
        self._wanted, self._lengths = wanted, wanted.sweep.grid.shape
        self._widths = cell_widths(self._lengths)
        self.before = np.zeros((math.prod(map_shape(self._lengths, self._widths)), len(Status)), np.int64)
        np.add.at(self.before, (self._cells(self._points(wanted.distinct)), wanted.status[wanted.distinct]), 1)

    def cells(self, block: "Block") -> np.ndarray:
        """Return the cell (n,) of each case of a block."""
        return self._cells(self._points(block.places))

    def _points(self, places: np.ndarray) -> np.ndarray:
        """Return the point (n,) of each case, from the cases' places (n,) in the inventory."""
        return self._wanted.flat[places] // len(self._wanted.sweep.seeds)

    def _cells(self, points: np.ndarray) -> np.ndarray:
        """Return the cell (n,) of each point (n,)."""
        if not self._lengths:
            return np.zeros(len(points), np.int64)
        places = np.unravel_index(points, self._lengths)
        cells = [place // width for place, width in zip(places, self._widths, strict=True)]
        return np.ravel_multi_index(cells, map_shape(self._lengths, self._widths))

    def along(self, block: "Block", axis: str, at: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places on an axis, and the positions in the block, of a block's cases on one line along the axis.

        at : the place of the line on each other axis.
        """
        dims, points = self._wanted.sweep.grid.dims, self._points(block.places)
        places = dict(zip(dims, np.unravel_index(points, self._lengths), strict=True))
        on_line = np.ones(len(points), bool)
        for name, place in at.items():
            on_line &= places[name] == place
        return places[axis][on_line], np.flatnonzero(on_line)

    def coordinates(self, identity: str) -> str:
        """Return the swept values and the seed of a case in words, "p = 4, seed = 1"; "" for an unknown case.

        identity : of the case, in hexadecimal digits.
        """
        places = np.flatnonzero(self._wanted.ids == np.bytes_(bytes.fromhex(identity)))[:1]
        names = [name for axis in self._wanted.sweep.grid.axes for name in axis.names]
        columns = [(name, self._wanted.column(name, places)) for name in (*names, "seed")]
        return ", ".join(f"{name} = {in_words(column[0])}" for name, column in columns if len(column))

    def changes(self, block: "Block", report: "BlockReport") -> tuple[np.ndarray, np.ndarray]:
        """Return the cells (n,) and the statuses (n,) of the cases of a block that is done."""
        status = np.full(len(block), Status.ok, np.uint8)
        for name, runs in report.not_ok.items():
            for first, last in runs:
                status[first : last + 1] = Status[name]
        return self.cells(block), status


def in_words(value: Any) -> str:
    """Return a value of an axis as text, a number to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def cell_labels(values: Sequence[Any], width: int) -> list[str]:
    """Return the value of each cell along an axis, the first and the last one if it holds several."""
    cells = [values[first : first + width] for first in range(0, len(values), width)]
    return [" to ".join(in_words(value) for value in dict.fromkeys((cell[0], cell[-1]))) for cell in cells]
