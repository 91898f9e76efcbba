"""Every kind of cluster gives the same bytes, and does not stop schedulers and workers that it did not start.

Existing schedulers and workers are separate processes, as for a user.
"""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, Security

from sweeplib.config import load
from sweeplib.engine.design.design import Run
from sweeplib.engine.execution.clusters import CLUSTERS, ClusterSettings
from sweeplib.engine.execution.clusters.existing import Existing
from sweeplib.engine.execution.clusters.job_queue import JobQueue
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.errors import InputError, SweeplibError
from tests.batch_systems.queues import job_queue, queue
from tests.faults.sweeps import DYNAMICS, files, tasks, troubled_sweep, wait_until
from tests.in_process import InProcess
from tests.tiers import slow_but

PROJECT = Path(__file__).parents[2]
CERTIFICATES = {"tls_ca": "tls_ca_file", "tls_cert": "tls_client_cert", "tls_key": "tls_client_key"}


@dataclass
class Somebodys:
    """Start a scheduler and its workers as processes, in a folder with their files."""

    folder: Path
    tls: dict[str, Path]

    def __post_init__(self) -> None:
        self.file = self.folder / "scheduler.json"
        self.processes = ExitStack()
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", self.file
        )
        wait_until(self.file.exists)

    def settings(self, kind: str) -> ClusterSettings:
        """Return the settings of a cluster that connects to this one, by its address or its file."""
        own = {"address": self.address, "path": self.file}
        given = {name: value for name, value in own.items() if name in CLUSTERS[kind].model_fields}
        return CLUSTERS[kind](block_size=2, **given, **self.tls)

    @property
    def address(self) -> str:
        with self.client() as client:
            return client.scheduler.address

    @contextmanager
    def client(self) -> Iterator[Client]:
        given = {own: str(self.tls[name]) for name, own in CERTIFICATES.items() if name in self.tls}
        with Client(scheduler_file=str(self.file), security=Security(**given), set_as_default=False) as client:
            yield client

    def add_worker(self) -> None:
        """Start another worker; nothing restarts it when it dies."""
        own = ["--scheduler-file", self.file, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        self.workers.append(self._start("worker", *own))

    def _start(self, kind: str, *arguments: object) -> subprocess.Popen[bytes]:
        tls = zip(("--tls-ca-file", "--tls-cert", "--tls-key"), self.tls.values(), strict=False)
        given = [str(argument) for argument in (*arguments, *(part for pair in tls for part in pair))]
        process = subprocess.Popen([sys.executable, "-m", "dask", kind, *given], cwd=PROJECT, stderr=subprocess.DEVNULL)
        self.processes.callback(process.wait)
        self.processes.callback(process.kill)
        return process


@contextmanager
def somebodys(folder: Path, workers: int, *, tls: bool) -> Iterator[Somebodys]:
    """Return a running cluster with a number of workers, until the context ends."""
    found = {}
    if tls:
        security = Security.temporary()
        for name, own in CERTIFICATES.items():
            found[name] = folder / f"{name}.pem"
            found[name].write_text(getattr(security, own))
    cluster = Somebodys(folder, found)
    with cluster.processes:
        for _ in range(workers):
            cluster.add_worker()
        if workers:
            with cluster.client() as client:
                client.wait_for_workers(workers, timeout=60)
        yield cluster


@pytest.fixture(scope="module")
def existing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Somebodys]:
    """Return a running cluster that uses TLS."""
    with somebodys(tmp_path_factory.mktemp("cluster"), workers=1, tls=True) as cluster:
        yield cluster


def dataset(cluster: ClusterSettings, directory: Path, dynamics: str = "calm") -> dict[str, bytes]:
    sweep = replace(troubled_sweep(seeds=6), runs={dynamics: Run(dynamics)}, cluster=cluster)
    run_sweep(sweep, directory, progress=False)
    return files(finalise(sweep, directory))


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return dataset(InProcess(block_size=18), tmp_path_factory.mktemp("serial"))


EXISTING = [kind for kind, settings in CLUSTERS.items() if issubclass(settings, Existing)]
JOB_QUEUES = [kind for kind, settings in CLUSTERS.items() if issubclass(settings, JobQueue)]
STARTED = sorted(set(CLUSTERS) - {*EXISTING, *JOB_QUEUES})


@pytest.mark.parametrize("kind", EXISTING)
def test_same_bytes_as_serially_by_processes_that_are_left_running(
    kind: str, existing: Somebodys, serial: dict[str, bytes], tmp_path: Path
) -> None:
    assert dataset(existing.settings(kind), tmp_path) == serial
    with existing.client() as client:
        assert len(client.nthreads()) == 1


