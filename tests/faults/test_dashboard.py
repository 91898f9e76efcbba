"""What a browser gets of the dashboard of a running command: pages of its own sites, and nothing for others."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bokeh.util.token import generate_jwt_token
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from tests.faults.commands import SWEEP, SWEEPLIB, Started, started
from tests.faults.sweeps import wait_until

pytestmark = pytest.mark.slow


LONG = SWEEP.replace("seeds: 200", "seeds: 20000")
LINK = r"dashboard: (\S+)/status"


def running(folder: Path, cluster: str = "") -> tuple[Started, str]:
    """Return a command that computes cases, and the link to its dashboard, without its page."""
    (folder / "slow.yaml").write_text(LONG.replace('":0"}', f'":0"{cluster}}}'))
    command = started([SWEEPLIB, "run", "slow.yaml"], folder)
    try:
        wait_until(lambda: re.search(LINK, command.said.read_text()) or command.process.poll() is not None, 240)
        match = re.search(LINK, command.said.read_text())
        assert match is not None, command.said.read_text()
    except BaseException:
        command.killed()
        raise
    return command, match[1]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the port of the dashboard of a running command whose config names a tunnel."""
    command, link = running(tmp_path_factory.mktemp("dashboard"), ", dashboard_hosts: ['localhost:9999', Hub.example]")
    yield int(link.removeprefix("http://127.0.0.1:"))
    command.killed()


def page(port: int, host: str, path: str = "/status", **headers: str) -> tuple[int, str]:
    """Return the status and the text of a page, asked for under the name `host`."""

    async def answer() -> tuple[int, str]:
        request = HTTPRequest(f"http://127.0.0.1:{port}{path}", headers={"Host": host, **headers})
        response = await AsyncHTTPClient().fetch(request, raise_error=False)
        return response.code, response.body.decode("utf-8", "replace")

    return asyncio.run(answer())


def document(port: int, host: str, origin: str, path: str = "/status") -> str | None:
    """Return the first message of a document of Bokeh, whose token the caller makes up; None if that is refused."""

    async def answer() -> str | None:
        request = HTTPRequest(f"ws://127.0.0.1:{port}{path}/ws", headers={"Host": host, "Origin": origin})
        try:
            connection = await websocket_connect(request, subprotocols=["bokeh", generate_jwt_token("made-up")])
        except HTTPClientError as error:
            return None if error.code == 403 else str(error)
        message = await asyncio.wait_for(connection.read_message(), 30)
        connection.close()
        return str(message)

    return asyncio.run(answer())


@pytest.mark.parametrize("path", ["/status", "/sweep"])
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost"])
def test_its_own_pages_are_answered(name: str, path: str, port: int) -> None:
    host = f"{name}:{port}"
    assert page(port, host, path)[0] == 200
    assert "ACK" in (document(port, host, f"http://{host}", path) or "")


@pytest.mark.parametrize("path", ["/status", "/sweep"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://localhost:1", "null", "http://127.0.0.1", "http://["]
)
def test_a_page_of_another_site_gets_nothing(origin: str, path: str, port: int) -> None:
    assert document(port, f"127.0.0.1:{port}", origin, path) is None
    assert page(port, f"127.0.0.1:{port}", "/info/main/workers.html", Origin=origin)[0] == 403


@pytest.mark.parametrize(
    "path", ["/status", "/sweep", "/info/main/workers.html", "/json/counts.json", "/metrics", "/none"]
)
def test_a_name_that_its_owner_leads_here_gets_nothing(path: str, port: int) -> None:
    """DNS rebinding: for the browser, page and dashboard are of one site."""
    for host in (f"evil.example:{port}", "evil.example", f"localhost.evil.example:{port}"):
        status, text = page(port, host, path)
        assert status == 403 and "dashboard_hosts" in text, (host, path, status)
    assert document(port, f"evil.example:{port}", f"http://evil.example:{port}") is None


def test_a_tunnel_on_another_port_and_a_proxy_are_answered_if_they_are_named(port: int) -> None:
    for host, origin in (("localhost:9999", "http://localhost:9999"), ("hub.example", "https://hub.example")):
        assert page(port, host)[0] == 200
        assert "ACK" in (document(port, host, origin, "/sweep") or "")
    assert page(port, "localhost:9998")[0] == 403
    assert document(port, "hub.example", "https://hub.example.evil.example") is None


def test_a_hub_that_says_its_address_is_answered_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_PUBLIC_URL", "https://hub.example/user/me/")
    monkeypatch.setenv("DASK_DISTRIBUTED__DASHBOARD__LINK", "https://lab.example:8443/proxy/{port}/status")
    command, link = running(tmp_path)
    assert link.startswith("https://lab.example:8443/proxy/")
    port = int(link.rpartition("/")[2])
    try:
        for host in ("hub.example", "lab.example:8443"):
            assert page(port, host)[0] == 200
            assert "ACK" in (document(port, host, f"https://{host}") or "")
        assert page(port, "localhost:9999")[0] == 403
    finally:
        command.killed()
