"""A scheduler that dies, and workers that cannot take part: one line each, and the same command finishes the sweep."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.faults.cluster_of_others import Cluster
from tests.faults.commands import SWEEP, SWEEPLIB, started
from tests.faults.sweeps import computed, computed_twice, files, segment_files, tasks, wait_until

PRELOAD = "tests.faults.unfit_worker"


@contextmanager
def sweep_in(folder: Path) -> Iterator[ExitStack]:
    """Return a context with a sweep of 400 cases for a cluster of somebody's in a folder; its processes end with it."""
    cluster = f"cluster: {{kind: scheduler_file, path: {folder}/scheduler.json, block_size: 8}}\n"
    (folder / "slow.yaml").write_text(SWEEP.partition("cluster:")[0] + cluster)
    with ExitStack() as processes:
        yield processes


def ran(folder: Path) -> tuple[int, str]:
    """Return the exit status and the output of `sweeplib run`."""
    command = [SWEEPLIB, "run", "slow.yaml", "--no-progress"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def finalised(folder: Path) -> dict[str, bytes]:
    subprocess.run([SWEEPLIB, "finalise", "slow.yaml"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return files(folder / "results" / "slow" / "dataset.zarr")


@pytest.fixture(scope="module")
def undisturbed_slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the dataset of a sweep whose cluster nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed_slow")
    with sweep_in(folder) as processes:
        Cluster(folder, processes).worker()
        assert ran(folder)[0] == 0
    return finalised(folder)


@pytest.mark.long
def test_a_scheduler_that_is_killed_and_restarted(tmp_path: Path, undisturbed_slow: dict[str, bytes]) -> None:
    results = tmp_path / "results" / "slow"
    with sweep_in(tmp_path) as processes:
        first = Cluster(tmp_path, processes)
        first.worker()
        driver = started([SWEEPLIB, "run", "slow.yaml", "--no-progress"], tmp_path)
        wait_until(lambda: len(tasks(results)) >= 3)
        first.scheduler.kill()
        assert driver.process.wait(60) == 1
        [said] = driver.said.read_text().splitlines()
        assert "the scheduler at tcp://127.0.0.1:" in said
        assert said.endswith("was lost; finished cases are stored: run again")
        written = segment_files(results)
        Cluster(tmp_path, processes).worker()
        status, said = ran(tmp_path)
        assert status == 0 and "cases computed now; in all 0 failed" in said
        assert segment_files(results).items() >= written.items()
        assert computed(results) == 400 and not computed_twice(results)
    assert finalised(tmp_path) == undisturbed_slow


@pytest.mark.long
def test_workers_without_the_folder_or_of_another_version(tmp_path: Path, undisturbed_slow: dict[str, bytes]) -> None:
    with sweep_in(tmp_path) as processes:
        cluster = Cluster(tmp_path, processes)
        for name, why in (("elsewhere", "has no folder"), ("old", "has another version of sweeplib or of the plugins")):
            worker = cluster.worker("--name", name, "--preload", PRELOAD)
            status, said = ran(tmp_path)
            assert status == 1
            assert (
                said.splitlines()[-1].startswith("1 of 1 workers cannot take part: ") and why in said.splitlines()[-1]
            )
            worker.kill()
            worker.wait()
        cluster.worker()
        status, said = ran(tmp_path)
        assert status == 0 and "400 cases computed now" in said
    assert finalised(tmp_path) == undisturbed_slow
