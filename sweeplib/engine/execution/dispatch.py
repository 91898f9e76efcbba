"""Blocks run through Dask: a limited number at a time, as long as there are workers.

A block is some missing cases, and one task for a worker (`blocks`). Dask gives a block up, and raises KilledWorker, if
several workers were lost while they had it.
"""

import asyncio
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from datetime import timedelta
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from sweeplib.engine.execution.blocks import Block, BlockReport, run_block
from sweeplib.engine.execution.machine import UnfitError
from sweeplib.engine.execution.probe import Probe, Probes
from sweeplib.engine.execution.progress import Listener
from sweeplib.engine.execution.queue import Queue
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from distributed import Client, Future

MOST_TASKS, FEWEST_TASKS, TASKS_A_THREAD = 10_000, 8, 4
"""How many tasks are on the scheduler: so many for each thread of a worker, within bounds."""
AT_ONCE = 64
"""How many tasks are submitted together."""
MOST_LOSSES = 2
"""How often Dask may give up a block, each time after several lost workers: its cases kill at most one (`blocks`)."""
STEADY_SECONDS = 30.0
"""Seconds that workers must live to count as returned, unless a block is done earlier."""

SECONDS_BETWEEN_LOOKS = 1.0
"""The interval at which it is seen whether workers were lost or came."""
SECONDS_BETWEEN_NEWS = 300.0
"""The time without a finished block after which a line says so."""


class TaskReport(NamedTuple):
    """What a task returns: the report of its block, or the address of its worker and a `fault` of its machine."""

    block: BlockReport | None
    worker: str = ""
    fault: str = ""


def dispatched(
    client: "Client",
    queue: Queue,
    listener: Listener | None = None,
    patience: float = 60.0,
    *,
    expected: int | None = None,
    problem: Callable[[], str | None] = lambda: None,
    probe: Probe | None = None,
) -> Generator[tuple[Block, BlockReport], None, None]:
    """Yield the blocks of a queue with their reports, when they are done.

    A block whose worker died is given to another worker, which computes it in a child process (`blocks`). Blocks of a
    machine that cannot compute cases are given to others; its workers end, and if there are no others, the run.
    An exception of a task ends the run: it is not caused by a case but by, say, the disk or the version of sweeplib.
    When the generator ends or is closed, tasks that have not begun are taken back.

    listener : is told of all tasks that are handed out, and by lines of workers that are lost.
    patience : seconds without a worker after which SweeplibError is raised; it is at once if the scheduler is lost.
    expected : the number of workers that may come, None if unknown: tasks are handed out for it before they have come.
    problem : returns why no worker will come, None if one may; asked while there is none.
    probe : what each worker is asked once, if anything; one that fails it ends the run.
    """
    listener = listener or Listener()
    probes = Probes(client, probe, listener.say) if probe is not None else None
    running = _Running(client, _Workers(client, listener.say, patience, problem, probes), listener)
    try:
        while running or queue:
            threads = max(1, expected or 0, running.workers.threads)
            window = min(MOST_TASKS, max(FEWEST_TASKS, TASKS_A_THREAD * threads))
            # until it is known what cases take, each worker has one block: a case, or a group of lanes
            most = threads if queue.is_blind else window
            running.submit([queue.block(threads) for _ in range(most - len(running)) if queue])
            for block, report in running.done():
                queue.learn(block, report)
                yield block, report
    finally:
        running.take_back()


def run_task(block: Block) -> TaskReport:
    """Compute the missing cases of a block; return its report, or a fault of this machine."""
    from distributed import get_worker

    try:
        return TaskReport(run_block(block))
    except UnfitError as error:
        return TaskReport(None, get_worker().address, str(error))


