"""Cases that a sweep misses and that other run stores have: those of the other sweeps of its results folder.

A case is found by its identity, which contains all that its numbers depend on, also the code. Rows that record more
than the sweep asks for, or in another order, are found too, in the sweep's own store as well: by the identities that
its cases would have with the recording of those rows. In the same way rows are found whose runs ended earlier and kept
their ends: missing cases go on from there. Nothing is locked, other sweeps may run.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.cases import Recording
from sweeplib.engine.run_names import kind_of
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.earlier_store import FOLDER as EARLIER
from sweeplib.engine.storage.store.earlier_store import EarlierSegment
from sweeplib.engine.storage.store.inventory import Inventory, identities_of_cases
from sweeplib.engine.storage.store.origins import forgotten_cases
from sweeplib.engine.storage.store.run_store import RunStore, by_segment, first_places, whole
from sweeplib.engine.storage.store.segment import Segment
from sweeplib.engine.variable import END_STATE
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

COMPUTE_ALL = "SWEEPLIB_COMPUTE_ALL"
"""The environment variable with which a run takes nothing from other sweeps, or from its own other recordings."""
FINAL = (Status.ok, Status.diverged)
"""How cases end by themselves; others may end in another way on another day, and are computed."""


@dataclass(frozen=True)
class Source:
    """A segment of another run store, or another one of a sweep's own, and the recording of its rows.

    needed : the names of the variables that the sweep records, and of the state if runs go on from it.
    """

    store: RunStore
    segment: Segment
    recording: Recording
    needed: frozenset[str]

    @property
    def folder(self) -> str:
        """The name of the folder of the sweep that computed the rows, or had taken them."""
        return self.store.directory.name

    def values(self, rows: np.ndarray, wanted: Recording) -> dict[str, np.ndarray]:
        """Return the needed variables (n, ...) of some rows, as a sweep records them."""
        segment, recording = self.segment, self.recording
        return {
            name: recording.values_at(segment.data(name)[rows], segment.dims(name), wanted)
            for name in sorted(self.needed)
        }


@dataclass(frozen=True)
class Places:
    """Where cases are: for each case (n,) of an inventory the number of the source, or -1, and a row there."""

    sources: list[Source]
    source: np.ndarray
    row: np.ndarray

    def by_source(self) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
        """Yield each source with rows (m,), ascending, and the places (m,) of their cases."""
        for number, rows, places in by_segment(self.source, self.row):
            yield self.sources[number], rows, places


@dataclass(frozen=True)
class OtherCases:
    """The cases of a sweep, with the status of those that others have.

    elsewhere : where these are, None if no case was found.
    unread : for each store that could not be read, a line that says why.
    begun : where the other missing cases have begun, None if no run has.
    """

    wanted: Inventory
    elsewhere: Places | None = None
    unread: list[str] = field(default_factory=list)
    begun: Places | None = None

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of different cases that each folder has."""
        return {} if self.elsewhere is None else _counts(self.elsewhere, self.wanted, lambda source: source.folder)

    @property
    def beginnings(self) -> dict[str, int]:
        """The number of different cases that have begun, by where their runs ended."""

        def where(source: Source) -> str:
            return f"time {source.recording.end:g} in {source.folder}"

        return {} if self.begun is None else _counts(self.begun, self.wanted, where)


def _counts(places: Places, wanted: Inventory, key: Callable[[Source], str]) -> dict[str, int]:
    counts = Counter[str]()
    for source, _, those in places.by_source():
        counts[key(source)] += len(first_places(wanted.ids[those]))
    return dict(counts)


def other_cases(wanted: Inventory, store: RunStore) -> OtherCases:
    """Return where the missing cases of an inventory are, other than in their place in its own store.

    Those that were made missing, as by `retry`, are to be computed.
    """
    missing = np.flatnonzero(wanted.status == Status.missing)
    if forgotten := forgotten_cases(store.directory, store.dynamics):
        identities = map(whole, wanted.ids[missing].tolist())
        missing = missing[np.array([identity not in forgotten for identity in identities], bool)]
    if not len(missing) or os.environ.get(COMPUTE_ALL):
        return OtherCases(wanted)
    unread: list[str] = []
    others = list(_stores_beside(store, unread))
    search = _Search(wanted, missing, unread)
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
    elsewhere, begun = (places if places.sources else None for places in (search.elsewhere, search.begun))
    return OtherCases(replace(wanted, status=search.status), elsewhere, unread, begun)


