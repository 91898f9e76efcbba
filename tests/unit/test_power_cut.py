"""What must survive a power cut is on the disk before it is relied on: files before their names."""

import os
import threading
from pathlib import Path

import pytest

from sweeplib.engine.storage.dataset.folder import GroupWriter, written_dataset
from sweeplib.engine.storage.records import files as records_files
from sweeplib.engine.storage.records.files import write_files, write_json
from tests.unit.test_storage import cases, write


class Disk:
    """What has been forced onto the disk: each file and folder, with its last modification, in this order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order: list[tuple[int, int]] = []
        before = os.fsync

        def fsync(descriptor: int) -> None:
            before(descriptor)
            self.order.append(self._state(os.fstat(descriptor)))

        monkeypatch.setattr(os, "fsync", fsync)

    def time(self, path: Path) -> int:
        """Return when the present content of a file, or the present names in a folder, were forced onto the disk."""
        state = self._state(path.stat())
        assert state in self.order, f"{path} is not on the disk"
        return self.order.index(state)

    def holds(self, folder: Path) -> bool:
        """Return whether all files below a folder are on the disk, each before its name."""
        paths = [path for path in folder.rglob("*") if not path.name.endswith(".lock")]
        return all(self.time(path) < self.time(path.parent) for path in paths if path.is_file()) and bool(paths)

    @staticmethod
    def _state(stat: os.stat_result) -> tuple[int, int]:
        return stat.st_ino, stat.st_mtime_ns


@pytest.fixture(params=["quick", "slow"])
def disk(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Disk:
    monkeypatch.setattr(records_files, "LONG_SYNC", {"quick": 60.0, "slow": 0.0}[request.param])
    return Disk(monkeypatch)


@pytest.mark.rest
def test_a_segment_is_on_the_disk_before_it_has_its_name(disk: Disk, tmp_path: Path) -> None:
    path = write(tmp_path, cases(3))
    assert disk.holds(tmp_path / "runs") and disk.time(path) < disk.time(path.parent)


def test_a_version_of_a_dataset_is_on_the_disk_before_it_has_its_name(disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "dataset.zarr"
    for number in (1.0, 2.0):
        with written_dataset(path, keep=True) as root:
            GroupWriter(root).variable("numbers", ["place"], (3,), float, {})[...] = number
        assert all(disk.time(file) < disk.time(tmp_path) for file in path.rglob("*"))


def test_files_are_on_the_disk_where_no_thread_is_allowed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    write_files({tmp_path / "new" / name: b"content" for name in ("one", "two", "three")})
    assert disk.holds(tmp_path)


def test_small_files_are_on_the_disk_unless_they_need_not_be(disk: Disk, tmp_path: Path) -> None:
    write_json(tmp_path / "new" / "folders" / "plan.json", {"cases": 3})
    assert disk.holds(tmp_path)
    write_json(tmp_path / "stages" / "plan.json", {"cases": 3}, durable=False)
    with pytest.raises(AssertionError, match=r"plan\.json is not on the disk"):
        disk.holds(tmp_path)
