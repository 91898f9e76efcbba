"""A run that a seed replays: the driver, the dispatcher and the store are the true ones, what they meet is drawn.

Workers die before or after they have stored a task or kept the state of a case, answer late, are gone for a while; a
task is computed twice; schedulers are lost; drivers are killed; the disk of all or of one machine is full; a file
system does not list yet what others have written. All of it happens in this thread, at a clock of its own, so that the
same seed is the same run.
"""

import errno
import os
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from distributed import KilledWorker

from sweeplib.engine.design.cluster import ClusterSettings
from sweeplib.engine.execution import blocks, dispatch, guard, run
from sweeplib.engine.execution.blocks import Block
from sweeplib.engine.execution.guard import computed_here
from sweeplib.engine.execution.machine import unfit
from sweeplib.engine.storage.store import run_store, segment
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.segment import Segment
from sweeplib.functions import courses
from sweeplib.functions.simulator import FunctionSimulator

ALLOWED_DEATHS = 3
"""Workers that a task may end before Dask gives it up."""


FAULTS = {
    "the driver is killed",
    "another driver runs the sweep",
    "the scheduler is lost",
    "workers are gone",
    "an answer is late, and another worker is given the task, too",
    "the disk is full",
    "the disk of one machine is full",
    "a worker dies before it has kept a state",
    "a worker dies after it has kept a state",
    "a worker dies before it has stored a task",
    "a file is listed late",
    "a worker dies after it has stored a task",
}
"""All that may happen."""


class KilledError(BaseException):
    """The end of a driver or of a worker at any moment."""


class World:
    """What runs meet, drawn by a seed: each event is a fault with the probability `faults`.

    another : runs the same sweep as another driver does, in the midst of this one; None if there is no other.
    cases : of the sweep.
    repeated : rows that a driver may compute again, since a file system did not list them, or another was at work.
    kept : how often the state of a case was kept.
    story : what happened, for whoever reads a failing seed.
    """

    def __init__(self, seed: int, faults: float, another: Callable[[], Any] | None = None, cases: int = 0) -> None:
        self.rng, self.faults = random.Random(seed), faults
        self.another, self.cases = another, cases
        self.now, self.story, self.repeated, self.kept = 0.0, list[str](), 0, 0
        self.hidden: dict[Path, int] = {}
        self.is_in_task = False
        self.begin()

    def begin(self) -> None:
        """Begin with another driver, after the last one has ended."""
        self.scheduler = Scheduler(self)
        if self.rng.random() < 0.5:
            self.hidden.clear()
        self.repeated += sum(len(Segment(path)) for path in self.hidden if path.exists())

    def run_another(self) -> None:
        """Run another driver to its end, in the midst of one; there is no third."""
        another, self.another = self.another, None
        before, self.scheduler = self.scheduler, Scheduler(self)
        self.repeated += self.cases
        try:
            assert another is not None
            another()
        finally:
            self.another, self.scheduler = another, before

    def happens(self, what: str, share: float = 1.0) -> bool:
        """Return whether a fault happens, which has a share of the faults."""
        if self.rng.random() >= self.faults * share:
            return False
        self.story.append(what)
        return True

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def write(self, directory: Path, dynamics: str, content: bytes) -> Path:
        """Write a segment, unless the disk is full or the worker dies before; it may die after, or be seen late."""
        if self.happens("the disk is full", 0.2):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
        if self.happens("a worker dies before it has stored a task"):
            raise KilledError
        path = _write(directory, dynamics, content)
        if self.happens("a file is listed late"):
            self.hidden[path] = self.rng.randint(1, 5)
        if self.happens("a worker dies after it has stored a task"):
            raise KilledError
        return path

    def keep(self, folder: CheckpointFolder, name: str, content: bytes) -> None:
        """Keep the state of a case, unless a disk is full or the worker dies before; it may die after."""
        if self.happens("the disk of one machine is full", 0.03):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder.directory)
        if self.happens("a worker dies before it has kept a state", 0.05):
            raise KilledError
        _keep(folder, name, content)
        self.kept += 1
        if self.happens("a worker dies after it has kept a state", 0.05):
            raise KilledError

    def listed(self, directory: Path, dynamics: str) -> list[Path]:
        """Return the segments that a listing has now; what a worker does not see it may compute again."""
        if self.is_in_task:
            self.repeated += sum(len(Segment(path)) for path in self.hidden)
        paths = [path for path in _listed(directory, dynamics) if path not in self.hidden]
        self.hidden = {path: left - 1 for path, left in self.hidden.items() if left > 1}
        return paths


