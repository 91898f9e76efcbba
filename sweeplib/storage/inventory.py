"""Inventory: the cases of one dynamics that a sweep needs, and their state in the run store, as columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.design.fields import options_of
from sweeplib.problem import Problem
from sweeplib.simulation import Case, Cases, Status, case_work, with_seeds
from sweeplib.storage.identity_file import KnownCases, read_identities, write_identities
from sweeplib.storage.layout import cost_classes, layout_name
from sweeplib.storage.run_store import RunStore, first_places

if TYPE_CHECKING:
    from sweeplib.design.grid import Batch
    from sweeplib.design.sweep import Options, Sweep

CLASSES = 1024
"""More than there are classes of cost: works are doubles."""


@dataclass(frozen=True, eq=False)
class NewCases:
    """The n cases of one layout that are not in the run store, the costliest first.

    order (n,) : indices of the cases among all seeds of all points.
    ids (points, seeds) : the identities of all cases.
    points, seeds : a case of each point, and the replicas.
    work : the mean work of a case.
    """

    order: np.ndarray
    ids: np.ndarray
    points: Cases
    seeds: np.ndarray
    work: float

    def __len__(self) -> int:
        return len(self.order)

    def at(self, places: slice | np.ndarray) -> tuple[np.ndarray, Cases]:
        """Return the identities and the cases at some places."""
        point, seed = np.divmod(self.order[places], len(self.seeds))
        return self.ids[point, seed], replace(self.points.at(point), seed=self.seeds[seed])


@dataclass(frozen=True)
class Inventory:
    """The n cases of one dynamics that a sweep needs, in the sweep's order, all seeds of a point together.

    ids (n,) : identities, 16 bytes each.
    flat (n,) : flat indices over (grid dims, seed).
    layout, row (n,) : positions in the store, -1 where a case is not there.
    status (n,) : their status.
    points : a case of each point, if they were made for the identities.
    """

    sweep: "Sweep"
    dynamics: str
    ids: np.ndarray
    flat: np.ndarray
    layout: np.ndarray
    row: np.ndarray
    status: np.ndarray
    points: Cases | None = None

    def column(self, name: str, places: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the value of a name of the grid, of the seeds, or of the dynamics, of the cases at some places."""
        flat = self.flat[places]
        if name == "dynamics":
            return np.full(len(flat), self.dynamics, object)
        grid = self.sweep.grid
        index = dict(zip((*grid.dims, "seed"), np.unravel_index(flat, self.sweep.shape), strict=True))
        if name == "seed":
            return np.array(self.sweep.seeds, object)[index["seed"]]
        sizes = dict(zip(grid.dims, grid.shape, strict=True))
        values = np.empty(len(grid.values_of(name)), object)
        values[:] = list(grid.values_of(name))
        dims = grid.dims_of(name)
        at = tuple(index[dim] for dim in dims)
        return values.reshape([sizes[dim] for dim in dims])[at] if dims else np.repeat(values, len(flat))

    def counts(self) -> dict[str, int]:
        """Return the number of different cases with each status."""
        status = np.concatenate([*self._stored_status(), np.full(self._unknown, Status.missing, np.uint8)])
        numbers = np.bincount(status, minlength=len(Status))
        return {each.name: int(numbers[each]) for each in Status}

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
        found = replace(self, layout=layout, row=row, status=_status(store, layout, row), points=None)
        found.remember(store)
        return found

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
        write_identities(self.sweep, store, KnownCases(self.ids, self.flat, self.layout, self.row))

    @cached_property
    def new(self) -> dict[str, NewCases]:
        """The different cases that are not in the store, by the layout they will be added to."""
        if not (self.layout < 0).any():
            return {}
        (places, seeds), parts = _seeds(self.sweep, self.dynamics), []
        if self.points is None or self.sweep.replicas is not None:
            parts = list(_points(self.sweep, self.dynamics))
        points = self.points or _joined([cases for cases, _, _ in parts])
        unknown, ids = self.layout < 0, self.ids
        if self.sweep.replicas is not None:
            needed = places < np.concatenate([counts for _, _, counts in parts])[:, None]
            unknown, ids = needed.copy(), np.zeros(needed.shape, "S16")
            unknown[needed], ids[needed] = self.layout < 0, self.ids
        shape = len(points), len(seeds)
        return _new_cases(points, ids.reshape(shape), seeds, unknown.reshape(shape))


def inventory(sweep: "Sweep", dynamics: str, store: RunStore) -> Inventory:
    """Return the inventory of a sweep's cases of one dynamics."""
    known, points = read_identities(sweep, store), None
    if known is None:
        ids, flat, points = identified(sweep, dynamics)
        known = KnownCases(ids, flat, *store.locate(ids))
    return Inventory(sweep, dynamics, *known, _status(store, known.layout, known.row), points)


def sweep_status(sweep: "Sweep", directory: Path) -> dict[str, dict[str, int]]:
    """Return the number of cases with each status, by dynamics. It may be called while the sweep runs."""
    return {name: inventory(sweep, name, RunStore(directory, name)).counts() for name in sweep.runs}


