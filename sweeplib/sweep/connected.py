"""A cluster for the time of a run: what goes wrong with it in one line, and its end at once when it is interrupted."""

import logging
from asyncio import CancelledError as TaskCancelledError
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from sweeplib.errors import SweeplibError
from sweeplib.processes import descendants, end, no_interrupts_beyond_here, nothing_imported_from_here

if TYPE_CHECKING:
    from distributed import Client

    from sweeplib.sweep.clusters import ClusterSettings


@contextmanager
def connected(cluster: "ClusterSettings", workers: int | None) -> Iterator["Client"]:
    """A client of the cluster, whose processes on this machine import nothing from the working directory.

    SweeplibError where the scheduler cannot be reached or is lost. Interrupted, the processes that were started are
    killed: no result that is in the store is lost with them.
    """
    before = set(descendants())
    with nothing_imported_from_here(), ExitStack() as stack:
        try:
            with no_interrupts_beyond_here():
                import distributed  # noqa: F401 - it sets the levels of its logs

                stack.enter_context(_said_once())
                client = stack.enter_context(cluster.client(workers))
        except Exception as error:
            _tell(error, cluster, "cannot be reached")
            raise
        try:
            yield client
        except (CancelledError, TaskCancelledError, OSError) as error:
            _tell(error, cluster, "was lost during the run")
            raise
        except KeyboardInterrupt:
            for nanny in getattr(client.cluster, "workers", {}).values():
                nanny.close_gracefully()  # else it starts another worker
            end([process for process in descendants() if process not in before])
            raise


def _tell(error: BaseException, cluster: "ClusterSettings", what: str) -> None:
    """Raise SweeplibError of a scheduler that others start, unless the error is one of ours or of the file system."""
    place = getattr(cluster, "address", None) or getattr(cluster, "path", None)
    ours = isinstance(error, SweeplibError) or (isinstance(error, OSError) and error.errno is not None)
    if place is not None and not ours:
        why = f" ({error})" if isinstance(error, OSError) else ""
        then = "once `cluster` has one that runs, the same command goes on"
        raise SweeplibError(f"the Dask scheduler at {place} {what}{why}: {then}") from error


@contextmanager
def _said_once() -> Iterator[None]:
    """Nothing; a client within does not say by itself that it has lost its scheduler."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
