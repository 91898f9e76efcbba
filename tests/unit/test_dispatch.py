"""Blocks in tasks: each block once, alone while its cost is unknown, several together where they are short."""

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from distributed import Client

from sweeplib.engine.execution import dispatch
from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.dispatch import (
    FEWEST_TASKS,
    LAST_SECONDS,
    MOST_BLOCKS,
    TASK_SECONDS,
    _Waiting,
    dispatched,
)
from tests.blocks import block_of
from tests.in_process import InProcess


def blocks(number: int, layout: str = "p1", *, suspect: bool = False) -> list[Block]:
    return [block_of(10, layout=layout, number=each, suspect=suspect) for each in range(number)]


def waiting(those: list[Block], seconds: float) -> _Waiting:
    """Return blocks of a layout, of which one was done in so many seconds."""
    made = _Waiting(those)
    made.measured(those[0], BlockReport({"ok": 10}, 0, seconds))
    return made


def sizes(made: _Waiting, threads: int) -> list[int]:
    found = []
    while made:
        found.append(len(made.task(threads)))
    return found


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with InProcess().client() as found:
        yield found


def test_blocks_of_unknown_cost_are_alone() -> None:
    assert sizes(_Waiting(blocks(100)), 1) == [1] * 100


def test_suspect_blocks_are_alone() -> None:
    assert sizes(waiting(blocks(100, suspect=True), 1e-3), 1) == [1] * 100


def test_a_task_takes_half_a_second() -> None:
    found = sizes(waiting(blocks(1000), TASK_SECONDS / 10), 1)
    assert sum(found) == 1000
    assert set(found[:-20]) == {10}


def test_long_blocks_are_alone() -> None:
    assert sizes(waiting(blocks(100), 2.0), 1) == [1] * 100


@pytest.mark.rest
def test_tasks_are_longer_for_many_workers() -> None:
    """A thousand workers take 500 tasks a second, not two thousand."""
    assert len(waiting(blocks(100_000), 1 / 16).task(10)) == 16 * TASK_SECONDS
    assert len(waiting(blocks(100_000), 1 / 16).task(1000)) == 32


def test_the_last_blocks_are_shared_among_all_workers() -> None:
    found = sizes(waiting(blocks(300), 0.01), 8)
    assert found[0] == 300 // 16
    assert max(found[-8:]) * 0.01 <= LAST_SECONDS + 0.01


def test_blocks_without_work_fill_tasks() -> None:
    assert sizes(waiting(blocks(10 * MOST_BLOCKS), 0.0), 64) == [MOST_BLOCKS] * 10


def test_a_layout_is_measured_by_itself() -> None:
    those = [*blocks(50), *blocks(50, "p2")]
    assert sizes(waiting(those, 1e-4), 1) == [50, *50 * [1]]


def test_found_blocks_say_nothing_about_the_cost() -> None:
    made = _Waiting(blocks(10))
    made.measured(blocks(1)[0], BlockReport({}, 10, 0.0))
    assert len(made.task(1)) == 1


@pytest.mark.rest
def test_every_block_is_computed_once_and_tasks_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[int] = Counter()
    tasks: list[int] = []

    def run_block(block: Block) -> BlockReport:
        done[block.number] += 1
        return BlockReport({"ok": 10}, 0, 1e-3)

    submitted = client.map

    def watched(function: object, those: list, **named: object) -> list:
        tasks.append(len(those))
        return submitted(function, those, **named)

    monkeypatch.setattr(dispatch, "run_block", run_block)
    monkeypatch.setattr(dispatch, "FEWEST_TASKS", 20)
    monkeypatch.setattr(client, "map", watched)
    reported = Counter(block.number for block, _ in dispatched(client, blocks(2000)))
    assert done == reported == Counter(range(2000))
    assert max(tasks) == 20
    assert sum(tasks) < 400


@pytest.mark.rest
def test_an_exception_of_a_task_ends_the_run(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_block(block: Block) -> BlockReport:
        if block.number == 30:
            raise OSError("no space left")
        return BlockReport({"ok": 10}, 0, 1e-3)

    monkeypatch.setattr(dispatch, "run_block", run_block)
    with pytest.raises(OSError, match="no space left"):
        list(dispatched(client, blocks(100)))


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
    running = dispatched(client, blocks(2000))
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
