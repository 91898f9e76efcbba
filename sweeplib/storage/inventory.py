"""What a sweep wants of one dynamics, and what the run store has of it. A million cases are streamed, never kept."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sweeplib.simulation import Case, Status, case_work, identities
from sweeplib.storage.layout import layout_name
from sweeplib.storage.rows import Row, row_of, shared_fields
from sweeplib.storage.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.sweep.sweep import Sweep

BATCH = 8192


class NewCases(NamedTuple):
    """Cases of one layout that the run store does not know, the costliest first; `shared` is what they share."""

    ids: np.ndarray
    rows: list[Row]
    work: np.ndarray
    shared: dict[str, Any]


@dataclass(frozen=True)
class Inventory:
    """The wanted cases of one dynamics, in the sweep's order.

    `flat` is the flat index over (grid dims, seed), `layout` and `row` say where the store has the case (-1: nowhere),
    `status` what became of it, `new` holds the unknown ones by the layout they will join.
    """

    ids: np.ndarray
    flat: np.ndarray
    layout: np.ndarray
    row: np.ndarray
    status: np.ndarray
    new: dict[str, NewCases]

    def counts(self) -> dict[str, int]:
        """How many different cases have each status."""
        _, first = np.unique(self.ids, return_index=True)
        numbers = np.bincount(self.status[first], minlength=len(Status))
        return {status.name: int(numbers[status]) for status in Status}

    def located(self, store: RunStore) -> "Inventory":
        """The same cases in the store as it is now, which knows them all."""
        layout, row = store.locate(self.ids)
        return replace(self, layout=layout, row=row, status=_status(store, layout, row), new={})

    def missing_rows(self, layout: int) -> np.ndarray:
        """The rows of a layout that are wanted and missing, sorted."""
        return np.unique(self.row[(self.layout == layout) & (self.status == Status.missing)])


def inventory(sweep: "Sweep", dynamics: str, store: RunStore) -> Inventory:
    """The inventory of a sweep's cases of one dynamics."""
    shape = (*sweep.grid.shape, len(sweep.seeds))
    columns = _Columns()
    for batch in _batches(sweep.cases(dynamics)):
        ids = np.array(list(identities(case for _, case in batch)), dtype="S16")
        layout, row = store.locate(ids)
        flat = np.ravel_multi_index(np.array([index for index, _ in batch]).T, shape)
        columns.add(ids, flat, layout, row)
        for at in np.flatnonzero(layout < 0):
            columns.add_new(ids[at], batch[at][1])
    ids, flat, layout, row = columns.joined()
    return Inventory(ids, flat, layout, row, _status(store, layout, row), columns.new_cases())


def _status(store: RunStore, layout: np.ndarray, row: np.ndarray) -> np.ndarray:
    status = np.full(len(row), Status.missing, np.uint8)
    for number, stored in enumerate(store.statuses()):
        here = layout == number
        status[here] = stored[row[here]]
    return status


def _batches(cases: Iterable[tuple[tuple[int, ...], Case]]) -> Iterator[list[tuple[tuple[int, ...], Case]]]:
    stream = iter(cases)
    while batch := list(islice(stream, BATCH)):
        yield batch


class _Columns:
    """The columns of an inventory while it is made."""

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._new: dict[str, tuple[list[bytes], list[Row], list[float], dict[str, Any]]] = {}
        self._last: tuple[Case, str, float, str] | None = None

    def add(self, *parts: np.ndarray) -> None:
        self._parts.append(parts)

    def add_new(self, identity: bytes, case: Case) -> None:
        problem, work, name = self._of_problem(case)
        if name not in self._new:
            self._new[name] = ([], [], [], shared_fields(case))
        ids, rows, works, _ = self._new[name]
        ids.append(identity)
        rows.append(Row(problem, case.seed, case.clock))
        works.append(work)

    def _of_problem(self, case: Case) -> tuple[str, float, str]:
        """The problem's text, the work and the layout: the same for the seeds of a problem, which come in turn."""
        last = self._last
        if last is None or last[0].problem is not case.problem or last[0].clock != case.clock:
            last = self._last = (case, row_of(case).problem, case_work(case), layout_name(case))
        return last[1:]

    def joined(self) -> tuple[np.ndarray, ...]:
        if not self._parts:
            return np.empty(0, "S16"), *(np.empty(0, np.int64) for _ in range(3))
        return tuple(np.concatenate(parts) for parts in zip(*self._parts, strict=True))

    def new_cases(self) -> dict[str, NewCases]:
        return {name: _sorted_new(*parts) for name, parts in sorted(self._new.items())}


def _sorted_new(ids: list[bytes], rows: list[Row], work: list[float], shared: dict[str, Any]) -> NewCases:
    """The new cases of a layout, each once, the costliest first, equal costs in the sweep's order."""
    identities, works = np.array(ids, dtype="S16"), np.array(work)
    _, first = np.unique(identities, return_index=True)
    first.sort()
    order = first[np.argsort(-works[first], kind="stable")]
    return NewCases(identities[order], [rows[at] for at in order], works[order], shared)
