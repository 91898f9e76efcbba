"""The run store of a sweep, `runs/DYNAMICS/`: the finished tasks of a dynamics, a segment each (`segment`).

What is stored is the set of the segments. A case is done if one of them has its identity; what is missing is the
difference. Nothing changes in place: what is forgotten or merged is written again, then the earlier file is removed.

The position of a case is the number of its segment, in the order of names, and its row there, -1 and -1 if it is not
stored. `directory` is the folder of a sweep's results.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from os.path import lexists
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sweeplib.engine.status import FAILURES, Status
from sweeplib.engine.storage.records.files import DamageError, digest, partial, refuse_links
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store.earlier_store import convert, earlier_runs, earlier_segments
from sweeplib.engine.storage.store.origins import append_forgotten, append_origin, taken_from
from sweeplib.engine.storage.store.segment import (
    RUNS,
    SUFFIX,
    Segment,
    counts_of,
    merged,
    segment_path,
    store_folder,
    write_content,
)
from sweeplib.errors import SweeplibError

AT_ONCE = 2**17
"""The number of identities that are looked up together."""
SMALL, MANY = 2**20, 1000
"""Segments of fewer bytes are merged into larger ones once a dynamics has so many segments."""
DIGITS = 32
"""Of a digest, which is the name of a segment."""
LISTING_SECONDS, BETWEEN_LISTINGS = 90.0, 0.5
"""Seconds for which a network file system may show an old listing, and seconds between two looks."""
BEST_FIRST = (*(Status.ok, Status.diverged, Status.inaccurate, Status.timeout), *FAILURES, Status.missing)
RANK = np.argsort(BEST_FIRST).astype(np.uint8)
"""By status, its place in `BEST_FIRST`: of several rows of a case the best counts, and of failures nothing is known."""


def is_segment(path: Path) -> bool:
    """Return whether a path has the name of a segment."""
    return path.suffix == SUFFIX and len(path.stem) == DIGITS and set(path.stem) <= set("0123456789abcdef")


def segment_paths(directory: Path, dynamics: str) -> list[Path]:
    """Return the places of the segments of a dynamics in a sweep's directory, in the order of their names."""
    return sorted(filter(is_segment, store_folder(directory, dynamics).glob(f"*{SUFFIX}")))


def stored_dynamics(directory: Path) -> list[str]:
    """Return the dynamics that have run in a sweep's directory; a folder that a person copied is none."""
    names = {path.name for path in (directory / RUNS).glob("*") if path.is_dir() and _is_of_run(directory, path.name)}
    return sorted({*names, *earlier_runs(directory)})


def _is_of_run(directory: Path, name: str) -> bool:
    """Return whether a folder of segments is that of a run of its name, and no copy.

    The run has ended, or has taken segments of other sweeps, or is named in the first segment that can be read.
    """
    if stage_record(directory, f"simulate.{name}").made_from or taken_from(directory, name):
        return True
    for path in segment_paths(directory, name):
        with suppress(DamageError, OSError):
            return bool(Segment(path).header.get("run") == name)
    return False


def recorded_counts(directory: Path) -> dict[str, dict[str, int]]:
    """Return the number of cases with each status by dynamics, by the records and segments in a folder alone.

    Where no run has ended, cases of earlier grids count too, since no config is read. The number of all cases is that
    of the plan; all those of a plan by an early version count as missing, since they are computed again.
    """
    plan = stage_record(directory, "plan")
    is_of_earlier = bool(plan.counts) and not plan.made_from
    counts: dict[str, dict[str, int]] = {}
    for name in dict.fromkeys([*plan.counts, *stored_dynamics(directory)]):
        numbers = Counter(stage_record(directory, f"simulate.{name}").counts)
        if not numbers and not is_of_earlier:
            numbers = stored_counts(directory, name)
        # with cases of earlier grids more may be stored than are planned
        missing = max(0, plan.counts.get(name, 0) - numbers.total())
        counts[name] = {status.name: numbers[status.name] for status in Status} | {Status.missing.name: missing}
    return counts


def stored_counts(directory: Path, dynamics: str) -> Counter[str]:
    """Return the number of stored cases with each status; none if a segment is damaged."""
    with suppress(DamageError):
        store = RunStore(directory, dynamics)
        return Counter(counts_of(store.status_at(*store.locate(store.ids))))
    return Counter()


class _Catalogue(NamedTuple):
    """All rows (n,) of a store: their identities as two words (n, 2), ascending by the first, positions and status.

    Of a case that several segments have, the row that ended best is first.
    """

    words: np.ndarray
    segment: np.ndarray
    row: np.ndarray
    status: np.ndarray


