"""The run store of a sweep, `runs.zarr`: a group per dynamics, a layout per shape and cost, a row per case.

A row takes 8 bytes per recorded number before compression, and about 25 bytes of index (docs/performance.md).
"""

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError, intact_json
from sweeplib.engine.storage.records.jobs import ended_cases, planned_cases
from sweeplib.engine.storage.store.journal import journal, processors
from sweeplib.engine.storage.store.layout import Layout, create_layout, layout_folders
from sweeplib.engine.storage.store.layout_files import read_metadata, write_metadata

AT_ONCE = 2**17
"""The number of identities that are looked up together."""


def write_group(path: Path) -> None:
    """Write the metadata of the store itself or of the group of a dynamics; they have no content."""
    write_metadata({path: {"attributes": {}, "node_type": "group", "zarr_format": 3}})


def stored_dynamics(directory: Path) -> list[str]:
    """Return the dynamics that have run in a sweep's directory; a folder without a record of runs is a copy."""
    folders = (path for path in sorted((directory / "runs.zarr").glob("*")) if path.is_dir())
    return [path.name for path in folders if any(record.exists() for record in records(directory, path.name))]


def records(directory: Path, dynamics: str) -> list[Path]:
    """Return the files that say that a dynamics has run in a sweep's directory."""
    return [directory / f"{dynamics}.done.json", journal(directory, dynamics)]


def recorded_counts(directory: Path) -> dict[str, dict[str, int]]:
    """Return the number of cases with each status by dynamics, as the records and rows in a folder say it.

    Without a config: rows of earlier grids count too where no run has ended. The number of all cases is the plan's; all
    those of a plan or a run by an earlier version are computed again.
    """
    plan = intact_json(directory / "plan.done.json")
    planned, is_of_earlier = planned_cases(plan), bool(plan) and "made_from" not in plan
    counts: dict[str, dict[str, int]] = {}
    for name in dict.fromkeys([*planned, *stored_dynamics(directory)]):
        marker = intact_json(directory / f"{name}.done.json")
        numbers = Counter(ended_cases(marker)) if marker or is_of_earlier else _row_counts(directory, name)
        missing = max(0, planned.get(name, 0) - sum(numbers.values()))
        counts[name] = {status.name: numbers[status.name] for status in Status} | {Status.missing.name: missing}
    return counts


def _row_counts(directory: Path, dynamics: str) -> Counter[str]:
    """Return the number of rows with each status that have a result; none if the store is damaged."""
    with suppress(DamageError):
        statuses = RunStore(directory, dynamics).statuses()
        values, numbers = np.unique(np.concatenate([np.empty(0, np.uint8), *statuses]), return_counts=True)
        named = zip(values.tolist(), numbers.tolist(), strict=True)
        return Counter({Status(value).name: number for value, number in named if value != Status.missing})
    return Counter()


class RunStore:
    """The rows of one dynamics under a sweep's `directory`."""

    def __init__(self, directory: Path, dynamics: str, *, leave_out: Collection[str] | None = None) -> None:
        """Open the store; DamageError if it is damaged, but for the layouts to `leave_out` if this is given."""
        self.directory = directory
        self.dynamics = dynamics
        self.path = directory / "runs.zarr" / dynamics
        self._groups = [folder / "zarr.json" for folder in (self.path.parent, self.path)]
        for group in self._groups:
            if group.exists() and leave_out is None:
                read_metadata(group, f"delete {group}: the next run writes it again")
        folders = (path for path in layout_folders(self.path) if path.name not in (leave_out or ()))
        self.layouts = {path.name: Layout(path) for path in folders}

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The layout and the row (n,) of each stored case, and their identities' order (n,) by their first words."""
        sizes = [len(layout) for layout in self.layouts.values()]
        row = np.concatenate([np.empty(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)])
        layout = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return layout, row, np.argsort(self._words[:, 0], kind="stable")

    @cached_property
    def _keys(self) -> np.ndarray:
        """The first words (n,) of the identities, ascending."""
        return self._words[self._index[2], 0]

    @cached_property
    def _words(self) -> np.ndarray:
        """The identities of all stored cases (n, 2) as two numbers each."""
        parts = [layout.ids for layout in self.layouts.values()]
        return words(parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, "S16"), *parts]))

    @cached_property
    def processors(self) -> dict[str, set[str]]:
        """The types of processors that computed each block, of all layouts, when this was first asked for."""
        return processors(self.directory, self.dynamics)

    def locate(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the layout number (in the order of `layouts`) and the row of each identity; -1 and -1 if unknown."""
        layout, row = np.full(len(ids), -1, np.int32), np.full(len(ids), -1, np.int32)
        if len(self._words):
            for first in range(0, len(ids), AT_ONCE):
                some = slice(first, first + AT_ONCE)
                self._locate(words(ids[some]), layout[some], row[some])
        return layout, row

    def _locate(self, wanted: np.ndarray, layout: np.ndarray, row: np.ndarray) -> None:
        """Fill in the layout number and the row (n,) of identities (n, 2) where they are known."""
        layouts, rows, order = self._index
        keys = self._keys
        place = np.searchsorted(keys, wanted[:, 0])
        waiting = np.flatnonzero(place < len(keys))
        while len(waiting):  # once, but for different identities with the same first word
            waiting = waiting[keys[place[waiting]] == wanted[waiting, 0]]
            at = order[place[waiting]]
            same = self._words[at, 1] == wanted[waiting, 1]
            layout[waiting[same]], row[waiting[same]] = layouts[at[same]], rows[at[same]]
            waiting = waiting[~same]
            place[waiting] += 1
            waiting = waiting[place[waiting] < len(keys)]

    def create(self, name: str, case: Case, block_size: int, rows: int = 0) -> Layout:
        """Return the new layout `name`, created for cases like `case`; `rows` of them will be appended."""
        for group in self._groups:
            if not group.exists():
                write_group(group)
        self.layouts[name] = create_layout(self.path / name, case, block_size, rows)
        return self.layouts[name]

    def statuses(self) -> list[np.ndarray]:
        """Return the status of every row, one array per layout, in the order of `layouts`."""
        return [layout.status() for layout in self.layouts.values()]

    def refreshed(self) -> "RunStore":
        """Return the current store on disk."""
        return RunStore(self.directory, self.dynamics)


def whole(identity: bytes) -> bytes:
    """Return the 16 bytes of an identity that comes from an array: numpy drops zeros at the end of a text."""
    return identity.ljust(16, b"\0")


def words(ids: np.ndarray) -> np.ndarray:
    """Return identities (n,) as two numbers each, uint64 (n, 2)."""
    return np.ascontiguousarray(ids, "S16").view(np.uint64).reshape(-1, 2)


def first_places(ids: np.ndarray) -> np.ndarray:
    """Return the indices of the first occurrence of each identity, ascending."""
    keys = words(ids)
    order = np.argsort(keys[:, 0], kind="stable")
    firsts = keys[order, 0]
    if not (firsts[1:] == firsts[:-1]).any():
        return np.arange(len(ids))
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    new = np.ones(len(ids), bool)
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return np.sort(order[new])
