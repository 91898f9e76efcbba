"""The settings of workers as jobs of SLURM, which `job_queue` submits."""

from typing import Any, ClassVar, Literal

from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.execution.clusters.job_queue import JobQueue, Word


class Slurm(JobQueue):
    """Workers as jobs of SLURM (`sbatch`), submitted as the sweep needs them; start the sweep where `sbatch` works.

    partition : partition of the jobs; by default SLURM's.
    account : account that pays for the jobs; by default SLURM's.
    """

    cluster_class: ClassVar[str] = "SLURMCluster"
    listing: ClassVar[tuple[str, ...]] = ("squeue", "--me", "--noheader", "--format=%A")

    kind: Literal["slurm"] = "slurm"
    partition: Word | None = None
    account: Word | None = None

    def of_this_kind(self) -> dict[str, Any]:
        """Return the options of SLURM alone: the partition, which dask-jobqueue calls a queue, and the account."""
        return {"queue": self.partition, "account": self.account}


CLUSTERS.register("slurm", Slurm)
