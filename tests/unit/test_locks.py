"""Locks of a sweep's folder: who deletes is alone, who writes is at work with others, on any host."""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.storage.records import holders, locks
from sweeplib.engine.storage.records.files import is_below, is_partial, partial, remove_partials, write_json
from sweeplib.engine.storage.records.holders import user
from sweeplib.engine.storage.records.locks import (
    alone,
    at_work,
    block_lock,
    driver_lock,
    part_lock,
    remove_block_locks,
    sweep_lock,
    writer_lock,
)
from sweeplib.errors import BusyError


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.0)


@pytest.mark.parametrize("host", ["here", "elsewhere"])
def test_who_deletes_is_refused_while_anybody_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    said = f"process {os.getpid()} of {user()} on {host} writes dataset.zarr here since .*; expected one command"
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


THEN = datetime(2026, 1, 2, 3, 4).timestamp()
HOLDER: dict[str, object] = dict(
    zip(
        ("lock", "does", "alone", "pid", "parent", "host", "kernel", "numbers", "user", "command", "since"),
        ("sweep", "runs all stages", True, 7, 1, "far", "far", "far", "ada", "sweeplib sweep tiny.yaml", THEN),
        strict=True,
    )
)
"""A command on another host."""
WHOSE = "process 7 of ada on far runs all stages here since 2026-01-02 03:04 (`sweeplib sweep tiny.yaml`)"
TO_DO = "expected one command at a time: wait for it (`sweeplib watch results/tiny` shows a sweep), or end it"


@contextmanager
def held_by(record: dict[str, object]) -> Iterator[None]:
    """A context in the folder of a sweep of which another process has the lock, by this record."""
    Path("tiny.yaml").write_text(
        "problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50, gamma: 0.1}\n"
        "name: tiny\ndynamics: [ode]\ntimes: [0, 1]\n"
    )
    folder = Path("results/tiny/locks")
    folder.mkdir(parents=True)
    write_json(folder.parent / "stages/simulate.json", {"name": "simulate", "pid": 7, "host": "far", "started": 1.0})
    (folder / f"{'0' * 32}.holder.json").write_text(json.dumps(record))
    with (folder / "sweep.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("command", [["figures"], ["analyse"], ["run"], ["plan"], ["verify"], ["retry"]])
def test_a_command_says_in_a_line_whose_command_runs_since_when_on_which_host_and_what_to_do(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with held_by(HOLDER):
        before = sorted(tmp_path.rglob("*"))
        result = CliRunner().invoke(app, [*command, "tiny.yaml"])
        assert (result.exit_code, result.output) == (1, f"results/tiny: {WHOSE}; {TO_DO} (`kill 7` on far)\n")
        assert sorted(tmp_path.rglob("*")) == before
        assert f"at work: {WHOSE}\n" in CliRunner().invoke(app, ["status", "tiny.yaml"]).output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user": "a\nda", "host": "f\x1b[2Jar"}, "process 7 of a da on f\\x1b[2Jar runs all stages"),
        ({"since": float("nan")}, "another process is at work here; "),
        ({"since": 1e300}, "another process is at work here; "),
        ({"pid": "x"}, "another process is at work here; "),
        ({"lock": "folder"}, "another process is at work here; "),
    ],
)
def test_whatever_a_record_says_is_a_line(
    change: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with held_by(HOLDER | change):
        for words in (["figures", "tiny.yaml"], ["status", "tiny.yaml"]):
            output = CliRunner().invoke(app, words).output
            assert "Traceback" not in output and "an error in sweeplib" not in output
            assert all(map(str.isprintable, output.splitlines()))
        [line] = CliRunner().invoke(app, ["figures", "tiny.yaml"]).output.splitlines()
        assert line.startswith(f"results/tiny: {said}")


@pytest.mark.parametrize("content", [b"", b'{"lock": "sweep", "do'])
def test_a_record_that_was_cut_by_a_kill_goes_with_the_next_command(content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / f"{'0' * 32}.holder.json").write_bytes(content)
    (folder / "thesis.holder.json").write_bytes(content)
    with at_work(tmp_path, "writes"), pytest.raises(BusyError), alone(tmp_path, "deletes"):
        pass
    with alone(tmp_path, "deletes"):
        pass
    assert [path.name for path in folder.glob("*.json")] == ["thesis.holder.json"]


@pytest.mark.parametrize(("first", "second"), [(at_work, alone), (alone, at_work), (at_work, at_work)])
def test_where_locks_are_of_one_host_who_deletes_sees_who_works_elsewhere(
    first: Any, second: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the lock of the sweep, as commands that do a part by themselves share that."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(holders, "BEAT", 0.02)
    monkeypatch.setattr(holders, "kernel", lambda: "one")
    with part_lock(tmp_path, "simulates"), first(tmp_path, "is there first"):
        monkeypatch.setattr(holders, "kernel", lambda: "another")
        refused = nullcontext() if first is second else pytest.raises(BusyError, match="is there first")
        with part_lock(tmp_path, "comes later"), refused, second(tmp_path, "comes later"):
            assert first is second


def test_where_locks_are_of_one_host_signs_of_life_from_elsewhere_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until they are old: a process that was killed gives none."""
    monkeypatch.setattr(holders, "kernel", lambda: "one")
    with at_work(tmp_path, "writes"):
        [record] = (tmp_path / "locks").glob("*.holder.json")
        monkeypatch.setattr(holders, "kernel", lambda: "another")
        monkeypatch.setattr(fcntl, "flock", lambda *_: None)
        with sweep_lock(tmp_path):
            assert record.exists()
        os.utime(record, (0, 0))
        with sweep_lock(tmp_path):
            assert not record.exists()


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
