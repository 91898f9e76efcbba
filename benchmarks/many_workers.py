"""A simulation of the dispatcher against a thousand workers: python -m benchmarks.many_workers [--blocks-a-worker N].

What a task and a block cost the driver and the scheduler is measured here, as the processor time of this process, which
has both, with tasks of one block and of 64 for 64 threads of two other processes. The simulation then runs sweeps of
blocks that take some seconds each: the sizes of tasks and the number of those on the scheduler are those of
`sweeplib.engine.execution.dispatch`; driver and scheduler are one server that handles tasks one after the other.
"""

import heapq
import time
from collections import deque
from typing import Any
from unittest.mock import patch

import click

from benchmarks.dispatch import all_done, blocks
from sweeplib.engine.execution import dispatch
from sweeplib.engine.execution.blocks import BlockReport
from sweeplib.engine.execution.dispatch import FEWEST_TASKS, MOST_BLOCKS, MOST_TASKS, TASKS_A_WORKER, dispatched

MEASURED = 3000
"""Blocks that are handed out to measure the costs."""
TURNS = 3
AHEAD = 2
"""Tasks that a worker has at most: one that runs and one that waits (Dask's saturation of 1.1 for one thread)."""
OVERHEAD = 0.02
"""Seconds of a block in a worker beside its cases: its lock, its segment on the disk (docs/performance.md)."""
WORKERS = (64, 256, 1000, 4000)
SECONDS = (0.05, 0.5, 2.0, 10.0)


def costs() -> tuple[float, float]:
    """Return the seconds that driver and scheduler need for a task, and for each of its blocks."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=32, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        one, many = (min(_seconds_a_block(client, most) for _ in range(TURNS)) for most in (1, MOST_BLOCKS))
    task = (one - many) / (1.0 - 1.0 / MOST_BLOCKS)
    return task, max(0.0, one - task)


def _seconds_a_block(client: Any, most: int) -> float:
    with patch.object(dispatch, "run_blocks", all_done), patch.object(dispatch, "MOST_BLOCKS", most):
        began = time.process_time()
        count = sum(1 for _ in dispatched(client, blocks(MEASURED)))
        return (time.process_time() - began) / count


def simulated(workers: int, seconds: float, count: int, task_cost: float, block_cost: float) -> tuple[float, ...]:
    """Return the seconds of a sweep of `count` blocks, the share of the workers' time that is work, and the server's.

    Also the number of tasks. Work is the blocks' own seconds without `OVERHEAD`.
    """
    waiting = dispatch._Waiting(blocks(count))
    window = min(MOST_TASKS, max(FEWEST_TASKS, TASKS_A_WORKER * workers))
    ready: deque[dispatch.Task] = deque()
    free = deque(range(workers))
    held = [0] * workers
    ends: list[tuple[float, int, int, dispatch.Task]] = []
    busy_until = [0.0] * workers
    now = server = 0.0
    tasks = on_scheduler = 0
    while waiting or ready or ends:
        while waiting and on_scheduler < window:
            task = waiting.task(workers)
            server += 0.5 * (task_cost + len(task) * block_cost)
            now += 0.5 * (task_cost + len(task) * block_cost)
            ready.append(task)
            tasks, on_scheduler = tasks + 1, on_scheduler + 1
        while ready and free:
            worker, task = free.popleft(), ready.popleft()
            busy_until[worker] = max(now, busy_until[worker]) + len(task) * (seconds + OVERHEAD)
            heapq.heappush(ends, (busy_until[worker], worker, task[0].number, task))
            held[worker] += 1
            if held[worker] < AHEAD:
                free.append(worker)
        end, worker, _, task = heapq.heappop(ends)
        server += 0.5 * (task_cost + len(task) * block_cost)
        now = max(now, end) + 0.5 * (task_cost + len(task) * block_cost)
        if held[worker] == AHEAD:
            free.append(worker)
        held[worker] -= 1
        on_scheduler -= 1
        for block in task:
            waiting.measured(block, BlockReport({"ok": 1}, 0, seconds + OVERHEAD))
    last = max(now, *busy_until)
    return last, count * seconds / (workers * last), server / last, float(tasks)


@click.command()
@click.option("--blocks-a-worker", default=100, show_default=True, help="Blocks of a sweep for each worker.")
def main(blocks_a_worker: int) -> None:
    """Measure the costs, simulate, and print a table."""
    task_cost, block_cost = costs()
    print(
        f"a task {1e3 * task_cost:.2f} ms, a block {1e3 * block_cost:.3f} ms, of the processor of driver and scheduler"
    )
    print("workers  block   tasks/s  blocks/s  blocks a task  workers' time in cases  driver and scheduler busy  hours")
    for workers in WORKERS:
        for seconds in SECONDS:
            count = blocks_a_worker * workers
            wall, work, server, tasks = simulated(workers, seconds, count, task_cost, block_cost)
            print(
                f"{workers:7} {seconds:5g} s {tasks / wall:9.0f} {count / wall:9.0f} {count / tasks:14.1f} "
                f"{100 * work:21.1f} % {100 * server:23.1f} % {wall / 3600:6.3f}"
            )


if __name__ == "__main__":
    main()
