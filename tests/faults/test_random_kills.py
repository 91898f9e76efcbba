"""SIGKILL at random times to random processes of a sweep: nothing is lost, nothing is computed twice, no bit differs.

Times and victims come from a seed. What a victim was doing then is not the same in each run of the test.
"""

import os
import random
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from sweeplib.engine.storage.store.run_store import stored_dynamics
from tests.faults.cluster_of_others import Cluster
from tests.faults.commands import SWEEP, SWEEPLIB, Started, started
from tests.faults.sweeps import computed_twice, files, wait_until

LONGEST_RUN = 14.0
"""Seconds until the latest kill of a run, of which starting takes five and computing about ten."""
ALL_END = 120.0
"""Seconds within which the other processes of a sweep end: a driver whose Snakemake was killed goes on to its end."""
KILLS = [pytest.param(3, id="3", marks=pytest.mark.slow), pytest.param(100, id="100", marks=pytest.mark.long)]
ROLES = {"/start.py": "snakemake", ".snakemake/scripts": "job", "spawn_main": "worker"}
"""The processes of a sweep beside the command itself, by a part of their command lines."""


SLOW = SWEEP.partition("cluster:")[0] + "analyses: {}\nfigures: {}\n"
ROUNDS = """\
name: slow
problem: {p: 8, k: 1, Delta: 0, activation: square, spherical: true}
grid: {gamma: [0.1, 0.2, 0.4, 0.8], d: [6, 60]}
seeds: 16
dynamics:
  law: {kind: cheapest, of: [sgd, sgd_chain]}
times: [0, 200]
thresholds: [0.3]
stop: exit
answers:
  exits: {of: exit_times, variable: exit_steps_mean, to: 4 %, at: {gamma: 0.4}}
  optimum: {of: optimal_learning_rate, to: 20 %, refine: {gamma: [0.01, 5]}, at: {d: 60}, budget: 3000}
figures: {}
"""
"""Two simulators of one law, and two questions that add seeds and learning rates in rounds."""


class Sweep:
    """A sweep that is started again until it is finished, and its cluster if it has one of its own."""

    def __init__(self, folder: Path, cluster: str, external: ExitStack | None, text: str = SLOW) -> None:
        folder.mkdir()
        self.folder, self.results, self.external = folder, folder / "results" / "slow", external
        if external is not None:
            cluster = f"{{kind: scheduler_file, path: {folder}/scheduler.json, block_size: 8}}"
        (folder / "slow.yaml").write_text(f"{text}cluster: {cluster}\n")
        self.written: dict[Path, tuple[int, int]] = {}
        self._start_cluster()

    def _start_cluster(self) -> None:
        if self.external is not None:
            self.external.close()
            self.cluster = Cluster(self.folder, self.external)
            self.processes = {"scheduler": self.cluster.scheduler, "worker": self.cluster.worker()}

    def start(self) -> Started:
        """Start the sweep, with the processes of its cluster that were killed."""
        if self.external is not None and any(process.poll() is not None for process in self.processes.values()):
            self._start_cluster()
        return started([SWEEPLIB, "sweep", "slow.yaml"], self.folder)

    def victims(self, command: Started) -> dict[str, list[int]]:
        """Return the identifiers of the living processes by their role."""
        found = {"command": [command.process.pid]}
        for process in command.left():
            with_arguments = _arguments(process)
            for part, role in ROLES.items():
                if part in with_arguments:
                    found.setdefault(role, []).append(process.pid)
        if self.external is not None:
            found |= {role: [process.pid] for role, process in self.processes.items() if process.poll() is None}
        return found

    def look(self) -> None:
        """Check that no segment was written again since the last look, and that no case was computed twice."""
        for name in stored_dynamics(self.results):
            assert not computed_twice(self.results, name)
        found = self.results.glob("runs/*/*.npz")
        now = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}
        assert now.items() >= self.written.items()
        self.written = now


