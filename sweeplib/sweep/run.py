"""Run one dynamics of a sweep: append what is new, compute what is missing, leave what is done."""

import hashlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.errors import SweeplibError
from sweeplib.storage.files import write_json, write_text
from sweeplib.storage.inventory import Inventory, inventory
from sweeplib.storage.locks import driver_lock
from sweeplib.storage.rows import cases_of
from sweeplib.storage.run_store import RunStore
from sweeplib.sweep.blocks import Block, BlockReport
from sweeplib.sweep.dispatch import dispatched
from sweeplib.sweep.plan import measured_block_sizes, planned_block_sizes
from sweeplib.sweep.plugins import load_plugins
from sweeplib.sweep.progress import Progress, shown_progress

if TYPE_CHECKING:
    from distributed import Client

    from sweeplib.sweep.sweep import Sweep


@dataclass(frozen=True)
class Summary:
    """How many cases of a dynamics have each status, and how many this run computed, in how many seconds."""

    dynamics: str
    cases: dict[str, int]
    computed: int
    seconds: float


def run_sweep(
    sweep: "Sweep", dynamics: str, directory: Path, *, workers: int | None = None, progress: bool = True
) -> Summary:
    """What became of the cases of one dynamics, all of which are in the run store afterwards.

    Cases that fail are recorded, and no error. Killed anywhere, the same call goes on where it stopped. InputError
    while another driver runs the same dynamics. Writes `<dynamics>.done.json`, with nothing of this run in it but the
    sweep's own digest and the counts.
    """
    started = time.monotonic()
    load_plugins(sweep.plugins)
    with driver_lock(directory, dynamics):
        write_text(directory / "config.yaml", sweep.source)
        store = RunStore(directory, dynamics)
        wanted = inventory(sweep, dynamics, store)
        todo = wanted.counts()["missing"]
        if todo:
            store, wanted = _appended(sweep, store, wanted)
            with (
                sweep.cluster.client(workers) as client,
                shown_progress(f"{sweep.name} {dynamics}", todo, show=progress) as shown,
            ):
                _compute(client, _blocks(sweep, store, wanted), shown)
            wanted = wanted.located(store)
        counts = wanted.counts()
        if counts["missing"]:
            raise SweeplibError(f"{counts['missing']} cases of {dynamics} are still missing in {directory}")
        shutil.rmtree(directory / "locks" / dynamics, ignore_errors=True)
        _write_done(directory, sweep.name, dynamics, wanted)
    return Summary(dynamics, counts, todo, time.monotonic() - started)


def _appended(sweep: "Sweep", store: RunStore, wanted: Inventory) -> tuple[RunStore, Inventory]:
    """The store with the new cases in it, and the inventory that knows them there."""
    if not wanted.new:
        return store, wanted
    sizes = _block_sizes(sweep, store, wanted)
    for name, new in wanted.new.items():
        if name not in store.layouts:
            store.create(name, cases_of(new.shared, new.rows[:1])[0], sizes[name])
        store.layouts[name].append(new.ids, new.rows)
    store = store.refreshed()
    return store, wanted.located(store)


def _block_sizes(sweep: "Sweep", store: RunStore, wanted: Inventory) -> dict[str, int]:
    """The block sizes of the layouts that are to be created: as set, else as planned, else measured now."""
    created = wanted.new.keys() - store.layouts.keys()
    if sweep.cluster.block_size:
        return dict.fromkeys(created, sweep.cluster.block_size)
    sizes = planned_block_sizes(store.directory, store.dynamics)
    return sizes if created <= sizes.keys() else measured_block_sizes(sweep, store, wanted)


def _blocks(sweep: "Sweep", store: RunStore, wanted: Inventory) -> list[Block]:
    """The blocks with missing cases, the costliest first."""
    blocks: list[tuple[float, Block]] = []
    for number, layout in enumerate(store.layouts.values()):
        rows = wanted.missing_rows(number)
        numbers, starts = np.unique(rows // layout.block_size, return_index=True)
        for block, inside in zip(numbers.tolist(), np.split(rows % layout.block_size, starts[1:]), strict=False):
            task = Block(
                str(store.directory.resolve()),
                store.dynamics,
                layout.name,
                block,
                _positions(inside),
                sweep.timeout,
                sweep.plugins,
            )
            blocks.append((layout.work * len(inside), task))
    return [block for _, block in sorted(blocks, key=lambda pair: -pair[0])]


def _positions(inside: np.ndarray) -> range | tuple[int, ...]:
    """Positions in a block as a range, which is small to send, where they are one."""
    positions = tuple(inside.tolist())
    contiguous = range(positions[0], positions[0] + len(positions)) if positions else range(0)
    return contiguous if positions == tuple(contiguous) else positions


def _compute(client: "Client", blocks: list[Block], shown: Progress) -> None:
    """Run the blocks on a cluster."""
    shown.say(f"dashboard: {client.dashboard_link}")
    for report in dispatched(client, blocks):
        shown.advance(_done(report), _done(report) - report.computed.get("ok", 0) - report.found)


def _done(report: BlockReport) -> int:
    return report.found + sum(report.computed.values())


def _write_done(directory: Path, name: str, dynamics: str, wanted: Inventory) -> None:
    digest = hashlib.blake2b(wanted.ids.tobytes(), digest_size=16).hexdigest()
    cases = {status: count for status, count in wanted.counts().items() if count}
    write_json(
        directory / f"{dynamics}.done.json", {"sweep": name, "dynamics": dynamics, "digest": digest, "cases": cases}
    )
