"""Cases that a sweep misses and that other run stores have, those of the other sweeps of its results folder: to take.

A case is found by its identity, which contains all that its numbers depend on, also the code. Rows that record more
than the sweep asks for, or in another order, are found too, in the sweep's own store as well: by the identities that
its cases would have with the recording of those rows. In the same way rows are found whose runs ended earlier and kept
their ends: missing cases go on from there. Nothing is locked, other sweeps may run.

What is found is taken by links to segments, or as segments of some rows.

A segment is a file of rows of one layout, all cases of one shape and similar cost. Places are indices (m,) of cases in
the sweep's inventory, rows (m,) theirs in a segment.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.cases import Recording
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.groups import group_name
from sweeplib.engine.run_names import kind_of
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError, damaged, digest, refuse_links
from sweeplib.engine.storage.store.earlier_store import FOLDER as EARLIER
from sweeplib.engine.storage.store.earlier_store import EarlierSegment
from sweeplib.engine.storage.store.inventory import Inventory, identities_of_cases, layout_name, order_of_work
from sweeplib.engine.storage.store.origins import append_origin, forgotten_cases
from sweeplib.engine.storage.store.run_store import RunStore, by_segment, first_places, whole, words
from sweeplib.engine.storage.store.segment import (
    RETRY,
    Segment,
    counts_of,
    described_variables,
    merged,
    segment_bytes,
    segment_header,
    segment_path,
    write_content,
)
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
    """A segment from which a sweep may take cases, or go on: of another run store, or its own with another recording.

    recording : of the segment's rows.
    needed : the names of the variables that the sweep records, and `END_STATE` if runs go on from it.
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
        """Return the needed variables (n, ...) of some rows (n,), as the `wanted` recording has them, by name."""
        segment, recording = self.segment, self.recording
        return {
            name: recording.values_at(segment.data(name)[rows], segment.dims(name), wanted)
            for name in sorted(self.needed)
        }


@dataclass(frozen=True)
class Places:
    """Where cases are: for each case (n,) of an inventory the index of its source, or -1, and the row there."""

    sources: list[Source]
    source: np.ndarray
    row: np.ndarray

    def by_source(self) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
        """Yield each source with rows (m,), ascending, and the places (m,) of their cases."""
        for number, rows, places in by_segment(self.source, self.row):
            yield self.sources[number], rows, places


@dataclass(frozen=True)
class Demand:
    """The cases of a dynamics that a sweep needs, and what was found of missing ones outside of its own store.

    wanted : the sweep's inventory, in which cases that others have got the status that they have there.
    elsewhere : where these cases are, None if none was found.
    unread : for each store that could not be read, a line that says why.
    begun : where earlier runs are from which cases that are still missing go on, None if there are none.
    counts, beginnings : the number of different cases that each folder has, and of those that have begun, by where.
    """

    wanted: Inventory
    elsewhere: Places | None = None
    unread: list[str] = field(default_factory=list)
    begun: Places | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    beginnings: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def todo(self) -> int:
        """The number of cases to compute."""
        return self.wanted.counts()["missing"]


def demand_of(wanted: Inventory) -> Demand:
    """Return what is found of the missing cases of an inventory outside of their place in its own store.

    Looked for are, one after the other, the same cases in stores beside it; runs that record more; runs that ended
    earlier. Cases that were made missing, as by `retry`, are to be computed, and are not looked for.
    """
    store, missing = wanted.store, np.flatnonzero(wanted.status == Status.missing)
    if forgotten := forgotten_cases(store.directory, store.dynamics):
        identities = map(whole, wanted.ids[missing].tolist())
        missing = missing[np.array([identity not in forgotten for identity in identities], bool)]
    if not len(missing) or os.environ.get(COMPUTE_ALL):
        return Demand(wanted)
    unread: list[str] = []
    others = list(_stores_beside(store, unread))
    search = _Search(wanted, missing, unread)
    recording = wanted.sweep.recording
    for other in others:
        search.look(other, wanted.ids, recording)
    # runs that record more come before beginnings: nothing is left to compute of them
    kind = kind_of(store.dynamics)
    for fits, look in (
        (lambda earlier: earlier.covers(recording, kind), search.look),
        (lambda earlier: earlier.begins(recording, kind), search.look_for_beginnings),
    ):
        for earlier in _recordings([store, *others], recording, fits):
            if not len(search.missing):
                break
            # those that all cases of the sweep would have with this recording
            ids, _, _ = identities_of_cases(replace(wanted.sweep, recording=earlier), wanted.dynamics)
            for other in (store, *others):
                look(other, ids, earlier)
    elsewhere, begun = (places if places.sources else None for places in (search.elsewhere, search.begun))
    return Demand(replace(wanted, status=search.status), elsewhere, unread, begun, search.counts, search.beginnings)


