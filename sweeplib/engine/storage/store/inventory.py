"""Inventory: the cases of one dynamics that a sweep needs, and their state in the run store, as columns."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.base.table import Column
from sweeplib.engine.cases import Cases
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.identity_file import CasePositions, read_identities, write_identities
from sweeplib.engine.storage.store.layout import cost_class, layout_name
from sweeplib.engine.storage.store.run_store import RunStore, first_places, whole

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design, RunPoints

CLASSES = 1024
"""More than there are classes of cost: works are doubles."""
AT_ONCE = 4096
"""The number of points whose identities are computed together."""


@dataclass(frozen=True)
class Inventory:
    """The n cases of one dynamics that a sweep needs, in the sweep's order, all seeds of a point together.

    ids (n,) : identities, 16 bytes each.
    flat (n,) : flat indices over (grid dims, seed).
    layout, row (n,) : positions in the store, -1 where a case is not there.
    status (n,) : their status.
    points : the points, if they were made for the identities.
    """

    sweep: "Design"
    dynamics: str
    ids: np.ndarray
    flat: np.ndarray
    layout: np.ndarray
    row: np.ndarray
    status: np.ndarray
    points: "RunPoints | None" = None

    def column(self, name: str, places: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the value of a name of the grid, of the seeds, or of the dynamics, of the cases at some places."""
        flat = self.flat[places]
        if name == "dynamics":
            return np.full(len(flat), self.dynamics, object)
        *index, seed = np.unravel_index(flat, self.sweep.shape)
        points = np.array(index, np.int64).reshape(-1, len(flat)).T
        column = (
            Column(self.sweep.seeds, seed) if name == "seed" else self.sweep.grid.table(points, (name,)).column(name)
        )
        values = np.empty(len(flat), object)
        values[:] = column.items()
        return values

    def rows(self) -> dict[str, list[Any]]:
        """Return the cases as columns of plain values: the names that vary, the seed, the status, the identity."""
        grid = self.sweep.grid
        names = (*(name for name in grid.names if name not in grid.fixed), "seed")
        others = {
            "status": [Status(code).name for code in self.status],
            "identity": [whole(identity).hex() for identity in self.ids.tolist()],
        }
        return {name: self.column(name).tolist() for name in names} | others

    def counts(self) -> dict[str, int]:
        """Return the number of different cases with each status."""
        status = np.concatenate([*self._stored_status(), np.full(self._unknown, Status.missing, np.uint8)])
        numbers = np.bincount(status, minlength=len(Status))
        return {state.name: int(numbers[state]) for state in Status}

    def _stored_status(self) -> Iterator[np.ndarray]:
        """Yield the status of the different cases in each layout."""
        for number in range(int(self.layout.max(initial=-1)) + 1):
            here = self.layout == number
            status = np.full(int(self.row[here].max(initial=-1)) + 1, len(Status), np.uint8)
            status[self.row[here]] = self.status[here]
            yield status[status < len(Status)]

    @cached_property
    def _unknown(self) -> int:
        """The number of different cases that are not in the store."""
        return len(first_places(self.ids[self.layout < 0]))

    def located(self, store: RunStore) -> "Inventory":
        """Return the same cases with their positions in the current store, which must contain all of them."""
        layout, row = store.locate(self.ids)
        located = replace(self, layout=layout, row=row, status=_status(store, layout, row), points=None)
        located.remember(store)
        return located

    def with_status(self, store: RunStore) -> "Inventory":
        """Return the same cases with their current status."""
        return replace(self, status=_status(store, self.layout, self.row))

    def missing_rows(self, layout: int) -> np.ndarray:
        """Return the rows of a layout whose cases are needed and missing, sorted."""
        rows = self.row[(self.layout == layout) & (self.status == Status.missing)]
        missing = np.zeros(rows.max(initial=-1) + 1, bool)
        missing[rows] = True
        return np.flatnonzero(missing)

    def remember(self, store: RunStore) -> None:
        """Keep identities and positions in a file, for later inventories of the same sweep."""
        write_identities(self.sweep, store, CasePositions(self.ids, self.flat, self.layout, self.row))

    @cached_property
    def _points(self) -> "RunPoints":
        return self.points or self.sweep.points(self.dynamics)

    def _point(self, places: slice | np.ndarray) -> np.ndarray:
        """Return the points of the cases at some places."""
        after: np.ndarray = np.searchsorted(self._points.flat, self.flat[places], side="right")
        return after - 1

    def cases(self, places: slice | np.ndarray) -> Cases:
        """Return the cases at some places."""
        seed = Column(self.sweep.seeds, self.flat[places] % len(self.sweep.seeds))
        return self._points.cases.at(self._point(places)).replaced(seed=seed.at(slice(None)))

    @cached_property
    def new(self) -> dict[str, np.ndarray]:
        """The places of the different cases that are not in the store, by the layout they will be added to.

        The costliest are first.
        """
        places = np.flatnonzero(self.layout < 0)
        places = places[first_places(self.ids[places])]
        if not len(places):
            return {}
        point, points = self._point(places), self._points.cases
        work, (shapes, shape) = points.works(), points.shapes()
        numbers = {case_shape: number for number, case_shape in enumerate(dict.fromkeys(shapes))}
        kind = (np.array([numbers[case_shape] for case_shape in shapes])[shape] * CLASSES + cost_class(work))[point]
        order = np.lexsort((-work[point], kind))
        groups = np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)
        first = [int(point[group[0]]) for group in groups]
        names = [layout_name(points[at], float(work[at])) for at in first]
        return dict(sorted((name, places[group]) for name, group in zip(names, groups, strict=True)))


def inventory(sweep: "Design", dynamics: str, store: RunStore) -> Inventory:
    """Return the inventory of a sweep's cases of one dynamics."""
    positions, points = read_identities(sweep, store), None
    if positions is None:
        ids, flat, points = identities_of_cases(sweep, dynamics)
        positions = CasePositions(ids, flat, *store.locate(ids))
    return Inventory(sweep, dynamics, *positions, _status(store, positions.layout, positions.row), points)


def sweep_status(sweep: "Design", directory: Path) -> dict[str, dict[str, int]]:
    """Return the number of cases with each status, by dynamics. It may be called while the sweep runs."""
    return {name: inventory(sweep, name, RunStore(directory, name)).counts() for name in sweep.runs}


def _status(store: RunStore, layout: np.ndarray, row: np.ndarray) -> np.ndarray:
    status = np.full(len(row), Status.missing, np.uint8)
    for number, stored in enumerate(store.statuses()):
        here = layout == number
        status[here] = stored[row[here]]
    return status


def identities_of_cases(sweep: "Design", dynamics: str) -> tuple[np.ndarray, np.ndarray, "RunPoints"]:
    """Return the identities and the flat indices (n,) of all cases, and the points."""
    places, seeds = (np.array(column, np.int64) for column in zip(*sweep.seeds_of(dynamics), strict=True))
    points, ids, flat = sweep.points(dynamics), [np.empty(0, "S16")], [np.empty(0, np.int64)]
    for first in range(0, len(points.flat), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        needed = (places < points.counts[some, None]).ravel()
        ids.append(points.cases.at(some).identities_with(seeds)[needed])
        flat.append(np.add.outer(points.flat[some], places).ravel()[needed])
    return np.concatenate(ids), np.concatenate(flat), points
