"""Rows that other run stores have, copied into a sweep's own."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from sweeplib.engine.cases import Recording
from sweeplib.engine.execution.blocks import Block, counts_of
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.records.locks import block_lock
from sweeplib.engine.storage.store.inventory import Inventory
from sweeplib.engine.storage.store.journal import journal, journal_taken
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.other_stores import FINAL, OtherCases, StoredBlock, stored_block
from sweeplib.engine.storage.store.rows import by_block
from sweeplib.engine.storage.store.run_store import RunStore

THREADS = 4
"""Blocks that are written at the same time: most of the time they wait for the disk."""
KEPT = 4 * THREADS
"""Blocks of other stores that are kept in memory."""


@dataclass(frozen=True)
class _Rows:
    """The rows of one block to take: their `positions` in it, and the number of the source and the row (n,) of each."""

    layout: Layout
    block: int
    positions: np.ndarray
    source: np.ndarray
    row: np.ndarray


def take(store: RunStore, located: Inventory, others: OtherCases, say: Callable[[str], None]) -> None:
    """Copy the rows that other stores have into a store that contains all cases.

    Only for the driver that holds the lock. `located` is the inventory in this store. The status is written last, so an
    interrupted copy goes on with the next run. Rows that changed since they were found are not taken; `say` gets a line
    for each file that is damaged.
    """
    copies = _Copies(store, others, say)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(copies.write, _blocks(store, located, others)))


def _blocks(store: RunStore, located: Inventory, others: OtherCases) -> Iterator[_Rows]:
    """Yield the rows to take, by their blocks in the store."""
    places = np.flatnonzero(others.wanted.layout >= others.stored)
    for number, layout in enumerate(store.layouts.values()):
        here = places[(located.layout[places] == number) & (located.status[places] == Status.missing)]
        rows, first = np.unique(located.row[here], return_index=True)
        for block, some, positions in by_block(rows, layout.block_size):
            chosen = here[first[some]]
            source = others.wanted.layout[chosen] - others.stored
            yield _Rows(layout, block, positions, source, others.wanted.row[chosen])


class _Copies:
    """Writes rows of other stores into a store; the last blocks that were read are kept."""

    def __init__(self, store: RunStore, others: OtherCases, say: Callable[[str], None]) -> None:
        self.store, self.sources, self.say = store, others.sources, say
        self.recording: Recording = others.wanted.sweep.recording
        self._block = lru_cache(KEPT)(self._stored_block)
        self._reading = threading.Lock()

    def write(self, rows: _Rows) -> None:
        """Copy the rows of a block."""
        directory, dynamics = self.store.directory, self.store.dynamics
        name = Block(str(directory), dynamics, rows.layout.name, rows.block, ()).name
        with block_lock(directory, name):
            present = rows.layout.status(rows.layout.block(rows.block))[rows.positions]
            data = {name: rows.layout.empty(name, len(present)) for name in rows.layout.variables}
            status = np.zeros(len(present), np.uint8)
            for source, block, places in self._by_source(rows, np.flatnonzero(present == Status.missing)):
                self._read(source, block, rows.row[places], places, (data, status))
            places_read = np.flatnonzero(status)
            if len(places_read):
                data = {name: values[places_read] for name, values in data.items()}
                rows.layout.write(rows.block, rows.positions[places_read], data, status[places_read])
                self._journal(rows, places_read, status)

    def _by_source(self, rows: _Rows, wanted: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield the number of a source, that of a block there, and the places of the `wanted` rows that it has."""
        sizes = np.array([source.layout.block_size for source in self.sources])
        keys = np.stack([rows.source[wanted], rows.row[wanted] // sizes[rows.source[wanted]]])
        pairs, group = np.unique(keys, axis=1, return_inverse=True)
        for number, (source, block) in enumerate(pairs.T.tolist()):
            yield source, block, wanted[group.ravel() == number]

    def _read(
        self, source: int, block: int, rows: np.ndarray, places: np.ndarray, into: tuple[dict[str, Any], np.ndarray]
    ) -> None:
        """Write rows of a block of a source, with their status, to some places of data and status."""
        data, status = into
        stored, layout = self._block(source, block), self.sources[source].layout
        if stored is None:
            return
        at = rows - block * layout.block_size
        same = (stored.ids[at] == layout.ids[rows]) & np.isin(stored.status[at], FINAL)
        status[places[same]] = stored.status[at[same]]
        for name, values in stored.data.items():
            data[name][places[same]] = values[at[same]]

    def _stored_block(self, number: int, block: int) -> StoredBlock | None:
        """Return a block of a source; None if it is damaged."""
        source = self.sources[number]
        try:
            return stored_block(source.layout, block, source.needed, self.recording)
        except (DamageError, OSError) as error:
            self.say(f"not taken from {source.folder}: {error}")
            return None

    def _journal(self, rows: _Rows, places: np.ndarray, status: np.ndarray) -> None:
        """Write where some rows of a block were taken from, with the processors that computed them."""
        path, block = journal(self.store.directory, self.store.dynamics), f"{rows.layout.name}/{rows.block}"
        for number in np.unique(rows.source[places]).tolist():
            source, here = self.sources[number], places[rows.source[places] == number]
            with self._reading:
                cpus = source.processors_of(rows.row[here])
            journal_taken(path, block, source.name, rows.positions[here], counts_of(status[here]), cpus)
