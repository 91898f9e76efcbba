"""The task of a worker: compute the missing cases of one block, and store them as a segment.

A block is some missing cases of a layout (of one shape and similar cost), about two seconds of work. A segment is a
file of results that never changes. Cases whose process dies are computed again apart, in a child process; a case that
goes on begins at the end of an earlier run of it, with an earlier horizon.
"""

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sweeplib.engine.cases import Case, Cases
from sweeplib.engine.code.plugins import import_plugins
from sweeplib.engine.design.cluster import MEMORY_SHARE
from sweeplib.engine.execution.earlier_runs import EarlierRuns
from sweeplib.engine.execution.guard import Allowance, Explained, computed_apart, computed_here
from sweeplib.engine.execution.time_limit import time_limit
from sweeplib.engine.groups import group_name
from sweeplib.engine.process.troubles import reason
from sweeplib.engine.process.work_time import seconds_at_work
from sweeplib.engine.records import Begun, Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import digest
from sweeplib.engine.storage.records.locks import block_lock
from sweeplib.engine.storage.records.provenance import machine
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.outcomes import Reason, append_reasons
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import counts_of, empty_values, segment_header, write_segment
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from distributed import Worker

    from sweeplib.engine.storage.store.inventory import Inventory


class _Process:
    """What this process is: one that only computes blocks, and may take `memory` bytes, or, if None, any other."""

    memory: int | None = None


_process = _Process()


@dataclass(frozen=True, eq=False)
class Block:
    """Some missing cases of a layout as a task.

    directory : the folder of the sweep's results.
    number : of the block in its layout, in the order in which blocks are handed out.
    digest : of the identities of the cases by the driver's code; a worker with other code has another one.
    wanted, places : the driver's inventory, and where the cases are in it; workers get the cases instead, as `sent`.
    work : the order of magnitude of the work of a case.
    seconds_a_case : expected; `measured`, or a guess.
    suspect : whether a case may end its process.
    timeout : the mean seconds that a case may take; None: no limit.
    begun : earlier runs of some of the cases, which go on from their ends.
    checkpoints : where cases keep states on their way, and go on from those that are there.
    """

    directory: str
    dynamics: str
    layout: str
    count: int
    number: int = 0
    digest: str = ""
    wanted: "Inventory | None" = None
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    sent: Cases | None = None
    work: float = 1.0
    seconds_a_case: float = 0.0
    measured: bool = False
    suspect: bool = False
    timeout: float | None = None
    plugins: tuple[str, ...] = ()
    begun: tuple[EarlierRuns, ...] = ()
    checkpoints: CheckpointFolder | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to a worker: the cases, made at this moment, since those of all blocks take gigabytes."""
        return {**self.__dict__, "wanted": None, "places": self.places[:0], "sent": self.cases}

    def __len__(self) -> int:
        return self.count

    @property
    def cases(self) -> Cases:
        """The cases: those that were sent, or in the driver those of its inventory."""
        if self.sent is not None:
            return self.sent
        assert self.wanted is not None
        return self.wanted.cases(self.places)

    @property
    def name(self) -> str:
        """Return the block's name, the same whenever the same cases are handed out."""
        return f"{self.dynamics}/{self.layout}/{self.digest}"

    @property
    def seconds(self) -> float:
        """Return the seconds that the cases are expected to take; how many blocks they become is not known."""
        return self.seconds_a_case * len(self)


@dataclass(frozen=True)
class BlockReport:
    """The report of a block: the number of cases that were `computed`, by status, and of those `stored` before.

    seconds : of wall time that the block took.
    not_ok : by status, the positions in the block of the cases that did not end ok: first and last of each stretch.
    segment : the name of the segment with the computed cases; empty if there are none. stored_in : those of the
    segments, which a lost worker has written, that have the stored ones.
    """

    computed: dict[str, int]
    stored: int
    seconds: float
    not_ok: dict[str, list[list[int]]] = field(default_factory=dict)
    segment: str = ""
    stored_in: frozenset[str] = frozenset()


