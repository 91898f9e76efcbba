"""A simulation of the dispatcher against a thousand workers: python -m benchmarks.many_workers [--seconds N].

What a block costs the driver and the scheduler is measured here, as the processor time of this process, which has both,
with 64 threads of two other processes as workers. The simulation then runs sweeps whose cases take some time each: how
many of them are a block, and how many blocks are on the scheduler, is what `sweeplib.engine.execution` does; driver and
scheduler are one server that handles blocks one after the other.
"""

import heapq
import time
from collections import deque
from typing import Any
from unittest.mock import patch

import click
import numpy as np

from benchmarks.dispatch import SIZE, done, queue
from sweeplib.engine.execution import dispatch
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.dispatch import FEWEST_TASKS, MOST_TASKS, TASKS_A_THREAD, TaskReport, dispatched
from sweeplib.engine.execution.queue import LayoutCases, Queue
from sweeplib.functions.cases import FunctionCases

MEASURED = 3000
"""Blocks that are handed out to measure their cost."""
TURNS = 3
MOST_CASES = 20_000_000
"""The cases of a sweep at most."""
AHEAD = 2
"""Blocks that a worker has at most: one that runs and one that waits (Dask's saturation of 1.1 for one thread)."""
OVERHEAD = 0.02
"""Seconds of a block in a worker beside its cases: its lock, its segment on the disk (docs/performance.md)."""
WORKERS = (64, 1000, 4000)
MILLISECONDS = (1.0, 10.0, 100.0, 10_000.0)


def cost() -> float:
    """Return the seconds that driver and scheduler need for a block."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=32, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        return min(_seconds_a_block(client) for _ in range(TURNS))


def reported(block: Block) -> TaskReport:
    """Report a block as computed in no time."""
    return TaskReport(done(block))


def _seconds_a_block(client: Any) -> float:
    with patch.object(dispatch, "run_task", reported):
        began = time.process_time()
        count = sum(1 for _ in dispatched(client, queue(SIZE * MEASURED, SIZE)))
        return (time.process_time() - began) / count


def cases_of(count: int, seconds: float) -> Queue:
    """Return so many cases of one layout, of a known cost."""
    whole = Block(
        "",
        "ode",
        "p1",
        count,
        places=np.arange(count),
        sent=FunctionCases({}, count),
        seconds_a_case=seconds,
        measured=True,
    )
    return Queue([LayoutCases(whole, np.zeros(count, "S16"))])


def simulated(workers: int, seconds: float, count: int, cost: float) -> tuple[float, ...]:
    """Return the seconds of a sweep of `count` cases, the share of the workers' time that is cases, and the server's.

    Also the number of blocks. A block costs the server some seconds, half as it is handed out.
    """
    waiting = cases_of(count, seconds)
    window = min(MOST_TASKS, max(FEWEST_TASKS, TASKS_A_THREAD * workers))
    ready: deque[Block] = deque()
    free = deque(range(workers))
    held = [0] * workers
    ends: list[tuple[float, int, int, Block]] = []
    busy_until = [0.0] * workers
    now = server = 0.0
    blocks = on_scheduler = 0
    while waiting or ready or ends:
        while waiting and on_scheduler < window:
            server, now = server + 0.5 * cost, now + 0.5 * cost
            ready.append(waiting.block(workers))
            blocks, on_scheduler = blocks + 1, on_scheduler + 1
        while ready and free:
            worker, block = free.popleft(), ready.popleft()
            busy_until[worker] = max(now, busy_until[worker]) + len(block) * seconds + OVERHEAD
            heapq.heappush(ends, (busy_until[worker], worker, block.number, block))
            held[worker] += 1
            if held[worker] < AHEAD:
                free.append(worker)
        end, worker, _, block = heapq.heappop(ends)
        server, now = server + 0.5 * cost, max(now, end) + 0.5 * cost
        if held[worker] == AHEAD:
            free.append(worker)
        held[worker] -= 1
        on_scheduler -= 1
        waiting.learn(block, BlockReport({"ok": len(block)}, 0, len(block) * seconds + OVERHEAD))
    last = max(now, *busy_until)
    return last, count * seconds / (workers * last), server / last, float(blocks)


@click.command()
@click.option("--seconds", default=100.0, show_default=True, help="Seconds of a sweep on all workers.")
def main(seconds: float) -> None:
    """Measure the cost of a block, simulate, and print a table."""
    server = cost()
    print(f"a block {1e3 * server:.2f} ms of the processor of driver and scheduler")
    print("workers  case         blocks/s  cases a block  workers' time in cases  driver and scheduler busy")
    for workers in WORKERS:
        for milliseconds in MILLISECONDS:
            count = int(seconds * workers / milliseconds * 1e3)
            if count > MOST_CASES:
                continue
            wall, work, busy, blocks = simulated(workers, milliseconds / 1e3, count, server)
            print(
                f"{workers:7} {milliseconds:9g} ms {blocks / wall:9.0f} {count / blocks:14.0f} "
                f"{100 * work:21.1f} % {100 * busy:23.1f} %"
            )


if __name__ == "__main__":
    main()
