"""The worker's task: compute what is missing of one block, and commit it."""

import os
import socket
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sweeplib.errors import SweeplibError
from sweeplib.simulation import Case, Records, Status, run_cases
from sweeplib.storage.failures import write_failure
from sweeplib.storage.files import append_line
from sweeplib.storage.layout import Layout
from sweeplib.storage.locks import block_lock
from sweeplib.storage.provenance import cpu_model
from sweeplib.storage.rows import cases_of
from sweeplib.sweep.plugins import import_plugins


@dataclass(frozen=True)
class Block:
    """A block of the run store as a task: a few hundred bytes, as the cases themselves are read from the store.

    `positions` are the rows within the block that the sweep wants, a range where it can be; each is expected to take
    `seconds_a_case`.
    """

    directory: str
    dynamics: str
    layout: str
    number: int
    positions: Sequence[int]
    seconds_a_case: float = 0.0
    timeout: float | None = None
    plugins: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The block's name among those of its sweep."""
        return f"{self.dynamics}/{self.layout}/{self.number}"

    @property
    def seconds(self) -> float:
        """The seconds that the block is expected to take."""
        return self.seconds_a_case * len(self.positions)

    def halves(self) -> tuple["Block", "Block"]:
        """The block's first half and its second."""
        middle = len(self.positions) // 2
        return replace(self, positions=self.positions[:middle]), replace(self, positions=self.positions[middle:])

    def open(self) -> Layout:
        """The layout of the block."""
        return Layout(Path(self.directory) / "runs.zarr" / self.dynamics / self.layout)


@dataclass(frozen=True)
class BlockReport:
    """What a task did: how many cases it computed, by status, and how many it found done."""

    computed: dict[str, int]
    found: int
    seconds: float


def run_block(block: Block) -> BlockReport:
    """What became of a block, whose wanted cases are all in the store from now on.

    Only missing cases are computed, in one go; should that raise, one by one, and those that raise are failures.
    Data are committed before their status, the status before the journal's line.
    """
    import_plugins(block.plugins)
    started = time.perf_counter()
    with block_lock(Path(block.directory), block.name):
        layout = block.open()
        missing = _missing(block, layout)
        computed = _commit(block, layout, missing) if len(missing) else {}
    report = BlockReport(computed, len(block.positions) - len(missing), time.perf_counter() - started)
    _journal(block, report)
    return report


def mark_killed(block: Block) -> BlockReport:
    """The report of a block whose one case kills its process, now recorded as such."""
    with block_lock(Path(block.directory), block.name):
        layout = block.open()
        (case,) = _cases(block, layout, np.array(block.positions))
        write_failure(Path(block.directory), case, Status.killed, block.plugins)
        layout.write_status(block.number, np.array(block.positions), np.array([Status.killed], np.uint8))
    report = BlockReport({Status.killed.name: 1}, 0, 0.0)
    _journal(block, report)
    return report


def _missing(block: Block, layout: Layout) -> np.ndarray:
    wanted = np.array(block.positions)
    missing: np.ndarray = wanted[layout.status(layout.block(block.number))[wanted] == Status.missing]
    return missing


def _cases(block: Block, layout: Layout, positions: np.ndarray) -> list[Case]:
    """The cases of some rows of a block. SweeplibError unless their results would be the ones that were asked for."""
    rows = layout.block(block.number)
    ids = layout.stored_ids(rows)
    cases = cases_of(layout.shared, layout.rows(rows).at(positions))
    for case, position in zip(cases, positions, strict=True):
        if case.identity() != ids[position].ljust(16, b"\0"):
            problem = f"this worker's sweeplib or plugins are not those that planned block {block.name}"
            raise SweeplibError(f"{problem}; run again, with new workers")
    return cases


def _commit(block: Block, layout: Layout, missing: np.ndarray) -> dict[str, int]:
    """Compute and write the missing cases; their number by status."""
    cases = _cases(block, layout, missing)
    data = {name: layout.empty(name, len(cases)) for name in layout.variables}
    status = np.empty(len(cases), np.uint8)
    for places in _by_shape(cases):
        records = _guarded(block, [cases[at] for at in places])
        status[places] = records.status
        for name, values in records.data.items():
            data[name][places] = values
    layout.write(block.number, missing, data, status)
    return _counts(status)


def _by_shape(cases: list[Case]) -> list[list[int]]:
    """The places of the cases that can be run together."""
    places: dict[Hashable, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(case.shape, []).append(place)
    return list(places.values())


def _counts(status: np.ndarray) -> dict[str, int]:
    values, counts = np.unique(status, return_counts=True)
    return {Status(value).name: int(count) for value, count in zip(values, counts, strict=True)}


def _guarded(block: Block, cases: list[Case]) -> Records:
    """The records of cases of one shape, with a description on disk of each that did not end well."""
    try:
        records = run_cases(cases, timeout=block.timeout)
    except Exception as error:
        if len(cases) > 1:
            return _joined([_guarded(block, [case]) for case in cases])
        write_failure(Path(block.directory), cases[0], Status.failed, block.plugins, error)
        return Records(data={}, status=np.array([Status.failed], np.uint8))
    for case, status in zip(cases, records.status, strict=True):
        if status != Status.ok:
            write_failure(Path(block.directory), case, Status(status), block.plugins)
    return records


def _joined(records: list[Records]) -> Records:
    """Many records of one case each as one; NaN where a record has no data."""
    known = next((part.data for part in records if part.data), {})
    data = {
        name: np.concatenate([part.data.get(name, np.full_like(values, np.nan)) for part in records])
        for name, values in known.items()
    }
    return Records(data=data, status=np.concatenate([part.status for part in records]))


def _journal(block: Block, report: BlockReport) -> None:
    entry = {
        "block": f"{block.layout}/{block.number}",
        "computed": report.computed,
        "found": report.found,
        "seconds": round(report.seconds, 4),
        "worker": f"{socket.gethostname()}:{os.getpid()}",
        "cpu": cpu_model(),
    }
    append_line(Path(block.directory) / "journal" / f"{block.dynamics}.jsonl", entry)
