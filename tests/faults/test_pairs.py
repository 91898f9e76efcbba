"""Each command that writes or deletes, stopped at random operations on files while each of the others runs.

Nothing of a living writer is lost, nothing of a person is deleted, and `verify` compares with what was meant.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.storage.records.files import partial
from sweeplib.engine.storage.records.provenance import git_commit
from tests.faults.finished import CONFIG
from tests.faults.forked import COMMANDS, Folder, RegisteredHere, stop, stop_when_waiting
from tests.faults.persons import missing, put
from tests.faults.sweeps import files
from tests.plugged import nothing_left

REFUSALS = (
    "expected one command at a time",
    "cases of calm have not been run yet",
    "was written again, not what is made from it",
    "the present results are of another config",
)
"""Why a command may be refused beside another one, or after it."""
LONGEST = 600.0
"""Seconds after which a command hangs."""
MEMORY = Path("/dev/shm")
"""A folder whose files are in memory, where the system has one."""


class Prepared(NamedTuple):
    """A finished sweep; the digests of its dataset; how many operations on files each command does, damaged or not."""

    folder: Folder
    meant: dict[str, str]
    operations: dict[tuple[str, bool], int]


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    """Yield a finished sweep that has analyses, a report, and what is left of a larger config."""
    git_commit()  # remembered by the forks: a commit during the test changes no dataset
    inside = MEMORY if os.access(MEMORY, os.W_OK) else None
    with nothing_left(), TemporaryDirectory(dir=inside) as path:
        CLUSTERS.register("here", RegisteredHere)
        folder = Folder(Path(path) / "prepared")
        folder.path.mkdir()
        small = {"in_process": "here", "p: [1, 2]": "p: [1]", "[0.1, 0.2, ": "[0.1, ", "seeds: 6": "seeds: 4"}
        config = CONFIG
        for words, others in small.items():
            config = config.replace(words, others)
        told(folder, config.replace("104]", "104, 0.3]"), "run --no-progress", "finalise", "analyse")
        now = config.replace("[exit_times]", "[averages]")
        told(folder, now, "run --no-progress", "publish", "analyse", "report")
        partial(folder.results / "dataset.zarr").mkdir()
        counts = {(name, harmed): _operations(folder, name, harmed) for name in COMMANDS for harmed in (False, True)}
        yield Prepared(folder, _own(folder.results / "dataset.zarr"), counts)


def told(folder: Folder, config: str, *commands: str) -> None:
    """Run commands with a config, in which cases fail."""
    (folder.path / "verified.yaml").write_text(config)
    for command in commands:
        status, said = folder.told(command)
        assert status == int(command.startswith("run")), said


def _copied(folder: Folder, *, harmed: bool) -> tuple[Folder, dict[Path, bytes]]:
    """Return a copy of a folder, with a person's files that are returned too, and damaged if `harmed`."""
    copy = Folder(folder.path.with_name("copy"))
    rmtree(copy.path, ignore_errors=True)
    copytree(folder.path, copy.path, symlinks=True)
    persons = put(copy.results)
    if harmed:
        damage(copy.results)
    return copy, persons


def _operations(folder: Folder, name: str, harmed: bool) -> int:
    """Return how many operations on files a command does by itself."""
    copy, _ = _copied(folder, harmed=harmed)
    numbers = copy.path / "numbers"
    with numbers.open("wb", buffering=0) as file:
        pid = copy.forked(name, before=lambda: copy.operations(lambda number: file.write(b".")))
        os.waitpid(pid, 0)
    count = numbers.stat().st_size
    assert count > 20, (name, count)
    return count


def damage(results: Path) -> None:
    """Lose a segment of the run store and a chunk of the dataset, for `verify --repair`."""
    for folder, name in ((results / "runs" / "calm", "*.npz"), (results / "dataset.zarr", "status/c/**/0")):
        next(path for path in sorted(folder.glob(name)) if path.is_file()).unlink()


def stopped(folder: Folder, one: str, other: str, operation: int, *, hosts: bool) -> list[str] | None:
    """Run `other` while `one` is stopped before an operation; return how both ended, None if `one` ended before it."""
    first = folder.forked(one, host="first" if hosts else None, before=_stop_before(folder, operation))
    if not _stops(first):
        _status(folder, first, one, (one, other))
        return None
    second = folder.forked(other, host="second" if hosts else None, before=stop_when_waiting)
    waits = _stops(second)
    for pid in (first, second) if waits else (first,):
        os.kill(pid, signal.SIGCONT)
    ends = [_status(folder, pid, name, (one, other)) for pid, name in ((first, one), (second, other))]
    return [ends[0], f"waits, {ends[1]}" if waits else ends[1]]


def _stop_before(folder: Folder, operation: int) -> Callable[[], None]:
    return lambda: folder.operations(lambda number: stop() if number == operation else None)


