"""What every kind of cluster has: settings, and a Dask client for as long as it is needed."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import psutil
import pydantic
from pydantic import Field

from sweeplib.registry import Registry

if TYPE_CHECKING:
    from distributed import Client


class ClusterSettings(pydantic.BaseModel, ABC):
    """Settings of a cluster; those here hold for every kind. None of them changes a bit of a result.

    block_size : cases a block; by default as many as take about two seconds on the machine that plans.
    wait_for_workers : seconds that a sweep waits for a worker while there is none, before it ends.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    block_size: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    wait_for_workers: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0

    def located(self, folder: Path) -> "ClusterSettings":
        """The same settings, with the paths among them, if there are any, relative to `folder`."""
        return self

    @abstractmethod
    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """A client of the cluster, which is ours to start and end, or somebody's to be left as it was found.

        `workers`, where given, is their number, instead of the one in the settings.
        """

    def worker_memory(self, workers: int | None = None) -> int:
        """The bytes that a process of cases may take on the machine that plans: by default half of its memory."""
        return int(psutil.virtual_memory().total // 2)

    @abstractmethod
    def expected_workers(self, workers: int | None = None) -> int | None:
        """How many workers there will be, as far as it is known before the cluster is."""


CLUSTERS: Registry[type[ClusterSettings]] = Registry("cluster")
