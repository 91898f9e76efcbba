"""The rate at which a sweep's driver hands blocks to workers and gets their reports, for blocks that do nothing.

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
from sweeplib.engine.cases import Cases
from sweeplib.engine.execution import dispatch
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.dispatch import dispatched
from sweeplib.engine.execution.queue import Part, Queue
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.run_store import RunStore

WORKERS = 64
BLOCKS = 4000
ONE_BY_ONE = 400


CASES = 100
"""The number of cases of a block."""


@cache
def _cases() -> Cases:
    """Return the cases that every block is sent with."""
    sweep = sweep_of(1, CASES, 10)
    return inventory(sweep, DYNAMICS, RunStore(Path("/results/many"), DYNAMICS)).cases(slice(None))


def queue(number: int) -> Queue:
    """Return so many blocks of cases, whose costs are not known."""
    count = CASES * number
    whole = Block("/results/many", DYNAMICS, "p1_k1_w5", count, places=np.arange(count), sent=_cases())
    return Queue([Part(whole, np.arange(count).astype("S16"), size=CASES)])


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
    """Hand out blocks as a sweep does; return their number."""
    with patch.object(dispatch, "run_block", done):
        return float(sum(1 for _ in dispatched(client(), queue(BLOCKS))))


def one_by_one() -> float:
    """Submit each block as a task of its own and fetch its report; return their number."""
    run, ready = uuid4().hex, SimpleQueue[Any]()
    waiting = queue(ONE_BY_ONE)
    while waiting:
        block = waiting.block(WORKERS)
        client().submit(done, block, key=f"one-{block.number}-{run}", pure=False).add_done_callback(ready.put)
    return float(sum(1 for _ in range(ONE_BY_ONE) if ready.get().result()))


BENCHMARKS = [
    Benchmark(
        f"dispatch: blocks without work to {WORKERS} workers",
        "a block",
        handed_out,
        one_by_one,
        "submitted and fetched one by one",
        reach=1e-3,
    )
]
