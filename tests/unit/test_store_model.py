"""The folder of a sweep as a state machine: whatever happened before, a finished sweep has the dataset of a new folder.

Steps: the config grows and shrinks, commands end or are cut at any change of the disk, disks are full, files are lost,
cut short or have a wrong bit, stale results are deleted, cases are made missing, the folder moves, another sweep has
cases in common. No case is computed that is there.
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sweeplib
from sweeplib.commands.upkeep.prune import delete_stale, stale
from sweeplib.commands.upkeep.retry import retry
from sweeplib.commands.upkeep.verify import Verification, verify
from sweeplib.config import load
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution import work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset import folder
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.store import inventory as inventory_module
from sweeplib.engine.storage.store import run_store
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL
from sweeplib.errors import SweeplibError
from tests.faults.troubled import DIVERGES, TROUBLED_SEED
from tests.in_process import Here, computed

CONFIG = """\
name: sweep
problem: {p: 1, k: 1, d: 200, Delta: 0, activation: square}
grid: {gamma: [0.1]}
seeds: 2
dynamics: [calm, sgd_chain]
times: [0.5, 1]
thresholds: [0.1]
observables: [overlap_M]
analyses: {}
figures: {}
plugins: [tests.faults.troubled]
"""
GAMMAS = (0.1, 0.2, 0.3, DIVERGES)
TIMES, THRESHOLDS = ([0.5, 1], [0.5, 1, 2]), ([0.1], [0.1, 0.5])
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.truncate"}
"""Events of Python's audit that change a disk, beside opening a file to write."""

Case = tuple[str, float, int, str]
"""The dynamics, γ and seed of a case, and what is recorded."""


class CutError(BaseException):
    """The end of a process between two accesses to the disk."""


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def shorten(path: Path) -> None:
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


class Disk:
    """A disk that refuses changes below a folder after a number of them, heard by Python's audit events."""

    def __init__(self) -> None:
        self.folder, self.left, self.error = "", 0, BaseException()
        sys.addaudithook(self._event)

    @contextmanager
    def fails(self, below: Path, after: int, error: BaseException) -> Iterator[None]:
        """Refuse changes below a folder with an error, `after` a number of changes."""
        self.folder, self.left, self.error = str(below), after, error
        try:
            yield
        finally:
            self.folder = ""

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder or not (event in CHANGES or (event == "open" and arguments[2] & WRITES)):
            return
        if str(arguments[0]).startswith(self.folder) and not str(arguments[0]).endswith(".lock"):
            self.left -= 1
            if self.left < 0:
                raise self.error


DISK = Disk()


