"""Cases cut into blocks as they are handed out: by time, in whole lanes, shorter towards the end, each case once."""

import heapq
import pickle

import numpy as np
import pytest

from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.queue import BLOCK_SECONDS, LAST_SECONDS, LONGEST_BLOCK_SECONDS, SECONDS_A_WORKER, Queue
from tests.blocks import part_of, queue_of


def blocks(queue: Queue, workers: int = 2, seconds: float | None = None) -> list[Block]:
    """Return all blocks of a queue, of which cases take so many seconds, or what is planned."""
    found = []
    while queue:
        found.append(queue.block(workers))
        if seconds is not None:
            queue.learn(found[-1], BlockReport({"ok": len(found[-1])}, 0, seconds * len(found[-1])))
    return found


def times(found: list[Block], seconds: float) -> list[float]:
    return [seconds * len(block) for block in found]


def worked_off(queue: Queue, seconds: np.ndarray, workers: int) -> list[float]:
    """Return what the blocks take of cases with these `seconds`, of which so many are computed at a time."""
    now, running, found = 0.0, [], list[float]()
    while queue or running:
        while queue and len(running) < workers:
            block = queue.block(workers)
            found.append(float(seconds[block.places].sum()))
            heapq.heappush(running, (now + found[-1], len(found), block))
        now, number, block = heapq.heappop(running)
        queue.learn(block, BlockReport({"ok": len(block)}, 0, found[number - 1]))
    return found


def test_each_case_is_in_one_block() -> None:
    parts = [part_of(1000, seconds=0.01), part_of(777, "p2", seconds=0.5), part_of(1, "p3", seconds=100.0)]
    found = blocks(Queue(parts))
    for layout, count in {"p1": 1000, "p2": 777, "p3": 1}.items():
        of_layout = [block for block in found if block.layout == layout]
        assert np.concatenate([block.places for block in of_layout]).tolist() == list(range(count))
        assert [block.number for block in of_layout] == list(range(len(of_layout)))
    assert len({block.name for block in found}) == len(found)
    assert [block.layout for block in found] == sorted((block.layout for block in found), reverse=True), "by their cost"


def test_a_block_takes_two_seconds_and_the_last_ones_less() -> None:
    """Each takes half of a worker's share of what is left, as far as that is no less than half a second."""
    found = times(blocks(queue_of(10_000, seconds=0.01), workers=4), 0.01)
    assert found[:10] == [pytest.approx(BLOCK_SECONDS)] * 10
    assert sorted(found, reverse=True) == found
    assert max(found[-4:]) <= 2 * LAST_SECONDS


def test_what_blocks_have_taken_counts_and_not_the_plan() -> None:
    """The first one is by the plan, the others by those before, and at most twice as large as the largest of them."""
    dear, cheap = (blocks(queue_of(400_000, seconds=planned), workers=1, seconds=0.01) for planned in (1e-4, 1.0))
    assert [len(block) for block in dear[:2]] == [20_000, BLOCK_SECONDS / 0.01]
    assert [len(block) for block in cheap[:9]] == [2, 4, 8, 16, 32, 64, 128, BLOCK_SECONDS / 0.01, BLOCK_SECONDS / 0.01]


def test_before_a_case_is_done_a_guess_says_nothing() -> None:
    """A function may take a minute where a millisecond is guessed: the first blocks have a case."""
    queue = queue_of(400_000, seconds=1e-9, measured=False)
    first = queue.block(2)
    assert (len(first), len(queue.block(2)), queue.is_blind) == (1, 1, True)
    queue.learn(first, BlockReport({"ok": 1}, 0, 0.01))
    assert (len(queue.block(2)), queue.is_blind) == (2, False)