class _Search:
    """The indices of the cases that are still `missing`, the status of all, and where the others are or have begun."""

    def __init__(self, wanted: Inventory, missing: np.ndarray, unread: list[str]) -> None:
        self.wanted, self.missing, self.unread = wanted, missing, unread
        self.status = wanted.status.copy()
        self.elsewhere, self.begun = (Places([], *np.full((2, len(wanted.ids)), -1, np.int32)) for _ in range(2))
        self._needed: dict[tuple[int, str], frozenset[str] | None] = {}

    def look(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for the missing cases in a store, where they have these identities `ids` (n,)."""
        for source, places, rows in self._stored(store, ids, recording, FINAL):
            self.status[places] = source.segment.status[rows]
            self._add(self.elsewhere, source, places, rows)

    def look_for_beginnings(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for runs of the missing cases that ended earlier in a store, where they have these identities (n,)."""
        for source, places, rows in self._stored(store, ids, recording, (Status.ok,)):
            # workers read these, and know no earlier stores
            if END_STATE in source.segment.variables and not isinstance(source.segment, EarlierSegment):
                self._add(self.begun, replace(source, needed=source.needed | {END_STATE}), places, rows)

    def _add(self, to: Places, source: Source, places: np.ndarray, rows: np.ndarray) -> None:
        to.source[places], to.row[places] = len(to.sources), rows
        to.sources.append(source)
        self.missing = np.setdiff1d(self.missing, places, assume_unique=True)

    def _stored(
        self, store: RunStore, ids: np.ndarray, recording: Recording, ends: tuple[Status, ...]
    ) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
        """Yield segments with places and rows (m,) of missing cases that ended there as one of `ends`."""
        missing = self.missing
        for number, rows, at in by_segment(*store.locate(ids[missing])):
            segment = store.segments[number]
            try:
                key = id(store), segment.layout
                if key not in self._needed:
                    self._needed[key] = _needed_variables(segment, self.wanted.sweep, recording)
            except (SweeplibError, OSError) as error:
                line = _unread_line(store.directory, store.dynamics, error)
                self.unread += [] if line in self.unread else [line]
                continue
            here = np.isin(segment.status[rows], ends)
            if (needed := self._needed[key]) is not None and here.any():
                yield Source(store, segment, recording, needed), missing[at[here]], rows[here]


def _stores_beside(store: RunStore, unread: list[str]) -> Iterator[RunStore]:
    """Yield the stores of the same dynamics in the folders beside a sweep's; a line is `unread` for one that fails."""
    directory = store.directory.resolve()
    names = (f"[!.]*/{runs}/{kind_of(store.dynamics)}*" for runs in ("runs", EARLIER))
    folders = {(path.parents[1], path.name) for name in names for path in directory.parent.glob(name) if path.is_dir()}
    for folder, run in sorted(folders):
        try:
            if folder.resolve() == directory or kind_of(run) != kind_of(store.dynamics):
                continue
            other = RunStore(folder, run, leave_out_damaged=True)
            unread += [_unread_line(folder, run, error) for error in other.damaged.values()]
            for segments in other.alike():
                _ = segments[0].recording
        except (SweeplibError, OSError) as error:
            unread.append(_unread_line(folder, run, error))
        except (KeyError, TypeError, ValueError):
            unread.append(f"{run}: no cases are taken from {folder}: it is of another version of sweeplib")
        else:
            yield other


def _unread_line(folder: Path, dynamics: str, error: Exception) -> str:
    """Return the line that a store, or a segment of it, cannot be read."""
    return f"{dynamics}: no cases are taken from {folder}: {error}"


def _recordings(
    stores: list[RunStore], wanted: Recording, dynamics: str, fits: Callable[[Recording, Recording, str], bool]
) -> list[Any]:
    """Return the different recordings of segments that fit what is wanted, and are not the same, the longest first."""
    recordings: dict[Any, None] = {}
    for segments in (segments for store in stores for segments in store.alike()):
        earlier = segments[0].recording
        if earlier is not None and earlier != wanted and fits(earlier, wanted, kind_of(dynamics)):
            recordings[earlier] = None
    return sorted(recordings, key=lambda recording: -recording.end)


def _covers(recording: Recording, wanted: Recording, kind: str) -> bool:
    return recording.covers(wanted, kind)


def _begins(recording: Recording, wanted: Recording, kind: str) -> bool:
    return recording.begins(wanted, kind)


def _needed_variables(segment: Segment, sweep: "Design", recording: Recording) -> frozenset[str] | None:
    """Return the variables that a sweep stores of a segment's cases; None if one does not follow from the segment's."""
    wanted = sweep.recording
    case = replace(segment.cases(slice(1))[0], recording=wanted)
    for name, variable in (variables := segment.simulator.variables(case)).items():
        if name not in segment.variables or segment.dims(name) != list(variable.dims):
            return None
        if not recording.gives(name, variable.dims, wanted):
            return None
    return frozenset(variables)
