"""JobKeeper: replaces the jobs of a cluster that have ended while the sweep goes on.

Dask asks for a job again only if it had a single worker that was lost; a job that was cancelled while it waited, that
failed before its workers started, or that had several workers would be missed for ever.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed.scheduler import WorkerState

SECONDS_BETWEEN_LOOKS = 10.0
"""The interval at which the batch system is asked for its jobs."""
MOST_FAILURES = 5
"""How many jobs in a row may end before a worker of theirs reaches the scheduler."""


def job_of(worker: "WorkerState") -> str:
    """Return the name of a worker's job: dask-jobqueue appends the numbers of job and worker to the cluster's name."""
    match = re.match(r"(.*Cluster-\d+)(-\d+)?$", str(worker.name))
    return match[1] if match else str(worker.name)


def refusable(kind: Any) -> Any:
    """Return a kind of dask-jobqueue's clusters, with jobs that remember why they were not submitted.

    A job that was cancelled is also marked as closed, which dask-jobqueue leaves out: a cluster that ends with a job
    marked as running, unless that is already garbage, raises AssertionError.
    """
    from distributed.deploy.spec import ProcessInterface

    class RefusableJob(kind.job_cls):
        """A job of dask-jobqueue; `refused` is why the batch system did not accept it, None if it did."""

        refused: str | None = None

        async def start(self) -> None:
            """Submit the job; if it is refused, there is a job without a number."""
            try:
                await super().start()
            except (RuntimeError, ValueError, OSError) as error:
                lines = str(error).strip().rpartition("stderr:\n")[2].splitlines()
                self.refused = lines[-1].strip() if lines else "the job was not accepted"
                # what dask-jobqueue does last, after the error: the job counts as started, and can be closed
                await ProcessInterface.start(self)

        async def close(self) -> None:
            """Cancel the job, and mark it as closed."""
            await super().close()
            # dask-jobqueue leaves this out: the job would stay marked as running
            await ProcessInterface.close(self)

    return type(kind.__name__, (kind,), {"job_cls": RefusableJob})


class JobKeeper:
    """Every few seconds, looks for jobs without workers that the batch system does not list, or did not accept.

    They are given up, and Dask's adaptive scaling submits others.
    """

    def __init__(self, cluster: Any, listing: Sequence[str], folder: Path) -> None:
        """Look at the jobs of dask-jobqueue's cluster every few seconds, in the loop of its scheduler.

        listing : the command that lists the jobs. folder : where their output is.
        """
        from tornado.ioloop import PeriodicCallback

        self._cluster, self._listing, self._folder = cluster, list(listing), folder
        self._started: set[str] = set()  # the names of jobs that had a worker
        self._failures = 0  # accepted jobs in a row that ended without one
        self._refused: str | None = None  # why the last job that was given up was not accepted, None if it was
        self._has_jobs = False  # whether a job that was accepted has workers, or waits for them
        self._looks = PeriodicCallback(self._look, 1000 * SECONDS_BETWEEN_LOOKS)
        cluster.loop.add_callback(self._looks.start)

    @property
    def problem(self) -> str | None:
        """Return why no worker will come; None as long as one may."""
        if self._refused is not None and not self._has_jobs:
            return self._refused
        if self._failures < MOST_FAILURES:
            return None
        return f"{self._failures} jobs ended before their workers started; their output is in {self._folder}"

    async def _look(self) -> None:
        """Give up the jobs without workers that are refused, or that the batch system no longer lists."""
        from distributed.core import Status

        # `workers` of the cluster are jobs, of the scheduler the workers that have reached it
        at_work = set(map(job_of, self._cluster.scheduler.workers.values()))
        self._started |= at_work
        silent = {name: job for name, job in self._cluster.workers.items() if name not in at_work}
        submitted = {name: job for name, job in silent.items() if job.refused is None}
        listed = await self._listed(submitted) if submitted else set()
        waits = any(listed is None or job.job_id in listed for job in submitted.values())
        self._has_jobs = waits or bool(at_work)
        for name, job in silent.items():
            gone = name not in submitted or (listed is not None and job.job_id not in listed)
            # Dask may have replaced the job while the batch system answered
            if gone and self._cluster.workers.get(name) is job:
                if job.refused is None:
                    self._failures = 0 if name in self._started else self._failures + 1
                self._refused = job.refused
                self._started.discard(name)
                del self._cluster.workers[name]
                job.status = Status.closed

    async def _listed(self, jobs: dict[str, Any]) -> set[str] | None:
        """Return the numbers of the jobs that wait or run; None if the batch system does not answer."""
        try:
            output: str = await next(iter(jobs.values()))._call(self._listing)
        except (RuntimeError, OSError):
            return None
        return set(re.findall(r"^\s*(\d+)", output, re.MULTILINE))
