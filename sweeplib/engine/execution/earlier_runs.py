"""Runs of the cases of a block that ended at an earlier horizon: where they are stored, read by the worker.

A block is some missing cases; a position is the index of a case in it. A segment is a file of stored rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sweeplib.engine.base.table import Column
from sweeplib.engine.cases import Cases
from sweeplib.engine.records import Begun
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.store.other_stores import Places
from sweeplib.engine.storage.store.run_store import by_segment
from sweeplib.engine.storage.store.segment import Segment
from sweeplib.engine.variable import END_STATE


@dataclass(frozen=True)
class EarlierRuns:
    """Earlier runs of some cases of a block, in the rows of one segment, at `path`.

    positions, rows (m,) : the cases in the block, ascending, and the row of each.
    processors : those that computed the segment.
    """

    path: Path
    positions: Sequence[int]
    rows: Sequence[int]
    processors: tuple[str, ...] = ()

    def earlier_ends(self, cases: Cases, positions: np.ndarray) -> tuple[np.ndarray, Begun] | None:
        """Return the indices of the cases that have an earlier run, and the ends of these runs; None if none has one.

        `positions` (n,) are those of the cases in the block. A run counts if it ended ok and its row has the identity
        that the case has with the earlier recording and this code. A run that cannot be read does not count: its case
        is computed from the start, with the same result.
        """
        # a position behind all others is compared with the last one, and differs
        place = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        have = np.flatnonzero(np.asarray(self.positions)[place] == positions)
        try:
            return self._read(cases.at(have), have, np.asarray(self.rows)[place[have]]) if len(have) else None
        except (DamageError, OSError):
            return None

    def _read(self, cases: Cases, have: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, Begun] | None:
        """Return the indices of the cases whose earlier run is in its row, and the ends of these runs; None if none is.

        have, rows (n,) : the index of each of the `cases` in `earlier_ends`, which is returned, and its expected row.
        """
        segment, wanted = Segment(self.path), cases[0].recording
        recording = segment.recording
        if recording is None:
            return None
        # the identities that the cases would have with the earlier recording, by this code
        ids = cases.replaced(recording=Column([recording], np.zeros(len(cases), np.int32))).identities()
        same = np.flatnonzero((segment.ids[rows] == ids) & (segment.status[rows] == Status.ok))
        if not len(same):
            return None
        names = {*segment.simulator.variables(cases[0]), END_STATE}
        data = {name: recording.values_at(segment.data(name)[rows[same]], segment.dims(name), wanted) for name in names}
        return have[same], Begun(data, recording.reached(wanted))


def earlier_runs(begun: Places, places: np.ndarray) -> Iterator[EarlierRuns]:
    """Yield the earlier runs of a block, by segment.

    begun : where earlier runs of an inventory's cases are. places (n,) : of the block's cases in the inventory.
    """
    for number, rows, positions in by_segment(begun.source[places], begun.row[places]):
        order, segment = np.argsort(positions), begun.sources[number].segment
        yield EarlierRuns(segment.path.resolve(), compact(positions[order]), compact(rows[order]), segment.processors)


def compact(numbers: np.ndarray) -> range | tuple[int, ...]:
    """Return numbers as a range, which is small to send, if each is the one before plus one."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return range(int(numbers[0]), int(numbers[-1]) + 1)
    return tuple(numbers.tolist())
