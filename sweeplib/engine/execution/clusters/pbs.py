"""Workers as jobs of PBS."""

from typing import Any, ClassVar, Literal

from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.execution.clusters.job_queue import JobQueue, OneLine, Word


class Pbs(JobQueue):
    """Workers as jobs of PBS or Torque (`qsub`), submitted as the sweep needs them.

    queue : queue of the jobs; by default that of PBS.
    account : account that pays for the jobs.
    resource_spec : resources of a job, in place of select=1:ncpus=CORES:mem=MEMORY; Torque needs nodes=1:ppn=CORES.
    """

    cluster_class: ClassVar[str] = "PBSCluster"
    listing: ClassVar[tuple[str, ...]] = ("qstat",)

    kind: Literal["pbs"] = "pbs"
    queue: Word | None = None
    account: Word | None = None
    resource_spec: OneLine | None = None

    def of_this_kind(self) -> dict[str, Any]:
        """Return the options of PBS alone: queue, account and resources."""
        return {"queue": self.queue, "account": self.account, "resource_spec": self.resource_spec}


CLUSTERS.register("pbs", Pbs)
