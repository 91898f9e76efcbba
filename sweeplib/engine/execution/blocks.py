"""The task of a worker: compute the missing cases of one block and store them."""

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.engine.cases import Case, Cases
from sweeplib.engine.code.plugins import import_plugins
from sweeplib.engine.design.cluster import MEMORY_SHARE
from sweeplib.engine.execution.block_size import BLOCK_OVERHEAD
from sweeplib.engine.execution.earlier_runs import EarlierRuns
from sweeplib.engine.execution.guard import Allowance, Explained, computed_apart, computed_here
from sweeplib.engine.execution.time_limit import time_limit
from sweeplib.engine.process.troubles import reason
from sweeplib.engine.records import Begun, Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import append_line
from sweeplib.engine.storage.records.locks import block_lock
from sweeplib.engine.storage.records.provenance import cpu_model
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.journal import journal, runs_of
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.outcomes import Reason, append_reasons
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from distributed import Worker


class _Last(threading.local):
    """The layout that a thread opened last, and its place and the state of its metadata."""

    layout: Layout | None = None
    state: object = None


_last = _Last()


class _Process:
    """The bytes of memory that this process may take, if it only computes blocks and is no worker of Dask."""

    memory: int | None = None


_process = _Process()


@dataclass(frozen=True)
class Block:
    """A block of the run store as a task of a few hundred bytes; the cases are read from the store.

    `positions` are the rows within the block that the sweep needs, a range if possible. Each is expected to take
    `seconds_a_case`, which was `measured` or is a guess. A case of a `suspect` block may end its process. Runs that
    have `begun` go on, as do cases of which `checkpoints` have a state.
    """

    directory: str
    dynamics: str
    layout: str
    number: int
    positions: Sequence[int]
    seconds_a_case: float = 0.0
    measured: bool = False
    suspect: bool = False
    timeout: float | None = None
    plugins: tuple[str, ...] = ()
    begun: tuple[EarlierRuns, ...] = ()
    checkpoints: CheckpointFolder | None = None

    @property
    def name(self) -> str:
        """Return the block's name, unique within its sweep."""
        return f"{self.dynamics}/{self.layout}/{self.number}"

    @property
    def seconds(self) -> float:
        """Return the seconds that the block is expected to take."""
        return self.seconds_a_case * len(self.positions) + BLOCK_OVERHEAD

    def open(self) -> Layout:
        """Return the layout of the block; the last one that this thread opened is kept as long as it is the same."""
        path = Path(self.directory) / "runs.zarr" / self.dynamics / self.layout
        file = (path / "zarr.json").stat() if (path / "zarr.json").exists() else None
        state = path, None if file is None else (file.st_ino, file.st_mtime_ns, file.st_size)
        if _last.layout is None or _last.state != state:
            _last.layout, _last.state = Layout(path), state
        return _last.layout


@dataclass(frozen=True)
class BlockReport:
    """The report of a block: the number of cases that were computed, by status, and of those that were found done.

    `not_ok` has the positions of all cases that ended otherwise than ok: the first and the last of each run, by status.
    """

    computed: dict[str, int]
    stored: int
    seconds: float
    not_ok: dict[str, list[list[int]]] = field(default_factory=dict)


def run_block(block: Block) -> BlockReport:
    """Compute the missing cases of a block, store all results, and return the report.

    The cases run in this process, or in a child process if the block is `suspect` or a process died while computing it.
    Why cases failed or are inaccurate is written before the data, these before the status, and the status before the
    line in the journal.
    """
    import_plugins(block.plugins)
    started = time.perf_counter()
    with block_lock(Path(block.directory), block.name) as begun:
        layout, wanted = block.open(), np.array(block.positions)
        status = layout.status(layout.block(block.number))[wanted]
        new = status == Status.missing
        if new.any():
            with begun.now():
                status[new] = _commit(block, layout, wanted[new], apart=block.suspect or begun.before)
        stored, seconds = int((~new).sum()), time.perf_counter() - started
        report = BlockReport(counts_of(status[new]), stored, seconds, _not_ok(wanted, status))
        _journal(block, report, wanted[new])
    return report


def run_block_apart(block: Block, memory: int) -> BlockReport | SweeplibError:
    """Run a block in a process that does nothing else, and may take so many bytes of memory; return why it cannot."""
    _process.memory = memory
    try:
        return run_block(block)
    except (SweeplibError, OSError, MemoryError) as error:
        return SweeplibError(reason(error, Path(block.directory)))


def _not_ok(positions: np.ndarray, status: np.ndarray) -> dict[str, list[list[int]]]:
    """Return the runs of positions whose cases ended otherwise than ok, by their status."""
    others = [value for value in Status if value != Status.ok and (status == value).any()]
    return {value.name: runs_of(positions[status == value]) for value in others}


