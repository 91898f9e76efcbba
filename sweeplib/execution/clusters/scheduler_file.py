"""A running Dask scheduler, given by the file in which it wrote its address. It is not stopped."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sweeplib.design.cluster import CLUSTERS
from sweeplib.errors import InputError
from sweeplib.execution.clusters.existing import Existing

if TYPE_CHECKING:
    from distributed import Client


class SchedulerFile(Existing):
    """An existing scheduler that was started with `--scheduler-file path`.

    path : path of the scheduler file; in a sweep's YAML file, relative to the YAML file.
    """

    kind: Literal["scheduler_file"] = "scheduler_file"
    path: Path = Field(examples=["scheduler.json"])

    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """Return a client of the scheduler; only the client is closed. InputError if there is no such file."""
        if not self.path.exists():
            raise InputError("no scheduler file", key="cluster.path", value=str(self.path))
        return self.connected(str(self.path), scheduler_file=str(self.path))


CLUSTERS.register("scheduler_file", SchedulerFile)