def _arguments(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.fixture(scope="module")
def undisturbed_dataset(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of the dataset of a sweep to which nothing happens."""
    sweep = Sweep(tmp_path_factory.mktemp("undisturbed") / "sweep", LOCAL, None)
    assert sweep.start().process.wait(120) == 0
    return files(sweep.results / "dataset.zarr")


LOCAL = '{kind: local, workers: 2, block_size: 8, dashboard_address: ":0"}'


@pytest.fixture(scope="module")
def undisturbed_rounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    """Return the dataset and the decisions of a sweep with rounds to which nothing happens, and its seconds."""
    sweep = Sweep(tmp_path_factory.mktemp("undisturbed") / "rounds", local(3), None, ROUNDS)
    command, began = sweep.start(), time.monotonic()
    assert command.process.wait(300) == 0, command.said.read_text()
    return decided(sweep), time.monotonic() - began


def decided(sweep: Sweep) -> dict[str, bytes]:
    """Return the files of the dataset, and the rows of each round with the answers."""
    return files(sweep.results / "dataset.zarr") | {"answers": (sweep.results / "answers.json").read_bytes()}


def local(workers: int) -> str:
    return f'{{kind: local, workers: {workers}, block_size: 64, dashboard_address: ":0"}}'


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("workers", "kills"),
    [
        pytest.param(2, 3, marks=pytest.mark.slow),
        *(pytest.param(workers, 5, marks=pytest.mark.long) for workers in (1, 2, 4, "external")),
    ],
)
def test_kills_at_random_times_of_rounds(
    workers: int | str, kills: int, tmp_path: Path, undisturbed_rounds: tuple[dict[str, bytes], float]
) -> None:
    numbers, sweeps, (undisturbed, seconds) = random.Random(f"{workers}"), 0, undisturbed_rounds
    with ExitStack() as processes:
        while kills > 0:
            external = processes if workers == "external" else None
            sweep = Sweep(tmp_path / str(sweeps), "" if external else local(int(workers)), external, ROUNDS)
            sweeps += 1
            kills -= _killed_until_finished(sweep, numbers, kills, longest=seconds)
            assert decided(sweep) == undisturbed


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("kind", ["local", "external"])
def test_kills_at_random_times(kind: str, kills: int, tmp_path: Path, undisturbed_dataset: dict[str, bytes]) -> None:
    numbers, sweeps = random.Random(kind), 0
    with ExitStack() as processes:
        while kills > 0:
            sweep = Sweep(tmp_path / str(sweeps), LOCAL, processes if kind == "external" else None)
            sweeps += 1
            kills -= _killed_until_finished(sweep, numbers, kills)
            assert files(sweep.results / "dataset.zarr") == undisturbed_dataset


def _killed_until_finished(sweep: Sweep, numbers: random.Random, most: int, longest: float = LONGEST_RUN) -> int:
    """Run a sweep again and again until it is finished; return the number of kills, `most` at most."""
    kills = 0
    while True:
        command, began = sweep.start(), time.monotonic()
        while kills < most and _ran_until(command, began + numbers.uniform(0.0, longest)):
            role = _kill_one(sweep, command, numbers)
            kills += 1
            if role != "worker":
                break
            began = time.monotonic()
        if kills == most:
            command.process.wait(120)
        wait_until(lambda command=command: not command.left(), ALL_END)
        sweep.look()
        if command.process.wait() == 0:
            return kills


def _ran_until(command: Started, end: float) -> bool:
    """Return whether a command still runs at a time."""
    while command.process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return command.process.poll() is None


def _kill_one(sweep: Sweep, command: Started, numbers: random.Random) -> str:
    """Kill a process of a role, each role with the same probability; return the role."""
    victims = sweep.victims(command)
    role = numbers.choice(sorted(victims))
    with suppress(ProcessLookupError):  # it may have ended in the meantime
        os.kill(numbers.choice(victims[role]), signal.SIGKILL)
    if role == "worker" and sweep.external is not None:
        sweep.processes[role] = sweep.cluster.worker()
    return role
