"""Locks of a sweep's folder: who deletes is alone, who writes is at work with others, on any host."""

import os
import threading
from pathlib import Path

import pytest

from sweeplib.errors import BusyError
from sweeplib.process import place
from sweeplib.storage.records import locks
from sweeplib.storage.records.files import is_below, is_partial, partial, remove_partials
from sweeplib.storage.records.locks import alone, at_work, block_lock, driver_lock, remove_block_locks, writer_lock


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.0)


@pytest.mark.parametrize("host", ["here", "elsewhere"])
def test_who_deletes_is_refused_while_anybody_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    said = f"process {os.getpid()} of {place.user()} on {host} writes dataset.zarr here since .*; expected one command"
    with writer_lock(tmp_path, "dataset.zarr"), at_work(tmp_path, "runs the stage report"):
        monkeypatch.setattr("socket.gethostname", lambda: "here")
        with pytest.raises(BusyError, match="one command at a time"), alone(tmp_path, "deletes"):
            pass
        for record in (tmp_path / "locks").glob("*.holder.json"):
            if "report" in record.read_text():
                record.unlink()
        with pytest.raises(BusyError, match=said), alone(tmp_path, "deletes"):
            pass
    with alone(tmp_path, "deletes"):
        pass
    assert not list(tmp_path.rglob("*.holder.json"))


def test_who_writes_is_refused_while_somebody_deletes(tmp_path: Path) -> None:
    with alone(tmp_path, "deletes stale results"):
        for other in (at_work(tmp_path, "writes"), alone(tmp_path, "verifies"), driver_lock(tmp_path, "sgd")):
            with pytest.raises(BusyError, match=f"{os.getpid()} of .* on .* deletes stale results here"), other:
                pass


def test_a_worker_waits_for_who_deletes(tmp_path: Path) -> None:
    done = threading.Event()

    def work() -> None:
        with block_lock(tmp_path, "sgd/layout/0"):
            done.set()

    thread = threading.Thread(target=work)
    with alone(tmp_path, "deletes"):
        thread.start()
        assert not done.wait(0.2)
    assert done.wait(5)
    thread.join()


def test_locks_of_blocks_are_removed_unless_they_are_held(tmp_path: Path) -> None:
    folder = tmp_path / "locks" / "sgd" / "layout"
    with block_lock(tmp_path, "sgd/layout/0"):
        with block_lock(tmp_path, "sgd/layout/1"):
            pass
        remove_block_locks(tmp_path, "sgd")
        assert [path.name for path in folder.iterdir()] == ["0.lock"]
    remove_block_locks(tmp_path, "sgd")
    assert not folder.exists()
    with block_lock(tmp_path, "sgd/layout/0") as begun:
        assert not begun.before


def test_temporary_files_are_known_by_their_names(tmp_path: Path) -> None:
    own, path = partial(tmp_path / "dataset.zarr"), tmp_path / "dataset.zarr"
    others = [f".dataset.zarr.{'0' * 32}.partial", "thesis.partial", f"{own.name[1:]}", own.name.replace("zarr", "zar")]
    for each in (own, *(tmp_path / name for name in others)):
        each.touch()
    assert is_partial(own) and not any(is_partial(Path(name)) for name in others)
    remove_partials(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(others)


def test_names_in_records_are_below_their_folder() -> None:
    assert is_below("risk/c/0")
    assert not any(map(is_below, ("../x", "/x", "a/../../x", "", None, 3)))
