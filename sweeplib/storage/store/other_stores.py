"""Cases that a sweep misses and that other run stores have: those of the other sweeps of its results folder.

A case is found by its identity, which contains all that its numbers depend on, also the code. Rows that record more
than the sweep asks for, or in another order, are found too, in the sweep's own store as well: by the identities that
its cases would have with the recording of those rows. Nothing is locked, other sweeps may run.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.dynamics import DYNAMICS, kind_of
from sweeplib.errors import SweeplibError
from sweeplib.simulation import Recording, Status, recorded_variables
from sweeplib.storage.store.inventory import Inventory, identities_of_cases
from sweeplib.storage.store.layout import Layout
from sweeplib.storage.store.rows import recording_of
from sweeplib.storage.store.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

COMPUTE_ALL = "SWEEPLIB_COMPUTE_ALL"
"""The environment variable with which a run takes nothing from other sweeps."""
ALIKE = ("end_steps", "end_time", "exit_steps", "exit_time")
"""Variables without recording times that do not depend on the times before the last."""
FINAL = (Status.ok, Status.diverged)
"""How cases end by themselves; others may end in another way on another day, and are computed."""


@dataclass(frozen=True)
class Source:
    """A layout of another run store, or another one of a sweep's own, and the recording of its rows.

    needed : the names of the variables that the sweep records.
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


@dataclass(frozen=True)
class OtherCases:
    """The cases of a sweep, with those that others have at positions beyond its own layouts.

    wanted : the inventory; layout number `own` + n is source n, and the row is that of the source.
    sources : where cases were found.
    unread : for each store that could not be read, a line that says why.
    """

    wanted: Inventory
    own: int
    sources: list[Source] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of different cases that each folder has."""
        counts: dict[str, int] = {}
        for number, source in enumerate(self.sources, self.own):
            rows = self.wanted.row[self.wanted.layout == number]
            if len(rows):
                number_of_cases = int(np.count_nonzero(np.bincount(rows)))
                counts[source.folder] = counts.get(source.folder, 0) + number_of_cases
        return counts


def other_cases(wanted: Inventory, store: RunStore) -> OtherCases:
    """Return where the missing cases of an inventory are, other than in their place in its own store."""
    own = len(store.layouts)
    missing = np.flatnonzero(wanted.status == Status.missing)
    if not len(missing) or os.environ.get(COMPUTE_ALL):
        return OtherCases(wanted, own)
    unread: list[str] = []
    others = list(_stores_beside(store, unread))
    search = _Search(wanted, own, missing, unread)
    recording = wanted.sweep.recording
    for other in others:
        search.look(other, wanted.ids, recording)
    for known in _recordings([store, *others], recording, wanted.dynamics):
        if not len(search.missing):
            break
        ids, _, _ = identities_of_cases(replace(wanted.sweep, recording=known), wanted.dynamics)
        for other in (store, *others):
            search.look(other, ids, known)
    return OtherCases(search.wanted, own, search.sources, unread)


class _Search:
    """The indices of the cases that are still `missing`, and an inventory with the others."""

    def __init__(self, wanted: Inventory, own: int, missing: np.ndarray, unread: list[str]) -> None:
        self.wanted = wanted
        self.own, self.missing, self.unread = own, missing, unread
        self.sources: list[Source] = []

    def look(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for the missing cases in a store, where they have these identities `ids` (n,)."""
        numbers, rows = store.locate(ids[self.missing])
        if (numbers < 0).all():
            return
        if not self.sources:
            columns = {name: getattr(self.wanted, name).copy() for name in ("layout", "row", "status")}
            self.wanted = replace(self.wanted, **columns)
        kept = np.ones(len(self.missing), bool)
        for number, layout in enumerate(store.layouts.values()):
            here = np.flatnonzero(numbers == number)
            try:
                needed = _needed_variables(layout, self.wanted.sweep, recording) if len(here) else None
                status = layout.status()[rows[here]] if needed is not None else None
            except (SweeplibError, OSError) as error:
                self.unread.append(_unread_line(store.directory, store.dynamics, error))
                continue
            if needed is not None and status is not None:
                here, status = here[np.isin(status, FINAL)], status[np.isin(status, FINAL)]
                places = self.missing[here]
                self.wanted.layout[places] = self.own + len(self.sources)
                self.wanted.row[places], self.wanted.status[places] = rows[here], status
                self.sources.append(Source(store, layout, recording, needed))
                kept[here] = False
        self.missing = self.missing[kept]


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
                recording_of(layout.shared)
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


def _recordings(stores: list[RunStore], wanted: Recording, dynamics: str) -> list[Recording]:
    """Return the different recordings of layouts that have all that is wanted, and more or in another order."""
    recordings: dict[Recording, None] = {}
    for layout in (layout for store in stores for layout in store.layouts.values()):
        known = recording_of(layout.shared)
        if known is not None and known != wanted and _covers(known, wanted, dynamics):
            recordings[known] = None
    return list(recordings)


def _covers(known: Recording, wanted: Recording, dynamics: str) -> bool:
    """Return whether a run with one recording has the numbers of a run with the `wanted` one."""
    changed = {name for name in ("times", "thresholds") if getattr(known, name) != getattr(wanted, name)}
    if not changed <= DYNAMICS[dynamics].unaffected_by:
        return False
    exits = set(wanted.thresholds)
    enough = exits == set(known.thresholds) if wanted.stop == "exit" else exits <= set(known.thresholds)
    times = set(wanted.times) <= set(known.times) and wanted.times[-1] == known.times[-1]
    return enough and times and known.stop == wanted.stop and set(wanted.observables) <= set(known.observables)


def _needed_variables(layout: Layout, sweep: "Sweep", recording: Recording) -> frozenset[str] | None:
    """Return the variables that a sweep records of a layout's cases; None if one does not follow from the layout's."""
    wanted = sweep.recording
    case = replace(layout.cases(slice(1))[0], recording=wanted)
    variables = recorded_variables(case)
    for name, variable in variables.items():
        timeless = "time" not in variable.dims and name not in ALIKE
        if layout.variables.get(name) != list(variable.dims) or (timeless and recording.times != wanted.times):
            return None
    return frozenset(variables)


def at_wanted(values: np.ndarray, dims: list[str], known: Recording, wanted: Recording) -> np.ndarray:
    """Return the values (n, *dims) of a variable at the `wanted` times and thresholds."""
    if known == wanted:
        return values
    for axis, dim in enumerate(dims, 1):
        has, asks = (known.thresholds, wanted.thresholds) if dim == "threshold" else (known.times, wanted.times)
        if dim in ("time", "instant", "threshold") and has != asks:
            values = values.take([has.index(value) for value in asks], axis)
    return values


def block_file_state(layout: Layout, number: int) -> Any:
    """Return what changes whenever the status of a block is written: the file, its size and time; None without one."""
    path: Path = layout.files(number)[0]
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
