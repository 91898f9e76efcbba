"""Published values in figures, drawn in grey.

They stand in files, tables with a column each for x, y and coordinates; the place of a file is its position in the
option `reference`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.files.published import Reference, Value, reference
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError, errors_under
from sweeplib.networks.problem import PARAMETERS
from sweeplib.pictures.figures.kit.distances import Distance, distances, is_same, standing_in
from sweeplib.pictures.figures.kit.facets import Facets
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.legend import Entry
from sweeplib.pictures.figures.kit.style import DIM

MARKERS = ("D", "o", "s", "h", "^", "v", "p", "<")
DASHES: tuple[Any, ...] = ((0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2, 2)))
DASHES += ((0, (1, 3)), (0, (12, 2, 2, 2)), (0, (8, 6)), (0, (12, 1, 1, 1, 1, 1)))
"""The markers of files of points, and the dashes of files of curves, by the place of the file."""
MOST_DISTANCES = 4
"""The number of distances from one file that a legend lists; the caption of the report has all of them."""


@dataclass(frozen=True)
class References:
    """Published values of `y` against `x`, columns of each file.

    Other columns that are coordinates of a dataset select rows: a row is drawn where it agrees with the coordinates.
    """

    files: tuple[Reference, ...]
    x: str
    y: str

    def draw(self, axes: mpl.axes.Axes, subset: xr.Dataset, *, x_unit: float = 1.0, y_unit: float = 1.0) -> None:
        """Draw the rows that agree with a part of a dataset, divided by the units, within the limits of the axes."""
        for place, file in enumerate(self.files):
            rows = standing_in(file, subset, self.x)
            low, high = (-np.inf, np.inf) if axes.get_autoscalex_on() else np.multiply(axes.get_xlim(), x_unit)
            rows = [row for row in rows if low <= float(row[self.x]) <= high]
            rows.sort(key=lambda row: float(row[self.x]))  # a curve runs along x
            if rows:
                x, y = (_numbers(rows, name) for name in (self.x, self.y))
                error = f"{self.y}_error"
                bars = _numbers(rows, error) / y_unit if error in file.columns else None
                axes.errorbar(x / x_unit, y / y_unit, bars, elinewidth=0.9, **_look(file, place))

    def distances(self, data: xr.Dataset, split: Facets, dash: str | None = None) -> list[Distance]:
        """Return how far each dynamics in the curves of a figure is from each file."""
        return distances(self.files, self.x, self.y, data, split, dash) if self.files else []

    def entries(self, data: xr.Dataset, split: Facets, dash: str | None = None) -> list[Entry]:
        """Return a legend entry per file, its marker and its source, and one for each distance if these are few."""
        distances_, entries = self.distances(data, split, dash), []
        for place, file in enumerate(self.files):
            entries.append((_look(file, place), file.source))
            texts = [d.entry for d in distances_ if d.file == place and file.legend == "distances"]
            entries += [({"linestyle": "none"}, text) for text in texts if len(texts) <= MOST_DISTANCES]
        return entries


def references(names: Sequence[str], x: str, y: str) -> References:
    """Return the files `names` of published values, for a figure of `y` against `x`.

    InputError, whose key is the position in `names`, for a file that cannot be read or lacks these columns.
    """
    return References(tuple(_file(name, place, (x, y)) for place, name in enumerate(names)), x, y)


def check_references(names: Sequence[str], x: str, y: str, data: xr.Dataset | Outline, split: Facets) -> None:
    """Raise InputError for a file without the columns x and y, with a column that is not of the data, or without rows.

    Those rows count that agree with values that the figure draws.
    """
    outline = outline_of(data)
    for place, file in enumerate(references(names, x, y).files):
        columns = {x, y, *PARAMETERS, *outline.axes, *outline.variables, *outline.attrs}
        for column in file.columns:
            if column not in columns and column.removesuffix("_error") not in columns:
                problem = f"{file.name} has a column that the dataset does not have"
                raise InputError(problem, key=f"reference[{place}]", value=column, choices=sorted(columns))
        _refuse_elsewhere(file, place, x, _drawn_values(outline, split))


def _file(name: str, place: int, columns: tuple[str, str]) -> Reference:
    """Return the file `name` of published values; InputError unless it can be read and has numbers in the columns."""
    with errors_under(f"reference[{place}]"):
        file = reference(name)
    for column in columns:
        values = file.columns.get(column)
        if values is None or isinstance(values[0], str):
            problem = f"{file.name} has no numbers to draw in this figure"
            expected = f"the columns {' and '.join(columns)}"
            raise InputError(problem, key=f"reference[{place}]", value=list(file.columns), expected=expected)
    return file


def _drawn_values(outline: Outline, split: Facets) -> dict[str, list[Any]]:
    """Return the values that a figure draws along each axis, and the constants of the dataset."""
    values_by_axis = {name: [value] for name, value in outline.attrs.items() if name in PARAMETERS}
    for axis, values in outline.axes.items():
        at = split.at.get(axis, list(range(len(values))))
        values_by_axis[axis] = [values[index] for index in ([at] if isinstance(at, int) else at)]
    return values_by_axis


def _refuse_elsewhere(file: Reference, place: int, x: str, values_by_axis: Mapping[str, list[Any]]) -> None:
    """Raise InputError, naming the column that excludes all rows, for a file of which nothing would be drawn."""
    rows = list(file.rows())
    for name in (name for name in file.columns if name != x and name in values_by_axis):
        remaining = [row for row in rows if any(is_same(row[name], value) for value in values_by_axis[name])]
        if not remaining:
            problem = f"{file.name} has no row for this figure: its {name} is another"
            values = ", ".join(dict.fromkeys(f"{v:g}" if isinstance(v := row[name], float) else v for row in rows))
            expected = f"{name} = " + ", ".join(map(str, values_by_axis[name][:8]))
            raise InputError(problem, key=f"reference[{place}]", value=values, expected=expected)
        rows = remaining


def _numbers(rows: Sequence[Mapping[str, Value]], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows], float)


def _look(file: Reference, place: int) -> dict[str, Any]:
    """Return the look of the values of a file: of a curve dashes, of points large open markers around those of runs."""
    look = {"color": DIM, "gid": f"reference-{place}", "zorder": 5}
    if file.look == "curve":
        return look | {"marker": "none", "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.6}
    hollow = {"markerfacecolor": "none", "markeredgewidth": 1.3, "markersize": 9.0, "linestyle": "none"}
    return look | hollow | {"marker": MARKERS[place % len(MARKERS)]}
