"""A dataset that is written again while it is read: a reader sees one version, and writers wait for each other."""

import asyncio
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from zarr.core.buffer import default_buffer_prototype

import sweeplib
from sweeplib.commands.upkeep.other_files import OtherFiles
from sweeplib.engine.storage.dataset.folder import GroupWriter, open_dataset, write_dataset, written_dataset
from sweeplib.engine.storage.dataset.stores import LinkingStore
from sweeplib.engine.storage.dataset.versions import replacement
from sweeplib.engine.storage.records.artefacts import made_from, stale_outputs
from sweeplib.engine.storage.records.files import DamageError, exchange, partial, write_text
from sweeplib.engine.storage.records.locks import writer_lock
from sweeplib.engine.storage.records.manifest import MANIFEST, UNLISTED, entry_of, examination, manifest_of
from sweeplib.engine.storage.records.stage_records import done_path, recorded_stage
from sweeplib.errors import InputError
from tests.faults.sweeps import files

SWEEP = sweeplib.Sweep(
    name="versions",
    problem={"p": 1, "k": 1, "activation": "square", "spherical": True, "d": 50, "Delta": 0, "gamma": 0.1},
    dynamics=["sgd_chain"],
    times=[0, 1],
    figures=[],
).design
WRITER = """
import sys
from pathlib import Path
from sweeplib.engine.storage.dataset.folder import write_dataset
from sweeplib.engine.storage.records.locks import writer_lock
from tests.unit.test_versions import numbered, written

path = Path(sys.argv[1])
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 12):
    written(path, number)
    with writer_lock(path.parent, "analysis.zarr"):
        write_dataset(numbered(number), path.with_name("analysis.zarr"))
"""


FINALISING = """
import itertools
import sys
from pathlib import Path

from sweeplib.config import load
from sweeplib.engine.storage.dataset.finalise import finalise

config = Path(sys.argv[1])
sweeps = [load(config, [f"seeds=[{first}, {first + 1}]"]) for first in (0, 2, 4)]
for sweep in itertools.cycle(sweeps):
    finalise(sweep, config.parent / "results" / sweep.name)
    print(flush=True)
"""


def numbered(number: int) -> xr.Dataset:
    """Return a dataset whose size and values depend on its number."""
    size = 3 + number % 5
    values = np.full(size, float(number))
    return xr.Dataset({"risk": ("seed", values)}, coords={"seed": np.arange(size) + number})


def written(path: Path, number: int) -> Path:
    """Return the path of the dataset of a sweep after it was finalised."""
    ds = numbered(number)
    with (
        writer_lock(path.parent, path.name),
        written_dataset(path, keep=True) as root,
    ):
        writer = GroupWriter(root)
        writer.coordinate("seed", ["seed"], ds.seed.values, {})
        writer.variable("risk", ["seed"], ds.risk.shape, float, {})[...] = ds.risk.values
        writer.finish({"number": number})
    return path


def versions(path: Path) -> set[str]:
    return {version.name for version in (path.parent / "datasets").iterdir()}


def as_a_link(path: Path) -> Path:
    """Return the path of a dataset after it became a link to a version, as an earlier sweeplib wrote it."""
    version = path.parent / "datasets" / f"{'0' * 32}.zarr"
    version.parent.mkdir(exist_ok=True)
    path.rename(version)
    path.symlink_to(f"datasets/{version.name}", target_is_directory=True)
    return path


