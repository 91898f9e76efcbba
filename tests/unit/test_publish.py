"""Datasets published at an address of fsspec: the whole dataset or none, and nothing else in its place."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import xarray as xr
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

from sweeplib.commands.cli import app
from sweeplib.engine.storage.records import publish
from sweeplib.engine.storage.records.files import DAMAGED, LOST
from sweeplib.engine.storage.records.manifest import entry_of, written_manifest
from sweeplib.engine.storage.records.publish import MARKER, PublishAddress, checked_address
from sweeplib.errors import InputError, SweeplibError

CONFIG = """\
name: sent
problem: {k: 1, d: 20, p: 1, Delta: 0, activation: square}
grid: {gamma: [0.1, 0.2]}
seeds: 2
dynamics: [gradient_flow]
times: [0, 1]
analyses: []
figures: []
publish: ADDRESS
"""


class Kept(MemoryFileSystem):
    """A store that stands for one that outlives the process."""

    protocol = "kept"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("kept://", "memory://"))


class Forbidden(MemoryFileSystem):
    """A store that may be read and not written."""

    protocol = "forbidden"

    def pipe_file(self, *_: Any, **__: Any) -> None:
        raise PermissionError("Access Denied\nby a long policy")


class Silent(MemoryFileSystem):
    """A store that does not answer."""

    protocol = "silent"

    def cat_file(self, *_: Any, **__: Any) -> bytes:
        time.sleep(2)
        return b""


@pytest.fixture(autouse=True)
def store() -> Iterator[MemoryFileSystem]:
    for kind in (Kept, Forbidden, Silent):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
    found = fsspec.filesystem("kept")
    found.store.clear()
    yield found
    found.store.clear()


def written(folder: Path, names: dict[str, str]) -> Path:
    """Return a dataset of files with these contents, and of those of others that are there."""
    contents = {name: content.encode() for name, content in {"zarr.json": "root", **names}.items()}
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    written_manifest(folder, {name: entry_of(name, content) for name, content in contents.items()})
    return folder


def told(tmp_path: Path, address: str, *words: str) -> tuple[int, str]:
    config = tmp_path / "sent.yaml"
    config.write_text(CONFIG.replace("ADDRESS", address))
    result = CliRunner().invoke(app, [words[0], str(config), *words[1:], "--results", str(tmp_path / "results")])
    return result.exit_code, result.stdout + result.stderr


@pytest.mark.slow
def test_a_finished_sweep_is_read_from_its_address(tmp_path: Path, store: MemoryFileSystem) -> None:
    address = "kept://bucket/sent.zarr"
    assert told(tmp_path, address, "run", "--workers", "1")[0] == 0
    assert not store.find("/bucket"), "the probe is removed"
    status, said = told(tmp_path, address, "finalise")
    assert status == 0
    assert address in said.splitlines()
    here = tmp_path / "results" / "sent" / "dataset.zarr"
    xr.testing.assert_identical(xr.open_zarr(address).load(), xr.open_zarr(here).load())
    assert "publish" not in xr.open_zarr(here).attrs["config"]
    before = {name: store.modified(name) for name in store.find("/bucket")}
    assert told(tmp_path, address, "finalise")[0] == 0
    assert {name: store.modified(name) for name in store.find("/bucket")} == before, "nothing is sent again"
    assert told(tmp_path, address, "finalise", "--set", "seeds=1")[0] == 0
    assert xr.open_zarr(address).sizes["seed"] == 1


@pytest.mark.rest
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("forbidden://bucket/x", "cannot be written: Access Denied;"),
        ("silent://bucket/x", "cannot be written: no answer within 0.1 s;"),
        ("nowhere://bucket/x", "unknown protocol; got 'nowhere'"),
        ("bucket/x", "not an address"),
        ("s3://", "not an address"),
        ("s3:/bucket/x", "not an address"),
        ("s3://me:secret@bucket/x", "not a plain address"),
        ("simplecache::s3://me:secret@bucket/x", "not a plain address"),
        ("abfs://bucket/x?sig=secret", "not a plain address"),
        ("memory://bucket/x", "a store that ends with the command"),
        ("file://RESULTS/sent/published.zarr", "in the folder of the sweep's own results"),
        ("file://RESULTS/sent/../sent", "in the folder of the sweep's own results"),
    ],
)
def test_an_address_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    monkeypatch.setattr(publish, "PATIENCE", 0.1)
    status, output = told(tmp_path, address.replace("RESULTS", str(tmp_path / "results")), "run")
    assert status == 2
    [line] = output.splitlines()
    assert said in line and "publish" in line
    assert "secret" not in line
    assert not list(tmp_path.rglob("runs.zarr"))
    assert not [path for path in tmp_path.glob("results/**/*") if path.is_file() and "secret" in path.read_text()]


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    fsspec.register_implementation("absent", "absent_package.Store", clobber=True, errtxt="Install absent_package")
    with pytest.raises(InputError, match=r"publish.* no package for this kind of address: Install absent_package"):
        PublishAddress("absent://bucket/x", "sent", tmp_path / "sent")


def test_only_changed_objects_are_sent_and_others_removed(tmp_path: Path, store: MemoryFileSystem) -> None:
    place = PublishAddress("kept://bucket/x/", "sent", tmp_path / "sent")
    dataset = written(tmp_path / "a", {"risk/c/0": "1", "risk/c/1": "2", "risk/zarr.json": "m"})
    assert place.publish(dataset) == 5
    assert place.publish(dataset) == 0
    (dataset / "risk/c/1").unlink()
    written(dataset, {"risk/c/0": "3", "risk/zarr.json": "m"})
    assert place.publish(dataset) == 3, "the chunk, the manifest and the root"
    names = [name.removeprefix("/bucket/x/") for name in store.find("/bucket")]
    assert sorted(names) == ["manifest.json", MARKER, "risk/c/0", "risk/zarr.json", "zarr.json"]
    assert store.cat_file("/bucket/x/risk/c/0") == b"3"


def test_a_command_that_is_cut_short_leaves_no_dataset_and_the_next_is_whole(
    tmp_path: Path, store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PublishAddress("kept://bucket/x", "sent", tmp_path / "sent")
    place.publish(written(tmp_path / "a", {"c/0": "1", "c/1": "2", "c/9": "9"}))
    dataset = written(tmp_path / "b", {"zarr.json": "new", "c/0": "3", "c/1": "2", "c/2": "4"})
    sent = MemoryFileSystem.pipe_file
    for last in range(1, 4):
        calls = 0

        def cut(self: MemoryFileSystem, path: str, value: bytes, last: int = last, **options: Any) -> None:
            nonlocal calls
            calls += 1
            if calls > last:
                raise ConnectionError("gone\nfor a while")
            sent(self, path, value, **options)

        monkeypatch.setattr(MemoryFileSystem, "pipe_file", cut)
        if last < 3:
            with pytest.raises(SweeplibError, match="is written, and not published at kept://bucket/x: gone;"):
                place.publish(dataset)
            assert not store.exists("/bucket/x/zarr.json") or store.cat_file("/bucket/x/zarr.json") == b"new"
        else:
            assert place.publish(dataset) > 0
    found = {name.removeprefix("/bucket/x/"): store.cat_file(name) for name in store.find("/bucket/x")}
    del found[MARKER]
    assert found.pop("manifest.json") == (dataset / "manifest.json").read_bytes()
    assert found == {"zarr.json": b"new", "c/0": b"3", "c/1": b"2", "c/2": b"4"}


@pytest.mark.parametrize("cut", ["_write_marker", "_remove", "_make_folders"])
def test_after_a_kill_the_dataset_of_before_is_whole_again(
    cut: str, tmp_path: Path, store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PublishAddress("kept://bucket/x", "sent", tmp_path / "sent")
    before = written(tmp_path / "a", {"c/0": "1"})
    place.publish(before)
    after = written(tmp_path / "b", {"c/0": "2"})

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patches:
        patches.setattr(PublishAddress, cut, killed)
        with pytest.raises(KeyboardInterrupt):
            place.publish(after)
    place.publish(before)
    assert (store.cat_file("/bucket/x/c/0"), store.exists("/bucket/x/zarr.json")) == (b"1", True)


def test_what_others_have_written_is_kept(tmp_path: Path, store: MemoryFileSystem) -> None:
    dataset = written(tmp_path / "a", {})
    store.pipe_file("/bucket/mine/notes.txt", b"mine")
    for act in (PublishAddress.check, lambda place: place.publish(dataset)):
        with pytest.raises(InputError, match="has files that no sweep has published"):
            act(PublishAddress("kept://bucket/mine", "sent", tmp_path / "sent"))
    PublishAddress("kept://bucket/theirs", "other", tmp_path / "other").publish(dataset)
    with pytest.raises(InputError, match="has the dataset of the sweep 'other'"):
        PublishAddress("kept://bucket/theirs", "sent", tmp_path / "sent").check()
    marker = f"/bucket/theirs/{MARKER}"
    store.pipe_file(marker, store.cat_file(marker).replace(b"true", b"false"))
    with pytest.raises(InputError, match="has files that no sweep has published"):
        PublishAddress("kept://bucket/theirs", "other", tmp_path / "other").publish(dataset)


def test_another_folder_of_results_does_not_replace_a_dataset(tmp_path: Path, store: MemoryFileSystem) -> None:
    dataset, address = written(tmp_path / "a", {"c/0": "1"}), "kept://bucket/x"
    PublishAddress(address, "sent", tmp_path / "here").publish(dataset)
    other = PublishAddress(address, "sent", tmp_path / "there")
    for act in (other.check, lambda: other.publish(written(tmp_path / "b", {"c/0": "2"}))):
        with pytest.raises(InputError, match="the dataset of another folder of results whose sweep has this name; to"):
            act()
    (tmp_path / "here").rename(tmp_path / "moved")
    assert PublishAddress(address, "sent", tmp_path / "moved").publish(written(tmp_path / "a", {"c/0": "3"})) == 3
    marker = json.loads(store.cat_file(f"/bucket/x/{MARKER}"))
    del marker["key"], marker["digest"]
    store.pipe_file(f"/bucket/x/{MARKER}", json.dumps(marker | {"digest": publish._digest(marker)}).encode())
    assert other.publish(dataset) == 0, "published by an earlier version, which had no keys"


@pytest.mark.parametrize("name", ["../../victim.txt", "/victim.txt", "", "notes.txt", "a/../../victim.txt"])
def test_what_a_record_at_an_address_names_elsewhere_is_not_deleted(tmp_path: Path, name: str) -> None:
    victim, place = tmp_path / "victim.txt", PublishAddress((tmp_path / "out/deep").as_uri(), "sent", tmp_path / "sent")
    place.publish(written(tmp_path / "a", {"c/0": "1"}))
    victim.write_text("mine")
    (tmp_path / "out/deep/notes.txt").write_text("mine")
    content = {"sweep": "sent", "key": place._recorded_key(), "complete": True, "files": {name: "0" * 32}}
    marker = json.dumps(content | {"digest": publish._digest(content)})
    (tmp_path / "out/deep" / MARKER).write_text(marker)
    with pytest.raises(InputError, match="has files that no sweep has published"):
        place.publish(written(tmp_path / "b", {"c/0": "2"}))
    assert victim.read_text() == "mine" and (tmp_path / "out/deep/notes.txt").exists()


def test_files_of_others_in_a_dataset_are_not_sent(tmp_path: Path, store: MemoryFileSystem) -> None:
    dataset = written(tmp_path / "a", {"c/0": "1"})
    (dataset / "my_password.txt").write_text("secret")
    PublishAddress("kept://bucket/x", "sent", tmp_path / "sent").publish(dataset)
    assert not store.exists("/bucket/x/my_password.txt")


def test_damaged_files_are_not_sent(tmp_path: Path, store: MemoryFileSystem) -> None:
    place, dataset = PublishAddress("kept://bucket/x", "sent", tmp_path / "sent"), written(tmp_path / "a", {"c/0": "1"})
    (dataset / "c/0").write_text("2")
    with pytest.raises(SweeplibError, match=r"c/0: damaged, .*`sweeplib finalise CONFIG`"):
        place.publish(dataset)
    assert not store.find("/bucket")


def test_a_folder_is_an_address_too(tmp_path: Path) -> None:
    place = PublishAddress((tmp_path / "out" / "deep").as_uri(), "sent", tmp_path / "sent")
    place.check()
    assert place.publish(written(tmp_path / "a", {"risk/c/0": "1"})) == 3
    assert (tmp_path / "out" / "deep" / "risk" / "c" / "0").read_text() == "1"
    assert checked_address("s3://bucket/a b.zarr") == "s3://bucket/a b.zarr"


@pytest.mark.slow
def test_verify_reads_the_published_dataset_and_repair_sends_damaged_objects_again(
    tmp_path: Path, store: MemoryFileSystem
) -> None:
    address = "kept://bucket/sent.zarr"
    for stage in (["run", "--workers", "1"], ["finalise"]):
        assert told(tmp_path, address, *stage)[0] == 0
    status, said = told(tmp_path, address, "verify")
    assert status == 0, said
    assert re.search(r"published dataset +\W +[1-9]", said)
    whole = {name: store.cat_file(name) for name in store.find("/bucket")}
    names = sorted(name for name in whole if "/c/" in name)
    flipped = bytearray(whole[names[0]])
    flipped[-1] ^= 1
    store.pipe_file(names[0], bytes(flipped))
    store.rm_file(names[1])
    store.pipe_file("/bucket/sent.zarr/zarr.json", b"{}")
    status, said = told(tmp_path, address, "verify")
    assert status == 1
    for name, problem in ((names[0], DAMAGED), (names[1], LOST), ("/bucket/sent.zarr/zarr.json", DAMAGED)):
        assert f"kept:/{name}: {problem}; --repair: it is made again" in said, said
    status, said = told(tmp_path, address, "verify", "--repair")
    assert status == 1
    assert said.count("repaired: it is made again") == 3
    assert {name: store.cat_file(name) for name in store.find("/bucket")} == whole
    assert told(tmp_path, address, "verify")[0] == 0


@pytest.mark.slow
def test_verify_names_a_published_dataset_that_is_not_the_present_one(tmp_path: Path, store: MemoryFileSystem) -> None:
    address = "kept://bucket/sent.zarr"
    for stage in (["run", "--workers", "1"], ["finalise"]):
        assert told(tmp_path, address, *stage)[0] == 0
    before = {name: store.cat_file(name) for name in store.find("/bucket")}
    assert told(tmp_path, address, "finalise", "--set", "seeds=1")[0] == 0
    for name, content in before.items():
        store.pipe_file(name, content)
    status, said = told(tmp_path, address, "verify", "--set", "seeds=1")
    assert status == 1
    assert "published.json: of another version than the present dataset; --repair: it is made again" in said
    assert told(tmp_path, address, "verify", "--repair", "--set", "seeds=1")[0] == 1
    assert told(tmp_path, address, "verify", "--set", "seeds=1")[0] == 0
    store.rm_file(f"/bucket/sent.zarr/{MARKER}")
    status, said = told(tmp_path, address, "verify", "--repair", "--set", "seeds=1")
    assert status == 1
    assert "has files that no sweep has published" in said