def _stops(pid: int) -> bool:
    """Return whether a process stops, False if it ends; it is not reaped."""
    return _event(pid, os.WSTOPPED | os.WEXITED).si_code == os.CLD_STOPPED


def _event(pid: int, kinds: int) -> os.waitid_result:
    until = time.monotonic() + LONGEST
    while (event := os.waitid(os.P_PID, pid, kinds | os.WNOHANG | os.WNOWAIT)) is None:
        assert time.monotonic() < until, "a command hangs"
        time.sleep(0.005)
    return event


def _status(folder: Folder, pid: int, name: str, pair: tuple[str, str]) -> str:
    """Return how a command ended: done or refused; with `verify`, also that it found or met damage."""
    _event(pid, os.WEXITED)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = folder.said(pid)
    if status in (1, 2) and any(line in said for line in REFUSALS):
        return "refused"
    if status == 1 and (name == "verify" or ("verify" in pair and ": lost, " in said)):
        return "damage"
    assert status == int(name == "run"), (pair, name, status, said)
    return "done"


@pytest.mark.timeout(0)
@pytest.mark.parametrize("hosts", [False, True], ids=["one host", "two hosts"])
@pytest.mark.parametrize(
    ("others", "stops"),
    [
        pytest.param(1, 1, id="some", marks=pytest.mark.slow),
        pytest.param(len(COMMANDS) - 1, 10, id="all", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("one", COMMANDS)
def test_no_command_takes_anything_from_another_or_from_a_person(
    prepared: Prepared, one: str, others: int, stops: int, hosts: bool
) -> None:
    if hosts and os.getuid():
        pytest.skip("needs the rights to name a host")
    rng = random.Random(f"{one} {stops} {hosts}")
    for other in rng.sample([name for name in COMMANDS if name != one], others):
        outcomes: Counter[str] = Counter()
        for tenth in range(stops):
            outcome, harmed = None, "verify" in (one, other) and not tenth % 2
            while not outcome:
                folder, persons = _copied(prepared.folder, harmed=harmed)
                point = int((tenth + rng.random()) / stops * prepared.operations[one, harmed])
                outcome = stopped(folder, one, other, point, hosts=hosts)
                _check(folder, (one, other), prepared.meant, persons, harmed=harmed)
                if outcome and tenth == stops - 1:
                    _check_that_it_goes_on(folder, {one: outcome[0], other: outcome[1]}, prepared.meant)
                    assert not missing(persons), (one, other)
            outcomes[", ".join(outcome)] += 1
        _show(one, other, outcomes)


def _check(
    folder: Folder, pair: tuple[str, str], meant: dict[str, str], persons: dict[Path, bytes], *, harmed: bool
) -> None:
    """Check what two commands left, after repairs and a run between them if it was damaged."""
    assert not missing(persons), pair
    assert not _left(folder), pair
    if harmed and folder.told("verify")[0] and folder.told("run --no-progress"):
        folder.told("verify")
    status, said = folder.told("verify --sample 0")
    assert status == 0, (pair, said)
    assert _own(folder.results / "dataset.zarr") == meant, pair
    assert _own(folder.path / "published" / "x.zarr").items() >= meant.items(), pair


def _left(folder: Folder) -> list[str]:
    """Return what a living process needs and a dead one leaves, but for a folder that was there before."""
    kinds = ("*.partial", "*.begun", "*.holder.json")
    found = [path for kind in kinds for path in folder.results.rglob(kind) if path.name != "thesis.partial"]
    assert len([path for path in found if path.suffix == ".partial"]) <= 1
    return [path.name for path in found if path.suffix != ".partial"]


def _check_that_it_goes_on(folder: Folder, pair: dict[str, str], meant: dict[str, str]) -> None:
    """Check that the usual commands compute nothing again that was not cleared, and make the same dataset."""
    for command in ("run", "run --no-progress"):
        status, said = folder.told(command)
        assert status == 1, (pair, said)
        if command == "run" and pair.get("run", "").endswith("done") and "retry" not in pair:
            assert "0 cases computed now" in said, (pair, said)
    for command in ("publish", "analyse", "report"):
        status, said = folder.told(command)
        assert status == 0, (pair, command, said)
    assert _own(folder.results / "dataset.zarr") == meant, pair
    assert _own(folder.path / "published" / "x.zarr").items() >= meant.items(), pair


def _own(dataset: Path) -> dict[str, bytes]:
    """Return the bytes of a dataset's files but for those of a person."""
    return {name: found for name, found in files(dataset).items() if not name.endswith((".me", ".png"))}


def _show(one: str, other: str, outcomes: Counter[str]) -> None:
    """Write how a pair ended: the stopped command, and the other one, which may have waited for it."""
    counts = "; ".join(f"{number} × {how}" for how, number in sorted(outcomes.items()))
    sys.stdout.write(f"{one} stopped, {other}: {counts}\n")
