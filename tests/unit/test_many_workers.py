"""The simulation of the dispatcher, in limits that are known."""

import pytest

from benchmarks.many_workers import OVERHEAD, simulated
from sweeplib.engine.execution.queue import BLOCK_SECONDS


def test_workers_are_busy_where_the_scheduler_costs_nothing() -> None:
    """Cases of a minute are a block each."""
    wall, work, server, blocks = simulated(10, 60.0, 100, 0.0)
    assert (wall, blocks) == (pytest.approx(10 * (60.0 + OVERHEAD)), 100)
    assert (work, server) == (pytest.approx(60 / (60 + OVERHEAD)), 0.0)


def test_workers_wait_for_a_scheduler_that_takes_longer_than_they() -> None:
    wall, work, server, blocks = simulated(100, 60.0, 1000, 6.0)
    assert blocks == 1000 and wall == pytest.approx(6000, rel=0.05)
    assert work == pytest.approx(0.1, rel=0.05) and server > 0.95


def test_short_cases_are_many_to_a_block() -> None:
    """Some two seconds each, but for the last ones."""
    wall, work, _, blocks = simulated(8, 0.001, 400_000, 0.001)
    assert 400 / BLOCK_SECONDS < blocks < 800 / BLOCK_SECONDS
    assert work > 0.95 and wall == pytest.approx(50, rel=0.05)
