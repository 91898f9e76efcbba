"""Runs of the cases of a block that ended at an earlier horizon: where they are stored, read by the worker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sweeplib.engine.base.table import Column
from sweeplib.engine.cases import Cases
from sweeplib.engine.records import Begun
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.other_stores import Beginnings, stored_block
from sweeplib.engine.variable import END_STATE


@dataclass(frozen=True)
class EarlierRuns:
    """Rows of the layout at `path` with earlier runs of some ascending positions of a block, and their processors."""

    path: str
    positions: Sequence[int]
    rows: Sequence[int]
    processors: tuple[str, ...] = ()

    def earlier_ends(self, cases: Cases, positions: np.ndarray) -> tuple[np.ndarray, Begun] | None:
        """Return the indices of the cases that have an earlier run, and the ends of these runs; None if none has one.

        `positions` (n,) are those of the cases in the block. A run counts if it ended ok and its row has the identity
        that the case has with the earlier recording and this code. A run that cannot be read does not count: its case
        is computed from the start, with the same result.
        """
        place = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        have = np.flatnonzero(np.asarray(self.positions)[place] == positions)
        try:
            return self._read(cases.at(have), have, np.asarray(self.rows)[place[have]]) if len(have) else None
        except (DamageError, OSError):
            return None

    def _read(self, cases: Cases, have: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, Begun] | None:
        """Return what `earlier_ends` does, of the cases `have`, whose earlier runs should be in these `rows`."""
        layout, wanted = Layout(Path(self.path)), cases[0].recording
        recording = layout.recording
        if recording is None:
            return None
        names = frozenset(layout.simulator.variables(cases[0])) | {END_STATE}
        ids = cases.replaced(recording=Column([recording], np.zeros(len(cases), np.int32))).identities()
        parts, indices = list[dict[str, np.ndarray]](), list[np.ndarray]()
        for number in np.unique(rows // layout.block_size).tolist():
            here = np.flatnonzero(rows // layout.block_size == number)
            block, at = stored_block(layout, number, names, wanted), rows[here] - number * layout.block_size
            if block is not None:
                same = (block.ids[at] == ids[here]) & (block.status[at] == Status.ok)
                indices.append(here[same])
                parts.append({name: values[at[same]] for name, values in block.data.items()})
        order = np.argsort(which := np.concatenate([np.empty(0, np.intp), *indices]))
        if not len(order):
            return None
        data = {name: np.concatenate([data_of[name] for data_of in parts])[order] for name in names}
        return have[which[order]], Begun(data, recording.reached(wanted))


class EarlierRunsOf:
    """The earlier runs of the blocks of a store, from where the cases of an inventory have begun."""

    def __init__(self, begun: Beginnings, rows: np.ndarray, places: np.ndarray) -> None:
        """Take the `rows` (n,) of a layout in which the cases at some `places` (n,) of the inventory are."""
        order = np.argsort(rows, kind="stable")
        self.begun, self.rows, self.places = begun, rows[order], places[order]

    def in_rows(self, rows: np.ndarray, first: int) -> Iterator[EarlierRuns]:
        """Yield the earlier runs of some ascending rows of a block that begins with the row `first`."""
        places = self.places[np.searchsorted(self.rows, rows)]
        for number in np.unique(self.begun.source[places]).tolist():
            if number >= 0:
                here, source = self.begun.source[places] == number, self.begun.sources[number]
                there = self.begun.row[places[here]]
                path = str(source.layout.path.resolve())
                computed_by = tuple(source.processors_of(there))
                yield EarlierRuns(path, compact(rows[here] - first), compact(there), computed_by)


def compact(numbers: np.ndarray) -> range | tuple[int, ...]:
    """Return numbers as a range, which is small to send, if each is the one before plus one."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return range(int(numbers[0]), int(numbers[-1]) + 1)
    return tuple(numbers.tolist())