class Folder(RuleBasedStateMachine):
    """A sweep and the folder of its results, which must have `stored` cases and may have those of `ever`."""

    whole: ClassVar[dict[tuple[str, ...], dict[str, bytes]]] = {}
    """The datasets of new folders, by the values of the config."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="store-"))
        self.results = self.root / "results"
        self.stored: set[Case] = set()
        self.ever: set[tuple[str, float, int]] = set()
        self.finished = False

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize()
    def begin(self) -> None:
        self.file.write_text(CONFIG)
        self.gammas: tuple[float, ...] = GAMMAS[:1]
        self.seeds, self.times, self.thresholds = 2, TIMES[0], THRESHOLDS[0]

    @property
    def file(self) -> Path:
        return self.root / "sweep.yaml"

    @property
    def directory(self) -> Path:
        return self.results / "sweep"

    @property
    def values(self) -> tuple[str, ...]:
        gammas = f"grid.gamma={list(self.gammas)}"
        return gammas, f"seeds={self.seeds}", f"times={self.times}", f"thresholds={self.thresholds}"

    @property
    def design(self) -> Design:
        return replace(load(self.file, self.values), cluster=Here(block_size=3))

    @property
    def cases(self) -> set[Case]:
        recorded = f"{self.times} {self.thresholds}"
        cases = product(("calm", "sgd_chain"), self.gammas, range(self.seeds))
        return {(*case, recorded) for case in cases}

    @rule(gammas=st.sampled_from([GAMMAS[:1], GAMMAS[:3], GAMMAS[1:], GAMMAS]), seeds=st.integers(1, 5))
    def other_values(self, gammas: tuple[float, ...], seeds: int) -> None:
        self.gammas, self.seeds, self.finished = gammas, seeds, False

    @rule(times=st.sampled_from(TIMES), thresholds=st.sampled_from(THRESHOLDS))
    def other_recording(self, times: list[float], thresholds: list[float]) -> None:
        self.times, self.thresholds, self.finished = times, thresholds, False

    @rule()
    def finish(self) -> None:
        """Run the sweep to its end: what is stored is not computed, and the dataset is that of a new folder."""
        cases = self.cases
        done = run_sweep(self.design, self.directory, progress=False)
        computed = sum(summary.computed for summary in done.values())
        assert len({case[:3] for case in cases} - self.ever) <= computed <= len(cases - self.stored)
        finalise(self.design, self.directory)
        self.stored, self.finished = self.stored | cases, True
        self._may_have(cases)
        assert content(self.directory) == self._whole()

    def _whole(self) -> dict[str, bytes]:
        if self.values not in self.whole:
            new = self.root / "new"
            self._run(new)
            self.whole[self.values] = content(new)
            shutil.rmtree(new)
        return self.whole[self.values]

    def _run(self, directory: Path) -> None:
        run_sweep(self.design, directory, progress=False)
        finalise(self.design, directory)

    def _may_have(self, cases: set[Case]) -> None:
        self.ever |= {case[:3] for case in cases}

    def _can(self, what: str) -> bool:
        """Return whether there is something to verify or retry, or results of the present config to prune."""
        return what == "run" or (self.finished if what == "prune" else self.directory.exists())

    def _until(self, after: int, error: BaseException, what: str) -> BaseException | None:
        """Run, verify, prune or retry while the disk refuses changes after a number of them; return how that ended."""
        actions = {
            "run": lambda: self._run(self.directory),
            "verify": self._repair,
            "prune": lambda: delete_stale(self.design, self.directory),
            "retry": lambda: retry(self.design, self.directory, ["all"]),
        }
        self._may_have(self.cases)
        if what != "run":
            self.stored = set()
        self.finished = False
        try:
            with DISK.fails(self.directory, after, error):
                actions[what]()
        except BaseException as ended:
            return ended
        return None

    @rule(after=st.integers(0, 80), what=st.sampled_from(["run", "run", "verify", "prune", "retry"]))
    def cut(self, after: int, what: str) -> None:
        """End a command between two changes of the disk; what it did is kept or done again."""
        if self._can(what):
            ended = self._until(after, CutError(), what)
            assert ended is None or isinstance(ended, CutError), ended

    @rule(after=st.integers(0, 80), what=st.sampled_from(["run", "run", "verify", "prune", "retry"]))
    def full_disk(self, after: int, what: str) -> None:
        """Fill the disk during a command, which ends by an error that names the reason."""
        if self._can(what):
            reason = os.strerror(errno.ENOSPC)
            ended = self._until(after, OSError(errno.ENOSPC, reason), what)
            assert ended is None or (isinstance(ended, OSError | SweeplibError) and reason in str(ended)), ended

    def _repair(self) -> Verification:
        return verify(self.design, self.file, self.directory, sample=0, repaired=True, progress=False)

    @precondition(lambda self: self.finished)
    @rule(file=st.integers(0, 10_000), change=st.sampled_from([flip, shorten, Path.unlink]))
    def damage(self, file: int, change: Callable[[Path], None]) -> None:
        """Damage or delete a file; `verify` repairs the folder, and finds nothing afterwards."""
        files = [path for path in sorted(self.directory.rglob("*")) if path.is_file() and path.stat().st_size]
        own = [path for path in files if path.suffix != ".lock" and path.parent.name != "journal"]
        change(own[file % len(own)])
        done = self._repair()
        assert not done.remaining, list(done.lines())
        self.stored = set()

    @precondition(lambda self: self.finished)
    @rule()
    def prune(self) -> None:
        delete_stale(self.design, self.directory)
        assert stale(self.design, self.directory) == []
        self.stored &= self.cases

    @precondition(lambda self: self.finished)
    @rule()
    def retry(self) -> None:
        """Make diverged cases missing: one that is known, and runs of the chain that may have diverged."""
        diverged = {case for case in self.stored & self.cases if case[:3] == ("calm", DIVERGES, TROUBLED_SEED)}
        assert retry(self.design, self.directory, ["diverged"])["calm"] == len(diverged)
        self.stored = {case for case in self.stored if case[0] == "calm"} - diverged
        self.finished = False

    @rule()
    def move(self) -> None:
        """Move the folder of results, as to another machine."""
        if self.results.exists():
            self.results = self.results.rename(self.root / f"{self.results.name}-")

    @rule(gammas=st.sampled_from([GAMMAS[:2], GAMMAS[2:]]))
    def other_sweep(self, gammas: tuple[float, ...]) -> None:
        """Run another sweep of the same results folder, whose cases this one may take."""
        before, self.gammas = self.gammas, gammas
        run_sweep(replace(self.design, name="other"), self.results / "other", progress=False)
        self._may_have(self.cases)
        self.gammas = before

    @invariant()
    def a_dataset_can_be_read(self) -> None:
        if (self.directory / "dataset.zarr").exists():
            sweeplib.open(self.directory / "dataset.zarr").load()


def content(directory: Path) -> dict[str, bytes]:
    """Return the files of the dataset of a folder."""
    path = directory / "dataset.zarr"
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of 60 bytes be split, small inventories be remembered, and few segments be merged."""
    monkeypatch.delenv(COMPUTE_ALL)
    monkeypatch.setattr(work, "dispatched", computed)
    monkeypatch.setattr(folder, "CHUNK_BYTES", 60)
    monkeypatch.setattr(folder, "FILE_BYTES", 8)
    monkeypatch.setattr(inventory_module, "FEWEST", 1)
    monkeypatch.setattr(run_store, "MANY", 4)


@pytest.mark.parametrize(
    "examples", [3, pytest.param(40, marks=pytest.mark.slow), pytest.param(300, marks=pytest.mark.long)]
)
def test_a_finished_sweep_has_the_dataset_of_a_new_folder(examples: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=12,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Folder, settings=chosen)