def test_copies_of_the_dataset_are_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    written(path, 2)
    for command in (["cp", "-r", path, "copy.zarr"], ["tar", "-cf", "copy.tar", path.name], ["tar", "-xf", "copy.tar"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    xr.testing.assert_equal(xr.open_zarr(tmp_path / "copy.zarr").load(), numbered(2))
    xr.testing.assert_equal(sweeplib.open(tmp_path / "copy.zarr").load(), numbered(2))
    xr.testing.assert_equal(xr.open_zarr(path).load(), numbered(2))


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_lazy_reader_keeps_its_version_and_two_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanged: bool
) -> None:
    if not exchanged:  # a file system or a system that cannot exchange two names
        monkeypatch.setattr("sweeplib.engine.storage.records.files.ctypes.CDLL", lambda *_, **__: object())
    path = written(tmp_path / "dataset.zarr", 1)
    first = sweeplib.open(path)
    sent = pickle.loads(pickle.dumps(first))
    written(path, 2)
    xr.testing.assert_equal(first.load(), numbered(1))
    xr.testing.assert_equal(sent.load(), numbered(1))
    assert len(versions(path)) == 1
    written(path, 3)
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(3))
    assert len(versions(path)) == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dataset.zarr", "datasets", "locks"]


def test_a_reader_of_a_version_that_is_gone_is_told_so(tmp_path: Path) -> None:
    """Plain zarr would read NaN for a missing chunk, or the chunk of another version."""
    path = written(tmp_path / "dataset.zarr", 1)
    first, second = sweeplib.open(path), sweeplib.open(path)
    for number in (2, 3):
        written(path, number)
    with pytest.raises(DamageError, match="no longer kept; open it again"):
        first.load()
    written(path, 1)
    xr.testing.assert_equal(second.load(), numbered(1))


def test_plain_xarray_goes_on_in_the_next_version(tmp_path: Path) -> None:
    """Nothing in a chunk says of which version it is: docs/how-to/reading.md names `sweeplib.open` for this."""
    path = written(tmp_path / "dataset.zarr", 1)
    plain, safe = xr.open_zarr(path), sweeplib.open(path)
    written(path, 6)
    assert plain.risk.values.tolist() == [6.0] * 4 and plain.seed.values.tolist() == [1, 2, 3, 4], "parts of both"
    xr.testing.assert_equal(safe.load(), numbered(1))
    shorter = xr.open_zarr(path)
    written(path, 2)
    with pytest.raises(ValueError, match="cannot reshape"):
        shorter.load()


def test_a_dataset_is_there_while_two_names_cannot_be_exchanged_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    written(path, 2)
    path.rename(partial(path))
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(1))
    xr.testing.assert_equal(sweeplib.open(tmp_path).load(), numbered(1))
    xr.testing.assert_equal(sweeplib.open(written(path, 3)).load(), numbered(3))
    assert not list(tmp_path.glob(".*"))


def test_two_names_are_exchanged(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.symlink_to("one")
    exchange(one, other)
    assert one.is_symlink() and other.is_dir()


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


def as_earlier(path: Path) -> Path:
    """Return the path of a dataset after it became one of an earlier sweeplib, which had a certificate of its own."""
    (path / MANIFEST).unlink()
    (path / "contents.json").write_text('{"files": {"checksum": "0", "risk/c/0": [29, 1], "zarr.json": "0"}}\n')
    return path


def test_a_dataset_of_an_earlier_version_is_read_and_written_again(tmp_path: Path) -> None:
    path = as_earlier(written(tmp_path / "dataset.zarr", 1))
    (tmp_path / "datasets").mkdir()
    as_earlier(written(tmp_path / "other.zarr", 0)).rename(tmp_path / "datasets" / f"{'1' * 32}.zarr")
    (path / "mine.txt").write_text("mine")
    before = sweeplib.open(path)
    xr.testing.assert_equal(before.load(), numbered(1))
    assert examination(path)[1] == {MANIFEST: UNLISTED}  # it is not lost
    assert not list(OtherFiles(SWEEP, tmp_path, [])._old_versions())
    written(path, 2)
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(2))
    assert (path / "mine.txt").read_text() == "mine"
    assert not list(tmp_path.rglob("contents.json")) and not versions(path)


