"""Each command that writes or deletes, stopped at a random moment while each of the others runs, on one host or two.

Nothing of a living writer is lost, nothing of a person is deleted, and `verify` compares with what was meant.
"""

import ctypes
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from sweeplib.config import load
from sweeplib.design.cluster import CLUSTERS
from sweeplib.storage.files import file_digests, partial
from sweeplib.storage.provenance import git_commit
from sweeplib.upkeep.verify import verify
from tests.faults.finished import CONFIG
from tests.faults.forked import COMMANDS, Folder, RegisteredHere
from tests.faults.persons import missing, put
from tests.plugged import nothing_left

REFUSALS = (
    "expected one command at a time",
    "cases of calm have not been run yet",
    "was written again, not what is made from it",
    "the present results are of another config",
)
"""Why a command may be refused beside another one, or after it."""
HELD = 2.0
"""Seconds after which a command that has not ended is taken to wait for the one that is stopped."""
PAIRS = [(one, other) for one in COMMANDS for other in COMMANDS]
COUNTS = [
    pytest.param(6, 1, id="some", marks=pytest.mark.slow),
    pytest.param(len(PAIRS), 10, id="all", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """Yield a finished sweep that has analyses, a report, and what is left of a larger config."""
    git_commit()  # remembered by the forks: a commit during the test changes no dataset
    with nothing_left():
        CLUSTERS.register("here", RegisteredHere)
        folder = Folder(tmp_path_factory.mktemp("pairs"))
        config = CONFIG.replace("in_process", "here").replace("104]", "104, 0.3]")
        once = config.replace("[exit_times]", "[exit_times, averages]")
        (folder.path / "verified.yaml").write_text(once)
        for command in ("run", "finalise", "analyse"):
            status, said = folder.told(command)
            assert status in (0, 1), said
        (folder.path / "verified.yaml").write_text(config.replace(", 0.3]", "]"))
        for command in ("run --no-progress", "publish", "analyse", "report"):
            status, said = folder.told(command)
            assert status == 0, said
        partial(folder.results / "dataset.zarr").mkdir()
        yield folder


def stopped(folder: Folder, one: str, other: str, rng: random.Random, seconds: float, *, hosts: bool) -> str:
    """Run `other` while `one` is stopped; return how both ended: their exit statuses, and whether `other` waited."""
    first = folder.forked(one, host="first" if hosts else None)
    time.sleep(rng.uniform(0, seconds))
    os.kill(first, signal.SIGSTOP)
    second = folder.forked(other, host="second" if hosts else None)
    waited = not _ended(second, HELD)
    os.kill(first, signal.SIGCONT)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (first, second)]
    for pid, name, status in zip((first, second), (one, other), statuses, strict=True):
        said = (folder.path / f"{pid}.txt").read_text()
        refused = status == 2 and any(line in said for line in REFUSALS)
        harmed = status == 1 and (name == "verify" or ("verify" in (one, other) and ": lost, " in said))
        assert status == 0 or refused or harmed, (name, status, said)
    return f"{statuses[0]}{statuses[1]}{'w' if waited else ''}"


def _ended(pid: int, seconds: float) -> bool:
    """Return whether a process ends within some seconds; it is not reaped."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(0.02)
    return False


def damage(results: Path) -> None:
    """Lose a chunk of the run store and one of the dataset, for `verify --repair`."""
    for folder, name in (
        (results / "runs.zarr" / "calm", "p*/risk/c/0/0"),
        (results / "dataset.zarr", "status/c/**/0"),
    ):
        next(path for path in sorted(folder.glob(name)) if path.is_file()).unlink()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("hosts", [False, True], ids=["one host", "two hosts"])
@pytest.mark.parametrize(("count", "stops"), COUNTS)
def test_no_command_takes_anything_from_another_or_from_a_person(
    prepared: Folder, tmp_path: Path, count: int, stops: int, hosts: bool
) -> None:
    if hosts and ctypes.CDLL(None).unshare(0) and os.getuid():
        pytest.skip("needs the rights to name a host")
    rng = random.Random(count)
    meant = _own(prepared.results / "dataset.zarr")
    seconds = {name: _seconds(prepared, tmp_path / "timed", name) for name in COMMANDS}
    for number, (one, other) in enumerate(rng.sample(PAIRS, count)):
        outcomes: Counter[str] = Counter()
        for stop in range(stops):
            folder = Folder(tmp_path / f"{number}_{stop}")
            copytree(prepared.path, folder.path, symlinks=True)
            persons = put(folder.results)
            if "verify" in (one, other):
                damage(folder.results)
            outcomes[stopped(folder, one, other, rng, seconds[one], hosts=hosts)] += 1
            _check(folder, (one, other), meant)
            if stop == stops - 1:
                _check_that_it_goes_on(folder, (one, other), meant)
            assert not missing(persons), (one, other)
            rmtree(folder.path)
        _show(one, other, outcomes)


def _check(folder: Folder, pair: tuple[str, str], meant: dict[str, str]) -> None:
    """Check what two commands left, after a repair if they found damage."""
    config = folder.path / "verified.yaml"
    if "verify" in pair:
        status, said = folder.told("run --no-progress")
        assert status == 0, (pair, said)
        status, said = folder.told("verify")
        assert status in (0, 1) and "not repaired" not in said, (pair, said)
    found = verify(load(config), config, folder.results, sample=0, progress=False).found
    assert not found, (pair, found)
    assert _own(folder.results / "dataset.zarr") == meant, pair


def _check_that_it_goes_on(folder: Folder, pair: tuple[str, str], meant: dict[str, str]) -> None:
    """Check that the usual commands compute nothing again that was not cleared, and make the same dataset."""
    status, said = folder.told("run --no-progress")
    assert status == 0, (pair, said)
    if "retry" not in pair:
        assert said.splitlines()[-1].startswith("0 cases computed now"), (pair, said)
    for command in ("publish", "analyse", "report"):
        status, said = folder.told(command)
        assert status == 0, (pair, command, said)
    assert _own(folder.results / "dataset.zarr") == meant, pair
    assert _own(folder.path / "published" / "x.zarr").items() >= meant.items(), pair


def _own(dataset: Path) -> dict[str, str]:
    """Return the digests of a dataset's files but for those of a person."""
    return {name: found for name, found in file_digests(dataset).items() if not name.endswith((".me", ".png"))}


def _seconds(prepared: Folder, path: Path, name: str) -> float:
    """Return how long a command takes by itself."""
    copytree(prepared.path, path, symlinks=True)
    started = time.monotonic()
    Folder(path).told(name)
    taken = time.monotonic() - started
    rmtree(path)
    return taken


def _show(one: str, other: str, outcomes: Counter[str]) -> None:
    """Write how a pair ended: the exit statuses of the stopped command and of the other, w if that waited."""
    counts = ", ".join(f"{number} × {how}" for how, number in sorted(outcomes.items()))
    sys.stdout.write(f"{one} stopped, {other}: {counts}\n")