def run_block(block: Block) -> BlockReport:
    """Compute the cases of a block, store them as a segment, and return the report.

    The cases run in this process, or in a child process if the block is `suspect` or a process died while computing it.
    Of a block that was handed out before, only the cases are computed that are not stored. Why cases failed or are
    inaccurate is written before the segment. SweeplibError if this worker's code is not the driver's.
    """
    import_plugins(block.plugins)
    directory, cases = Path(block.directory), block.cases
    ids = cases.identities()
    if digest(ids.tobytes()) != block.digest:
        problem = f"this worker's sweeplib or plugins are not those that planned block {block.name}"
        raise SweeplibError(f"{problem}; run again, with new workers")
    with block_lock(directory, block.name) as mark:
        started = time.perf_counter()
        status, stored_in = np.full(len(block), Status.missing, np.uint8), frozenset[str]()
        # handed out before: the worker that was lost may have stored it
        if mark.again:
            store = RunStore(directory, block.dynamics, leave_out_damaged=True)
            numbers, rows = store.locate(ids)
            status = store.status_at(numbers, rows)
            paths = [store.segments[number].path for number in np.unique(numbers[numbers >= 0]).tolist()]
            stored_in = frozenset(path.stem for path in paths if path.parent == store.path)
        new, segment = np.flatnonzero(status == Status.missing), ""
        if len(new):
            task = _Task(block, cases.at(new), ids[new], new, seconds_at_work(), block.suspect or mark.before)
            with mark.now():
                segment, status[new] = _commit(task)
        seconds = time.perf_counter() - started
        return BlockReport(counts_of(status[new]), len(block) - len(new), seconds, _not_ok(status), segment, stored_in)


def run_block_apart(block: Block, memory: int) -> BlockReport | SweeplibError:
    """Return the report of a block, run in a process that does nothing else and may take `memory` bytes.

    An error that no case is to blame for is returned as SweeplibError, with its reason in words.
    """
    _process.memory = memory
    try:
        return run_block(block)
    except (SweeplibError, OSError, MemoryError) as error:
        return SweeplibError(reason(error, Path(block.directory)))


def _not_ok(status: np.ndarray) -> dict[str, list[list[int]]]:
    """Return the positions of the cases that did not end ok, by status: the first and the last of each stretch."""
    occurring = [value for value in Status if value != Status.ok and (status == value).any()]
    return {value.name: runs_of(np.flatnonzero(status == value)) for value in occurring}


def runs_of(positions: np.ndarray) -> list[list[int]]:
    """Return the first and the last of each stretch of consecutive numbers in ascending `positions` (n,)."""
    if not len(positions):
        return []
    # -2: the first position, 0 or more, begins a stretch
    starts = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
    return [[int(run[0]), int(run[-1])] for run in np.split(positions, starts[1:])]


class _Task(NamedTuple):
    """The cases of a block that are computed: those that were not stored when a worker began it.

    ids, positions (n,) : their identities, and their positions in the block.
    started : `seconds_at_work` at the beginning, which does not count seconds in which others had the processor.
    apart : whether the cases run in a child process.
    """

    block: Block
    cases: Cases
    ids: np.ndarray
    positions: np.ndarray
    started: float
    apart: bool