def test_a_copy_is_read_once_and_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are not older than the manifest may have been changed."""
    manifest = manifest_of(written(tmp_path / "dataset.zarr", 1))
    later = manifest.path.stat().st_mtime + 100
    for file in (tmp_path / "dataset.zarr").rglob("*"):
        os.utime(file, (later, later))
    os.utime(manifest.path, (later - 100, later - 100))
    assert manifest.is_unchanged(remember=False) and manifest.path.stat().st_mtime == later - 100
    os.utime(manifest.path, (later + 1, later + 1))
    monkeypatch.setattr("sweeplib.engine.storage.records.manifest.file_bytes", None)
    assert manifest.is_unchanged(remember=False)


def test_a_damaged_version_is_written_again_and_not_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    before = files(path)
    for number in (1, 2):
        (path / "risk/c/0").write_bytes(b"")
        with pytest.raises(sweeplib.SweeplibError, match="damaged"):
            open_dataset(path)
        written(path, number)
    assert files(written(path, 1)) == before
    assert [open_dataset(tmp_path / "datasets" / each).attrs["number"] for each in versions(path)] == [2]


def test_metadata_are_in_one_order_whatever_the_order_of_a_listing(tmp_path: Path) -> None:
    """Releases of zarr list them as the file system answers, or sorted."""
    store = LinkingStore(tmp_path)
    nodes = {name: {"node_type": "array"} for name in ("b", "p1_k1/a", "C", "a")}
    content = {"node_type": "group", "consolidated_metadata": {"kind": "inline", "metadata": nodes}}
    buffer = default_buffer_prototype().buffer
    asyncio.run(store.set("zarr.json", buffer.from_bytes(json.dumps(content).encode())))
    written_text = (tmp_path / "zarr.json").read_bytes()
    assert list(json.loads(written_text)["consolidated_metadata"]["metadata"]) == ["a", "b", "C", "p1_k1/a"]
    assert json.loads(written_text) == content
    asyncio.run(store.set("zarr.json", buffer.from_bytes(written_text)))
    assert (tmp_path / "zarr.json").read_bytes() == written_text
    assert store.meant["zarr.json"] == entry_of("zarr.json", written_text)


def test_what_is_lost_while_a_dataset_is_written_is_noticed(tmp_path: Path) -> None:
    """A cleaner took arrays from under a writer; the certificate listed what was left, and nobody noticed."""
    path = written(tmp_path / "dataset.zarr", 1)
    before = files(path)
    for lost in ("seed/zarr.json", "seed/c/0"):
        with (  # noqa: PT012
            pytest.raises(DamageError, match=rf"{lost}: lost, .*it changed while it was written"),
            written_dataset(path, keep=True) as root,
        ):
            writer = GroupWriter(root)
            writer.coordinate("seed", ["seed"], np.arange(3), {})
            next(tmp_path.glob(f".*.partial/{lost}")).unlink()
            writer.finish({})
    assert files(path) == before
    assert not list(tmp_path.glob(".*"))


def test_a_version_without_its_metadata_is_the_oldest(tmp_path: Path) -> None:
    """It stops nobody, and goes with the next version."""
    path = written(written(tmp_path / "dataset.zarr", 1), 2)
    [first] = versions(path)
    (path.parent / "datasets" / first / "zarr.json").unlink()
    written(path, 3)
    assert first not in versions(path) and len(versions(path)) == 1


@pytest.mark.parametrize("keep", [True, False])
def test_a_failing_writer_leaves_the_old_dataset_and_nothing_beside(tmp_path: Path, keep: bool) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    before = left(tmp_path)
    with pytest.raises(OSError, match="full"):
        _fill_up(replacement(path, keep=keep))
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


def test_what_a_killed_writer_left_is_removed_and_what_a_person_put_there_is_not(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset.zarr", 1)
    cut = partial(path)
    for name in ("zarr.json", "risk/c/0", "notes.txt"):
        (cut / name).parent.mkdir(parents=True, exist_ok=True)
        (cut / name).write_text(name)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    (path / "read.me").write_text("a note")
    (path / "risk" / "mine.png").write_text("a picture")
    (path / "link").symlink_to(outside, target_is_directory=True)
    (tmp_path / "datasets/mine.zarr").mkdir(parents=True)
    (tmp_path / f"datasets/{'a' * 32}.zarr").mkdir()
    (tmp_path / "thesis.partial").mkdir()
    (tmp_path / ".dataset.zarr.1234.partial").write_text("of no known writer")
    for number in (2, 3, 3, 4):
        written(path, number)
    for name, content in {
        "dataset.zarr/notes.txt": "notes.txt",
        "dataset.zarr/read.me": "a note",
        "dataset.zarr/risk/mine.png": "a picture",
        "dataset.zarr/link/mine.txt": "mine",
        ".dataset.zarr.1234.partial": "of no known writer",
    }.items():
        assert (tmp_path / name).read_text() == content
    assert (path / "link").is_symlink()
    assert (tmp_path / "datasets/mine.zarr").exists() and (tmp_path / f"datasets/{'a' * 32}.zarr").exists()
    assert (tmp_path / "thesis.partial").exists() and not cut.exists()
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(4))


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


def test_a_link_of_an_earlier_version_is_read_and_replaced_by_a_folder(tmp_path: Path) -> None:
    path = as_a_link(written(tmp_path / "dataset.zarr", 0))
    first = sweeplib.open(path)
    written(path, 1)
    assert path.is_dir() and not path.is_symlink()
    xr.testing.assert_equal(sweeplib.open(path).load(), numbered(1))
    xr.testing.assert_equal(first.load(), numbered(0))
    assert versions(path) == {f"{'0' * 32}.zarr"}
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
    assert len(versions(path)) == 1
    assert sweeplib.open(path).attrs["number"] in (12, 111)
    assert sweeplib.open(tmp_path / "analysis.zarr").risk.load()[0] in (12, 111)
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.slow
def test_hundreds_of_reads_beside_a_loop_of_finalise_are_of_one_version_each(tmp_path: Path) -> None:
    """As docs/how-to/reading.md reads it. Of plain xarray, 7 of 300 such reads had parts of two versions."""
    config = tmp_path / "read.yaml"
    grid = "problem: {p: 1, k: 1, d: 40, Delta: 0, activation: square, spherical: true}\ngrid: {gamma: [0.1, 0.2]}\n"
    config.write_text(f"name: read\n{grid}seeds: 6\ndynamics: [sgd_chain]\ntimes: [0, 1, 2]\nfigures: []\n")
    path = tmp_path / "results" / "read" / "dataset.zarr"
    run = sweeplib.Sweep.from_yaml(config, results=tmp_path / "results").run(progress=False).load()
    with subprocess.Popen([sys.executable, "-c", FINALISING, config], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"\n"
        seen = [sweeplib.open(path).load() for _ in range(300)]
        assert writer.poll() is None
        writer.kill()
        assert len(writer.stdout.readlines()) > 10
    for ds in seen:
        xr.testing.assert_equal(ds, run.sel(seed=ds.seed))
    assert {tuple(ds.seed.values.tolist()) for ds in seen} == {(0, 1), (2, 3), (4, 5)}


def _marked(path: Path) -> Path:
    """Return the marker of a dataset that was just written."""
    written(path, 1)
    with recorded_stage(path.parent, "finalise") as record:
        record.write_result(made_from(SWEEP, path.parent, "finalise"), digest=manifest_of(path).digest)
    return done_path(path.parent, "finalise")


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "harm", "stays"),
    [
        ("dataset.zarr/risk/c/0", os.utime, True),
        ("dataset.zarr/risk/c/0", lambda chunk: chunk.write_bytes(b"0" * chunk.stat().st_size), False),
        ("dataset.zarr/risk/c/0", Path.unlink, False),
        ("dataset.zarr", lambda dataset: dataset.rename(dataset.with_name("moved")), False),
        ("dataset.zarr/notes.txt", Path.touch, True),
        ("stages/finalise.json", lambda record: record.write_bytes(b'{"digest": \x00'), False),
        ("dataset.zarr/manifest.json", lambda manifest: manifest.write_bytes(manifest.read_bytes()[:-9]), False),
        ("dataset.zarr/manifest.json", Path.unlink, False),
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