@pytest.mark.parametrize("kind", STARTED)
def test_same_bytes_as_serially_by_a_cluster_of_its_own(kind: str, serial: dict[str, bytes], tmp_path: Path) -> None:
    assert dataset(CLUSTERS[kind](block_size=2, workers=1, dashboard_address=":0"), tmp_path) == serial


@pytest.mark.parametrize("kind", slow_but(JOB_QUEUES, "slurm"))
def test_same_bytes_as_serially_by_jobs_that_end_with_the_sweep(
    kind: str, serial: dict[str, bytes], tmp_path: Path
) -> None:
    with queue(tmp_path / "queue") as jobs:
        assert dataset(job_queue(kind), tmp_path / "results") == serial
        assert len(jobs.submitted()) == 1
        wait_until(lambda: not jobs.running())


@pytest.mark.long
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("kind", EXISTING)
def test_two_workers_of_three_are_killed_and_one_comes_late(kind: str, tls: bool, tmp_path: Path) -> None:
    whole = dataset(InProcess(block_size=18), tmp_path / "serial", DYNAMICS)
    with somebodys(tmp_path, workers=3, tls=tls) as cluster:
        settings, made = cluster.settings(kind), {}
        run = threading.Thread(target=lambda: made.update(dataset(settings, tmp_path / kind, DYNAMICS)))
        run.start()
        for worker in cluster.workers[:2]:
            before = len(tasks(tmp_path / kind))
            wait_until(lambda before=before: len(tasks(tmp_path / kind)) > before)
            worker.kill()
        cluster.add_worker()
        run.join(120)
    assert made == whole


@pytest.mark.slow
def test_a_sweep_without_workers_says_so_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with somebodys(tmp_path, workers=0, tls=False) as cluster:
        settings = cluster.settings("scheduler_file").model_copy(update={"wait_for_workers": 2.0})
        sweep = replace(troubled_sweep(seeds=6), runs={"calm": Run("calm")}, cluster=settings)
        said = f"no workers at {re.escape(cluster.address)} for 0:00:02, or they die as they start; finished cases"
        with pytest.raises(SweeplibError, match=said):
            run_sweep(sweep, tmp_path / "none")
        assert "waiting 0:00:02 for one" in capsys.readouterr().err


@pytest.mark.long
def test_a_scheduler_that_is_lost_ends_the_sweep_in_a_line(tmp_path: Path) -> None:
    with somebodys(tmp_path, workers=1, tls=False) as cluster:
        sweep = replace(troubled_sweep(seeds=200), cluster=cluster.settings("address"))
        threading.Timer(3.0, cluster.scheduler.kill).start()
        with pytest.raises(SweeplibError, match=r"the scheduler at tcp://\S+ was lost; finished cases are stored"):
            run_sweep(sweep, tmp_path / "lost", progress=False)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeplib.engine.execution.clusters.existing.CONNECT_SECONDS", 1)
    with (
        pytest.raises(SweeplibError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1: "),
        CLUSTERS["address"](address="tcp://127.0.0.1:1").client(),
    ):
        pytest.fail("connected")


@pytest.mark.parametrize("kind", CLUSTERS)
def test_settings_say_what_they_are(kind: str) -> None:
    assert CLUSTERS[kind].model_fields["kind"].default == kind
    assert CLUSTERS[kind].__doc__
    with pytest.raises(ValueError, match="extra"):
        CLUSTERS[kind].model_validate({"wrokers": 2})


def test_missing_scheduler_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cluster\.path: no scheduler file"):
        CLUSTERS["scheduler_file"](path=tmp_path / "none.json").client()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tls_ca": "ca.pem"}, r"cluster\.tls_cert: missing; expected all of tls_ca, tls_cert, tls_key, or none"),
        (
            {"tls_ca": "no.pem", "tls_cert": "ca.pem", "tls_key": "ca.pem"},
            r"cluster\.tls_ca: no such file; got 'no\.pem'",
        ),
    ],
)
def test_certificates_are_looked_for_at_load(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    config = tmp_path / "sweep.yaml"
    settings = "".join(f", {name}: {value}" for name, value in given.items())
    config.write_text(f"cluster: {{kind: address, address: 'tls://host:1'{settings}}}\n" + MINIMAL)
    with pytest.raises(InputError, match=said):
        load(config)


MINIMAL = """\
name: minimal
problem: {p: 1, k: 1, d: 10, Delta: 0, activation: erf, spherical: true}
grid: {gamma: [0.1]}
seeds: 1
dynamics: {ode: {}}
times: [1]
"""