class _Running:
    """The tasks that are submitted and not done."""

    def __init__(self, client: "Client", workers: "_Workers", listener: Listener) -> None:
        """Begin without tasks on the scheduler of a client; the listener is told of those that are handed out."""
        self._client, self.workers, self._listener = client, workers, listener
        self._run, self._numbers = uuid4().hex, count()  # parts of the keys of tasks
        self._blocks: dict[str, Block] = {}  # by key
        self._futures: dict[str, Future] = {}  # by key
        self._losses: dict[Block, int] = {}  # how often Dask gave up each block
        self._ready: SimpleQueue[Future] = SimpleQueue()  # of tasks that have ended

    def __len__(self) -> int:
        return len(self._blocks)

    def submit(self, blocks: Sequence[Block]) -> None:
        """Submit blocks as tasks, `AT_ONCE` together: each has its cases, and Dask makes them one message.

        Each task puts its future among the ready ones when it ends.
        """
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        for first in range(0, len(blocks), AT_ONCE):
            new = {self._key(block): block for block in blocks[first : first + AT_ONCE]}
            try:
                futures: list[Future] = self._client.map(run_task, list(new.values()), key=list(new), pure=False)
            except (ClosedClientError, CommClosedError):
                raise self.workers.lost() from None
            self._blocks |= new
            self._futures |= zip(new, futures, strict=True)
            self._listener.handed_out(new)
            for future in futures:
                future.add_done_callback(self._ready.put)

    def take_back(self) -> None:
        """Release all tasks: the scheduler forgets those that no worker has begun.

        Dask holds a future with a callback until it is done, so that nobody else would release it.
        """
        for future in self._futures.values():
            future.release()
        self._futures.clear()

    def done(self) -> Iterator[tuple[Block, BlockReport]]:
        """Yield the blocks that are done, with their reports; waits for the first.

        A block without a report is submitted again: Dask gave it up, as its workers died, or its machine is unfit.
        """
        futures = [self._next_done()]
        while not self._ready.empty():
            futures.append(self._ready.get())
        for future, report in zip(futures, self._reports(futures), strict=True):
            block = self._blocks.pop(future.key)
            del self._futures[future.key]
            if report is None:
                self._submit_again(block)
            elif report.block is not None:
                self.workers.are_back()
                yield block, report.block
            else:
                self.workers.end_machine_of(report.worker, report.fault)
                self.submit([block])

    def _key(self, block: Block) -> str:
        """Return a new key of a block; Dask's dashboard groups keys by their part before a dash."""
        return f"{block.dynamics}-{block.layout}/{block.number}-{self._run}-{next(self._numbers)}"

    def _reports(self, futures: Sequence["Future"]) -> list[TaskReport | None]:
        """Return the reports of tasks that have ended, None for one that was given up; all are asked for at once."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            return list(self._client.gather(futures))
        except KilledWorker:
            return [self._reports([future])[0] for future in futures] if len(futures) > 1 else [None]
        except (asyncio.CancelledError, CancelledError, CommClosedError):
            raise self.workers.lost() from None

    def _submit_again(self, block: Block) -> None:
        """Submit a block that was given up. SweeplibError if it was given up too often."""
        self._losses[block] = self._losses.get(block, 0) + 1
        if self._losses[block] > MOST_LOSSES:
            problem = f"workers die as soon as they are given a block, the last one {block.name}"
            raise SweeplibError(f"{problem}; {self.workers.memory()}")
        self.submit([block])

    def _next_done(self) -> "Future":
        """Return the first task that ends; meanwhile look after the workers, and say if no block is done for long."""
        last = time.monotonic()
        while True:
            try:
                return self._ready.get(timeout=SECONDS_BETWEEN_LOOKS)
            except Empty:
                self.workers.look()
            if time.monotonic() - last >= SECONDS_BETWEEN_NEWS:
                last = time.monotonic()
                self._listener.say(
                    f"no block was done in the last {SECONDS_BETWEEN_NEWS:g} s; {len(self)} are computing or waiting"
                )


class _Workers:
    """The workers of a scheduler, which may be lost for a while.

    say : writes a line. patience, problem, probes : seconds to wait for a worker, why none will come, questions to new
    ones; they are those of `dispatched`.
    """

    def __init__(
        self,
        client: "Client",
        say: Callable[[str], None],
        patience: float,
        problem: Callable[[], str | None],
        probes: Probes | None,
    ) -> None:
        """Look after the workers of a client; `patience` is in seconds, `problem` returns why no worker will come."""
        self._client, self._say, self._patience = client, say, patience
        self._problem, self._probes = problem, probes
        # for messages, also when the scheduler is lost
        self._address = client.scheduler.address if client.scheduler else "an unknown address"
        self._since: float | None = None  # when the last worker was lost; None if that is over
        self._steady: float | None = None  # since when there have been workers; None if there are none
        # the threads of the workers when they were last asked, and when that was
        self._threads, self._last_look = 0, float("-inf")

    @property
    def threads(self) -> int:
        """The number of threads of the workers, asked for at most once in `SECONDS_BETWEEN_LOOKS`."""
        if time.monotonic() - self._last_look > SECONDS_BETWEEN_LOOKS:
            self._ask()
        return self._threads

    def memory(self) -> str:
        """Return in words how much memory the workers have, as lack of it may be why they die."""
        workers = self._client.scheduler_info()["workers"].values()
        limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
        if limits:
            has = f"they have {min(limits) / 10**6:.0f} MB of memory each"
            return f"{has}: give them more if it is that, as by `cluster.memory_limit`"
        return "if they lack memory, take fewer on a machine, or a machine with more"

    def are_back(self) -> None:
        """Forget that there were no workers: a block was done, or one has lived for `STEADY_SECONDS`."""
        self._since = None

    def end_machine_of(self, worker: str, fault: str) -> None:
        """End all workers on the machine of `worker`, which has a `fault`. UnfitError if no other machine has workers.

        worker : the address of one.
        """
        from distributed.comm import get_address_host

        try:
            workers = set(self._client.nthreads())
            ending = {other for other in workers if get_address_host(other) == get_address_host(worker)}
            if workers <= ending:  # true of no workers at all, too
                raise UnfitError(fault)
            if ending:  # each task there reports the fault: the first report has ended the workers of all
                self._say(f"{fault}; its workers end, and others go on")
                self._client.retire_workers(sorted(ending))
        except (TimeoutError, OSError, ValueError):
            raise self.lost() from None

    def look(self) -> None:
        """Say when the last worker is lost. SweeplibError if none comes for `patience` seconds, or by a `problem`.

        Workers that die as they start do not count as having come: one that is there when the patience ends has
        `STEADY_SECONDS` more.
        """
        workers, now = self._ask(), time.monotonic()
        self._steady = (self._steady or now) if workers else None
        if self._since is None:
            if not workers:  # just lost
                self._since = now
                self._say(f"no workers at {self._address}; waiting {timedelta(seconds=self._patience)} for one")
        elif self._steady is not None and now - self._steady > STEADY_SECONDS:
            self.are_back()
        elif not workers and (problem := self._problem()):
            raise SweeplibError(f"{problem}; finished cases are stored: run again")
        elif now - self._since > self._patience + (STEADY_SECONDS if workers else 0.0):
            waited = timedelta(seconds=self._patience)
            problem = f"no workers at {self._address} for {waited}, or they die as they start"
            raise SweeplibError(f"{problem}; finished cases are stored: run again once there are workers")

    def _ask(self) -> int:
        """Return the number of threads of all workers, and probe new ones. SweeplibError if the scheduler is lost."""
        try:
            if self._client.status != "running":
                raise self.lost()
            workers = self._client.nthreads()
        except (TimeoutError, OSError, ValueError):
            raise self.lost() from None
        if self._probes is not None:
            self._probes.look(workers)
        self._threads = sum(workers.values())
        self._last_look = time.monotonic()
        return self._threads

    def lost(self) -> SweeplibError:
        """Return the error that the scheduler cannot be reached any longer."""
        return SweeplibError(f"the scheduler at {self._address} was lost; finished cases are stored: run again")