def _status(store: RunStore, layout: np.ndarray, row: np.ndarray) -> np.ndarray:
    status = np.full(len(row), Status.missing, np.uint8)
    for number, stored in enumerate(store.statuses()):
        here = layout == number
        status[here] = stored[row[here]]
    return status


def identified(sweep: "Sweep", dynamics: str) -> tuple[np.ndarray, np.ndarray, Cases | None]:
    """Return the identities and the flat indices (n,) of all cases, and a case of each point."""
    places, seeds = _seeds(sweep, dynamics)
    ids, flat, parts = [np.empty(0, "S16")], [np.empty(0, np.int64)], []
    for points, first, counts in _points(sweep, dynamics):
        parts.append(points.at(slice(None)))  # its columns alone, not what follows from them
        needed = (places < counts[:, None]).ravel()
        ids.append(with_seeds(points.but_seeds(), seeds)[needed])
        flat.append(np.add.outer(first, places).ravel()[needed])
    return np.concatenate(ids), np.concatenate(flat), _joined(parts) if parts else None


def _seeds(sweep: "Sweep", dynamics: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices and the values of the seeds of a dynamics."""
    places, seeds = zip(*sweep.seeds_of(dynamics), strict=True)
    return np.array(places, np.int64), np.array(seeds, np.int64)


def _points(sweep: "Sweep", dynamics: str) -> Iterator[tuple[Cases, np.ndarray, np.ndarray]]:
    """Yield the points of a run, thousands at a time: a case of each, the flat index of its seed 0, its replicas."""
    examples = _Examples(sweep, dynamics)
    for batch in sweep.batches(dynamics):
        problems, count = batch.problems, len(batch.problems)
        index = (*batch.places.T, np.zeros(count, np.int64))
        clock = np.array(sweep.clocks(batch.columns, count), float)
        columns = (examples.numbers(batch), problems.gamma, problems.Delta, clock, np.zeros(count, np.int64))
        replicas = sweep.counts(batch.columns, count)
        yield Cases(examples, *columns), np.ravel_multi_index(index, sweep.shape), replicas


class _Examples(Sequence[Case]):
    """A case for each kind of the problems of a run; a kind with each choice of swept options, found point by point."""

    def __init__(self, sweep: "Sweep", dynamics: str) -> None:
        self._sweep, self._dynamics = sweep, dynamics
        self._shared = sweep.shared(dynamics) | {"seed": 0}
        self._swept = bool(options_of(dynamics, sweep.grid.names))
        self._problems: Sequence[Problem] = ()
        self._numbers: dict[tuple[int, Options], int] = {}
        self._pairs: list[tuple[int, Options]] = []

    def numbers(self, batch: "Batch") -> np.ndarray:
        """Return the kinds (n,) of some points."""
        self._problems, kind = batch.problems.examples, batch.problems.kind
        if not self._swept:
            return kind
        options = self._sweep.options(self._dynamics, batch.columns, len(kind))
        pairs = list(zip(kind.tolist(), options, strict=True))
        for pair in dict.fromkeys(pairs):
            if pair not in self._numbers:
                self._numbers[pair] = len(self._pairs)
                self._pairs.append(pair)
        return np.array([self._numbers[pair] for pair in pairs], np.intp)

    def __len__(self) -> int:
        return len(self._pairs) if self._swept else len(self._problems)

    def __getitem__(self, at: Any) -> Any:
        problem, options = self._pairs[at] if self._swept else (at, self._options)
        return Case(self._problems[problem], options=options, **self._shared)

    @cached_property
    def _options(self) -> "Options":
        """The options of all cases, if none is swept."""
        [options] = self._sweep.options(self._dynamics, {}, 1)
        return options


def _joined(parts: Sequence[Cases]) -> Cases:
    """Return points with the same examples, each with seed 0, as one."""
    names = ("kind", "gamma", "Delta", "clock")
    kind, gamma, Delta, clock = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Cases(parts[-1].examples, kind, gamma, Delta, clock, np.broadcast_to(parts[-1].seed[:1], len(kind)))


def _new_cases(points: Cases, ids: np.ndarray, seeds: np.ndarray, unknown: np.ndarray) -> dict[str, NewCases]:
    """Return the new cases by layout, from points and the identities (points, seeds) of which some are `unknown`."""
    some = np.flatnonzero(unknown.any(axis=1))
    if len(some) < len(points):
        points, ids, unknown = points.at(some), ids[some], unknown[some]
    work = points.numbers(case_work)
    shapes, shape = points.shapes()
    numbers = {one: number for number, one in enumerate(dict.fromkeys(shapes))}
    kind = np.array([numbers[one] for one in shapes])[shape] * CLASSES + cost_classes(work)
    found: dict[str, NewCases] = {}
    for number in np.unique(kind).tolist():
        here = np.flatnonzero(kind == number)
        name = layout_name(points[int(here[0])], float(work[here[0]]))
        order = np.flatnonzero(unknown & (kind == number)[:, None])
        order = order[first_places(ids.ravel()[order])]
        order = order[np.argsort(-work[order // len(seeds)], kind="stable")]
        found[name] = NewCases(order, ids, points, seeds, float(work[here].mean()))
    return dict(sorted(found.items()))
