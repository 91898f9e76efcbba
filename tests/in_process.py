"""Clusters that are this process, for tests that need no crash and hence no other processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sweeplib.engine.design.cluster import ClusterSettings
from sweeplib.engine.execution.blocks import Block, BlockReport, run_block
from sweeplib.engine.execution.queue import Queue

if TYPE_CHECKING:
    from distributed import Client


class InProcess(ClusterSettings):
    """Run one worker thread beside the test."""

    def expected_workers(self, workers: int | None = None) -> int:
        return 1

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator["Client"]:
        from distributed import Client, LocalCluster

        options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            yield client


class Here(ClusterSettings):
    """A cluster without workers: this process computes the blocks, if `computed` takes the place of `dispatched`."""

    def expected_workers(self, workers: int | None = None) -> int:
        return 1

    def workers_here(self) -> None:
        """Return None, so that short work is not done by other processes, which have not what a test registers."""

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator[Any]:
        yield SimpleNamespace(dashboard_link="")


def computed(_: Any, queue: Queue, *_others: Any, **_named: Any) -> Iterator[tuple[Block, BlockReport]]:
    """Yield the blocks of a queue with their reports, computed one after the other."""
    while queue:
        block = queue.block(1)
        report = run_block(block)
        queue.learn(block, report)
        yield block, report
