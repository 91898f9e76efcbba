"""Pipes, devices and sockets in the place of files: nobody waits for them, as all readers go through one place."""

import ast
import os
import pickle
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sweeplib
from sweeplib.engine.files.regular_files import (
    IrregularFileError,
    file_bytes,
    file_text,
    open_bytes,
    open_text,
    open_to_append,
)
from sweeplib.engine.storage.records.files import DamageError, append_line, damaged_lines, read_json, read_lines
from sweeplib.errors import InputError
from tests.irregular import IRREGULAR, put

ROOT = Path(sweeplib.__file__).parent
OPENERS = {"open", "read_text", "read_bytes", "fdopen", "read_csv", "read_parquet", "loadtxt", "memmap", "fromfile"}
"""Names of functions and methods that open a file which is named."""
OTHERS = {
    "engine/files/regular_files.py": {"open": 5},  # the readers themselves
    "config/__init__.py": {"open": 2},  # what a command is given may be a pipe
    "config/points.py": {"read_csv": 1, "read_parquet": 1},  # of a file that is open
    "networks/numerics/compiled.py": {"read_bytes": 1},  # sources of functions that are loaded
    "engine/storage/records/files.py": {"open": 1},  # of a folder, to wait for the disk
    "engine/storage/records/file_system.py": {"open": 3},  # trials in a folder of its own
    "engine/storage/records/locks.py": {"open": 1},  # which never waits, as it reads and writes
    "engine/storage/records/holders.py": {"open": 1},  # which never waits, for the time of a file
    "engine/process/command.py": {"open": 1},  # the null device
    "engine/process/interrupts.py": {"open": 1, "fdopen": 1},
    "engine/process/forks.py": {"open": 1},
    "engine/process/stage_log.py": {"open": 1},  # a new file
    "commands/sweep.py": {"open": 1},
    "engine/execution/blocks.py": {"open": 1},
    "commands/starter.py": {"open": 1},  # new files
    "engine/storage/store/inventory.py": {"open": 1},
}
"""What of these the library has elsewhere, by file."""
NOT_OF_FILES = {"webbrowser.open", "block.open", "self.open", "sweeplib.open", "np.open"}


def openers(path: Path) -> Iterator[str]:
    """Yield the name of each call in a file of Python that opens a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            last = name.rpartition(".")[2]
            if last in OPENERS and name not in NOT_OF_FILES:
                yield last


@pytest.mark.rest
def test_all_readers_go_through_one_place() -> None:
    found: dict[str, dict[str, int]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        names = list(openers(path))
        if names:
            found[path.relative_to(ROOT).as_posix()] = {name: names.count(name) for name in names}
    assert found == OTHERS


def test_the_search_finds_readers(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(
        "io.open('a')\nPath('a').read_text()\nopen('b')\nos.open('c', 0)\npd.read_csv('d')\nPath('e').open()\n"
    )
    assert sorted(openers(tmp_path / "reader.py")) == ["open", "open", "open", "open", "read_csv", "read_text"]


@pytest.mark.parametrize("kind", IRREGULAR)
@pytest.mark.parametrize("opener", [file_bytes, file_text, open_bytes, open_text, open_to_append])
def test_something_else_is_refused_by_its_place_and_its_kind(
    opener: Callable[[Path], Any], kind: str, tmp_path: Path
) -> None:
    path = put(tmp_path / "file", kind)
    with pytest.raises(OSError, match=r"file\b") as refused:
        opener(path)
    if kind not in ("folder", "link to itself"):
        assert isinstance(refused.value, IrregularFileError)
        assert "is in the place of a file: move it away" in str(refused.value)
        assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_pipe_that_somebody_reads_gets_nothing(tmp_path: Path) -> None:
    path = put(tmp_path / "lines.jsonl", "pipe")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(IrregularFileError):
        append_line(path, {"number": 1})
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize("kind", IRREGULAR)
def test_a_record_that_is_no_file_is_damaged(kind: str, tmp_path: Path) -> None:
    path = put(tmp_path / "record.json", kind)
    if kind == "link to itself":
        assert read_json(path) is None
    else:
        with pytest.raises(DamageError, match="something else than a file"):
            read_json(path)


def test_a_record_behind_a_torn_one_stays(tmp_path: Path) -> None:
    """A power cut may leave a part of the last line of a journal, or its end of line out."""
    path = tmp_path / "a.jsonl"
    for cut in (20, 1, 0):
        append_line(path, {"cut": cut})
        path.write_bytes(path.read_bytes()[: path.stat().st_size - cut])
    append_line(path, {"last": True})
    assert read_lines(path) == [{"cut": 1}, {"cut": 0}, {"last": True}] and damaged_lines(path) == 1


def test_a_part_of_a_record_on_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda number, line, write=os.write: write(number, line[:9]))
    with pytest.raises(OSError, match="No space left on device"):
        append_line(tmp_path / "a.jsonl", {"number": 1})


def test_files_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert file_text(path, "utf-8-sig") == path.read_text("utf-8-sig") == "one\ntwo\n"
    assert file_bytes(path) == path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    assert file_bytes(tmp_path / "link") == path.read_bytes()
    with open_to_append(tmp_path / "new") as file:
        file.write("a")
    assert (tmp_path / "new").stat().st_mode & 0o111 == 0
    with pytest.raises(FileNotFoundError):
        file_bytes(tmp_path / "none")
    assert not isinstance(IrregularFileError("a", "b"), InputError)


def test_a_socket_is_known_also_if_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(IrregularFileError, match="a socket"):
            file_bytes("socket")
