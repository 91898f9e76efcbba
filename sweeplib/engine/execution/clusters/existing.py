"""Clusters that exist: a running Dask scheduler, given by its address or by the file in which it wrote this.

A number of `workers` has no effect: the scheduler has those that it has.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from sweeplib.engine.design.cluster import CLUSTERS, ClusterSettings
from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from distributed import Client, Security

CONNECT_SECONDS = 30
"""How long an answer of the scheduler is waited for."""
TLS_FILES = ("tls_ca", "tls_cert", "tls_key")
"""The settings that name files of certificates, which are needed together."""


class Existing(ClusterSettings):
    """A running scheduler. It is not stopped; its workers must see the results' directory.

    tls_ca : PEM file of the certificate authority, for a scheduler whose address begins with tls://; all three PEM
        files are needed, or none. In a sweep's YAML file, relative to the YAML file.
    tls_cert : PEM file of the certificate of this client.
    tls_key : PEM file of the private key of this client.
    """

    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def located(self, folder: Path) -> ClusterSettings:
        """Return the same settings with absolute paths; InputError if some of the PEM files are missing."""
        paths = {name: value for name in type(self).model_fields if isinstance(value := getattr(self, name), Path)}
        absolute = {name: (folder / path.expanduser()).resolve() for name, path in paths.items()}
        for name in TLS_FILES if not absolute.keys().isdisjoint(TLS_FILES) else ():
            if name not in absolute:
                raise InputError("missing", key=f"cluster.{name}", expected=f"all of {', '.join(TLS_FILES)}, or none")
            if not absolute[name].is_file():
                raise InputError("no such file", key=f"cluster.{name}", value=str(paths[name]))
        return self.model_copy(update=absolute)

    def expected_workers(self, workers: int | None = None) -> None:
        """Return None: the number of workers is unknown before connecting."""

    @contextmanager
    def connected(self, where: str, **how: Any) -> Iterator["Client"]:
        """Yield a client; only the client is closed. SweeplibError that names `where` if no scheduler answers.

        how : the argument of Dask's Client that says where the scheduler is.
        """
        from distributed import Client

        try:
            client = Client(security=self._security(), set_as_default=False, timeout=CONNECT_SECONDS, **how)
        except (OSError, TimeoutError, ValueError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise SweeplibError(f"no scheduler answers at {where}: {reason}") from None
        with client:
            yield client

    def _security(self) -> "Security | None":
        """Return the certificates as settings of Dask, None without any."""
        if self.tls_ca is None:
            return None
        from distributed import Security

        return Security(
            tls_ca_file=str(self.tls_ca),
            tls_client_cert=str(self.tls_cert),
            tls_client_key=str(self.tls_key),
            require_encryption=True,
        )


class Address(Existing):
    """An existing scheduler at `address`, such as "tcp://10.0.0.1:8786"; its workers must see the results' directory.

    address : address of the scheduler, such as "tcp://10.0.0.1:8786".
    """

    kind: Literal["address"] = "address"
    address: str = Field(examples=["tcp://10.0.0.1:8786"])

    def client(self, workers: int | None = None) -> AbstractContextManager["Client"]:
        """Return a client of the scheduler; only the client is closed. SweeplibError if there is no answer."""
        return self.connected(self.address, address=self.address)


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


CLUSTERS.register("address", Address)
CLUSTERS.register("scheduler_file", SchedulerFile)
