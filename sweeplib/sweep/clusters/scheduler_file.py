"""A Dask scheduler that runs already, by the file in which it wrote its address. It is left running."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sweeplib.errors import InputError
from sweeplib.sweep.clusters.cluster import CLUSTERS, ClusterSettings

if TYPE_CHECKING:
    from distributed import Client


class SchedulerFile(ClusterSettings):
    """An existing scheduler that was started with `--scheduler-file path`.

    path : of that file; in a sweep's YAML file, relative to the latter.
    """

    kind: Literal["scheduler_file"] = "scheduler_file"
    path: Path

    def located(self, folder: Path) -> ClusterSettings:
        """The same settings with an absolute path."""
        return self.model_copy(update={"path": (folder / self.path.expanduser()).resolve()})

    def expected_workers(self, workers: int | None = None) -> None:
        """Unknown before connecting."""

    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """A client of the scheduler; only the client is closed. InputError where there is no such file."""
        from distributed import Client

        if not self.path.exists():
            raise InputError("no scheduler file", key="cluster.path", value=str(self.path))
        client: AbstractContextManager[Client] = Client(scheduler_file=str(self.path), set_as_default=False)
        return client


CLUSTERS.register("scheduler_file", SchedulerFile)
