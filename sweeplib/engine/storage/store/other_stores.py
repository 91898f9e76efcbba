"""Cases that a sweep misses and that other run stores have: those of the other sweeps of its results folder.

A case is found by its identity, which contains all that its numbers depend on, also the code. Rows that record more
than the sweep asks for, or in another order, are found too, in the sweep's own store as well: by the identities that
its cases would have with the recording of those rows. In the same way rows are found whose runs ended earlier and kept
their ends: missing cases go on from there. Nothing is locked, other sweeps may run.
"""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.cases import Recording
from sweeplib.engine.run_names import kind_of
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.inventory import Inventory, identities_of_cases
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.variable import END_STATE
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

COMPUTE_ALL = "SWEEPLIB_COMPUTE_ALL"
"""The environment variable with which a run takes nothing from other sweeps."""
FINAL = (Status.ok, Status.diverged)
"""How cases end by themselves; others may end in another way on another day, and are computed."""


@dataclass(frozen=True)
class Source:
    """A layout of another run store, or another one of a sweep's own, and the recording of its rows.

    needed : the names of the variables that the sweep records, and of the state if runs go on from it.
    """

    store: RunStore
    layout: Layout
    recording: Recording
    needed: frozenset[str]

    @property
    def folder(self) -> str:
        """The name of the folder of the sweep that computed the rows, or had taken them."""
        return self.store.directory.name

    @property
    def name(self) -> str:
        """The sweep, the dynamics and the layout."""
        return f"{self.folder}/{self.store.dynamics}/{self.layout.name}"

    def processors_of(self, rows: np.ndarray) -> list[str]:
        """Return the types of processors that computed the blocks of some rows."""
        blocks = np.unique(rows // self.layout.block_size).tolist()
        processors = (self.store.processors.get(f"{self.layout.name}/{block}", set()) for block in blocks)
        return sorted(set().union(*processors))


@dataclass(frozen=True)
class Beginnings:
    """Where missing cases have begun: for each case (n,) of an inventory the number of the source, or -1, and a row."""

    sources: list[Source]
    source: np.ndarray
    row: np.ndarray

    def counts(self, ids: np.ndarray) -> dict[str, int]:
        """The number of different cases among those with these identities (n,), by where their runs ended."""
        counts: dict[str, int] = {}
        for number, source in enumerate(self.sources):
            key = f"time {source.recording.end:g} in {source.folder}"
            counts[key] = counts.get(key, 0) + len(np.unique(ids[self.source == number]))
        return counts


@dataclass(frozen=True)
class OtherCases:
    """The cases of a sweep, with those that others have at positions beyond its own layouts.

    wanted : the inventory; layout number `own` + n is source n, and the row is that of the source.
    sources : where cases were found.
    unread : for each store that could not be read, a line that says why.
    begun : where the other missing cases have begun, None if no run has.
    """

    wanted: Inventory
    stored: int
    sources: list[Source] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    begun: Beginnings | None = None

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of different cases that each folder has."""
        counts: dict[str, int] = {}
        for number, source in enumerate(self.sources, self.stored):
            rows = self.wanted.row[self.wanted.layout == number]
            if len(rows):
                number_of_cases = int(np.count_nonzero(np.bincount(rows)))
                counts[source.folder] = counts.get(source.folder, 0) + number_of_cases
        return counts


def other_cases(wanted: Inventory, store: RunStore) -> OtherCases:
    """Return where the missing cases of an inventory are, other than in their place in its own store."""
    stored = len(store.layouts)
    missing = np.flatnonzero(wanted.status == Status.missing)
    if not len(missing) or os.environ.get(COMPUTE_ALL):
        return OtherCases(wanted, stored)
    unread: list[str] = []
    others = list(_stores_beside(store, unread))
    search = _Search(wanted, stored, missing, unread)
    recording = wanted.sweep.recording
    for other in others:
        search.look(other, wanted.ids, recording)
    for fits, look in ((_covers, search.look), (_begins, search.look_for_beginnings)):
        for earlier in _recordings([store, *others], recording, wanted.dynamics, fits):
            if not len(search.missing):
                break
            ids, _, _ = identities_of_cases(replace(wanted.sweep, recording=earlier), wanted.dynamics)
            for other in (store, *others):
                look(other, ids, earlier)
    return OtherCases(search.wanted, stored, search.sources, unread, search.begun)


class _Search:
    """The indices of the cases that are still `missing`, and an inventory with the others."""

    def __init__(self, wanted: Inventory, stored: int, missing: np.ndarray, unread: list[str]) -> None:
        self.wanted = wanted
        self.stored, self.missing, self.unread = stored, missing, unread
        self.sources: list[Source] = []
        self.begun: Beginnings | None = None

    def look(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for the missing cases in a store, where they have these identities `ids` (n,)."""
        for source, places, rows, status in self._stored(store, ids, recording, FINAL):
            if not self.sources:
                columns = {name: getattr(self.wanted, name).copy() for name in ("layout", "row", "status")}
                self.wanted = replace(self.wanted, **columns)
            self.wanted.layout[places] = self.stored + len(self.sources)
            self.wanted.row[places], self.wanted.status[places] = rows, status
            self.sources.append(source)
            self._remove(places)

    def look_for_beginnings(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for runs of the missing cases that ended earlier in a store, where they have these identities (n,)."""
        for source, places, rows, _ in self._stored(store, ids, recording, (Status.ok,)):
            if END_STATE in source.layout.variables:
                if self.begun is None:
                    self.begun = Beginnings([], *np.full((2, len(self.wanted.ids)), -1, np.int32))
                self.begun.source[places] = len(self.begun.sources)
                self.begun.row[places] = rows
                self.begun.sources.append(replace(source, needed=source.needed | {END_STATE}))
                self._remove(places)

    def _remove(self, places: np.ndarray) -> None:
        self.missing = np.setdiff1d(self.missing, places, assume_unique=True)

    def _stored(
        self, store: RunStore, ids: np.ndarray, recording: Recording, ends: tuple[Status, ...]
    ) -> Iterator[tuple[Source, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield layouts with places, rows and status (m,) of missing cases that ended there as one of `ends`."""
        missing = self.missing
        numbers, rows = store.locate(ids[missing])
        for number, layout in enumerate(store.layouts.values()):
            here = np.flatnonzero(numbers == number)
            try:
                needed = _needed_variables(layout, self.wanted.sweep, recording) if len(here) else None
                status = layout.status()[rows[here]] if needed is not None else None
            except (SweeplibError, OSError) as error:
                self.unread.append(_unread_line(store.directory, store.dynamics, error))
                continue
            if needed is not None and status is not None:
                here, status = here[np.isin(status, ends)], status[np.isin(status, ends)]
                yield Source(store, layout, recording, needed), missing[here], rows[here], status


def _stores_beside(store: RunStore, unread: list[str]) -> Iterator[RunStore]:
    """Yield the stores of the same dynamics in the folders beside a sweep's; a line is `unread` for one that fails."""
    directory = store.directory.resolve()
    for path in sorted(directory.parent.glob(f"[!.]*/runs.zarr/{kind_of(store.dynamics)}*")):
        folder, run = path.parents[1], path.name
        try:
            if folder.resolve() == directory or kind_of(run) != kind_of(store.dynamics) or not path.is_dir():
                continue
            other = RunStore(folder, run)
            for layout in other.layouts.values():
                _ = layout.recording
            other.locate(np.empty(0, "S16"))
        except (SweeplibError, OSError) as error:
            unread.append(_unread_line(folder, run, error))
        except (KeyError, TypeError, ValueError):
            unread.append(f"{run}: no cases are taken from {folder}: it is of another version of sweeplib")
        else:
            yield other


def _unread_line(folder: Path, dynamics: str, error: Exception) -> str:
    """Return the line that a store, or a layout of it, cannot be read."""
    return f"{dynamics}: no cases are taken from {folder}: {error}"


def _recordings(
    stores: list[RunStore], wanted: Recording, dynamics: str, fits: Callable[[Recording, Recording, str], bool]
) -> list[Any]:
    """Return the different recordings of layouts that fit what is wanted, and are not the same, the longest first."""
    recordings: dict[Any, None] = {}
    for layout in (layout for store in stores for layout in store.layouts.values()):
        earlier = layout.recording
        if earlier is not None and earlier != wanted and fits(earlier, wanted, kind_of(dynamics)):
            recordings[earlier] = None
    return sorted(recordings, key=lambda recording: -recording.end)


def _covers(recording: Recording, wanted: Recording, kind: str) -> bool:
    return recording.covers(wanted, kind)


def _begins(recording: Recording, wanted: Recording, kind: str) -> bool:
    return recording.begins(wanted, kind)


def _needed_variables(layout: Layout, sweep: "Design", recording: Recording) -> frozenset[str] | None:
    """Return the variables that a sweep stores of a layout's cases; None if one does not follow from the layout's."""
    wanted = sweep.recording
    case = replace(layout.cases(slice(1))[0], recording=wanted)
    variables = layout.simulator.variables(case)
    for name, variable in variables.items():
        if layout.variables.get(name) != list(variable.dims) or not recording.gives(name, variable.dims, wanted):
            return None
    return frozenset(variables)


@dataclass(frozen=True)
class StoredBlock:
    """The identities (n,) and the status (n,) of a block, and variables (n, ...) as a sweep records them."""

    ids: np.ndarray
    status: np.ndarray
    data: dict[str, np.ndarray]


def stored_block(layout: Layout, number: int, names: Collection[str], wanted: Recording) -> StoredBlock | None:
    """Return a block of a layout as it is now; None if it has no status, or its status was written meanwhile."""
    layout, recording = Layout(layout.path), layout.recording
    before, rows = block_file_state(layout, number), layout.block(number)
    status = layout.status(rows)
    if before is None or recording is None:
        return None
    dims = {name: layout.variables[name] for name in sorted(names)}
    data = {name: recording.values_at(layout.block_data(name, number), axes, wanted) for name, axes in dims.items()}
    same = before == block_file_state(layout, number)
    return StoredBlock(layout.stored_ids(rows), status, data) if same else None


def block_file_state(layout: Layout, number: int) -> Any:
    """Return what changes whenever the status of a block is written: the file, its size and time; None without one."""
    path: Path = layout.files(number)[0]
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
