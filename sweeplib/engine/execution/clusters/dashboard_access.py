"""Who is answered by a dashboard: pages of its own, under the names of its machine and those that a config adds.

A page of any site may open connections from its reader's browser to this machine; the browser says of which site it is
(`Origin`), and under which name it asks (`Host`). The name may be that of the site, led here by its owner.
"""

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import psutil
from pydantic import AfterValidator, Field

if TYPE_CHECKING:
    from distributed import Scheduler

THIS_MACHINE = ("127.0.0.1", "localhost")
EVERYWHERE = ("", "0.0.0.0", "::", "[::]")
"""The hosts with which a server listens under all addresses of its machine."""
USUAL_PORT = 80
"""The port of a name without one."""
OF_HUBS = ("JUPYTERHUB_PUBLIC_URL", "JUPYTERHUB_PUBLIC_HUB_URL", "JUPYTERHUB_HOST")
"""Variables in which JupyterHub tells a user's server the address under which browsers find it."""
_SETTING = "distributed.scheduler.dashboard.bokeh-application.allow_websocket_origin"

HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+(:[0-9]{1,5})?$", max_length=300), AfterValidator(str.lower)]
"""HOST or HOST:PORT."""


def own_names(host: str, port: int) -> list[str]:
    """Return the names, HOST:PORT, under which a browser finds a server that listens at a host and a port."""
    hosts = {*THIS_MACHINE, host.lower()}
    if host in EVERYWHERE:
        named = {socket.gethostname(), socket.getfqdn()}
        addresses = (address.address for interface in psutil.net_if_addrs().values() for address in interface)
        # IPv4 alone: a colon in a name could not be told from that of its port
        hosts |= {name.lower() for name in named} | {address for address in addresses if address.count(".") == 3}
    return sorted(f"{name}:{port}" for name in hosts - {*EVERYWHERE} if ":" not in name)


def names(host: str, port: int, others: Iterable[str] = ()) -> list[str]:
    """Return the names, HOST:PORT, under which a dashboard at a host and a port answers.

    They are its own, `others` from the config, and that of a hub around it.
    """
    return sorted({*own_names(host, port), *map(_with_port, (*others, *_hubs()))})


def _hubs() -> Iterator[str]:
    """Yield the hosts under which JupyterHub, or Dask's setting of links, says that browsers find this place."""
    import dask

    for address in (*map(os.environ.get, OF_HUBS), dask.config.get("distributed.dashboard.link", "")):
        with suppress(ValueError):
            host = urlsplit(address or "").netloc.lower()
            # a template such as {host} is no host, nor is one with a user's name before it
            if host and not {"{", "}", "@"} & set(host):
                yield host


def _with_port(name: str) -> str:
    """Return a name with its port, that of browsers if it has none."""
    return name if ":" in name else f"{name}:{USUAL_PORT}"


def websocket_origins(address: str, others: Iterable[str]) -> AbstractContextManager[Any]:
    """A context in which a dashboard that starts at HOST:PORT lets only pages of its names open web sockets."""
    import dask

    host, _, port = address.rpartition(":")
    return dask.config.set({_SETTING: names(host, int(port), others)})


def close_to_others(scheduler: "Scheduler", others: Iterable[str]) -> None:
    """Let the web server of a scheduler in this process refuse requests under other names, or of pages of other sites.

    others : names, HOST:PORT, under which it answers beside its own.
    """
    from tornado.web import RequestHandler

    application, server = scheduler.http_application, scheduler.http_server
    answered, find = frozenset(names(server.address, server.port, others)), application.find_handler

    class Refusal(RequestHandler):
        """The answer to a request under another name."""

        def prepare(self) -> None:
            """Answer with the refusal, whatever is asked for: Tornado calls this first."""
            self.set_status(403)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(refusal(self.request.host, answered))

    def checked(request: Any, **options: Any) -> Any:
        """Return what answers a request: the server's own handler, or a refusal."""
        if is_answered(request.headers.get("Host"), request.headers.get("Origin"), answered):
            return find(request, **options)
        return application.get_handler_delegate(request, Refusal)

    # tornado asks the application for what answers each request, a web socket's too
    application.find_handler = checked


def is_answered(host: str | None, origin: str | None, answered: frozenset[str]) -> bool:
    """Return whether a request is answered by a server of the names `answered`, HOST:PORT.

    host, origin : the headers of the request: the name under which it asks, and the address of the page that asks.
    """
    try:
        pages = [urlsplit(origin).netloc] if origin is not None else []
    except ValueError:
        return False
    return all(_with_port(name.lower()) in answered for name in (host or "", *pages))


def refusal(host: str, answered: Iterable[str]) -> str:
    """Return the text for a refused request under the name `host`: the names that are `answered`, and a remedy."""
    names = ", ".join(sorted(answered))
    return (
        f"This dashboard answers under {names}. It was asked under {host[:300]}, or by a page of another site.\n"
        "If that is a tunnel or a proxy of yours, name it in the sweep: cluster: {dashboard_hosts: [HOST:PORT]}\n"
    )
