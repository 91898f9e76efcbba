"""Jobs that end, are cancelled, or never start, on a queue of this machine: nothing lost, nothing computed twice."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeplib.engine.execution.clusters import ClusterSettings, job_keeper
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.errors import SweeplibError
from tests.batch_systems.queues import Queue, job_queue, queue
from tests.faults.commands import SWEEP, SWEEPLIB, started
from tests.faults.sweeps import computed, computed_twice, files, tasks, troubled_sweep, wait_until
from tests.faults.troubled import Troubled
from tests.in_process import InProcess

GAMMAS, SEEDS = (0.1, 0.2), 400
WALLTIME = "00:00:15"
"""Shorter than a config may ask for: workers end by themselves after twelve seconds."""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """A queue; no job becomes garbage, as Dask checks those that are not when a cluster ends."""
    kept = job_keeper.JobKeeper.__init__

    def kept_with_its_jobs(self: job_keeper.JobKeeper, cluster: Any, *arguments: Any) -> None:
        cluster._created = set(cluster._created)
        kept(self, cluster, *arguments)

    monkeypatch.setattr(job_keeper.JobKeeper, "__init__", kept_with_its_jobs)
    monkeypatch.setattr(job_keeper, "SECONDS_BETWEEN_LOOKS", 0.5)
    with queue(tmp_path / "queue") as found:
        yield found


def dataset(cluster: ClusterSettings, directory: Path) -> dict[str, bytes]:
    sweep = replace(troubled_sweep(gammas=GAMMAS, seeds=SEEDS), cluster=cluster)
    run_sweep(sweep, directory, progress=False)
    return files(finalise(sweep, directory))


@pytest.mark.long
def test_jobs_that_end_and_one_that_is_cancelled(jobs: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = job_queue(jobs={"min": 0, "max": 1}, cores=2, block_size=10).model_copy(update={"walltime": WALLTIME})
    directory, made = tmp_path / "results", {}
    run = threading.Thread(target=lambda: made.update(dataset(settings, directory)))
    run.start()
    wait_until(lambda: len(tasks(directory)) > 2)
    subprocess.run(["scancel", min(jobs.running())], check=True)
    run.join(280)
    assert not run.is_alive()
    monkeypatch.setattr(Troubled, "seconds", 0.0)
    assert made == dataset(InProcess(block_size=300), tmp_path / "serial")
    assert computed(directory) == len(GAMMAS) * SEEDS and not computed_twice(directory)
    assert len(jobs.submitted()) >= 3


@pytest.mark.rest
def test_jobs_that_are_refused_end_the_sweep_in_a_line(jobs: Queue, tmp_path: Path) -> None:
    jobs.refuse("error: invalid partition specified: fast\n")
    jobs.silence()
    with pytest.raises(SweeplibError, match=r"error: invalid partition specified: fast; finished cases are stored"):
        dataset(job_queue(), tmp_path / "results")


@pytest.mark.slow
def test_jobs_that_end_before_their_workers_start_end_the_sweep_in_a_line(jobs: Queue, tmp_path: Path) -> None:
    with pytest.raises(SweeplibError, match=r"5 jobs ended before their workers started; their output is in .*/jobs;"):
        dataset(job_queue(prologue=["exit 1"]), tmp_path / "results")


@pytest.mark.slow
def test_a_job_that_waits_is_kept_although_there_is_work_for_some_of_its_workers_only(
    jobs: Queue, tmp_path: Path
) -> None:
    prologue = [*job_queue().prologue, "sleep 6"]
    waits = job_queue(jobs={"min": 0, "max": 8}, cores=4, memory="4GB", block_size=300, prologue=prologue)
    dataset(waits, tmp_path / "results")
    assert len(jobs.submitted()) == 1


@pytest.mark.slow
def test_ctrl_c_cancels_the_jobs(jobs: Queue, tmp_path: Path) -> None:
    settings = job_queue(jobs=2, block_size=8).model_dump(mode="json")
    (tmp_path / "slow.yaml").write_text(SWEEP.partition("cluster:")[0] + f"cluster: {json.dumps(settings)}\n")
    command = started([SWEEPLIB, "run", "slow.yaml"], tmp_path)
    try:
        wait_until(lambda: len(jobs.running()) == 2)
        lines = command.interrupted(signal.SIGINT, whole_session=True)
    finally:
        command.killed()
    assert not [line for line in lines if "Traceback" in line]
    wait_until(lambda: not jobs.running(), 5)