class Scheduler:
    """The workers of a driver and its tasks: those that wait, and those that are done and not yet answered."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.workers = {f"tcp://host-{number}:1": 1 for number in range(world.rng.randint(1, 4))}
        self.waiting, self.late = list[Task](), list[Task]()
        self.is_lost = False

    def step(self) -> None:
        """Let one thing happen: a task ends, a late one is answered, or there is a fault."""
        self._world.now += 0.01
        if self._world.happens("the driver is killed", 0.2):
            raise KilledError
        if self._world.another is not None and self._world.happens("another driver runs the sweep", 0.1):
            self._world.run_another()
        if self._world.happens("the scheduler is lost", 0.1):
            self.is_lost = True
        if self.workers and self._world.happens("workers are gone", 0.2):
            self.workers = {}
        elif not self.workers and self._world.rng.random() < 0.3:
            self.workers = {"tcp://another:1": 1}
        if self.late and self._world.rng.random() < 0.3:
            self.late.pop(self._world.rng.randrange(len(self.late))).end()
        elif self.waiting and self.workers:
            task = self.waiting.pop(self._world.rng.randrange(len(self.waiting)))
            self._run(task)

    def _run(self, task: "Task") -> None:
        self._world.is_in_task = True
        memory = SimpleNamespace(memory_limit=None)
        worker = SimpleNamespace(address=self._world.rng.choice(list(self.workers)), memory_manager=memory)
        try:
            with patch("distributed.get_worker", lambda: worker):
                task.run()
        except KilledError:
            _mark(task.block)
            task.deaths += 1
            if task.deaths > ALLOWED_DEATHS:
                task.error = KilledWorker(task.key, SimpleNamespace(address="worker"), ALLOWED_DEATHS)
                task.end()
            else:
                self.waiting.append(task)
            return
        except OSError as error:
            task.error = error
        finally:
            self._world.is_in_task = False
        if task.error is None and self._world.happens("an answer is late, and another worker is given the task, too"):
            self.waiting.append(task)
            self.late.append(task)
        else:
            task.end()


_write, _listed, _keep = segment.write_content, run_store.segment_paths, CheckpointFolder.write


def _mark(block: Block) -> None:
    """Leave the mark of a process that died while it computed a block."""
    (Path(block.directory) / "locks" / f"{block.name}.begun").touch()


class Task:
    """A future of Dask: it runs what was pickled, as in another process."""

    def __init__(self, key: str, function: Callable[[Any], Any], argument: Any) -> None:
        self.key, self._function, self._pickled = key, function, pickle.dumps(argument)
        self.block: Block = argument
        self.deaths, self.result, self.error = 0, None, None
        self._callbacks: list[Callable[[Task], Any]] = []

    def run(self) -> None:
        self.result = self._function(pickle.loads(self._pickled))

    def end(self) -> None:
        """Say once that the task is done, as Dask does."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[["Task"], Any]) -> None:
        self._callbacks.append(callback)

    def release(self) -> None: ...


class Client:
    """A client of Dask, as far as the dispatcher asks one."""

    asynchronous, dashboard_link, scheduler = False, "", SimpleNamespace(address="simulated")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    @property
    def status(self) -> str:
        return "closed" if self._scheduler.is_lost else "running"

    def nthreads(self) -> dict[str, int]:
        return dict(self._scheduler.workers)

    def run(self, *_: Any, workers: Sequence[str], **_named: Any) -> dict[str, None]:
        return dict.fromkeys(workers)

    def retire_workers(self, workers: Sequence[str]) -> None:
        for worker in workers:
            del self._scheduler.workers[worker]

    def register_plugin(self, _: Any) -> None:
        raise RuntimeError("no page")

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {"worker": {"memory_limit": 10**9}}}

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, key: list[str], pure: bool) -> list[Task]:
        new = [Task(name, function, task) for name, task in zip(key, tasks, strict=True)]
        self._scheduler.waiting += new
        return new

    def gather(self, futures: Sequence[Task]) -> list[Any]:
        for future in futures:
            if future.error is not None:
                raise future.error
        return [future.result for future in futures]


class Ready:
    """The queue of tasks that have ended, on which the dispatcher waits: meanwhile things happen."""

    def __init__(self, world: World) -> None:
        self._world, self._scheduler, self._tasks = world, world.scheduler, list[Task]()

    def put(self, task: Task) -> None:
        self._tasks.append(task)

    def empty(self) -> bool:
        return not self._tasks

    def get(self, timeout: float | None = None) -> Task:
        if not self._tasks:
            self._scheduler.step()
        if not self._tasks:
            self._world.now += timeout or 0.0
            raise Empty
        return self._tasks.pop(0)


class SimulatedCluster(ClusterSettings):
    """A cluster of a world."""

    world: Any = None

    def expected_workers(self, workers: int | None = None) -> int | None:
        return None

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator[Any]:
        yield Client(self.world.scheduler)


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """A context in which runs meet a world instead of a cluster, a clock and a disk."""
    time = SimpleNamespace(monotonic=world.clock, sleep=world.sleep)

    def keep(folder: CheckpointFolder, name: str, content: bytes) -> None:  # a method, which gets the folder
        world.keep(folder, name, content)

    with (
        patch.object(run, "driver_locks", lambda *_: nullcontext()),  # as on hosts that do not share locks
        patch.object(dispatch, "time", time),
        patch.object(blocks, "time", SimpleNamespace(perf_counter=world.clock)),
        patch.object(blocks, "seconds_at_work", world.clock),
        patch.object(dispatch, "SimpleQueue", lambda: Ready(world)),
        patch.object(run_store, "time", time),
        patch.object(run_store, "segment_paths", world.listed),
        patch.object(segment, "write_content", world.write),
        patch.object(blocks, "computed_apart", _here),
        patch.object(courses, "time", time),
        patch.object(CheckpointFolder, "write", keep),
        patch.object(guard, "unfit", _unfit),
        # the module by its name: the package has a function of this name
        patch.object(sys.modules[FunctionSimulator.__module__], "unfit", _unfit),
    ):
        yield


def _unfit(error: BaseException, **options: bool) -> BaseException | None:
    """Return the error that ends a task: a death is no outcome of a case either."""
    return error if isinstance(error, KilledError) else unfit(error, **options)


def _here(cases: Any, _: Any, allowance: Any, explained: Any) -> Any:
    """Compute here what would be computed in a process of its own."""
    return computed_here(cases, allowance, explained, None)
