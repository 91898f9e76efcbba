"""A cluster for the time of a run: what goes wrong with it in one line, and its end at once when it is interrupted."""

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
                client = stack.enter_context(cluster.client(workers))
        except OSError as error:
            raise _told(error, cluster, "cannot be reached") from error
        try:
            yield client
        except (CancelledError, TaskCancelledError, OSError) as error:
            raise _told(error, cluster, "was lost during the run") from error
        except KeyboardInterrupt:
            for nanny in getattr(client.cluster, "workers", {}).values():
                nanny.close_gracefully()  # else it starts another worker
            end([process for process in descendants() if process not in before])
            raise


def _told(error: BaseException, cluster: "ClusterSettings", what: str) -> BaseException:
    """The error of a scheduler that was there before the run; any other error as it is, as of the file system."""
    place = getattr(cluster, "address", None) or getattr(cluster, "path", None)
    if place is None or (isinstance(error, OSError) and error.filename is not None):
        return error
    reason = " ".join(str(error).split()) or type(error).__name__
    then = f"once `cluster` has one that runs, the same command goes on ({reason})"
    return SweeplibError(f"the Dask scheduler at {place} {what}: {then}")
