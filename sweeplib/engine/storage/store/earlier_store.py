"""Run stores of earlier versions, `runs.zarr`: their blocks are read as segments, and become segments in the next run.

A layout there is a group of zarr with a row a case; its arrays have a chunk for each block of rows.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.files.regular_files import IrregularFileError, file_bytes, refuse_irregular
from sweeplib.engine.storage.records.files import (
    CHECKSUM,
    damaged,
    digest,
    files_below,
    lost,
    read_lines,
    refuse_links,
    remove_empty,
    remove_files,
)
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store.segment import Segment, counts_of, merged, write_content

FOLDER = "runs.zarr"
OWN = ("problem", "seed", "clock")
"""The columns from which simulators make cases."""
CONVERTED = ".converted"
"""What the names of folders of layouts end with once all their rows are in segments."""
_OWN_FILES = re.compile(r"([\w.-]+/(\w+/)?)?zarr\.json|[\w.-]+/\w+/c(/\d+)*")
"""The files of layouts, by their paths in the folder of a dynamics: metadata and chunks."""


class EarlierSegment(Segment):
    """The rows with a result of a block of an earlier run store, read as a segment."""

    def __init__(self, run: str, layout: "_Layout", number: int, done: np.ndarray, task: dict[str, Any]) -> None:
        """Read the rows `done` (n,) of the block of a number, with what a header of a segment would say of them.

        run : the name of the dynamics. task : seconds, workers and processors of the block.
        """
        self.path, self._layout, self._number, self._done = layout.path, layout, number, done
        # two words of 8 bytes are an identity of 16
        words = np.ascontiguousarray(layout.rows("case_id", number)[done])
        self.ids, self.status = words.view("S16").ravel(), layout.rows("status", number)[done]
        self.layout, self.group, self.work = layout.path.name, layout.path.name.rpartition("_w")[0], layout.work
        self.shared, self.variables = layout.shared, layout.variables
        about = {"run": run, "layout": self.layout, "group": self.group, "work": self.work, "shared": self.shared}
        self.header = {**about, "variables": self.variables, "computed": counts_of(self.status), **task}

    @property
    def name(self) -> str:
        """The layout and the number of the block."""
        return f"{self.layout}/{self._number}"

    @cached_property
    def index(self) -> dict[str, np.ndarray]:
        """The columns (n,) from which simulators make cases."""
        return {name: self._layout.rows(name, self._number)[self._done] for name in OWN}

    def data(self, variable: str) -> np.ndarray:
        """Return a recorded variable of all rows, (n, ...)."""
        return self._layout.rows(variable, self._number)[self._done]

    def is_whole(self) -> bool:
        """Return True: damaged rows raise DamageError when they are read."""
        return True


class _Layout:
    """A layout of an earlier run store: a group of zarr at `path`, whose arrays are read as they are asked for.

    count, block_size : the numbers of rows, and of rows a block. work : of a case, as in a segment.
    shared : the fields that all its cases share. _dims : by name, the dimensions of the recorded variables.
    """

    def __init__(self, path: Path) -> None:
        """Read what the metadata say of the layout's cases; DamageError if they are damaged."""
        self.path = path
        self._remedy = f"delete the folder {path}, and the next run computes its cases again"
        about = self._metadata(path / "zarr.json")["attributes"]
        self.count, self.block_size, self.shared = (about[name] for name in ("rows", "block_size", "shared"))
        self.work, self._dims = 4.0 ** about["cost_class"], about["variables"]
        self._arrays: dict[str, Any] = {}  # of zarr, as they are opened
        self._columns: dict[str, np.ndarray] = {}  # of the index, read as a whole

    @cached_property
    def variables(self) -> dict[str, dict[str, Any]]:
        """The dims, shapes, types and labels of the recorded variables."""
        described = {}
        for name, dims in self._dims.items():
            array = self._array(name)
            labels = {key: value for key, value in array.attrs.asdict().items() if key != CHECKSUM}
            shape, dtype = list(array.shape[1:]), str(array.dtype)
            described[name] = {"dims": dims, "shape": shape, "dtype": dtype, "attrs": labels}
        return described

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each block with results, and which of its rows have one."""
        for number in range(-(-self.count // self.block_size)):
            if self._chunk("status", number).exists() and (done := self.rows("status", number) > 0).any():
                yield number, np.flatnonzero(done)

    def rows(self, name: str, number: int) -> np.ndarray:
        """Return an array at the rows of a block, by the block's number; DamageError if a chunk is lost or damaged."""
        rows = slice(number * self.block_size, min((number + 1) * self.block_size, self.count))
        if name in self._dims or name == "status":
            return self._read(name, rows, [self._chunk(name, number)])
        # a column of the index has chunks of its own length, and is read as a whole
        if name not in self._columns:
            length = self._array(name).chunks[0]
            chunks = [self._chunk(name, at) for at in range(-(-self.count // length))]
            self._columns[name] = self._read(name, slice(self.count), chunks)
        return self._columns[name][rows]

    def _read(self, name: str, rows: slice, chunks: Iterable[Path]) -> np.ndarray:
        """Return some rows of an array; DamageError unless all the files that hold them, `chunks`, are there.

        They are looked for first, since zarr reads its fill value in place of a chunk that is lost.
        """
        for chunk in chunks:
            try:
                refuse_irregular(chunk)
            except FileNotFoundError:
                raise lost(chunk, self._remedy) from None
            except OSError:
                raise damaged(chunk, self._remedy) from None
        try:
            values = np.asarray(self._array(name)[rows])
        except (ValueError, RuntimeError, OSError):
            raise damaged(self.path / name, self._remedy) from None
        return values.astype(object) if name == "problem" else values  # texts of Python, as segments have them

    def _array(self, name: str) -> Any:
        """Return an array of zarr, opened once."""
        if name not in self._arrays:
            import zarr  # takes longer than all else that commands do which meet no earlier store

            self._metadata(self.path / name / "zarr.json")
            self._arrays[name] = zarr.open_array(self.path / name, mode="r")
        return self._arrays[name]

    def _chunk(self, name: str, number: int) -> Path:
        """Return the path of a chunk of an array: chunks divide the rows alone."""
        other_dims = "/0" * (len(self._array(name).shape) - 1)
        return Path(f"{self.path}/{name}/c/{number}{other_dims}")

    def _metadata(self, path: Path) -> dict[str, Any]:
        """Return the content of a zarr.json; DamageError if it does not have the checksum in its own attributes."""
        try:
            text = file_bytes(path).decode()
            content: dict[str, Any] = json.loads(text)
            checksum = content["attributes"].pop(CHECKSUM)
            intact = checksum == digest(f"{json.dumps(content, sort_keys=True)}\n".encode())
        except FileNotFoundError:
            raise lost(path, self._remedy) from None
        except (ValueError, TypeError, KeyError, RecursionError, IsADirectoryError, IrregularFileError):
            intact = False
        if not intact:
            raise damaged(path, self._remedy)
        return content


def earlier_segments(directory: Path, dynamics: str) -> Iterator[EarlierSegment]:
    """Yield the blocks of an earlier run store as segments."""
    layouts = _layout_folders(directory, dynamics)
    tasks = _tasks(directory, dynamics) if layouts else {}
    for path in layouts:
        layout = _Layout(path)
        for number, done in layout.blocks():
            yield EarlierSegment(dynamics, layout, number, done, tasks.get(f"{path.name}/{number}", {}))


def earlier_runs(directory: Path) -> list[str]:
    """Return the dynamics with an earlier run store that have a record of runs; a folder without one is a copy."""
    names = [path.name for path in sorted((directory / FOLDER).glob("*/"))]
    # a journal, or the record of an ended run
    return [
        name
        for name in names
        if _journal(directory, name).exists() or stage_record(directory, f"simulate.{name}").made_from
    ]


def has_earlier_store(directory: Path, dynamics: str) -> bool:
    """Return whether a dynamics has runs in an earlier run store."""
    return bool(_layout_folders(directory, dynamics))


def earlier_files(directory: Path, dynamics: str) -> list[Path]:
    """Return the files of an earlier run store and its journal."""
    folder = directory / FOLDER / dynamics
    files = [file for file in files_below(folder) if _OWN_FILES.fullmatch(file.relative_to(folder).as_posix())]
    return [*files, _journal(directory, dynamics)] if files else []


def convert(directory: Path, dynamics: str) -> None:
    """Write the earlier run store of a dynamics as segments, then remove it. Only for the driver.

    Killed at any time, everything is in one store or in both.
    """
    folder = directory / FOLDER / dynamics
    if not folder.is_dir():
        return
    refuse_links(directory, folder)
    for segment in earlier_segments(directory, dynamics):
        write_content(directory, dynamics, merged([segment]))
    for layout in _layout_folders(directory, dynamics):
        # from now on it is no layout, however much of it is deleted
        layout.rename(layout.with_name(f"{layout.name}{CONVERTED}"))
    remove_files(directory, earlier_files(directory, dynamics))
    remove_empty(folder)
    if not any((directory / FOLDER).glob("*/")):
        remove_files(directory, [directory / FOLDER / "zarr.json"])


def _layout_folders(directory: Path, dynamics: str) -> list[Path]:
    """Return the folders of the layouts of an earlier run store, by the form of their names."""
    folders = sorted((directory / FOLDER / dynamics).glob("*_w*-????????????"))
    return [folder for folder in folders if any((folder / name).exists() for name in ("zarr.json", "status"))]


def _journal(directory: Path, dynamics: str) -> Path:
    return directory / "journal" / f"{dynamics}.jsonl"


def _tasks(directory: Path, dynamics: str) -> dict[str, dict[str, Any]]:
    """Return the seconds, workers and processors of each block, "LAYOUT/NUMBER", by the journal beside its store."""
    tasks: dict[str, dict[str, Any]] = {}
    for line in read_lines(_journal(directory, dynamics)):
        task = tasks.setdefault(str(line.get("block")), {"seconds": 0.0, "workers": [], "processors": []})
        task["seconds"] += float(line.get("seconds", 0.0))
        for key, name in (("workers", "worker"), ("processors", "cpu")):
            if name in line and line[name] not in task[key]:
                task[key].append(line[name])
    return tasks
