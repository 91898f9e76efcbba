"""Blocks in processes of this machine, without a cluster: for runs that are done before a cluster has started."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from queue import SimpleQueue

from sweeplib.errors import SweeplibError
from sweeplib.execution.blocks import MEMORY_SHARE, Block, BlockReport, run_block_apart
from sweeplib.execution.child import Child, EndedError, Limits

MOST_LOSSES = 2
"""How often a block may end its process: at the second time its cases run one by one, in processes of their own."""


def computed_here(blocks: Sequence[Block], workers: int, memory: int) -> Iterator[tuple[Block, BlockReport]]:
    """Yield each block with its report, when it is done, computed by some processes with so many bytes of memory each.

    A block that ends its process is computed again (`blocks`). SweeplibError if it does so too often.
    """
    with ExitStack() as stack:
        idle: SimpleQueue[Child] = SimpleQueue()
        for _ in range(min(workers, len(blocks))):
            child = Child(blocks[0].plugins)
            stack.callback(child.close)
            idle.put(child)
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        running = {pool.submit(_report, block, idle, int(MEMORY_SHARE * memory)): block for block in blocks}
        for future in as_completed(running):
            yield running[future], future.result()


def _report(block: Block, idle: "SimpleQueue[Child]", memory: int) -> BlockReport:
    child = idle.get()
    try:
        for _ in range(1 + MOST_LOSSES):
            try:
                report: BlockReport = child.call(run_block_apart, block, memory, limits=Limits(memory=memory))
            except EndedError as error:
                problem = error
            else:
                return report
        raise SweeplibError(f"block {block.name} ends each process that computes it: {problem}")
    finally:
        idle.put(child)
