"""Damaged or lost files of results are named, never read as other numbers; the same commands then continue."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner

import sweeplib
from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.store.inventory import counts_of_cases
from sweeplib.engine.storage.store.run_store import segment_paths
from sweeplib.engine.storage.store.segment import Segment
from tests.faults.finished import STEP
from tests.faults.sweeps import files
from tests.in_process import InProcess
from tests.tiers import slow_among
from tests.unit.test_other_stores import damage_of

CONFIG = """\
name: damaged
problem: {k: 1, d: 50, Delta: 0, activation: square}
grid: {gamma: [0.1, 0.2, 0.4], p: [1, 2]}
seeds: 6
dynamics: [calm]
times: [1, 2]
thresholds: [0.1]
observables: [risk, overlap_M]
plugins: [tests.faults.troubled]
"""
CASES = 36
FLIPS = [pytest.param(12, id="12"), pytest.param(50, id="50", marks=pytest.mark.long)]


def sweep_in(root: Path) -> tuple[Design, Path, Path]:
    """Return a sweep of small blocks that runs in this process, its config, and the folder of its results."""
    config = root / "damaged.yaml"
    config.write_text(CONFIG)
    return replace(load(config), cluster=InProcess(block_size=4)), config, root / "results" / "damaged"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Design, Path, Path]:
    """Return a sweep that has run and been finalised."""
    sweep, config, directory = sweep_in(tmp_path_factory.mktemp("damaged"))
    run_sweep(sweep, directory, progress=False)
    finalise(sweep, directory)
    return sweep, config, directory


@pytest.fixture
def again(done: tuple[Design, Path, Path]) -> Iterator[tuple[Design, Path, Path]]:
    """Yield the finalised sweep; at the end it must have the same dataset, to the bit."""
    sweep, _, directory = done
    before = files(directory / "dataset.zarr")
    yield done
    if counts_of_cases(sweep, directory)["calm"]["missing"]:
        run_sweep(sweep, directory, progress=False)
    finalise(sweep, directory)
    assert files(directory / "dataset.zarr") == before


def told(config: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status of a command, and its output without its steps."""
    command, *rest = arguments
    result = CliRunner().invoke(app, [command, str(config), *rest, "--results", str(config.parent / "results")])
    return result.exit_code, result.stdout + STEP.sub("", result.stderr)


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    """Flip one bit of a file."""
    intact = file.read_bytes()
    changed = bytearray(intact)
    changed[bit // 8] ^= 1 << bit % 8
    file.write_bytes(changed)
    yield
    file.write_bytes(intact)


def random_flips(folder: Path, count: int) -> Iterator[tuple[Path, int]]:
    """Return bits of all files below a folder, drawn uniformly."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = [path.stat().st_size for path in found]
    rng = random.Random(count)
    for file in rng.choices(found, sizes, k=count):
        yield file, rng.randrange(8 * file.stat().st_size)


@pytest.mark.parametrize("count", FLIPS)
def test_no_flipped_bit_of_the_run_store_goes_into_a_dataset(again: tuple[Design, Path, Path], count: int) -> None:
    """A bit that no value is made of, such as one of a date, may be passed over: then the dataset is the same."""
    sweep, _, directory = again
    before, named = files(directory / "dataset.zarr"), 0
    for file, bit in random_flips(directory / "runs", count):
        with flipped(file, bit):
            try:
                finalise(sweep, directory)
            except DamageError as error:
                named += str(error).startswith(f"{file}: damaged")
            else:
                assert files(directory / "dataset.zarr") == before
                named += 1
    assert named == count


def everything(directory: Path) -> list[xr.Dataset]:
    """Return everything that a reader finds in a dataset."""
    return [open_dataset(directory, shape=shape).load() for shape in (None, (1, 1), (2, 1))]


@pytest.mark.parametrize("count", FLIPS)
def test_no_flipped_bit_of_a_dataset_is_read(again: tuple[Design, Path, Path], count: int) -> None:
    _, _, directory = again
    for file, bit in random_flips(directory / "dataset.zarr", count):
        with flipped(file, bit), pytest.raises(DamageError) as caught:
            everything(directory)
        assert str(file) in str(caught.value)


def flip(file: Path) -> None:
    """Flip a bit of a segment's numbers."""
    damage_of(file, "risk.npy")


def shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("harm", slow_among([shorten, flip, Path.unlink], shorten, flip))
def test_a_damaged_or_lost_segment_is_named_and_its_cases_computed_again(
    again: tuple[Design, Path, Path], harm: Callable[[Path], None]
) -> None:
    sweep, config, directory = again
    file = segment_paths(directory, "calm")[0]
    cases = len(Segment(file))
    harm(file)
    if harm is not Path.unlink:
        status, said = told(config, "finalise")
        assert status == 1
        assert said.startswith(f"{file}: ")
        assert "`sweeplib retry CONFIG damaged`" in said and said.count("\n") == 1
        assert told(config, "retry", "damaged") == (0, f"calm: {cases} cases to run again\n")
        assert told(config, "retry", "damaged") == (0, "calm: 0 cases to run again\n")
    assert counts_of_cases(sweep, directory)["calm"] == dict.fromkeys([status.name for status in Status], 0) | {
        "missing": cases,
        "ok": CASES - cases,
    }
    assert told(config, "finalise")[1].count(f"{cases} cases of calm have not been run yet") == 1
    assert not (directory / "stages/simulate.calm.done").exists(), "a workflow runs it again"


def test_a_lazy_reader_is_told_of_a_chunk_lost_since(again: tuple[Design, Path, Path]) -> None:
    _, _, directory = again
    ds = sweeplib.open(directory / "dataset.zarr")
    file = directory / "dataset.zarr" / "exit_steps/c/0/0/0/0/0"
    intact = file.read_bytes()
    file.unlink()
    with pytest.raises(DamageError, match="exit_steps/c/0/0/0/0/0: lost"):
        ds.exit_steps.load()
    with pytest.raises(DamageError, match="exit_steps/c/0/0/0/0/0: lost"):
        sweeplib.open(directory / "dataset.zarr")
    file.write_bytes(intact)
