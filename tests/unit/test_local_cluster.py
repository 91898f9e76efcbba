"""Dask on this machine: nothing listens to the network by default, and the dashboard groups tasks by dynamics."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from distributed import Security
from distributed.core import rpc

from sweeplib.engine.design.design import Run
from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.engine.execution.clusters.dashboard import free_address
from sweeplib.engine.execution.run import run_sweep
from tests.faults.sweeps import troubled_sweep
from tests.in_process import InProcess

if TYPE_CHECKING:
    from distributed import Client


def listening() -> set[str]:
    """Return the addresses at which this process and its children can be reached."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = (connection for process in processes for connection in process.net_connections())
    return {connection.laddr.ip for connection in found if connection.status == psutil.CONN_LISTEN}


def test_everything_listens_to_this_machine_alone() -> None:
    with CLUSTERS["local"](workers=1, dashboard_address=":0").client() as client:
        assert client.dashboard_link.startswith("http://127.0.0.1:")
        assert listening() == {"127.0.0.1"}


async def answered(address: str, security: Security) -> bool:
    """Whether a process answers to whom holds these certificates."""
    try:
        async with rpc(address, connection_args=security.get_connection_args("client"), timeout=5) as asked:
            await asked.identity()
    except (OSError, TypeError):  # Dask raises TypeError where certificates are asked for and none are there
        return False
    return True


@pytest.mark.rest
def test_only_who_holds_the_certificates_of_the_run_is_answered() -> None:
    """Other users of the machine reach the ports, but cannot run code through them."""
    with CLUSTERS["local"](workers=1, dashboard_address=":0").client() as client:
        workers = client.scheduler_info()["workers"].items()
        addresses = [
            client.scheduler.address,
            *(each for address, worker in workers for each in (address, worker["nanny"])),
        ]
        assert len(addresses) == 3
        for address in addresses:
            assert address.startswith("tls://")
            assert client.sync(answered, address, client.security)
            assert not client.sync(answered, address, Security.temporary())
            assert not client.sync(answered, address.replace("tls://", "tcp://"), Security())


def test_the_dashboard_is_for_this_machine_unless_asked_otherwise() -> None:
    host, _, _ = CLUSTERS["local"]().dashboard_address.rpartition(":")
    assert host == "127.0.0.1"
    host, _, port = free_address("0.0.0.0:0").rpartition(":")
    assert host == "0.0.0.0" and int(port) > 0


def test_another_port_is_taken_where_the_wanted_one_is_notfree_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        host, _, other = free_address(f":{port}").rpartition(":")
        assert host == "127.0.0.1" and int(other) not in (0, port)


class Watched(InProcess):
    """A cluster that records, at its end, the names under which Dask grouped its tasks."""

    @contextmanager
    def client(self, workers: int | None = None) -> Iterator["Client"]:
        with super().client(workers) as client:
            yield client
            ROWS.extend(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes)))


ROWS: list[str] = []


@pytest.mark.rest
@pytest.mark.parametrize("kind", ["troubled", "calm"])
def test_the_dashboard_has_one_row_for_all_blocks_of_a_dynamics(kind: str, tmp_path: Path) -> None:
    ROWS.clear()
    sweep = replace(troubled_sweep(seeds=4), runs={kind: Run(kind)}, cluster=Watched(block_size=2))
    run_sweep(sweep, tmp_path, progress=False)
    [row] = ROWS
    assert row == kind
