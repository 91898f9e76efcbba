"""A cluster that is this process, for tests that need no crash and hence no other processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sweeplib.design.cluster import ClusterSettings

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
