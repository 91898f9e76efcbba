"""Workers on this machine: one process per worker, one thread per process."""

import logging
import math
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from sweeplib.engine.base.validation import REFUSED
from sweeplib.engine.design.cluster import CLUSTERS, LEAST_MEMORY, ClusterSettings
from sweeplib.engine.execution.clusters.certificates import own_certificates
from sweeplib.engine.execution.clusters.dashboard import DEFAULT_ADDRESS, THIS_MACHINE, DashboardAddress, free_address
from sweeplib.engine.execution.clusters.dashboard_access import HostName, websocket_origins
from sweeplib.engine.process.children import end, with_descendants
from sweeplib.engine.process.forks import ONE_THREAD
from sweeplib.engine.process.granted import granted_memory, granted_processors, memory_of_a_process
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from distributed import Client, Nanny

SECONDS_TO_START = 1.0
"""Within which a nanny knows the process that it has started, if the machine is not overloaded."""
FIRST = 4
"""The largest number of workers that start side by side before the first block."""
SETTINGS = {
    # Without this, Dask closes a nanny permanently if its worker dies again within this time.
    "distributed.deploy.lost-worker-timeout": "100 days",
    # With Dask's 10 and 20 ms, this takes 2.5 % of a processor in the driver and in each worker.
    "distributed.worker.profile.interval": "100ms",
    "distributed.admin.tick.interval": "200ms",
    # With Dask's 100 ms, the memory of workers is read 40 times a second: a sweep on two processors takes 2 % longer.
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.preload": ["sweeplib.engine.execution.worker_imports"],
    # A person's settings for other clusters: with them this one would end before its run, or not start.
    "distributed.scheduler.preload": [],
    "distributed.nanny.preload": [],
    "distributed.scheduler.idle-timeout": None,
    "distributed.scheduler.no-workers-timeout": None,
    "distributed.worker.lifetime.duration": None,
}
"""Of Dask, for the cluster and its workers."""


def _memory(limit: Any) -> Any:
    """Return the limit if Dask can read it; an error if it cannot, or if no worker would fit in."""
    if limit == "auto":
        return limit
    from dask.utils import parse_bytes

    with suppress(ValueError, OverflowError):
        if isinstance(limit, str) and (0 < _number(limit) <= 1 or LEAST_MEMORY <= parse_bytes(limit) < 2**63):
            return limit
    expected = "'auto', a size from 400 MB on such as '2GB', or a part of the machine's such as '0.25'"
    raise PydanticCustomError(REFUSED, expected)


def _number(text: str) -> float:
    """Return the number that a text is, a part of the machine's memory; infinity for a size with a unit."""
    try:
        return float(text)
    except ValueError:
        return math.inf


class Local(ClusterSettings):
    """Worker processes on this machine. Only processes with the certificates of this run can connect to them.

    workers : number of workers; by default the number of processors that this process may use, fewer in a container
        that has no 400 MB for each.
    memory_limit : memory of each worker, such as "2GB"; by default its share of that of this machine or container.
    dashboard_address : address of Dask's dashboard; local unless a host is named; port 0 chooses a free port.
    dashboard_hosts : other names, HOST:PORT, under which browsers find the dashboard, such as those of a tunnel or a
        proxy; pages of other sites are refused.
    """

    kind: Literal["local"] = "local"
    workers: Annotated[int, Field(ge=1, le=1024)] | None = Field(default=None, examples=[4])
    memory_limit: Annotated[str, BeforeValidator(_memory)] = "auto"
    dashboard_address: DashboardAddress = DEFAULT_ADDRESS
    dashboard_hosts: tuple[HostName, ...] = Field(default=(), examples=[["localhost:9999"]])

    def expected_workers(self, workers: int | None = None) -> int:
        """Return the requested number of workers, or one per processor as far as there is memory for them."""
        return workers or self.workers or places()

    def memory_here(self, workers: int | None = None) -> int:
        """Return the bytes of memory of a worker: the configured limit, or its share of what is granted here."""
        whole, of_a_process = granted_memory(), memory_of_a_process()
        if self.memory_limit == "auto":
            limit = whole // max(places(), self.expected_workers(workers))
        else:
            from dask.utils import parse_bytes

            number = _number(self.memory_limit)
            limit = int(number * whole if number <= 1 else min(whole, parse_bytes(self.memory_limit)))
        return min(limit, of_a_process or limit)

    def known_memory(self, workers: int | None = None) -> int:
        """Return the bytes that Dask grants a worker."""
        return self.memory_here(workers)

    def check(self) -> None:
        """Raise InputError if workers cannot start because this system gives them no semaphores."""
        try:
            multiprocessing.get_context("fork").Lock()
        except OSError as error:
            problem = f"workers need semaphores, which this system refuses here ({error.strerror})"
            expected = "a folder in memory that can be written, as by `docker run --tmpfs /dev/shm`"
            raise InputError(problem, key="cluster.kind", value="local", file="/dev/shm", expected=expected) from None

    def abandon(self, client: "Client") -> None:
        """Kill the workers, also those that still start; their nannies start no others."""
        nannies = list(client.cluster._created)  # `workers` lacks those that still start
        for nanny in nannies:
            nanny.close_gracefully()
        until = time.monotonic() + SECONDS_TO_START
        while any(_runs(nanny) for nanny in nannies) and time.monotonic() < until:
            workers = [pid for nanny in nannies if (pid := nanny.pid)]
            end([process for worker in workers for process in with_descendants(worker)])
            time.sleep(0.01)  # a nanny does not know at once that its worker has ended, or which process it has started

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator["Client"]:
        """Yield a client of a cluster that ends with the context, or when this process ends in any way."""
        import dask
        from distributed import Client, LocalCluster

        expected = self.expected_workers(workers)
        address = free_address(self.dashboard_address)
        environment: dict[str, Any] = {f"distributed.nanny.pre-spawn-environ.{name}": 1 for name in ONE_THREAD}
        with (
            dask.config.set(SETTINGS | environment),
            websocket_origins(address, self.dashboard_hosts),
            LocalCluster(
                n_workers=min(FIRST, expected, places()),  # the others start while these work
                threads_per_worker=1,
                processes=True,
                host=THIS_MACHINE,
                memory_limit=self.memory_here(workers),
                silence_logs=logging.CRITICAL,
                security=own_certificates(),
                dashboard_address=address,
            ) as cluster,
            Client(cluster) as client,
        ):
            cluster.scale(expected)
            yield client


def places() -> int:
    """Return how many workers this machine has processors and memory for."""
    return max(1, min(granted_processors(), granted_memory() // LEAST_MEMORY))


def _runs(nanny: "Nanny") -> bool:
    """Return whether the worker of a nanny, the process of Dask that restarts it, runs or starts."""
    from distributed.core import Status

    return nanny.process is not None and nanny.process.status in {Status.starting, Status.running}


CLUSTERS.register("local", Local)