def _cases(block: Block, layout: Layout, positions: np.ndarray) -> Cases:
    """Return the cases of some rows of a block; SweeplibError if this code would compute other results than planned."""
    rows = layout.block(block.number)
    cases = layout.cases(rows.start + positions)
    if (cases.identities() != layout.stored_ids(rows)[positions]).any():
        problem = f"this worker's sweeplib or plugins are not those that planned block {block.name}"
        raise SweeplibError(f"{problem}; run again, with new workers")
    return cases


def _commit(block: Block, layout: Layout, missing: np.ndarray, *, apart: bool) -> np.ndarray:
    """Compute and write the missing cases; return the status of each."""
    cases = _cases(block, layout, missing)
    data = {name: layout.empty(name, len(cases)) for name in layout.variables}
    status, reasons = np.empty(len(cases), np.uint8), list[tuple[bytes, Status, Reason]]()

    def explained(case: Case, status: Status, reason: Reason) -> None:
        reasons.append((case.identity(), status, reason))

    for places, begun in _by_beginning(block, cases, missing):
        records = _computed(block, cases.at(places), explained, begun, apart=apart)
        status[places] = records.status
        for name, values in records.data.items():
            data[name][places] = values
    append_reasons(Path(block.directory), block.dynamics, reasons)
    layout.write(block.number, missing, data, status)
    if block.checkpoints is not None and not block.checkpoints.keep_ends:
        block.checkpoints.forget(layout.simulator.kept_names(cases.at(np.flatnonzero(status == Status.ok))))
    return status


def _by_beginning(block: Block, cases: Cases, positions: np.ndarray) -> Iterator[tuple[np.ndarray, Begun | None]]:
    """Yield the indices of the cases that can be run together, with the earlier runs from which they go on."""
    for places in cases.of_one_shape():
        remaining = places
        for earlier in block.begun:
            runs = earlier.earlier_ends(cases.at(remaining), positions[remaining]) if len(remaining) else None
            if runs is not None:
                yield remaining[runs[0]], runs[1]
                remaining = np.delete(remaining, runs[0])
        if len(remaining):
            yield remaining, None


def _computed(block: Block, cases: Cases, explained: Explained, begun: Begun | None, *, apart: bool) -> Records:
    """Return the records of cases of one shape; `explained` is called for each that failed or is inaccurate.

    In a process of their own they are computed from the start.
    """
    expected = block.seconds_a_case if block.measured else None
    allowance = Allowance(block.timeout, expected, _memory(), block.checkpoints)
    if apart:
        return computed_apart(cases, block.plugins, allowance, explained)
    seconds = allowance.seconds(cases) if _may_end() else None
    with Path(os.devnull).open("w") as nowhere, time_limit(seconds, nowhere):
        return computed_here(cases, allowance, explained, begun)


def _may_end() -> bool:
    """Return whether this process is a worker of its own, so that its death costs only its current block."""
    if _process.memory is not None:
        return True
    worker = _worker()
    return worker is not None and not worker.address.startswith("inproc:")


def _memory() -> int | None:
    """Return the bytes of memory that a process of cases may take: those of this worker."""
    if _process.memory is not None:
        return _process.memory
    worker = _worker()
    limit = worker.memory_manager.memory_limit if worker is not None else None
    return None if limit is None else int(MEMORY_SHARE * limit)


def _worker() -> "Worker | None":
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def counts_of(status: np.ndarray) -> dict[str, int]:
    """Return the number of cases with each status that occurs."""
    values, counts = np.unique(status, return_counts=True)
    return {Status(value).name: int(count) for value, count in zip(values, counts, strict=True)}


def _journal(block: Block, report: BlockReport, computed: np.ndarray) -> None:
    """Write the line of a block into the journal, and one for each other processor on which its runs had begun."""
    entry = {
        "block": f"{block.layout}/{block.number}",
        "computed": report.computed,
        "found": report.stored,
        "rows": runs_of(computed),
        "seconds": round(report.seconds, 4),
        "worker": f"{socket.gethostname()}:{os.getpid()}",
        "cpu": cpu_model(),
    }
    earlier = {cpu for runs in block.begun for cpu in runs.processors} - {cpu_model()}
    begun = {"begun": sum(len(runs.positions) for runs in block.begun)} if block.begun else {}
    append_line(journal(Path(block.directory), block.dynamics), entry | begun)
    for cpu in sorted(earlier):
        of_none = dict.fromkeys(report.computed, 0)
        append_line(journal(Path(block.directory), block.dynamics), entry | {"computed": of_none, "cpu": cpu})
