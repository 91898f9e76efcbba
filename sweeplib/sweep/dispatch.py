"""Blocks through Dask: a window of futures at a time, and the search for the case that kills its worker."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

from sweeplib.sweep.blocks import Block, BlockReport, mark_killed, run_block

if TYPE_CHECKING:
    from distributed import Client, Future, Scheduler

MOST_FUTURES = 10_000
FUTURES_A_THREAD = 20


def dispatched(client: "Client", blocks: Iterable[Block]) -> Iterator[tuple[Block, BlockReport]]:
    """Each block with its report, as it comes, those that were on a worker when it died last, each run alone.

    A dead worker says nothing of which of its blocks killed it, so none is blamed before it has killed a worker with
    nothing else running; then its halves are run, one after the other as they share a chunk, down to the one case.
    What a task raises is no case's fault (the disk, another version of sweeplib), and ends the run.
    """
    from distributed import KilledWorker, as_completed

    waiting, of = iter(blocks), {}
    run = uuid4().hex
    window = min(MOST_FUTURES, max(200, FUTURES_A_THREAD * sum(client.nthreads().values())))
    suspects = []

    def submitted(block: Block) -> "Future":
        future = client.submit(run_block, block, key=_key(block, run), pure=False)
        of[future.key] = block
        return future

    running = as_completed([submitted(block) for block in islice(waiting, window)])
    for future in running:
        block = of.pop(future.key)
        try:
            yield block, future.result()
        except KilledWorker:
            suspects.append(block)
        for following in islice(waiting, 1):
            running.add(submitted(following))
    if suspects and client.cluster is not None:
        client.run_on_scheduler(_blame_at_once)
    for block in suspects:
        yield from _alone(client, block)


def _alone(client: "Client", block: Block, deaths: int = 0) -> Iterator[tuple[Block, BlockReport]]:
    """Parts of a block, run with nothing beside them, and their reports. A case alone is blamed if it kills twice."""
    from distributed import KilledWorker

    try:
        yield block, client.submit(run_block, block, key=_key(block, uuid4().hex), pure=False).result()
    except KilledWorker:
        if len(block.positions) > 1:
            for half in block.halves():
                yield from _alone(client, half)
        elif deaths:
            yield block, mark_killed(block)
        else:
            yield from _alone(client, block, 1)


def _key(block: Block, run: str) -> str:
    """The key of a block in one run; Dask's dashboard has a row for all keys that are equal up to the first dash."""
    return f"{block.dynamics}-{block.layout}/{block.number}-{run}"


def _blame_at_once(dask_scheduler: "Scheduler") -> None:
    """Let our own scheduler report a task when its worker dies for the first time, now that it runs alone."""
    dask_scheduler.allowed_failures = 0
