"""A Dask scheduler that runs already, by its address. It is left running."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from sweeplib.sweep.clusters.cluster import CLUSTERS, ClusterSettings

if TYPE_CHECKING:
    from distributed import Client


class Address(ClusterSettings):
    """An existing scheduler at `address`, such as "tcp://10.0.0.1:8786"; its workers must see the results' directory.

    For one case at fault to be found fast, start it with `distributed.scheduler.allowed-failures: 1`.
    """

    kind: Literal["address"] = "address"
    address: str

    def expected_workers(self, workers: int | None = None) -> None:
        """Unknown before connecting."""

    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """A client of the scheduler; only the client is closed."""
        from distributed import Client

        client: AbstractContextManager[Client] = Client(self.address, set_as_default=False)
        return client


CLUSTERS.register("address", Address)