class _Search:
    """A search for the missing cases of an inventory, store after store.

    missing (m,) : the places of those that were not found yet. status (n,) : of all cases, as found.
    elsewhere, begun : where cases are, and where earlier runs of others are. counts, beginnings : how many different
    ones, by where. unread : gets a line for what fails.
    """

    def __init__(self, wanted: Inventory, missing: np.ndarray, unread: list[str]) -> None:
        """Begin with the `missing` cases (m,) of an inventory, by their places; `unread` gets lines for what fails."""
        self.wanted, self.missing, self.unread = wanted, missing, unread
        self.status = wanted.status.copy()
        self.elsewhere, self.begun = (Places([], *np.full((2, len(wanted.ids)), -1, np.int32)) for _ in range(2))
        self.counts, self.beginnings = Counter[str](), Counter[str]()
        # what `_needed_variables` returns, by store (its `id`) and layout
        self._needed: dict[tuple[int, str], frozenset[str] | None] = {}

    def look(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for missing cases in a store whose rows have a recording, with which all cases have the `ids` (n,)."""
        for source, places, rows in self._stored(store, ids, recording, FINAL):
            self.status[places] = source.segment.status[rows]
            self._add(self.elsewhere, source, places, rows)

    def look_for_beginnings(self, store: RunStore, ids: np.ndarray, recording: Recording) -> None:
        """Look for earlier runs of missing cases in a store, with a recording that gives all cases the `ids` (n,)."""
        for source, places, rows in self._stored(store, ids, recording, (Status.ok,)):
            # workers read these, and know no earlier stores
            if END_STATE in source.segment.variables and not isinstance(source.segment, EarlierSegment):
                self._add(self.begun, replace(source, needed=source.needed | {END_STATE}), places, rows)

    def _add(self, to: Places, source: Source, places: np.ndarray, rows: np.ndarray) -> None:
        """Note that the cases at some places are in some rows of a source, and no longer looked for."""
        to.source[places], to.row[places] = len(to.sources), rows
        to.sources.append(source)
        where = source.folder if to is self.elsewhere else f"time {source.recording.end:g} in {source.folder}"
        (self.counts if to is self.elsewhere else self.beginnings)[where] += len(first_places(self.wanted.ids[places]))
        self.missing = np.setdiff1d(self.missing, places, assume_unique=True)

    def _stored(
        self, store: RunStore, ids: np.ndarray, recording: Recording, ends: tuple[Status, ...]
    ) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
        """Yield segments of a store, with the places and the rows (m,) of missing cases that ended there as in `ends`.

        ids (n,) : the identities of all cases with the `recording` of the segments.
        """
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
            fits = np.isin(segment.status[rows], ends)
            if (needed := self._needed[key]) is not None and fits.any():
                yield Source(store, segment, recording, needed), missing[at[fits]], rows[fits]


def _stores_beside(store: RunStore, unread: list[str]) -> Iterator[RunStore]:
    """Yield the stores of runs of the same kind in the folders beside a sweep's.

    unread : gets a line for each store, or segment of one, that cannot be read.
    """
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
                _ = segments[0].recording  # raises, if it is of another version
        except (SweeplibError, OSError) as error:
            unread.append(_unread_line(folder, run, error))
        except (KeyError, TypeError, ValueError):
            unread.append(f"{run}: no cases are taken from {folder}: it is of another version of sweeplib")
        else:
            yield other


def _unread_line(folder: Path, dynamics: str, error: Exception) -> str:
    """Return the line that a store, or a segment of it, cannot be read."""
    return f"{dynamics}: no cases are taken from {folder}: {error}"


def _recordings(stores: list[RunStore], wanted: Recording, fits: Callable[[Recording], bool]) -> list[Any]:
    """Return the different recordings in some stores that `fits` is true of, but for the wanted one, longest first."""
    stored = dict.fromkeys(segments[0].recording for store in stores for segments in store.alike())
    fitting = [earlier for earlier in stored if earlier is not None and earlier != wanted and fits(earlier)]
    return sorted(fitting, key=lambda recording: -recording.end)


def _needed_variables(segment: Segment, sweep: "Design", recording: Recording) -> frozenset[str] | None:
    """Return the names of the variables that a sweep stores of a segment's cases; None if the segment lacks one.

    recording : of the segment, which may not give a variable's values at the times that the sweep records.
    """
    wanted = sweep.recording
    case = replace(segment.cases(slice(1))[0], recording=wanted)
    for name, variable in (variables := segment.simulator.variables(case)).items():
        if name not in segment.variables or segment.dims(name) != list(variable.dims):
            return None
        if not recording.gives(name, variable.dims, wanted):
            return None
    return frozenset(variables)


def take(demand: Demand, say: Callable[[str], None]) -> Demand:
    """Take the cases that other stores have into that of a sweep; return what is needed after that.

    say : gets a line for each segment that cannot be taken.

    Only for the driver that holds the lock. Each segment is there whole or not at all: after an interrupt the next run
    takes the others.
    """
    wanted = demand.wanted
    if demand.elsewhere is None:
        return demand
    directory, dynamics = wanted.store.directory, wanted.dynamics
    forgotten = np.array(list(forgotten_cases(directory, dynamics)), "S16")
    not_wanted = np.sort(words(np.concatenate([wanted.ids[wanted.segment >= 0], forgotten]))[:, 0])
    for source, rows, places in demand.elsewhere.by_source():
        first = first_places(wanted.ids[places])
        try:
            # the whole segment would bring cases that are stored here a second time, or that were made missing; the
            # first words of ids tell that
            brings_others = _are_in(words(source.segment.ids)[:, 0], not_wanted)
            content = _content(wanted, source, rows[first], places[first], by_itself=brings_others)
            # noted before the segment is there, which counts as computed here without that
            name = source.segment.name if content is None else digest(content)
            append_origin(directory, dynamics, name, source.folder, len(first))
            if content is None:
                _link(directory, dynamics, source.segment.path)
            else:
                write_content(directory, dynamics, content)
        except (DamageError, OSError) as error:
            say(f"not taken from {source.folder}: {error}")
    return replace(demand, wanted=wanted.refreshed(), elsewhere=None, counts={})


def _are_in(values: np.ndarray, ordered: np.ndarray) -> bool:
    """Return whether any of `values` (n,) is among ascending ones, `ordered` (m,)."""
    at = np.searchsorted(ordered, values)
    return bool((ordered[np.minimum(at, len(ordered) - 1)] == values).any()) if len(ordered) else False


def _content(
    wanted: Inventory, source: Source, rows: np.ndarray, places: np.ndarray, *, by_itself: bool
) -> bytes | None:
    """Return the bytes of a new segment with some rows of a source; None if a link to the source's segment will do.

    places, rows (m,) : of the cases, in the inventory and in the source's segment.
    by_itself : whether the segment must have these rows alone.
    """
    segment, sweep = source.segment, wanted.sweep
    if not segment.is_whole():
        raise damaged(segment.path, RETRY)
    if source.recording == sweep.recording:
        will_do = not by_itself and np.isin(segment.status, FINAL).all() and not isinstance(segment, EarlierSegment)
        return None if will_do else merged([segment], rows)
    # the rows have more than the sweep records: they are written as the sweep's own would be
    cases = wanted.cases(places)
    case, simulator, status = cases[0], segment.simulator, segment.status[rows]
    work = order_of_work(case)
    header = segment_header(cases, layout_name(case, work), group_name(simulator.group(case)), work)
    header |= {"run": wanted.dynamics, "computed": counts_of(status), "seconds": 0.0, "workers": []}
    columns = {"case_id": wanted.ids[places], "status": status} | simulator.index(cases)
    columns |= source.values(rows, sweep.recording)
    described = described_variables(simulator.variables(case))
    return segment_bytes({**header, "processors": list(segment.processors), "variables": described}, columns)


def _link(directory: Path, dynamics: str, path: Path) -> None:
    """Make a segment of another folder one of a sweep: by a link, or a copy where there are none."""
    place = segment_path(directory, dynamics, path.stem)
    refuse_links(directory, place)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.hardlink_to(path)
    except FileExistsError:
        return
    except OSError:
        write_content(directory, dynamics, file_bytes(path))
