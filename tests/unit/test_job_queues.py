"""Settings of job queues: the text of a job, what a sweep takes, and what is refused before any work."""

import asyncio
import json
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sweeplib.config import load
from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.engine.execution.clusters.job_keeper import MOST_FAILURES, JobKeeper
from sweeplib.engine.execution.clusters.job_queue import JobQueue
from sweeplib.engine.execution.plan import write_plan
from sweeplib.engine.execution.run import run_sweep
from sweeplib.errors import InputError

JOB: dict[str, Any] = {"jobs": {"min": 1, "max": 16}, "cores": 4, "memory": "8GB", "walltime": "04:00:00"}
OWN: dict[str, dict[str, Any]] = {
    "slurm": {"partition": "cpu", "account": "physics"},
    "pbs": {"queue": "cpu", "account": "physics"},
    "sge": {"queue": "cpu", "project": "physics", "parallel_environment": "smp", "resource_spec": "h_vmem=2G"},
    "lsf": {"queue": "cpu", "project": "physics"},
}
DIRECTIVES = {
    "slurm": [
        "#SBATCH -p cpu",
        "#SBATCH -A physics",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --mem=8G",
        "#SBATCH -t 04:00:00",
    ],
    "pbs": ["#PBS -q cpu", "#PBS -A physics", "#PBS -l select=1:ncpus=4:mem=7630MB", "#PBS -l walltime=04:00:00"],
    "sge": ["#$ -q cpu", "#$ -P physics", "#$ -pe smp 4", "#$ -l h_vmem=2G", "#$ -l h_rt=04:00:00"],
    "lsf": ["#BSUB -q cpu", '#BSUB -P "physics"', "#BSUB -n 4", '#BSUB -R "span[hosts=1]"', "#BSUB -W 04:00"],
}
SWEEP = """\
problem: {p: 1, k: 1, d: 10, Delta: 0, activation: erf, spherical: true}
grid: {gamma: [0.1]}
seeds: 1
dynamics: {ode: {}}
times: [1]
"""


def settings(kind: str, **others: Any) -> JobQueue:
    return CLUSTERS[kind](**JOB | OWN[kind] | others)


def config(folder: Path, **others: Any) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(SWEEP + f"cluster: {json.dumps(JOB | {'kind': 'slurm'} | others)}\n")
    return path


@pytest.mark.parametrize("kind", OWN)
def test_the_text_of_a_job(kind: str, tmp_path: Path) -> None:
    own = settings(kind, prologue=["module load gcc"], directives=["--own=1"], interface="ib0").in_results(tmp_path)
    lines = own.job_script().splitlines()
    assert set(DIRECTIVES[kind]) <= set(lines)
    assert lines[0].startswith("#!")
    assert any(re.match(r"#\S+ --own=1", line) for line in lines)
    assert any(str(tmp_path / "jobs") in line for line in lines if line.startswith("#"))
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands[0] == "module load gcc"
    assert "export OMP_NUM_THREADS=1" in commands and "export PYTHONSAFEPATH=1" in commands
    worker = commands[-1]
    assert "--nworkers 4 " in worker and "--nthreads 1 " in worker and "--memory-limit 1.86GiB" in worker
    assert "--lifetime 13800s --lifetime-stagger 300s" in worker and "--interface ib0" in worker


@pytest.mark.parametrize(
    ("walltime", "minutes"), [("00:02:59", "00:03"), ("01:59:01", "02:00"), ("720:00:00", "720:00")]
)
def test_a_walltime_of_lsf_is_no_shorter_than_that_of_the_config(walltime: str, minutes: str) -> None:
    assert f"#BSUB -W {minutes}" in settings("lsf", walltime=walltime).job_script().splitlines()


def test_more_workers_than_a_batch_system_may_have_are_refused_in_a_line() -> None:
    with pytest.raises(InputError, match=r"^workers: too many workers; got 40001; expected at most 10000 jobs of 4"):
        settings("slurm").expected_workers(40_001)


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("walltime", ["00:01:00", "00:30:00", "04:00:00", "720:00:00"])
def test_workers_end_before_the_walltime(kind: str, walltime: str) -> None:
    hours, minutes, _ = map(int, walltime.split(":"))
    seconds = 3600 * hours + 60 * minutes
    lifetime, stagger = settings(kind, walltime=walltime).lifetime
    assert seconds / 2 < lifetime - stagger
    assert lifetime + stagger <= seconds - min(seconds / 10, 300)


def test_what_a_sweep_takes() -> None:
    own = settings("slurm")
    assert own.resources(100 * 3600) == (
        "up to 100 core-hours: 7 jobs of 04:00:00 in all, up to 16 jobs of 4 cores at a time"
    )
    assert (own.expected_workers(), own.expected_workers(6), own.known_memory(), own.workers_here()) == (
        64,
        8,
        2e9,
        None,
    )


