"""Commands on one folder from two hosts: namespaces of process numbers and host names, a shared file system.

Each command ends with its own cases, or is refused with the name of the one that works there before it writes. The
kernel keeps the locks of both; where each host has locks of its own, signs of life take their place.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pytest
import xarray as xr

from sweeplib.engine.storage.records.stage_records import SILENCE_ELSEWHERE
from tests.faults.commands import SWEEPLIB
from tests.faults.sweeps import computed_twice, wait_until

ROOT = Path(__file__).parents[2]
SWEEP = """\
name: shared
problem: {p: 1, k: 1, d: 40, Delta: 0, activation: square, spherical: true}
grid: {gamma: [0.1, 0.2]}
seeds: 8
dynamics: [sgd_chain]
times: [0, 1, 2]
thresholds: [0.1]
analyses: [exit_times]
figures: [risk_curves]
cluster: {kind: local, workers: 1, block_size: 8, dashboard_address: ":0"}
"""
SNAKEMAKE = [
    *(str(Path(sys.executable).with_name("snakemake")), "--profile", str(ROOT / "workflow/profiles/local")),
    *("--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", "none", "--config"),
]
COMMANDS = {
    "sweep": [SWEEPLIB, "sweep", "shared.yaml"],
    "snakemake": [*SNAKEMAKE, "sweep=shared.yaml"],
    "run": [SWEEPLIB, "run", "shared.yaml", "--no-progress"],
    "figures": [SWEEPLIB, "figures", "shared.yaml"],
    "prune": [SWEEPLIB, "prune", "shared.yaml", "--delete"],
    "verify": [SWEEPLIB, "verify", "shared.yaml", "--repair", "--sample", "0"],
    "status": [SWEEPLIB, "status", "shared.yaml"],
}
DRIVERS = ("sweep", "snakemake", "run")
BUSY = re.compile(r"results/shared: process \d+ of \w+ on (first|second) .* here since .*; expected one command at a ")
OTHERS = ("the present results are of another config", "was written again, not what is made from it")
"""Why a command is refused after another one that had another number of seeds."""
APART = ["unshare", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
LONGEST = 600.0

can_unshare = shutil.which("unshare") is not None and not subprocess.run([*APART, "true"], check=False).returncode
pytestmark = pytest.mark.skipif(not can_unshare, reason="needs the right to make namespaces")


class Host(NamedTuple):
    """A host, and the working folder of both."""

    name: str
    folder: Path

    @property
    def results(self) -> Path:
        """Return the folder of results."""
        return self.folder / "results"

    def start(self, command: str, seeds: int = 8, before: str = "", **variables: str) -> "subprocess.Popen[bytes]":
        """Return a command that was started on this host; its output is in `said`.

        Of a driver the config, which has 8 seeds, may be changed by an override.
        """
        words = COMMANDS[command]
        if command == "sweep":
            words = [*words, f"seeds={seeds}"]
        if command == "run":
            words = [*words, "--set", f"seeds={seeds}"]
        script = f'hostname {self.name}; {before} exec "$@"'
        with (self.folder / self.name).open("wb") as said:
            return subprocess.Popen(
                [*APART, "sh", "-c", script, "sh", *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=os.environ | variables,
            )

    @property
    def said(self) -> str:
        """Return the output of the last command."""
        return (self.folder / self.name).read_text()


@pytest.fixture
def hosts(tmp_path: Path) -> tuple[Host, Host]:
    return two_hosts(tmp_path)


def two_hosts(folder: Path) -> tuple[Host, Host]:
    """Return two hosts with a new working folder, which has the config."""
    folder.mkdir(exist_ok=True)
    (folder / "shared.yaml").write_text(SWEEP)
    return Host("first", folder), Host("second", folder)


def written(results: Path) -> dict[str, tuple[int, int]]:
    """Return the files of a sweep but for its locks and what its jobs tell, and when each was written."""
    paths = [path for path in (results / "shared").rglob("*") if path.is_file()]
    kept = [path for path in paths if not {"locks", "stages", "journal"} & set(path.parts)]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in kept}


def is_locked(results: Path) -> bool:
    """Return whether a command has the lock of the sweep, by its record."""
    return any('"lock": "sweep"' in path.read_text() for path in (results / "shared/locks").glob("*.holder.json"))


def cases_in(results: Path) -> int:
    """Return the number of cases in the dataset, all of which must have ended well."""
    with xr.open_zarr(results / "shared" / "dataset.zarr") as dataset:
        assert bool((dataset.status == 1).all())
        assert bool(np.isfinite(dataset.risk).all())
        return int(dataset.status.size)


@pytest.mark.slow
@pytest.mark.parametrize("second", ["sweep", "snakemake", "figures"])
def test_a_second_command_on_another_host_is_refused_before_it_writes(second: str, hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    first = one.start("sweep", 8)
    wait_until((one.results / "shared" / "command.yaml").exists, LONGEST)
    send(first, signal.SIGSTOP)
    before = written(one.results)
    try:
        assert other.start(second, 6).wait(LONGEST) == 1, other.said
        *_, line = other.said.splitlines()
        assert BUSY.match(line), other.said
        assert "on first runs all stages here since" in line and "(`sweeplib sweep shared.yaml" in line
        assert "`sweeplib watch" in line and "`kill " in line
        assert written(one.results) == before
    finally:
        send(first, signal.SIGCONT)
    assert first.wait(LONGEST) == 0, one.said
    assert "all 16 cases ended ok" in one.said and cases_in(one.results) == 16


def send(command: "subprocess.Popen[bytes]", number: int) -> None:
    """Send a signal to the processes of a host; its first one, with which all others die, gets it first."""
    for process in psutil.Process(command.pid).children(recursive=True):
        with suppress(psutil.Error):
            process.send_signal(number)


@pytest.mark.slow
def test_a_lock_ends_with_its_holder_on_any_host(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    first = one.start("sweep", 8)
    wait_until(lambda: is_locked(one.results) and any(one.results.glob("shared/stages/*.json")), LONGEST)
    assert other.start("status").wait(LONGEST) == 0 and other.said.startswith("shared: running"), other.said
    send(first, signal.SIGKILL)
    first.wait()
    for record in one.results.glob("shared/stages/*.json"):
        os.utime(record, (time.time() - 2 * SILENCE_ELSEWHERE,) * 2)
    assert other.start("status").wait(LONGEST) == 0 and other.said.startswith("shared: unfinished"), other.said
    assert other.start("sweep", 8).wait(LONGEST) == 0, other.said
    assert cases_in(one.results) == 16 and not computed_twice(one.results / "shared", "sgd_chain")
    assert not list((one.results / "shared" / "locks").glob("*.holder.json"))


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_where_each_host_has_locks_of_its_own_signs_of_life_replace_them(
    killed: bool, hosts: tuple[Host, Host], lacking: Path, tmp_path: Path
) -> None:
    """Another kernel is one with another number of its start; a file system that has no locks at all lets both in."""
    one, other = hosts
    apart = {"LD_PRELOAD": str(lacking), "LACKING": "exclusion", "LACKING_UNDER": str(tmp_path)}
    starts = {}
    for host in hosts:
        (tmp_path / f"{host.name}.id").write_text(f"{host.name}-kernel")
        starts[host.name] = f"mount --bind {tmp_path}/{host.name}.id /proc/sys/kernel/random/boot_id;"
    # enough that it runs as long as the second one needs to see it
    first = one.start("sweep", 8 if killed else 20_000, starts["first"], **apart)
    wait_until(lambda: is_locked(one.results), LONGEST)
    if killed:
        send(first, signal.SIGKILL)
        first.wait()
    second = other.start("sweep", 6, starts["second"], **apart)
    assert second.wait(LONGEST) == int(not killed), other.said
    if killed:
        assert "all 12 cases ended ok" in other.said
    else:
        assert "on first runs all stages here since" in other.said
        assert first.wait(LONGEST) == 0 and "all 40,000 cases ended ok" in one.said


@pytest.mark.timeout(0)
@pytest.mark.parametrize("pairs", [pytest.param(3, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.long)])
def test_pairs_of_commands_on_two_hosts(pairs: int, tmp_path: Path) -> None:
    rng = random.Random(pairs)
    outcomes: Counter[str] = Counter()
    prepared, _ = two_hosts(tmp_path / "prepared")
    started = time.monotonic()
    assert prepared.start("sweep", 4).wait(LONGEST) == 0, prepared.said
    longest = time.monotonic() - started
    for number in range(pairs):
        names = rng.choice(DRIVERS), rng.choice([name for name in COMMANDS if name != "status"])
        both = two_hosts(tmp_path / str(number))
        shutil.copytree(prepared.results, results := both[0].results)
        seeds = {
            host.name: 8 if name == "snakemake" else rng.choice([6, 8]) for host, name in zip(both, names, strict=True)
        }
        order = rng.sample([0, 1], 2)
        running: dict[int, subprocess.Popen[bytes]] = {}
        for place in order:
            running[place] = both[place].start(names[place], seeds[both[place].name])
            time.sleep(rng.uniform(0, longest))
        ends = [running[place].wait(LONGEST) for place in (0, 1)]
        for host, name, end in zip(both, names, ends, strict=True):
            outcomes[_outcome(host, name, seeds[host.name], end)] += 1
        assert not computed_twice(results / "shared", "sgd_chain"), (names, seeds)
        assert cases_in(results) in {8, *(2 * seeds[host.name] for host in both)}
        last = both[0].start("sweep", 8)
        assert last.wait(LONGEST) == 0 and "all 16 cases ended ok" in both[0].said, both[0].said
        assert cases_in(results) == 16 and not computed_twice(results / "shared", "sgd_chain")
        shutil.rmtree(results.parent)
    sys.stdout.write("".join(f"{count} × {how}\n" for how, count in sorted(outcomes.items())))


def _outcome(host: Host, name: str, seeds: int, end: int) -> str:
    """Return how a command ended, in words; it must be true."""
    said = host.said
    if end and (BUSY.search(said) or any(words in said for words in OTHERS)):
        assert "Traceback" not in said
        return f"{name}: {'refused by name' if BUSY.search(said) else 'refused, another config'}, status {end}"
    assert end == 0, (name, end, said)
    if name in ("sweep", "snakemake"):
        assert f"all {2 * seeds} cases ended ok" in said, said
    return f"{name}: done"
