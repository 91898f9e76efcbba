"""ClusterSettings: the settings of a kind of cluster, and the context manager that yields its Dask client."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pydantic
from pydantic import Field

from sweeplib.engine.base.registry import Registry
from sweeplib.engine.process.granted import granted_memory, memory_of_a_process

if TYPE_CHECKING:
    from distributed import Client

LEAST_MEMORY = 400 * 10**6
"""Bytes that a worker needs for what it imports and for the compilation of a kernel, without any case."""
MEMORY_SHARE = 0.9
"""The fraction of a worker's memory that a process of cases may take; Dask ends a worker at 95 %."""


class ClusterSettings(pydantic.BaseModel, ABC):
    """Settings that every kind of cluster has. Results do not depend on them.

    block_size : number of cases per block; by default as many as take about two seconds.
    wait_for_workers : seconds that a sweep waits while there is no worker, before it ends.
    performance_report : whether to keep Dask's report on the performance of the last run, as report/performance.html.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    block_size: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    wait_for_workers: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 300.0
    performance_report: bool = False

    def located(self, folder: Path) -> "ClusterSettings":
        """Return the same settings, with paths relative to `folder` made absolute."""
        return self

    def in_results(self, directory: Path) -> "ClusterSettings":
        """Return the same settings, for a run whose results are in `directory`."""
        return self

    def check(self) -> None:
        """Raise InputError if a cluster of this kind cannot be started from this machine; called before any work."""

    @abstractmethod
    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """Return a context manager that yields a client of the cluster; a cluster that it started ends with it.

        `workers`, here and in the methods below, replaces the number of workers in the settings; None: it stays.
        """

    def abandon(self, client: "Client") -> None:
        """End all workers of a run that was interrupted or failed; called within the context of `client`."""

    def problem(self) -> str | None:
        """Return why no worker will ever come, None if there is no such reason; called while a sweep waits for one."""
        return None

    def memory_here(self, workers: int | None = None) -> int:
        """Return the bytes that each process of cases may take on this machine: of trials, and of runs that are short.

        By default it is an equal share of what is granted here for each worker that runs here, at most half.
        """
        here = 0 if self.workers_here() is None else self.expected_workers(workers) or 0
        share = granted_memory() // max(2, here)
        return min(share, memory_of_a_process() or share)

    def known_memory(self, workers: int | None = None) -> int | None:
        """Return the bytes of memory of a worker; None where it is not known before the cluster runs."""
        return None

    @abstractmethod
    def expected_workers(self, workers: int | None = None) -> int | None:
        """Return the number of workers; None if it is not known before the cluster runs."""

    def workers_here(self) -> int | None:
        """Return the number of workers that take a processor of this machine; None if they run elsewhere."""
        return self.expected_workers()

    def resources(self, cpu_seconds: float) -> str | None:
        """Return in words what `cpu_seconds` of work take of a shared cluster; None if there is nothing to say."""
        return None


CLUSTERS: Registry[type[ClusterSettings]] = Registry("cluster", contract=ClusterSettings)