@pytest.mark.rest
def test_a_plan_is_in_core_hours_and_jobs(tmp_path: Path) -> None:
    plan = write_plan(load(config(tmp_path)), tmp_path / "results", progress=False)
    assert plan.workers == 64 and plan.wall_seconds == plan.cpu_seconds  # one block, for one worker
    hours = f"up to {plan.cpu_range.most / 3600:.3g} core-hours: 1 job of 04:00:00 in all"
    assert hours in plan.record()["resources"] and plan.cpu_range.most > plan.cpu_seconds
    assert "on the cluster" in str(plan.table().caption)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jobs": 0}, r"cluster\.jobs: not a valid value; got 0; expected a number of jobs from 1 to 10000, or bounds"),
        ({"jobs": {"min": 3, "max": 2}}, r"cluster\.jobs: .* expected a number of jobs from 1 to 10000, or bounds"),
        ({"jobs": {"max": 0}}, r"cluster\.jobs\.max: .* at least 1"),
        ({"cores": 0}, r"cluster\.cores: .* at least 1"),
        ({"memory": "8"}, r"cluster\.memory: .* a size from 128 MiB on with its unit, such as '8GB'"),
        ({"memory": "1kB"}, r"cluster\.memory: .* a size from 128 MiB on"),
        ({"walltime": "4h"}, r"cluster\.walltime: .* HH:MM:SS from 00:01:00 on"),
        ({"walltime": "00:00:30"}, r"cluster\.walltime: .* HH:MM:SS from 00:01:00 on"),
        ({"partition": "two words"}, r"cluster\.partition: .* expected a name"),
        ({"prologue": ["one\ntwo"]}, r"cluster\.prologue\[0\]: .* a text in one line"),
        ({"queue": "fast"}, r"cluster\.queue: unknown option"),
        ({"kind": "sge"}, r"cluster\.parallel_environment: needed for 4 cores"),
    ],
)
def test_bad_settings_are_refused_when_the_config_is_read(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        load(config(tmp_path, **given))


def test_a_walltime_needs_no_quotes(tmp_path: Path) -> None:
    path = config(tmp_path)
    path.write_text(path.read_text().replace("'04:00:00'", "04:00:00"))
    assert load(path).cluster.walltime == "04:00:00"


def test_a_machine_that_cannot_submit_jobs_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = "cluster.kind: this machine cannot submit jobs: it has no command sbatch; got 'slurm'"
    with pytest.raises(InputError, match=re.escape(said)):
        run_sweep(load(config(tmp_path)), tmp_path / "results", progress=False)
    assert not (tmp_path / "results/runs").exists()
    assert not (tmp_path / "results/plan.json").exists()


def test_a_folder_with_spaces_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/sbatch")
    with pytest.raises(InputError, match="jobs cannot write to a path with spaces"):
        settings("slurm").in_results(tmp_path / "my results").check()
    with pytest.raises(InputError, match=r"cluster\.interface: .* no such network interface; got 'ib9'; expected .*lo"):
        settings("slurm", interface="ib9").check()
    settings("slurm", interface="lo").in_results(tmp_path / "results").check()


def test_dask_jobqueue_leaves_the_handlers_of_signals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dask_jobqueue")]:
        monkeypatch.delitem(sys.modules, name)
    before = signal.getsignal(signal.SIGINT)
    assert "#SBATCH" in settings("slurm").job_script()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_missing_package_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(InputError, match=r"dask-jobqueue is not installed; got 'slurm'; expected .*pip install"):
        settings("slurm").check()


class Job:
    """A job of dask-jobqueue, which the batch system lists or refused."""

    def __init__(self, job_id: str, refused: str | None = None) -> None:
        self.job_id, self.refused, self.status = job_id, refused, None

    async def _call(self, listing: list[str]) -> str:
        return "\n".join(listing)


def test_a_refused_job_is_no_problem_while_others_wait() -> None:
    """As of a limit of the site below `jobs.max`."""
    jobs = {"Cluster-0": Job("101"), "Cluster-1": Job("102"), "Cluster-2": Job("", "QOSMaxSubmitJobPerUserLimit")}
    cluster = SimpleNamespace(
        loop=SimpleNamespace(add_callback=id), scheduler=SimpleNamespace(workers={}), workers=jobs.copy()
    )
    keeper, problems = JobKeeper(cluster, [], Path()), []
    for listed in (["101", "102"], ["102"], []):
        keeper._listing = listed
        asyncio.run(keeper._look())
        problems.append((list(cluster.workers), keeper.problem))
    assert problems == [(["Cluster-0", "Cluster-1"], None), (["Cluster-1"], None), ([], None)]
    cluster.workers["Cluster-3"] = jobs["Cluster-2"]
    asyncio.run(keeper._look())
    assert keeper.problem == "QOSMaxSubmitJobPerUserLimit"


def test_any_number_of_refused_jobs_is_no_problem_beside_one_that_waits_or_works() -> None:
    workers: dict[str, Any] = {}
    cluster = SimpleNamespace(
        loop=SimpleNamespace(add_callback=id),
        scheduler=SimpleNamespace(workers=workers),
        workers={"Cluster-0": Job("101")},
    )
    keeper = JobKeeper(cluster, ["101"], Path())
    for look in range(2 * MOST_FAILURES):
        cluster.workers[f"Cluster-{look + 1}"] = Job("", "QOSMaxSubmitJobPerUserLimit")
        asyncio.run(keeper._look())
        assert (list(cluster.workers), keeper.problem) == (["Cluster-0"], None)
        if look == MOST_FAILURES:
            workers["tcp://w:1"] = SimpleNamespace(name="Cluster-0")