def test_the_first_case_that_loads_code_is_soon_forgotten() -> None:
    """A case of a millisecond whose first call takes a second: thirty blocks later they have their length."""
    queue, took = queue_of(400_000, seconds=1e-9, measured=False), 1.0
    for _ in range(30):
        block = queue.block(1)
        queue.learn(block, BlockReport({"ok": len(block)}, 0, took + 0.001 * len(block)))
        took = 0.0
    assert len(queue.block(1)) > 0.8 * BLOCK_SECONDS / 0.001


@pytest.mark.parametrize("quick", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("workers", [2, 16])
def test_cases_that_fail_at_once_make_no_long_block(quick: float, workers: int) -> None:
    """Of cases of three seconds a part ends at once: a block that a kill loses, or that others wait for, is short."""
    seconds = np.where(np.random.default_rng(5).random(400) < quick, 0.001, 3.0)
    found = worked_off(queue_of(400, seconds=1e-9, measured=False), seconds, workers)
    assert max(found) <= 8 * 3.0
    assert max(found) <= 2 * 3.0 or quick == 0.5


@pytest.mark.parametrize("workers", [2, 16])
def test_rates_that_diverge_at_once_make_no_long_block(workers: int) -> None:
    """The cases of each dimension are ordered by their rates, of which the last two of ten diverge."""
    seconds = np.tile(np.repeat(np.where(np.arange(10) < 8, 0.1, 0.001), 100), 5)
    assert max(worked_off(queue_of(len(seconds), seconds=0.1), seconds, workers)) < 10.0


@pytest.mark.parametrize(("seconds", "lengths"), [(3.0, {1}), (0.7, {2, 1}), (120.0, {1})])
def test_long_cases_are_handed_out_one_by_one(seconds: float, lengths: set[int]) -> None:
    assert {len(block) for block in blocks(queue_of(48, seconds=seconds))} == lengths


def test_a_layout_is_measured_by_itself() -> None:
    queue = Queue([part_of(500, seconds=0.02), part_of(500, "p2", seconds=0.01)])
    first = queue.block(1)
    queue.learn(first, BlockReport({"ok": len(first)}, 0, 2000.0))
    left = blocks(queue, workers=1)
    assert max(len(block) for block in left if block.layout == "p1") == 1
    assert len(next(block for block in left if block.layout == "p2")) == 200


def test_cases_that_were_found_done_say_nothing_about_the_cost() -> None:
    queue = queue_of(1000, seconds=0.1)
    queue.learn(queue.block(1), BlockReport({}, 20, 0.0))
    assert len(queue.block(1)) == 20


def test_blocks_are_longer_for_many_workers() -> None:
    """Four thousand workers ask a scheduler for 500 blocks a second."""
    [first, *_] = blocks(queue_of(2_000_000, seconds=0.1), workers=4000)
    assert 0.1 * len(first) == pytest.approx(4000 * SECONDS_A_WORKER)


def test_blocks_are_in_whole_lanes_and_hold_neither_too_much_work_nor_too_many_bytes() -> None:
    assert {len(block) % 16 for block in blocks(queue_of(1600, seconds=0.01, lanes=(16, 128)))} == {0}
    assert len(queue_of(1600, seconds=7.0, lanes=(2, 16)).block(1)) == int(LONGEST_BLOCK_SECONDS / 7.0)
    assert len(queue_of(10, seconds=1000.0).block(1)) == 1
    assert len(queue_of(10_000, seconds=0.0, nbytes=2**20).block(1)) == 64
    assert {len(block) for block in blocks(queue_of(99, size=9, seconds=50.0))} == {9}


def test_a_cost_that_is_known_within_a_factor_counts_as_the_largest() -> None:
    assert len(queue_of(1000, seconds=0.01, factor=4.0).block(1)) == 50


def test_a_worker_is_sent_the_cases_alone() -> None:
    block = queue_of(1000, seconds=0.01).block(1)
    sent = pickle.loads(pickle.dumps(block))
    assert (len(sent.cases), len(sent), sent.name, sent.wanted, len(sent.places)) == (1000, 200, block.name, None, 0)
