"""Every kind of cluster gives the same bytes, and leaves alone what it did not start."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from sweeplib.errors import InputError
from sweeplib.storage.finalise import finalise
from sweeplib.sweep.clusters import CLUSTERS, ClusterSettings
from sweeplib.sweep.run import run_sweep
from sweeplib.sweep.sweep import Run
from tests.faults.sweeps import files, troubled_sweep
from tests.in_process import InProcess


@pytest.fixture(scope="module")
def existing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the scheduler file of a cluster that somebody runs."""
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        path = tmp_path_factory.mktemp("cluster") / "scheduler.json"
        client.write_scheduler_file(str(path))
        yield cluster.scheduler_address, path
        assert len(client.scheduler_info()["workers"]) == 1


SETTINGS: dict[str, Callable[[tuple[str, Path]], dict[str, Any]]] = {
    "local": lambda _: {"workers": 1, "dashboard_address": ":0"},
    "address": lambda existing: {"address": existing[0]},
    "scheduler_file": lambda existing: {"path": existing[1]},
}


def dataset(cluster: ClusterSettings, directory: Path) -> dict[str, bytes]:
    sweep = replace(troubled_sweep(seeds=6), runs={"calm": Run("calm")}, cluster=cluster)
    run_sweep(sweep, directory, progress=False)
    return files(finalise(sweep, directory))


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return dataset(InProcess(block_size=18), tmp_path_factory.mktemp("serial"))


@pytest.mark.parametrize("kind", SETTINGS)
def test_same_bytes_as_serially(
    kind: str, existing: tuple[str, Path], serial: dict[str, bytes], tmp_path: Path
) -> None:
    settings = CLUSTERS[kind](block_size=2, **SETTINGS[kind](existing))
    assert dataset(settings, tmp_path) == serial
    with Client(existing[0], set_as_default=False) as client:
        assert len(client.scheduler_info()["workers"]) == 1


@pytest.mark.parametrize("kind", CLUSTERS)
def test_settings_say_what_they_are(kind: str) -> None:
    assert CLUSTERS[kind].model_fields["kind"].default == kind
    assert CLUSTERS[kind].__doc__
    with pytest.raises(ValueError, match="extra"):
        CLUSTERS[kind].model_validate({"wrokers": 2})


def test_missing_scheduler_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cluster\.path: no scheduler file"):
        CLUSTERS["scheduler_file"](path=tmp_path / "none.json").client()
