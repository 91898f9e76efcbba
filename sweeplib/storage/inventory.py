"""Inventory: the cases of one dynamics that a sweep needs, and their state in the run store. Cases are streamed."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sweeplib.problem import Problem
from sweeplib.simulation import Case, Status, case_work, identities, with_seed
from sweeplib.storage.layout import cost_class, layout_name
from sweeplib.storage.rows import Rows, shared_fields
from sweeplib.storage.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

BATCH = 8192


class NewCases(NamedTuple):
    """Cases of one layout that are not in the run store, the costliest first; `shared` are their common fields."""

    ids: np.ndarray
    rows: Rows
    work: np.ndarray
    shared: dict[str, Any]


@dataclass(frozen=True)
class Inventory:
    """The cases of one dynamics that a sweep needs, in the sweep's order.

    `flat` is the flat index over (grid dims, seed); `layout` and `row` give the position in the store (-1: not there);
    `status` is the status; `new` holds the cases that are not in the store, by the layout they will be added to.
    """

    ids: np.ndarray
    flat: np.ndarray
    layout: np.ndarray
    row: np.ndarray
    status: np.ndarray
    new: dict[str, NewCases]

    def counts(self) -> dict[str, int]:
        """Return the number of different cases with each status."""
        _, first = np.unique(self.ids, return_index=True)
        numbers = np.bincount(self.status[first], minlength=len(Status))
        return {status.name: int(numbers[status]) for status in Status}

    def located(self, store: RunStore) -> "Inventory":
        """Return the same cases with their positions in the current store, which must contain all of them."""
        layout, row = store.locate(self.ids)
        return replace(self, layout=layout, row=row, status=_status(store, layout, row), new={})

    def missing_rows(self, layout: int) -> np.ndarray:
        """Return the rows of a layout whose cases are needed and missing, sorted."""
        return np.unique(self.row[(self.layout == layout) & (self.status == Status.missing)])


def inventory(sweep: "Sweep", dynamics: str, store: RunStore) -> Inventory:
    """Return the inventory of a sweep's cases of one dynamics."""
    shared = sweep.shared(dynamics)
    places, seeds = (np.array(column) for column in zip(*sweep.seeds_of(dynamics), strict=True))
    made, columns = identities(**shared), _Columns(shared, seeds)
    for points in _points(sweep, dynamics, max(1, BATCH // len(seeds))):
        ids = _ids([made.but_seed(*point) for point in zip(points.problems, points.clocks, strict=True)], seeds)
        columns.add(points, ids, np.add.outer(points.flat, places).ravel(), *store.locate(ids))
    ids, flat, layout, row = columns.joined()
    return Inventory(ids, flat, layout, row, _status(store, layout, row), columns.new_cases(ids, layout))


class _Points(NamedTuple):
    """Some points: the flat index of the first seed at each point, its problem, its clock."""

    flat: np.ndarray
    problems: list[Problem]
    clocks: list[float]


def _points(sweep: "Sweep", dynamics: str, most: int) -> Iterator[_Points]:
    """Yield the points that a dynamics runs on, at most `most` at a time."""
    for batch in sweep.batches(dynamics):
        count = len(batch.problems)
        index = (*batch.places.T, np.zeros(count, np.int64))
        flat, clocks = np.ravel_multi_index(index, sweep.shape), sweep.clocks(batch.columns, count)
        for first in range(0, count, most):
            some = slice(first, first + most)
            yield _Points(flat[some], batch.problems[some], clocks[some])


def _ids(but_seeds: list[bytes], seeds: np.ndarray) -> np.ndarray:
    """Return the identities of all seeds at each point, point by point."""
    seed_list = seeds.tolist()
    return np.frombuffer(b"".join([with_seed(but_seed, seed) for but_seed in but_seeds for seed in seed_list]), "S16")


def _status(store: RunStore, layout: np.ndarray, row: np.ndarray) -> np.ndarray:
    status = np.full(len(row), Status.missing, np.uint8)
    for number, stored in enumerate(store.statuses()):
        here = layout == number
        status[here] = stored[row[here]]
    return status


class _NewPoints(NamedTuple):
    """Points with new cases: one example `case`, the indices, problems, clocks and work of the points."""

    case: Case
    places: list[int]
    problems: list[str]
    clocks: list[float]
    work: list[float]


class _Columns:
    """The columns of an inventory under construction, and the points of new cases by layout."""

    def __init__(self, shared: dict[str, Any], seeds: np.ndarray) -> None:
        self._shared, self._seeds = shared, seeds
        self._count = 0
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._new: dict[str, _NewPoints] = {}
        self._layouts: dict[Hashable, str] = {}

    def add(self, points: _Points, ids: np.ndarray, flat: np.ndarray, layout: np.ndarray, row: np.ndarray) -> None:
        self._parts.append((ids, flat, layout, row))
        unknown = (layout < 0).reshape(-1, len(self._seeds)).any(axis=1)
        for at in np.flatnonzero(unknown).tolist():
            self._add_new(self._count + at, points.problems[at], points.clocks[at])
        self._count += len(points.problems)

    def _add_new(self, place: int, problem: Problem, clock: float) -> None:
        case = Case(problem, seed=0, clock=clock, **self._shared)
        work = case_work(case)
        kind = case.shape, cost_class(work)
        name = self._layouts.get(kind) or self._layouts.setdefault(kind, layout_name(case, work))
        new = self._new.get(name) or self._new.setdefault(name, _NewPoints(case, [], [], [], []))
        new.places.append(place)
        new.problems.append(problem.text)
        new.clocks.append(clock)
        new.work.append(work)

    def joined(self) -> tuple[np.ndarray, ...]:
        if not self._parts:
            return np.empty(0, "S16"), *(np.empty(0, np.int64) for _ in range(3))
        return tuple(np.concatenate(parts) for parts in zip(*self._parts, strict=True))

    def new_cases(self, ids: np.ndarray, layout: np.ndarray) -> dict[str, NewCases]:
        """Return the new cases by layout, from all identities and their layouts (-1: not in the store)."""
        seeds = np.broadcast_to(self._seeds, (self._count, len(self._seeds)))
        ids, unknown = ids.reshape(seeds.shape), (layout < 0).reshape(seeds.shape)
        return {name: _new_cases(new, ids, seeds, unknown) for name, new in sorted(self._new.items())}


def _new_cases(new: _NewPoints, ids: np.ndarray, seeds: np.ndarray, unknown: np.ndarray) -> NewCases:
    """Return the new cases of a layout without duplicates, the costliest first, ties in the sweep's order."""
    here = unknown[new.places]
    point = np.repeat(np.arange(len(here)), here.sum(axis=1))
    ids, seeds, work = ids[new.places][here], seeds[new.places][here], np.array(new.work)[point]
    _, first = np.unique(ids, return_index=True)
    first.sort()
    order = first[np.argsort(-work[first], kind="stable")]
    problems, clocks = np.array(new.problems, object)[point[order]], np.array(new.clocks)[point[order]]
    return NewCases(ids[order], Rows(problems, seeds[order], clocks), work[order], shared_fields(new.case))
