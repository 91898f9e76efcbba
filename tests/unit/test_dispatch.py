"""Blocks that are handed out: each case once, a limited number at a time."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import Client

from sweeplib.engine.execution import dispatch
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.dispatch import FEWEST_TASKS, dispatched
from sweeplib.errors import SweeplibError
from tests.blocks import queue_of
from tests.in_process import InProcess


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with InProcess().client() as found:
        yield found


@pytest.mark.rest
def test_every_block_is_computed_once_and_tasks_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[int] = Counter()
    tasks: list[int] = []

    def run_block(block: Block) -> BlockReport:
        done[block.number] += 1
        return BlockReport({"ok": len(block)}, 0, 1e-3)

    submitted = client.map

    def watched(function: object, those: list, **named: object) -> list:
        tasks.append(len(those))
        return submitted(function, those, **named)

    monkeypatch.setattr(dispatch, "run_block", run_block)
    monkeypatch.setattr(dispatch, "FEWEST_TASKS", 20)
    monkeypatch.setattr(client, "map", watched)
    reported = Counter(block.number for block, _ in dispatched(client, queue_of(2000, size=10)))
    assert done == reported == Counter(range(200))
    assert max(tasks) == 20


@pytest.mark.parametrize(
    ("limits", "says"),
    [([2e9, 1e9, 0], "1000 MB of memory each"), ([0], "if they lack memory, take fewer"), ([], "if they lack memory")],
)
def test_workers_that_die_may_lack_memory(limits: list[float], says: str) -> None:
    """Nothing is said of a limit that is none, nor of workers that are gone."""
    workers = {str(place): {"memory_limit": limit} for place, limit in enumerate(limits)}
    some = SimpleNamespace(scheduler_info=lambda: {"workers": workers}, scheduler=None)
    text = dispatch._Workers(some, print, 1.0, lambda: None, None).memory()
    assert says in text and ("cluster.memory_limit" in text) == ("MB" in text)


@pytest.mark.rest
def test_an_exception_of_a_task_ends_the_run(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_block(block: Block) -> BlockReport:
        if block.number == 30:
            raise OSError("no space left")
        return BlockReport({"ok": 10}, 0, 1e-3)

    monkeypatch.setattr(dispatch, "run_block", run_block)
    with pytest.raises(OSError, match="no space left"):
        list(dispatched(client, queue_of(1000, size=10)))


@pytest.mark.rest
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_that_is_stopped_leaves_no_task_on_the_cluster_of_its_user(
    client: Client, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """Ctrl-C arrives between two blocks, or while the driver waits for one."""
    go = threading.Event()

    def run_block(block: Block) -> BlockReport:
        if block.number:
            go.wait(10)
        return BlockReport({"ok": 10}, 0, 1e-3)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def tasks() -> int:
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    while any(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values()):
        time.sleep(0.01)  # tasks of the test before would wait in this function too
    monkeypatch.setattr(dispatch, "run_block", run_block)
    running = dispatched(client, queue_of(20_000, size=10))
    next(running)
    assert tasks() >= FEWEST_TASKS - 1
    if interrupted:
        monkeypatch.setattr(dispatch._Workers, "look", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(running)
    else:
        running.close()
    until = time.monotonic() + 5
    while left := tasks():
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    go.set()
    assert left == 0


def test_a_problem_is_no_end_while_workers_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may compile for longer than the time after which they count as steady."""
    now, client = SimpleNamespace(at=1.0), SimpleNamespace(status="running", scheduler=None, nthreads=dict)
    monkeypatch.setattr(dispatch, "time", SimpleNamespace(monotonic=lambda: now.at))
    problem: list[str] = []
    workers: Any = dispatch._Workers(cast("Any", client), id, 60.0, lambda: next(iter(problem), None), None)
    workers.look()
    problem.append("refused")
    client.nthreads = lambda: {"tcp://w:1": 1}
    now.at = 3.0
    workers.look()
    client.nthreads = dict
    with pytest.raises(SweeplibError, match=r"^refused; finished cases are stored"):
        workers.look()


@pytest.mark.parametrize(("came", "goes", "ends"), [(50, 1000, None), (50, 70, 70), (1000, 1000, 62), (50, 55, 62)])
def test_a_worker_that_is_back_before_the_patience_ends_may_start(
    monkeypatch: pytest.MonkeyPatch, came: int, goes: int, ends: int | None
) -> None:
    """Of 60 s; the last worker is lost at 1 s, the next one comes and goes."""
    now, client = SimpleNamespace(at=1.0), SimpleNamespace(status="running", scheduler=None, nthreads=dict)
    monkeypatch.setattr(dispatch, "time", SimpleNamespace(monotonic=lambda: now.at))
    workers: Any = dispatch._Workers(cast("Any", client), lambda news: None, 60.0, lambda: None, None)
    workers.look()
    ended = None
    for second in range(2, 100):
        now.at = float(second)
        client.nthreads = lambda second=second: {"tcp://w:1": 1} if came <= second < goes else {}
        try:
            workers.look()
        except SweeplibError:
            ended = second
            break
    assert ended == ends
