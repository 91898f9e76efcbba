"""Workers as jobs of SGE."""

from typing import Any, ClassVar, Literal

from pydantic import model_validator

from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.execution.clusters.job_queue import JobQueue, OneLine, Word
from sweeplib.errors import InputError


class Sge(JobQueue):
    """Workers as jobs of SGE, Grid Engine or their successors (`qsub`), submitted as the sweep needs them.

    queue : queue of the jobs; by default that of SGE.
    project : project that pays for the jobs.
    parallel_environment : parallel environment on one node, such as smp; needed for more than one core.
    resource_spec : resources of a job, such as h_vmem=4G; SGE has no name for memory that all its sites share.
    """

    cluster_class: ClassVar[str] = "SGECluster"
    listing: ClassVar[tuple[str, ...]] = ("qstat",)

    kind: Literal["sge"] = "sge"
    queue: Word | None = None
    project: Word | None = None
    parallel_environment: Word | None = None
    resource_spec: OneLine | None = None

    @model_validator(mode="after")
    def _cores_need_an_environment(self) -> "Sge":
        """Return these settings; InputError if several cores are asked for without a parallel environment."""
        if self.cores > 1 and self.parallel_environment is None:
            expected = "the name of a parallel environment on one node, such as smp"
            raise InputError(f"needed for {self.cores} cores", key="parallel_environment", expected=expected)
        return self

    def of_this_kind(self) -> dict[str, Any]:
        """Return the options of SGE alone: queue, project, resources, and the environment that several cores need."""
        options: dict[str, Any] = {"queue": self.queue, "project": self.project, "resource_spec": self.resource_spec}
        if self.parallel_environment is not None:
            options["job_extra_directives"] = [f"-pe {self.parallel_environment} {self.cores}", *self.directives]
        return options


CLUSTERS.register("sge", Sge)
