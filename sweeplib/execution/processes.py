"""Blocks in processes of this machine, without a cluster: for runs that are done before a cluster has started."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from queue import SimpleQueue

from sweeplib.errors import SweeplibError
from sweeplib.execution.blocks import MEMORY_SHARE, Block, BlockReport, run_block_apart
from sweeplib.execution.child import Child, EndedError, Limits, lent

MOST_DEATHS = 3
"""How many processes a block may end: from the second on its cases run one by one, in processes of their own."""


def computed_by_processes(blocks: Sequence[Block], workers: int, memory: int) -> Iterator[tuple[Block, BlockReport]]:
    """Yield each block with its report as it is done; `workers` processes may take `memory` bytes each.

    A block that ends its process is computed again (`blocks`). SweeplibError if it ends `MOST_DEATHS` processes.
    """
    idle: SimpleQueue[Child] = SimpleQueue()
    limits = Limits(memory=int(MEMORY_SHARE * memory))
    with ExitStack() as stack:
        for _ in range(min(workers, len(blocks))):
            idle.put(stack.enter_context(lent(blocks[0].plugins)))
        pool = ThreadPoolExecutor(workers)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        running = {pool.submit(_report, block, idle, limits): block for block in blocks}
        for future in as_completed(running):
            yield running[future], future.result()


def _report(block: Block, idle: "SimpleQueue[Child]", limits: Limits) -> BlockReport:
    """Return the report of a block that an idle process computes, or after its death another one."""
    child, problem = idle.get(), ""
    try:
        for _ in range(MOST_DEATHS):
            try:
                report: BlockReport = child.call(run_block_apart, block, limits.memory, limits=limits)
            except EndedError as error:
                problem = str(error)
            else:
                return report
        raise SweeplibError(f"block {block.name} ends each process that computes it: {problem}")
    finally:
        idle.put(child)