class RunStore:
    """The segments of one dynamics under a sweep's `directory`, opened when they are first asked for.

    path : their folder. _paths : the segments as they were listed; listed anew if one is gone, unless they are pinned.
    """

    def __init__(
        self, directory: Path, dynamics: str, *, leave_out_damaged: bool = False, leave_out: Collection[Path] = ()
    ) -> None:
        """Open nothing yet; damaged segments, or those at the paths `leave_out`, may be left out."""
        self.directory = directory
        self.dynamics = dynamics
        self.path = store_folder(directory, dynamics)
        self._leaves_out_damaged, self._leave_out = leave_out_damaged, leave_out
        self._damaged: dict[Path, DamageError] = {}  # by the paths of segments that were opened and left out
        self._is_pinned = False  # whether `_paths` stays as it is (`pin`)

    @property
    def leaves_out(self) -> bool:
        """Whether damaged segments, or some others, are left out."""
        return self._leaves_out_damaged or bool(self._leave_out)

    @cached_property
    def _paths(self) -> list[Path]:
        """The paths of the segments in the order of their names, which is that of their numbers."""
        return [path for path in segment_paths(self.directory, self.dynamics) if path not in self._leave_out]

    @property
    def names(self) -> list[str]:
        """The names of the segments, as they were listed first; none of an earlier store."""
        return [path.stem for path in self._paths]

    def pin(self) -> None:
        """Keep the list of segments, even if one is gone: an inventory has positions by their numbers."""
        self._is_pinned = True

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments, those of an earlier store last; DamageError for a damaged one, unless these are left out."""
        while (opened := self._opened()) is None:
            del self._paths  # so that they are listed again
        return [*opened, *earlier_segments(self.directory, self.dynamics)]

    @property
    def damaged(self) -> dict[Path, DamageError]:
        """The damaged segments that are left out."""
        _ = self.segments  # opens them, and so finds the damaged ones
        return self._damaged

    def _opened(self) -> list[Segment] | None:
        """Return the segments; None if one has gone since it was listed: it was merged, or written again."""
        segments = []
        for path in self._paths:
            try:
                segments.append(Segment(path))
            except DamageError as error:
                if not lexists(path) and not self._is_pinned:
                    return None
                if not self._leaves_out_damaged:
                    raise
                self._damaged[path] = error
        return segments

    def alike(self) -> list[list[Segment]]:
        """Return the segments in groups of one layout, which share all but their rows."""
        groups: dict[tuple[str, str], list[Segment]] = {}
        for segment in self.segments:
            groups.setdefault((segment.layout, repr(sorted(segment.shared.items()))), []).append(segment)
        return list(groups.values())

    @property
    def ids(self) -> np.ndarray:
        """The different identities (n,) of the stored cases."""
        ids = np.concatenate([np.empty(0, "S16"), *(segment.ids for segment in self.segments)])
        return ids[first_places(ids)]

    @cached_property
    def _catalogue(self) -> _Catalogue:
        """The rows of all segments, in an order in which identities can be looked up."""
        sizes = [len(segment) for segment in self.segments]
        number = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        row = np.concatenate([np.empty(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)])
        status = np.concatenate([np.empty(0, np.uint8), *(segment.status for segment in self.segments)])
        ids = words(np.concatenate([np.empty(0, "S16"), *(segment.ids for segment in self.segments)]))
        order = np.lexsort((RANK[status], ids[:, 0]))
        return _Catalogue(ids[order], number[order], row[order], status[order])

    def locate(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the segment and the row (n,) of identities (n,), -1 where a case is not stored."""
        segment, row = np.full(len(ids), -1, np.int32), np.full(len(ids), -1, np.int32)
        for first in range(0, len(ids), AT_ONCE):
            chunk = slice(first, first + AT_ONCE)
            self._locate(words(ids[chunk]), segment[chunk], row[chunk])
        return segment, row

    def _locate(self, wanted: np.ndarray, segment: np.ndarray, row: np.ndarray) -> None:
        """Fill `segment` and `row` (n,) with the positions of `wanted` identities (n, 2) where they are stored.

        `place` (n,) are candidates in the catalogue, `waiting` the identities whose candidate is not compared yet.
        """
        stored = self._catalogue
        keys = stored.words[:, 0]
        place = np.searchsorted(keys, wanted[:, 0])
        waiting = np.flatnonzero(place < len(keys))
        while len(waiting):  # once, but for different identities with the same first word
            waiting = waiting[keys[place[waiting]] == wanted[waiting, 0]]
            at = place[waiting]
            same = stored.words[at, 1] == wanted[waiting, 1]
            # the first candidate counts: of several rows of a case, the best is first
            segment[waiting[same]], row[waiting[same]] = stored.segment[at[same]], stored.row[at[same]]
            waiting = waiting[~same]
            place[waiting] += 1
            waiting = waiting[place[waiting] < len(keys)]

    def status_at(self, segment: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return the status (n,) of the cases at positions `segment` and `row` (n,); missing where these are -1."""
        status = np.full(len(row), Status.missing, np.uint8)
        for number, rows, places in by_segment(segment, row):
            status[places] = self.segments[number].status[rows]
        return status

    def seconds_a_unit(self) -> float | None:
        """Return the seconds of a unit of a simulator's work, over all segments that were timed; None without any."""
        # one with rows that another sweep recorded longer has no seconds; a link to another sweep's has those of there
        # up to version 0.3 they could be below 0; cases that went on took those of a part of their work
        headers = ((segment, segment.header) for segment in self.segments)
        timed = [segment for segment, of in headers if of.get("seconds", 0.0) > 0.0 and not of.get("begun")]
        work = sum(sum(segment.header["computed"].values()) * segment.work for segment in timed)
        return sum(segment.header["seconds"] for segment in timed) / work if work else None

    def wait_for(self, names: set[str]) -> None:
        """Wait until segments of these names, which workers have written, are listed on this machine.

        A network file system may remember an old listing. SweeplibError if it does for `LISTING_SECONDS`.
        """
        self.path.mkdir(parents=True, exist_ok=True)  # it may not be seen here yet, either
        until = time.monotonic() + LISTING_SECONDS
        while lacking := names - {path.stem for path in segment_paths(self.directory, self.dynamics)}:
            if time.monotonic() >= until:
                first = segment_path(self.directory, self.dynamics, min(lacking))
                problem = f"{len(lacking)} files of workers are not seen here, such as {first}"
                raise SweeplibError(f"{problem}; on a slow network file system, run again: they are not lost")
            # a change by this machine ends what it remembers of the folder
            beside = partial(self.path / "listing")
            beside.touch()
            beside.unlink()
            time.sleep(BETWEEN_LISTINGS)

    def refreshed(self) -> "RunStore":
        """Return the store as it is on the disk now, with nothing left out."""
        return RunStore(self.directory, self.dynamics)

    def forget(self, ids: np.ndarray) -> None:
        """Make the cases of some identities missing: their segments are written again without them.

        Only for a process that is `alone` in the folder (`records.locks`).
        """
        convert(self.directory, self.dynamics)
        refuse_links(self.directory, self.path)
        forgotten = {whole(identity) for identity in ids.tolist()}
        append_forgotten(self.directory, self.dynamics, sorted(forgotten))
        origins = taken_from(self.directory, self.dynamics)
        for segment in self.refreshed().segments:
            stays = np.array([whole(identity) not in forgotten for identity in segment.ids.tolist()], bool)
            if not stays.all():
                if stays.any():
                    content = merged([segment], stays)
                    # noted before the segment is there, which counts as computed here without that
                    if folder := origins.get(segment.name):
                        append_origin(self.directory, self.dynamics, digest(content), folder, int(stays.sum()))
                    write_content(self.directory, self.dynamics, content)
                segment.path.unlink()

    def merge(self) -> bool:
        """Write small segments that were computed here as one, if there are many; return whether any were merged.

        Only for the driver. Segments of other sweeps stay: they may be links.
        """
        if len(self.names) < MANY:
            return False
        origins = taken_from(self.directory, self.dynamics)
        groups = [group for segments in self.alike() for group in _small_groups(segments, origins)]
        for group in groups:
            write_content(self.directory, self.dynamics, merged(group))
            for segment in group:
                segment.path.unlink()
        return bool(groups)


def _small_groups(segments: list[Segment], others: Collection[str]) -> Iterator[list[Segment]]:
    """Yield groups of small segments that together are no longer small; those with the names of `others` are left out.

    The last group may be small; a small segment alone is no group.
    """
    group, size = list[Segment](), 0
    for segment in segments:
        if segment.name not in others and (length := segment.path.stat().st_size) < SMALL:
            group, size = [*group, segment], size + length
            if size >= SMALL:
                yield group
                group, size = [], 0
    if len(group) > 1:
        yield group


def by_segment(segment: np.ndarray, row: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each segment's number with the rows (m,), ascending, in it, and their places (m,) in `segment` and `row`.

    segment, row (n,) : positions, -1 for cases that have none and are left out.
    """
    order = np.lexsort((row, segment))
    order = order[np.searchsorted(segment[order], 0) :]  # without those at -1
    for places in np.split(order, np.flatnonzero(np.diff(segment[order])) + 1) if len(order) else ():
        yield int(segment[places[0]]), row[places], places


def whole(identity: bytes) -> bytes:
    """Return the 16 bytes of an identity that comes from an array: numpy drops zeros at the end of a text."""
    return identity.ljust(16, b"\0")


def words(ids: np.ndarray) -> np.ndarray:
    """Return identities (n,) as two numbers each, uint64 (n, 2)."""
    return np.ascontiguousarray(ids, "S16").view(np.uint64).reshape(-1, 2)


def first_places(ids: np.ndarray) -> np.ndarray:
    """Return the indices (m,) of the first occurrence of each identity among n, ascending."""
    keys = words(ids)
    order = np.argsort(keys[:, 0], kind="stable")
    firsts = keys[order, 0]
    # mostly all differ, even in their first words
    if not (firsts[1:] == firsts[:-1]).any():
        return np.arange(len(ids))
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    new = np.ones(len(ids), bool)
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return np.sort(order[new])
