"""The address of Dask's dashboard: this machine only unless a host is named, and a free port if its own is taken."""

import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from sweeplib.engine.base.validation import REFUSED

if TYPE_CHECKING:
    from distributed import Client

THIS_MACHINE = "127.0.0.1"
LARGEST_PORT = 2**16 - 1


def _address(address: str) -> str:
    """Return the address; an error unless it is HOST:PORT, :PORT or PORT."""
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > LARGEST_PORT or not re.fullmatch(r"[\w.:\[\]-]*", host):
        raise PydanticCustomError(REFUSED, "HOST:PORT, such as '127.0.0.1:8787'")
    return address


DashboardAddress = Annotated[str, AfterValidator(_address)]
DEFAULT_ADDRESS = f"{THIS_MACHINE}:8787"


def free_address(address: str) -> str:
    """Return an address HOST:PORT for a dashboard: this machine is the default host, and a taken port is replaced.

    address : HOST:PORT, :PORT or PORT; port 0 asks for a free one.
    """
    host, _, port = address.rpartition(":")
    host = host or THIS_MACHINE
    # bound to port 0, a socket gets a free one
    for wanted in (int(port), 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, wanted))
            return f"{host}:{probe.getsockname()[1]}"
    return f"{host}:0"


def dashboard_link(client: "Client") -> str:
    """Return the link to a client's dashboard as Dask's setting of links says; "" if there is no dashboard.

    If the setting cannot be filled in, as one for a hub whose variables are not set, it is the dashboard's address.
    """
    import dask

    with suppress(LookupError, ValueError, AttributeError):
        if link := client.dashboard_link:
            return str(link)
    with dask.config.set({"distributed.dashboard.link": "{scheme}://{host}:{port}/status"}):
        return client.dashboard_link or ""


def page_link(link: str) -> str:
    """Return the link to the page of sweeps beside a page of the dashboard, which may be behind a proxy with a path."""
    return f"{link.rpartition('/')[0]}/sweep"
