"""A dataset published in a local S3 server: `make test-s3`, which installs the server (a hundred megabytes)."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import xarray as xr

from tests.unit.test_publish import told

pytestmark = pytest.mark.long
moto = pytest.importorskip("moto.server", reason="`make test-s3` installs it")
pytest.importorskip("s3fs")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Return the address of a server with one bucket, to which fsspec's environment leads."""
    import fsspec
    from fsspec.config import conf, set_conf_env

    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    address = f"http://{host}:{port}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FSSPEC_S3_ENDPOINT_URL", address)
    set_conf_env(conf)
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    if not files.exists("bucket"):
        files.mkdir("bucket")
    yield address
    running.stop()
    conf.pop("s3", None)


def test_a_sweep_is_published_read_and_replaced(tmp_path: Path, server: str) -> None:
    import fsspec

    address = "s3://bucket/sweeps/sent.zarr"
    assert told(tmp_path, address, "run", "--workers", "1")[0] == 0
    assert told(tmp_path, address, "finalise")[0] == 0
    here = tmp_path / "results" / "sent" / "dataset.zarr"
    xr.testing.assert_identical(xr.open_zarr(address).load(), xr.open_zarr(here).load())
    assert told(tmp_path, address, "finalise", "--set", "seeds=1")[0] == 0
    fsspec.filesystem("s3").invalidate_cache()
    xr.testing.assert_identical(xr.open_zarr(address).load(), xr.open_zarr(here).load())
    assert xr.open_zarr(address).sizes["seed"] == 1


def test_a_bucket_that_is_not_there_is_refused_and_not_made(tmp_path: Path, server: str) -> None:
    import fsspec

    status, said = told(tmp_path, "s3://backet/sent.zarr", "run")
    [line] = said.splitlines()
    assert status == 2 and "cannot be written: The specified bucket does not exist" in line
    assert fsspec.filesystem("s3").ls("") == ["bucket"]


def test_a_server_that_is_not_there_is_refused_soon(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.config import conf, set_conf_env

    monkeypatch.setenv("FSSPEC_S3_ENDPOINT_URL", "http://127.0.0.1:9")
    set_conf_env(conf)
    began = time.monotonic()
    status, said = told(tmp_path, "s3://bucket/sent.zarr", "run")
    [line] = said.splitlines()
    assert status == 2 and "cannot be written: " in line
    assert time.monotonic() - began < 60
