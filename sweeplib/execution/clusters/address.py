"""A running Dask scheduler, given by its address. It is not stopped."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sweeplib.design.cluster import CLUSTERS
from sweeplib.execution.clusters.existing import Existing

if TYPE_CHECKING:
    from distributed import Client


class Address(Existing):
    """An existing scheduler at `address`, such as "tcp://10.0.0.1:8786"; its workers must see the results' directory.

    address : address of the scheduler, such as "tcp://10.0.0.1:8786".
    """

    kind: Literal["address"] = "address"
    address: str = Field(examples=["tcp://10.0.0.1:8786"])

    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """Return a client of the scheduler; only the client is closed. SweeplibError if there is no answer."""
        return self.connected(self.address, address=self.address)


CLUSTERS.register("address", Address)
