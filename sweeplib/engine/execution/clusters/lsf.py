"""Workers as jobs of LSF."""

from typing import Any, ClassVar, Literal

from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.execution.clusters.job_queue import JobQueue, Word


class Lsf(JobQueue):
    """Workers as jobs of LSF (`bsub`), submitted as the sweep needs them.

    queue : queue of the jobs; by default that of LSF.
    project : project that pays for the jobs.
    """

    cluster_class: ClassVar[str] = "LSFCluster"
    listing: ClassVar[tuple[str, ...]] = ("bjobs", "-noheader", "-o", "jobid")

    kind: Literal["lsf"] = "lsf"
    queue: Word | None = None
    project: Word | None = None

    def of_this_kind(self) -> dict[str, Any]:
        """Return the options of LSF alone: queue, project, and the walltime, which has no seconds there."""
        hours, minutes, seconds = map(int, self.walltime.split(":"))
        # the next whole minute: workers that end by themselves in time do so before the walltime of the config
        hours, minutes = divmod(60 * hours + minutes + (seconds > 0), 60)
        return {"queue": self.queue, "project": self.project, "walltime": f"{hours:02}:{minutes:02}"}


CLUSTERS.register("lsf", Lsf)
