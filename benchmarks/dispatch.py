"""The rate at which a sweep's driver hands cases to workers and gets their reports, for cases that take no time.

The workers are 64 threads of this process, whose event loops share a core with the scheduler and the driver.
"""

from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import numpy as np

from benchmarks.driver import DYNAMICS, sweep_of
from benchmarks.timing import Benchmark
from sweeplib.engine.execution import dispatch
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.dispatch import dispatched
from sweeplib.engine.execution.queue import LayoutCases, Queue
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.run_store import RunStore

WORKERS = 64
CASES = 1_000_000
ONE_BY_ONE = 400


SIZE = 100
"""The number of cases of a block that is submitted alone."""


@cache
def _wanted(count: int) -> Inventory:
    return inventory(sweep_of(1, count, 10), DYNAMICS, RunStore(Path("/results/many"), DYNAMICS))


def queue(count: int, size: int | None = None) -> Queue:
    """Return so many cases without work, in blocks of a size or as they are cut by time."""
    wanted = _wanted(count)
    whole = Block("/results/many", DYNAMICS, "p1_k1_w5", count, wanted=wanted, places=np.arange(count), measured=True)
    return Queue([LayoutCases(whole, wanted.ids, size=size)])


def done(block: Block) -> BlockReport:
    """Report a block as computed in no time."""
    return BlockReport({"ok": len(block)}, 0, 0.0)


@cache
def client() -> Any:
    """Return a client of a cluster within this process, which ends with it."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=0
    )
    return Client(cluster, set_as_default=False)


def handed_out() -> float:
    """Hand out cases as a sweep does; return their number."""
    with patch.object(dispatch, "run_block", done):
        return float(sum(len(block) for block, _ in dispatched(client(), queue(CASES))))


def one_by_one() -> float:
    """Submit each block by itself and fetch its report; return the number of cases."""
    run, ready = uuid4().hex, SimpleQueue[Any]()
    waiting = queue(SIZE * ONE_BY_ONE, SIZE)
    while waiting:
        block = waiting.block(WORKERS)
        client().submit(done, block, key=f"one-{block.number}-{run}", pure=False).add_done_callback(ready.put)
    return float(SIZE * sum(1 for _ in range(ONE_BY_ONE) if ready.get().result()))


BENCHMARKS = [
    Benchmark(
        f"dispatch: cases without work to {WORKERS} workers",
        "a case",
        handed_out,
        one_by_one,
        f"blocks of {SIZE}, one by one",
        reach=1e-5,
    )
]
