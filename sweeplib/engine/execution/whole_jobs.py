"""WholeJobs: the scaling of a cluster whose workers come and go as whole jobs."""

import math
from collections.abc import Iterable
from typing import Any

from distributed.deploy.adaptive import Adaptive

from sweeplib.engine.execution.clusters.job_keeper import job_of


class WholeJobs(Adaptive):
    """Counts jobs where Dask's scaling counts workers; `minimum` and `maximum` are numbers of jobs too.

    Dask would cancel a job that waits, and submit another, as long as there is work for some of its workers
    but not for all.

    cores : the number of workers of a job. The base class calls all other methods.
    """

    def __init__(self, cluster: Any, *, cores: int, **options: Any) -> None:
        self._cores = cores
        super().__init__(cluster, worker_key=job_of, **options)

    @property
    def plan(self) -> set[Any]:
        """The names of the jobs that should be there."""
        return set(self.cluster.worker_spec)

    @property
    def requested(self) -> set[Any]:
        """The names of the jobs that were submitted."""
        return set(self.cluster.workers) & self.plan

    @property
    def observed(self) -> set[Any]:
        """The names of the jobs that have a worker."""
        return set(map(job_of, self.cluster.scheduler.workers.values()))

    async def target(self) -> int:
        """Return the number of jobs for which there is work."""
        return math.ceil(await super().target() / self._cores)

    async def workers_to_close(self, target: int) -> list[Any]:
        """Return the names of jobs to end, of which no worker has a task, so that `target` jobs remain or more."""
        # Dask names workers that it can spare; their whole jobs are ended, if no other worker of them is busy
        closing = set(await super().workers_to_close(target * self._cores))
        busy = {job_of(worker) for worker in self._workers() if worker.processing}
        return list({job_of(worker) for worker in self._workers() if worker.name in closing} - busy)

    async def scale_up(self, n: int) -> None:
        """Submit jobs until there are `n`."""
        await super().scale_up(n * self._cores)

    async def scale_down(self, workers: Iterable[Any]) -> None:
        """End the jobs of some names, which Dask's scaling takes for those of workers, with all their workers."""
        jobs = set(workers)
        await super().scale_down([*jobs, *(worker.name for worker in self._workers() if job_of(worker) in jobs)])

    def _workers(self) -> list[Any]:
        """Return the workers that the scheduler knows."""
        return list(self.cluster.scheduler.workers.values())
