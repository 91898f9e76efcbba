"""Blocks run through Dask: a limited number of futures at a time, as long as there are workers."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from datetime import timedelta
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING
from uuid import uuid4

from sweeplib.errors import SweeplibError
from sweeplib.execution.blocks import Block, BlockReport, run_block

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_FUTURES = 10_000
FUTURES_A_THREAD = 20
MOST_LOSSES = 2
"""How often Dask may give up a block, each time after several lost workers: its cases kill at most one (`blocks`)."""
STEADY_SECONDS = 30.0
"""Seconds that workers must live to count as returned, unless a block is done earlier."""

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_NEWS = 300.0


def dispatched(
    client: "Client",
    blocks: Iterable[Block],
    say: Callable[[str], None] = lambda _: None,
    patience: float = 60.0,
) -> Iterator[tuple[Block, BlockReport]]:
    """Yield each block with its report, when it is done.

    A block whose worker died is given to another worker, which computes it in a child process (`blocks`).
    SweeplibError if there is no worker for `patience` seconds, or the scheduler is lost; `say` gets a line earlier.
    An exception of a task ends the run: it is not caused by a case but by, say, the disk or the version of sweeplib.
    """
    running = _Running(client, say, patience)
    waiting = iter(blocks)
    for block in islice(waiting, _window(client)):
        running.submit(block)
    while running:
        block, report = running.next()
        yield block, report
        for following in islice(waiting, 1):
            running.submit(following)


def _window(client: "Client") -> int:
    return min(MOST_FUTURES, max(200, FUTURES_A_THREAD * sum(client.nthreads().values())))


class _Running:
    """The blocks that are submitted and not done."""

    def __init__(self, client: "Client", say: Callable[[str], None], patience: float) -> None:
        self._client, self._say = client, say
        self._workers = _Workers(client, say, patience)
        self._run = uuid4().hex
        self._blocks: dict[str, Block] = {}
        self._losses: dict[Block, int] = {}
        self._done: SimpleQueue[Future] = SimpleQueue()

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def submit(self, block: Block) -> None:
        """Submit a block. Dask's dashboard groups keys by their part before the first dash."""
        from distributed import Future
        from distributed.client import ClosedClientError

        key = f"{block.dynamics}-{block.layout}/{block.number}-{self._run}-{self._losses.get(block, 0)}"
        try:
            future: Future = self._client.submit(run_block, block, key=key, pure=False)
        except ClosedClientError:
            raise self._workers.lost() from None
        self._blocks[future.key] = block
        future.add_done_callback(self._done.put)

    def next(self) -> tuple[Block, BlockReport]:
        """Return the next block that is done; waits for it."""
        from distributed import KilledWorker

        while True:
            future = self._future()
            block = self._blocks.pop(future.key)
            try:
                report = future.result()
            except KilledWorker:
                self._losses[block] = self._losses.get(block, 0) + 1
                if self._losses[block] > MOST_LOSSES:
                    problem = f"workers die as soon as they are given a block, the last one {block.name}"
                    raise SweeplibError(problem) from None
                self.submit(block)
            except (asyncio.CancelledError, CancelledError):
                raise self._workers.lost() from None
            else:
                self._workers.are_back()
                return block, report

    def _future(self) -> "Future":
        last = time.monotonic()
        while True:
            try:
                return self._done.get(timeout=SECONDS_BETWEEN_LOOKS)
            except Empty:
                self._workers.look()
            if time.monotonic() - last >= SECONDS_BETWEEN_NEWS:
                last = time.monotonic()
                self._say(f"no block was done in the last {SECONDS_BETWEEN_NEWS:g} s; {len(self._blocks)} blocks left")


class _Workers:
    """The workers of a scheduler, which may be lost for a while."""

    def __init__(self, client: "Client", say: Callable[[str], None], patience: float) -> None:
        self._client, self._say, self._patience = client, say, patience
        self._address = client.scheduler.address if client.scheduler else "an unknown address"
        self._since: float | None = None
        self._steady: float | None = None

    def are_back(self) -> None:
        """Forget that there were no workers."""
        self._since = None

    def look(self) -> None:
        """Say when the last worker is lost. SweeplibError if no worker came for too long, or the scheduler is lost."""
        try:
            if self._client.status != "running":
                raise self.lost()
            workers = self._client.nthreads()
        except (TimeoutError, OSError, ValueError):
            raise self.lost() from None
        now = time.monotonic()
        self._steady = (self._steady or now) if workers else None
        if self._since is None:
            if not workers:
                self._since = now
                self._say(f"no workers at {self._address}; waiting {timedelta(seconds=self._patience)} for one")
        elif self._steady is not None and now - self._steady > STEADY_SECONDS:
            self.are_back()
        elif now - self._since > self._patience:
            waited = timedelta(seconds=self._patience)
            problem = f"no workers at {self._address} for {waited}, or they die as they start"
            raise SweeplibError(f"{problem}; finished cases are stored: run again once there are workers")

    def lost(self) -> SweeplibError:
        """Return the error that the scheduler cannot be reached any longer."""
        return SweeplibError(f"the scheduler at {self._address} was lost; finished cases are stored: run again")
