"""A client of a cluster for the duration of a run, and Dask's report on the performance of that run.

A cluster of the run ends at once when the run is interrupted or fails.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.execution.clusters.dashboard_access import close_to_others
from sweeplib.engine.process.children import no_interrupts_beyond_here, nothing_imported_from_here
from sweeplib.engine.process.terminal import echo
from sweeplib.engine.storage.records.files import linked

if TYPE_CHECKING:
    from distributed import Client

    from sweeplib.engine.execution.clusters import ClusterSettings

PERFORMANCE = Path("report", "performance.html")
"""The path of Dask's report in the folder of a sweep's results."""


@contextmanager
def connected(cluster: "ClusterSettings", workers: int | None) -> Iterator["Client"]:
    """Yield a client of the cluster, whose processes on this machine import nothing from the working directory.

    workers : their number, None for what the config says.
    SweeplibError if the scheduler cannot be reached. On an interrupt or any exception of the run, the cluster abandons
    its workers (`ClusterSettings.abandon`): those on this machine are killed, and jobs are cancelled. Results in the
    store are not lost.
    """
    with nothing_imported_from_here(), ExitStack() as stack:
        with no_interrupts_beyond_here():
            import distributed  # noqa: F401 - it sets the levels of its logs

            stack.enter_context(_said_once())
            client = stack.enter_context(cluster.client(workers))
            scheduler = getattr(getattr(client, "cluster", None), "scheduler", None)
            if hasattr(scheduler, "http_application"):  # in this process; that of others answers as they say
                close_to_others(scheduler, getattr(cluster, "dashboard_hosts", ()))
        try:
            yield client
        except BaseException:  # a worker that starts would print why it cannot end in order
            cluster.abandon(client)
            raise


class LastingCluster:
    """A context with the cluster of several runs: it starts with the first that needs it, and ends with the context."""

    def __init__(self) -> None:
        self._stack = ExitStack()  # holds the cluster
        self.client: Client | None = None

    def __enter__(self) -> "LastingCluster":
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)

    @contextmanager
    def connected(self, cluster: "ClusterSettings", workers: int | None) -> "Iterator[Client]":
        """Yield the client of the one cluster; the arguments of the first call, as in `connected`, say which it is."""
        if self.client is None:
            self.client = self._stack.enter_context(connected(cluster, workers))
        yield self.client


@contextmanager
def _said_once() -> Iterator[None]:
    """A context in which a client does not log that it has lost its scheduler: an error of the run says so, once."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def performance_kept(client: "Client", path: Path | None) -> Iterator[None]:
    """A context whose tasks are described in an HTML file at `path`, if it ends well; None: no file.

    The file needs no network. The report of a run that is interrupted would wait for workers that are gone.
    """
    if path is None:
        yield
        return
    from distributed import performance_report

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise linked(path)
    with client.as_current(), ExitStack() as stack:
        stack.enter_context(performance_report(filename=str(path.resolve()), mode="inline"))
        try:
            yield
        except BaseException:
            stack.pop_all()
            raise
        try:
            stack.close()
        except UnicodeError:  # Dask reads the page of its plots in the encoding of the locale
            expected = "a locale whose letters are all of Unicode, such as LC_ALL=C.UTF-8"
            echo(f"{path}: not written: Dask cannot read its plots in this locale; expected {expected}", errors=True)
