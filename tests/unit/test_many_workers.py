"""The simulation of the dispatcher, in limits that are known."""

import pytest

from benchmarks.many_workers import OVERHEAD, simulated
from sweeplib.engine.execution.dispatch import MOST_BLOCKS


def test_workers_are_busy_where_the_scheduler_costs_nothing() -> None:
    wall, work, server, _ = simulated(10, 1.0, 100, 0.0, 0.0)
    assert wall == pytest.approx(10 * (1.0 + OVERHEAD))
    assert (work, server) == (pytest.approx(1 / (1 + OVERHEAD)), 0.0)


def test_workers_wait_for_a_scheduler_that_takes_longer_than_they() -> None:
    wall, work, server, tasks = simulated(100, 10.0, 1000, 1.0, 0.0)
    assert tasks == 1000 and wall == pytest.approx(1000, rel=0.05)
    assert work == pytest.approx(0.1, rel=0.05) and server > 0.95


def test_short_blocks_share_tasks() -> None:
    *_, tasks = simulated(8, 0.001, 4000, 0.001, 0.0)
    assert 4000 / MOST_BLOCKS < tasks < 1200
