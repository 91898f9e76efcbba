"""Each command that writes or deletes, stopped at a random moment while each of the others runs, on one host or two.

A command is a fork of this process, which has imported all that it needs, so that it is stopped while it works. Then
nothing of a living writer is lost, nothing of a person is deleted, and `verify` compares with what was meant.
"""

import ctypes
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from sweeplib.cli import app
from sweeplib.design.cluster import CLUSTERS
from sweeplib.execution import run
from sweeplib.storage.files import file_digests, partial
from sweeplib.storage.run_store import RunStore
from tests.faults.finished import CONFIG
from tests.in_process import Here, computed
from tests.plugged import nothing_left

COMMANDS = {
    "prune": ["prune", "--delete"],
    "verify": ["verify", "--repair", "--sample", "0"],
    "retry": ["retry", "all"],
    "publish": ["finalise", "--set", "publish=ADDRESS"],
    "finalise": ["finalise"],
    "analyse": ["analyse"],
    "report": ["report"],
    "run": ["run", "--no-progress", "--set", "seeds=7"],
}
"""The commands of the table; `run` is a driver with an override, which computes more cases than the config has."""
HELD = 1.5
"""Seconds after which a command that has not ended is taken to wait for the one that is stopped."""
NEW_UTS = 0x04000000
PAIRS = [(one, other) for one in COMMANDS for other in COMMANDS]
COUNTS = [
    pytest.param(12, 1, id="some", marks=pytest.mark.slow),
    pytest.param(len(PAIRS), 10, id="all", marks=pytest.mark.long),
]
PERSONS = (
    "notes.txt",
    "thesis.partial/chapter.tex",
    "figures/paper_fig1.pdf",
    "analysis/my_notebook.ipynb",
    "analysis/exit_times.zarr/read.me",
    "dataset.zarr/read.me",
    "dataset.zarr/risk/picture.png",
    "datasets/old/read.me",
    "failures/mine.json",
    "report/slides.html",
    "runs.zarr/copy/zarr.json",
    "journal/remarks.jsonl",
    "jobs/mine.json",
    "locks/mine.lock",
)
"""Files that a person put into the folder of a sweep; `LAYOUT` is the folder of a layout of the run store."""


class RegisteredHere(Here):
    """No workers: the driver computes the blocks."""

    kind: str = "here"


@dataclass(frozen=True)
class Folder:
    """A folder with a finished sweep, whose results are smaller than once: there is something to prune."""

    path: Path

    @property
    def results(self) -> Path:
        return self.path / "results" / "verified"

    def forked(self, name: str, *, host: str | None = None) -> int:
        """Return the process that runs a command, on another host if that is named; its output is in a file."""
        pid = os.fork()
        if not pid:
            _run(self.path, COMMANDS.get(name, name.split()), host)
        return pid

    def told(self, name: str) -> tuple[int, str]:
        """Return the exit status of a command after its end, and its output."""
        pid = self.forked(name)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status, (self.path / f"{pid}.txt").read_text()


def _run(folder: Path, words: list[str], host: str | None) -> None:
    """Run a command in this process and end it."""
    code = 70
    try:
        output = os.open(folder / f"{os.getpid()}.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w") for number in (1, 2))
        if host is not None:
            libc = ctypes.CDLL(None)
            if libc.unshare(NEW_UTS) or libc.sethostname(host.encode(), len(host)):
                raise OSError("no namespace for a name of the host")
        run.dispatched = computed
        address = (folder / "published" / "x.zarr").as_uri()
        words = [word.replace("ADDRESS", address) for word in words]
        app([words[0], str(folder / "verified.yaml"), *words[1:], "--results", str(folder / "results")])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def put(results: Path) -> dict[Path, bytes]:
    """Put the files of a person into a folder; return their contents."""
    layout = next((results / "runs.zarr" / "calm").glob("p*"))
    places = [*(results / name for name in PERSONS), layout / "mine.txt", layout / "risk" / "c" / "mine"]
    for number, place in enumerate(places):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{number} of a person")
    outside = results.parent.parent / "outside"
    outside.mkdir()
    for name in ("exit_times.done.json", "x.zarr/zarr.json", f".x.{'0' * 32}.partial"):
        (outside / name).parent.mkdir(exist_ok=True)
        (outside / name).write_text("of a person")
    (results / "analysis" / "linked").symlink_to(outside, target_is_directory=True)
    (results / "linked.zarr").symlink_to(outside / "x.zarr", target_is_directory=True)
    found = [*places, *(path for path in outside.rglob("*") if path.is_file())]
    return {path: path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """Yield a finished sweep that has analyses, a report, and what is left of a larger config."""
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
        refused = status == 2 and ("one command at a time" in said or "have not been run yet" in said)
        refused |= status == 2 and ("was written again, not what is made from it" in said)
        assert status == 0 or refused or (status == 1 and name == "verify"), (name, status, said)
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
    next(path for path in sorted((results / "runs.zarr/calm").glob("p*/risk/c/**/*")) if path.name == "0").unlink()
    next(path for path in sorted((results / "dataset.zarr/status/c").rglob("*")) if path.is_file()).unlink()


@pytest.mark.parametrize("hosts", [False, True], ids=["one host", "two hosts"])
@pytest.mark.parametrize(("count", "stops"), COUNTS)
def test_no_command_takes_anything_from_another_or_from_a_person(
    prepared: Folder, tmp_path: Path, count: int, stops: int, hosts: bool
) -> None:
    if hosts and ctypes.CDLL(None).unshare(0) and os.getuid():
        pytest.skip("needs the rights to name a host")
    stops, table = int(os.environ.get("STOPS", stops)), {}
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
            _check(folder, (one, other), persons, meant)
            rmtree(folder.path)
        table[one, other] = outcomes
    _show(table)


def _check(folder: Folder, pair: tuple[str, str], persons: dict[Path, bytes], meant: dict[str, str]) -> None:
    """Check what two commands left, then that the usual commands make it what it was."""
    _check_persons(pair, persons)
    if "verify" not in pair:
        status, said = folder.told("verify --sample 0 --json")
        assert status == 0, (pair, said)
        assert _own(folder.results / "dataset.zarr") == meant, pair
    status, said = folder.told("verify")
    assert status in (0, 1) and "not repaired" not in said, (pair, said)
    before = sum(int((status > 0).sum()) for status in RunStore(folder.results, "calm").statuses())
    status, said = folder.told("run --no-progress")
    assert status == 0, (pair, said)
    if "retry" not in pair and "prune" not in pair:
        assert said.splitlines()[-1].startswith("0 cases computed now"), (pair, before, said)
    for command in ("publish", "analyse", "report", "verify --sample 0"):
        status, said = folder.told(command)
        assert status == 0, (pair, command, said)
    assert _own(folder.results / "dataset.zarr") == meant, pair
    assert _own(folder.path / "published" / "x.zarr").items() >= meant.items(), pair
    _check_persons(pair, persons)


def _check_persons(pair: tuple[str, str], persons: dict[Path, bytes]) -> None:
    gone = [str(path) for path, content in persons.items() if not path.exists() or path.read_bytes() != content]
    assert not gone, (pair, gone)


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


def _show(table: dict[tuple[str, str], Counter[str]]) -> None:
    """Write how the pairs ended: exit statuses of the stopped command and of the other, w: the other waited."""
    for (one, other), outcomes in sorted(table.items()):
        sys.__stderr__.write(
            f"{one} stopped, {other}: " + ", ".join(f"{n} × {how}" for how, n in outcomes.items()) + "\n"
        )
