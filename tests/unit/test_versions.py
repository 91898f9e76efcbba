"""A dataset that is written again while it is read: a reader sees one version, and writers wait for each other."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib.errors import InputError
from sweeplib.storage.damage import DamageError
from sweeplib.storage.dataset import open_dataset, write_dataset, written_dataset
from sweeplib.storage.files import files_digest, swapped_in, write_text
from sweeplib.storage.markers import stale_outputs, write_marker
from sweeplib.storage.versions import new_version

SWEEP = sweeplib.Sweep(
    name="versions",
    problem={"p": 1, "k": 1, "activation": "square", "spherical": True, "d": 50, "Delta": 0, "gamma": 0.1},
    dynamics=["sgd_chain"],
    times=[0, 1],
    figures=[],
).design
Place = Callable[[Path], AbstractContextManager[Path]]
WRITER = """
import sys
from pathlib import Path
from sweeplib.storage.dataset import write_dataset
from tests.unit.test_versions import numbered, written

path = Path(sys.argv[1])
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 12):
    written(path, number)
    write_dataset(numbered(number), path.with_name("analysis.zarr"))
"""


def numbered(number: int) -> xr.Dataset:
    """Return a dataset whose size and values depend on its number."""
    size = 3 + number % 5
    values = np.full(size, float(number))
    return xr.Dataset({"risk": ("seed", values)}, coords={"seed": np.arange(size) + number})


def written(path: Path, number: int) -> Path:
    """Return the path of the dataset of a sweep after it was finalised."""
    from sweeplib.storage.dataset import GroupWriter

    ds = numbered(number)
    with written_dataset(path, new_version) as root:
        writer = GroupWriter(root)
        writer.coordinate("seed", ["seed"], ds.seed.values, {})
        writer.variable("risk", ["seed"], ds.risk.shape, float, {})[...] = ds.risk.values
        writer.finish({"number": number})
    return path


def versions(path: Path) -> set[str]:
    return {version.name for version in (path.parent / "datasets").iterdir()}


def test_plain_xarray_reads_the_link(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    assert path.readlink().parent == Path("datasets")
    xr.testing.assert_equal(xr.open_zarr(path).load(), numbered(1))


def test_a_lazy_reader_keeps_its_version_and_two_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    first = sweeplib.open(path)
    written(path, 2)
    xr.testing.assert_equal(first.load(), numbered(1))
    assert len(versions(path)) == 2
    written(path, 3)
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(3))
    assert len(versions(path)) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dataset.zarr", "datasets", "locks"]


def test_a_reader_of_a_version_that_is_gone_is_told_so(tmp_path: Path) -> None:
    """Plain zarr would read NaN for a missing chunk."""
    path = written(tmp_path / "dataset.zarr", 1)
    first = sweeplib.open(path)
    for number in (2, 3):
        written(path, number)
    with pytest.raises(sweeplib.SweeplibError, match="lost"):
        first.load()


def test_the_same_content_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    written(path, 2)

    def state() -> list[tuple[str, int]]:
        return sorted((str(file), file.lstat().st_mtime_ns) for file in tmp_path.rglob("*.zarr"))

    before = state()
    written(path, 2)
    assert state() == before
    written(path, 1)
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(1))
    assert len(versions(path)) == 2


def test_a_damaged_version_is_written_again(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    before = files_digest(path)
    (path / "risk/c/0").write_bytes(b"")
    with pytest.raises(sweeplib.SweeplibError, match="damaged"):
        open_dataset(path)
    assert files_digest(written(path, 1)) == before


@pytest.mark.parametrize("place", [new_version, swapped_in])
def test_a_failing_writer_leaves_the_old_dataset_and_nothing_beside(tmp_path: Path, place: Place) -> None:
    path = tmp_path / "dataset.zarr"
    write_dataset(numbered(1), path) if place is swapped_in else written(path, 1)
    before = left(tmp_path)
    with pytest.raises(OSError, match="full"):
        _fill_up(place(path))
    assert left(tmp_path) == before
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(1))


def test_a_text_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "text", "a\ud800")
    assert left(tmp_path) == set()


def left(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.suffix != ".lock"}


def _fill_up(place: AbstractContextManager[Path]) -> None:
    with place as folder:
        folder.mkdir()
        raise OSError("full")


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    (tmp_path / "datasets/.dataset.zarr.1234.partial").mkdir()
    (tmp_path / ".dataset.zarr.1234.partial").symlink_to("datasets/nothing.zarr")
    (tmp_path / "datasets/mine.zarr").mkdir()
    written(path, 2)
    assert (tmp_path / "datasets/mine.zarr").exists(), "of another writer"
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("target", ["elsewhere.zarr", "datasets/mine.zarr", "../datasets/mine.zarr"])
def test_a_foreign_link_is_refused_and_left(tmp_path: Path, target: str) -> None:
    place = tmp_path / "results"
    (place / target).parent.mkdir(parents=True, exist_ok=True)
    write_dataset(numbered(0), place / target)
    path = place / "dataset.zarr"
    path.symlink_to(target)
    with pytest.raises(InputError, match=r"is a link to .* which sweeplib did not make") as caught:
        written(path, 1)
    assert "\n" not in str(caught.value)
    assert os.fspath(path.readlink()) == target
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(0))


def test_a_directory_of_an_earlier_version_is_replaced(tmp_path: Path) -> None:
    path = write_dataset(numbered(0), tmp_path / "dataset.zarr")
    assert not path.is_symlink()
    written(path, 1)
    assert path.is_symlink()
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(1))
    assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.slow
def test_readers_see_one_version_each_while_two_processes_write(tmp_path: Path) -> None:
    """Opened lazily, then read: coordinates and values of one version, or an error that it is gone."""
    path, seen = written(tmp_path / "dataset.zarr", 0), set()
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(first)]) for first in (1, 100)]
    while any(writer.poll() is None for writer in writers):
        ds = sweeplib.open(path)
        with suppress(DamageError):
            ds.load()
            xr.testing.assert_equal(ds, numbered(ds.attrs["number"]))
            seen.add(ds.attrs["number"])
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(seen) > 1
    assert len(versions(path)) == 2
    assert sweeplib.open(path).attrs["number"] in (12, 111)
    assert sweeplib.open(tmp_path / "analysis.zarr").risk.load()[0] in (12, 111)
    assert not list(tmp_path.rglob("*.partial"))


def _marked(path: Path) -> Path:
    """Return the marker of a dataset that was just written."""
    write_marker(written(path, 1), {"cases": 3})
    return path.with_suffix(".done.json")


@pytest.mark.parametrize(
    ("name", "harm", "stays"),
    [
        ("dataset.zarr/risk/c/0", os.utime, True),
        ("dataset.zarr/risk/c/0", lambda chunk: chunk.write_bytes(b"0" * chunk.stat().st_size), False),
        ("dataset.zarr/risk/c/0", Path.unlink, False),
        ("dataset.zarr", Path.unlink, False),
        ("dataset.done.json", lambda marker: marker.write_bytes(b'{"digest": \x00'), False),
        ("dataset.files.json", Path.unlink, True),
    ],
)
def test_a_marker_is_stale_when_what_it_says_is_not_so(
    tmp_path: Path, name: str, harm: Callable[[Path], object], stays: bool
) -> None:
    marker = _marked(tmp_path / "dataset.zarr")
    harm(tmp_path / name)
    for remember in (False, True):
        assert stale_outputs(tmp_path, SWEEP, remember=remember) == ([] if stays else [marker])
    assert _marked(tmp_path / "dataset.zarr").exists()
    assert stale_outputs(tmp_path, SWEEP, remember=True) == []