def _commit(task: _Task) -> tuple[str, np.ndarray]:
    """Compute the cases of a task and write them as a segment; return its name, and the status (n,) of the cases."""
    block, cases = task.block, task.cases
    directory, simulator = Path(block.directory), cases[0].simulator
    variables = simulator.variables(cases[0])
    data = {name: empty_values(variable, len(cases)) for name, variable in variables.items()}
    status, reasons, went_on = np.empty(len(cases), np.uint8), list[tuple[bytes, Status, Reason]](), 0

    def explained(case: Case, status: Status, reason: Reason) -> None:
        """Remember why a case has the status that it has."""
        reasons.append((case.identity(), status, reason))

    for places, begun in _by_beginning(block, cases, task.positions):
        records = _computed(block, cases.at(places), explained, begun, apart=task.apart)
        status[places] = records.status
        went_on += 0 if begun is None or task.apart else len(places)
        for name, values in records.data.items():
            data[name][places] = values
    append_reasons(directory, block.dynamics, reasons)
    columns = {"case_id": task.ids, "status": status} | simulator.index(cases) | data
    header = segment_header(cases, block.layout, group_name(simulator.group(cases[0])), block.work)
    path = write_segment(directory, block.dynamics, header | _provenance(task, status, went_on), variables, columns)
    # states on the way are of no use to cases that have ended, unless longer ones are to go on from their ends
    if block.checkpoints is not None and not block.checkpoints.keep_ends:
        block.checkpoints.forget(simulator.kept_names(cases.at(np.flatnonzero(status == Status.ok))))
    return path.stem, status


def _provenance(task: _Task, status: np.ndarray, went_on: int) -> dict[str, Any]:
    """Return what a segment's header says of how it was made: lists, because those of several segments are joined.

    status (n,) : of the task's cases. went_on : the number of cases that went on from the ends of earlier runs.
    """
    # a run that went on has the last bits of the processor of its first part
    earlier = dict.fromkeys(cpu for runs in task.block.begun for cpu in runs.processors if went_on)
    return {
        "computed": counts_of(status),
        "seconds": round(seconds_at_work() - task.started, 4),
        "workers": [f"{socket.gethostname()}:{os.getpid()}"],
        "processors": list(dict.fromkeys([machine(), *earlier])),
        "begun": went_on,
    }


def _by_beginning(block: Block, cases: Cases, positions: np.ndarray) -> Iterator[tuple[np.ndarray, Begun | None]]:
    """Yield the indices (m,) of the cases that can be run together, with the runs from which they go on, if any.

    positions (n,) : of the cases in the block.
    """
    for places in cases.of_one_shape():
        remaining = places
        for earlier in block.begun:
            ends = earlier.earlier_ends(cases.at(remaining), positions[remaining]) if len(remaining) else None
            if ends is not None:
                indices, begun = ends
                yield remaining[indices], begun
                remaining = np.delete(remaining, indices)
        if len(remaining):
            yield remaining, None


def _computed(block: Block, cases: Cases, explained: Explained, begun: Begun | None, *, apart: bool) -> Records:
    """Return the records of cases of one shape; `explained` is called for each that failed or is inaccurate.

    begun : the runs from which they go on. Cases that run `apart`, in a child process, are computed from the start.
    """
    expected = block.seconds_a_case if block.measured else None
    allowance = Allowance(block.timeout, expected, _memory(), block.checkpoints)
    if apart:
        return computed_apart(cases, block.plugins, allowance, explained)
    seconds = allowance.seconds(cases) if _may_end() else None
    # the time limit ends the process, and the block is computed again apart, where the traceback is kept
    with Path(os.devnull).open("w") as nowhere, time_limit(seconds, nowhere):
        return computed_here(cases, allowance, explained, begun)


def _may_end() -> bool:
    """Return whether this process only computes blocks, so that its death costs no more than its current block.

    It may be a child, or a worker of Dask that is no thread of the driver.
    """
    if _process.memory is not None:
        return True
    worker = _worker()
    return worker is not None and not worker.address.startswith("inproc:")


def _memory() -> int | None:
    """Return the bytes of memory that a process of cases may take, by the limit of this worker; None: no limit."""
    if _process.memory is not None:
        return _process.memory
    worker = _worker()
    limit = worker.memory_manager.memory_limit if worker is not None else None
    return None if limit is None else int(MEMORY_SHARE * limit)


def _worker() -> "Worker | None":
    """Return the worker of Dask that runs this block; None in any other process."""
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None
