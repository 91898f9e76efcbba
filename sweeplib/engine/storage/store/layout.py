"""A layout of the run store: cases with arrays of the same shapes and similar costs, one per row.

Index arrays (`problem`, `seed`, `clock`, `case_id`) are written by the driver only, when it appends. The number of
rows is stored in the group's zarr.json and written last: an interrupted append adds no row. Data arrays and `status`
are chunked by block, and written by the worker that holds the block. `status` is written last, so a row either has its
result or is missing.

Chunks and zarr.json files carry checksums. A mismatch or a lost file raises DamageError. For a block, the error names
`sweeplib retry CONFIG damaged`, which makes the cases missing again; for metadata and index, it says that the layout
must be deleted. A lost chunk of `status` is not damage: its cases are missing.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore, StorePath

from sweeplib.engine.cases import Case, Cases, Recording
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.groups import group_name
from sweeplib.engine.simulator import NETWORKS, Simulator, simulator_named
from sweeplib.engine.status import STATUS_LABELS, Status
from sweeplib.engine.storage.dataset.stores import LinkingStore
from sweeplib.engine.storage.records.files import (
    DamageError,
    damaged,
    is_intact,
    lost,
    partial,
    remove,
    remove_partials,
    sync,
    write_files,
)
from sweeplib.engine.storage.records.links import refuse_links
from sweeplib.engine.storage.store.layout_files import (
    COMPRESSORS,
    array_metadata,
    chunk_bytes,
    layout_attributes,
    read_chunk,
    read_metadata,
    write_metadata,
)
from sweeplib.engine.storage.store.rows import OWN_FIELDS, by_block

INDEX_ROWS = 16384
"""Rows of a chunk of the index of a new layout."""
RETRY = "`sweeplib retry CONFIG damaged` lets the next run compute the cases of its block again"
INDEX = {"problem": str, "seed": "int64", "clock": "float64", "case_id": "uint64"}


def cost_class(work: float | np.ndarray) -> Any:
    """Return floor(log4(work)), of one or of each of n, from the exponent's bits, so that all machines agree."""
    return np.maximum(0, np.frexp(work)[1] - 1) // 2


def layout_name(case: Case, work: float) -> str:
    """Return the name of the layout for a new case of this work: a readable part and a hash of the shared fields.

    The shared fields include the names, dimensions, shapes and types of the recorded variables.
    """
    stored = case.simulator.variables(case).items()
    variables = [(name, variable.dims, variable.shape, str(variable.dtype)) for name, variable in stored]
    shared = repr((case.shape, case.root_seed, case.pair_by, variables))
    digest = hashlib.blake2b(shared.encode(), digest_size=6).hexdigest()
    return f"{group_name(case.simulator.group(case))}_w{cost_class(work)}-{digest}"


class Layout:
    """An open layout.

    `path` is its zarr group, `block_size` the number of rows per block, `work` the order of magnitude of a case's work,
    `group` the name of its cases' group in a dataset, `shared` the fields that all cases share, `simulator` what
    computes them, `variables` the dims of the recorded variables without the case dimension.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self._deletion = f"delete the folder {path}, and the next run computes its cases again"
        self._opened: dict[str, Any] = {}
        self._last_chunks: dict[str, tuple[int, np.ndarray]] = {}
        attributes = layout_attributes(path / "zarr.json", self._deletion)
        self._rows: int = attributes["rows"]
        self.block_size: int = attributes["block_size"]
        self.work = 4.0 ** attributes["cost_class"]
        self.shared: dict[str, Any] = attributes["shared"]
        self.variables: dict[str, list[str]] = attributes["variables"]
        self.group = self.name.rpartition("_w")[0]

    @cached_property
    def simulator(self) -> Simulator:
        """What computes its cases; stores of networks do not name it."""
        return simulator_named(self.shared.get("simulator", NETWORKS))

    @cached_property
    def recording(self) -> Recording | None:
        """What is recorded of its cases; None if it has something that is not known here."""
        return self.simulator.recording(self.shared)

    @cached_property
    def ids(self) -> np.ndarray:
        """Return the identities of the rows, 16 bytes each."""
        return self.stored_ids(slice(None))

    def stored_ids(self, rows: slice) -> np.ndarray:
        """Return the identities of some rows."""
        return np.ascontiguousarray(self._index("case_id", rows)).view("S16").ravel()

    def __len__(self) -> int:
        return self._rows

    @property
    def n_blocks(self) -> int:
        """Return the number of blocks that hold the rows."""
        return -(-len(self) // self.block_size)

    def status(self, rows: slice = slice(None)) -> np.ndarray:
        """Return the status of the rows, uint8."""
        start, stop, _ = rows.indices(len(self))
        status = np.full(stop - start, Status.missing, np.uint8)
        for number in range(start // self.block_size, -(-stop // self.block_size)):
            chunk = self._read("status", number)
            if chunk is not None:
                first = number * self.block_size
                inside = slice(max(start, first), min(stop, first + self.block_size))
                status[inside.start - start : inside.stop - start] = chunk[inside.start - first : inside.stop - first]
        return status

    def cases(self, rows: slice | np.ndarray) -> Cases:
        """Return the cases of some rows, at ascending places."""
        if isinstance(rows, slice):
            return self.simulator.cases(self.shared, {name: self._index(name, rows) for name in OWN_FIELDS})
        around = slice(int(rows[0]), int(rows[-1]) + 1)
        index = {name: self._index(name, around)[rows - rows[0]] for name in OWN_FIELDS}
        return self.simulator.cases(self.shared, index)

    def data(self, variable: str) -> np.ndarray:
        """Return a recorded variable of all rows, (case, ...)."""
        values = self.empty(variable, len(self))
        for number in self._begun:
            values[self.block(number)] = self.block_data(variable, number)
        return values

    def block_data(self, variable: str, number: int) -> np.ndarray:
        """Return a recorded variable of the rows of a block that was begun, (case, ...)."""
        rows, chunk = self.block(number), self._read(variable, number)
        if chunk is None:
            raise lost(self._chunk(variable, number), RETRY)
        return chunk[: rows.stop - rows.start]

    @cached_property
    def _begun(self) -> list[int]:
        """Return the blocks in which a row has a status other than missing; these blocks have all their chunks."""
        return [int(number) for number in np.unique(np.flatnonzero(self.status()) // self.block_size)]

    def array(self, name: str) -> Any:
        """Return the zarr array of this name, for its metadata: chunks are read and written as files."""
        if name not in self._opened:
            metadata = array_metadata(self.path / name, self.variables.get(name), self._deletion)
            place = StorePath(LocalStore(self.path), name)
            self._opened[name] = zarr.Array.from_dict(place, metadata)
        return self._opened[name]

    def block(self, number: int) -> slice:
        """Return the rows of a block."""
        return slice(number * self.block_size, min((number + 1) * self.block_size, len(self)))

    def write(self, number: int, positions: np.ndarray, data: dict[str, np.ndarray], status: np.ndarray) -> None:
        """Write results into `positions` of a block, first the data, then `status`. Only for the block's writer."""
        merge = bool(self.status(self.block(number)).any())
        self._put(number, positions, {name: data[name] for name in self.variables}, merge=merge)
        self._put(number, positions, {"status": status}, merge=True)

    def write_status(self, number: int, positions: np.ndarray, status: np.ndarray) -> None:
        """Write the status of `positions` of a block, and no data. Only for the block's writer."""
        if not self.status(self.block(number)).any():
            empty = {name: self.empty(name, len(positions)) for name in self.variables}
            self._put(number, positions, empty, merge=False)
        self._put(number, positions, {"status": status}, merge=True)

    def empty(self, variable: str, cases: int) -> np.ndarray:
        """Return an array of a variable for `cases` cases, filled with its fill value."""
        array = self.array(variable)
        return np.full((cases, *array.shape[1:]), array.fill_value, array.dtype)

    def _put(self, number: int, positions: np.ndarray, data: Mapping[str, np.ndarray], *, merge: bool) -> None:
        """Write values of arrays into `positions` of a block; its other values are kept if `merge`."""
        chunks = {}
        for name, values in data.items():
            chunk = self._read(name, number) if merge else None
            if merge and chunk is None and name != "status":
                raise lost(self._chunk(name, number), RETRY)
            block = self.empty(name, self.block_size) if chunk is None else chunk.copy()
            block[positions] = values
            chunks[self._chunk(name, number)] = chunk_bytes(block)
        refuse_links(self.path.parents[1], *chunks)
        write_files(chunks)
        self.__dict__.pop("_begun", None)

    def reset(self, rows: np.ndarray) -> None:
        """Make these rows missing again. Only for the driver, while no worker runs."""
        for number, _, positions in by_block(np.sort(rows), self.block_size):
            self.write_status(number, positions, np.full(len(positions), Status.missing, np.uint8))

    def forget(self, numbers: Iterable[int]) -> np.ndarray:
        """Delete the results of blocks, which makes their rows missing, and return the rows.

        Only for the driver, while no worker runs.
        """
        rows = [np.empty(0, np.int64)]
        for number in numbers:
            for file in self.files(number):
                file.unlink(missing_ok=True)
            rows.append(np.arange(self.block(number).start, self.block(number).stop))
        self.__dict__.pop("_begun", None)
        return np.concatenate(rows)

    def files(self, number: int) -> list[Path]:
        """Return the files of a block: the chunk of `status`, then those of the variables."""
        return [self._chunk(name, number) for name in ("status", *self.variables)]

    def index_files(self) -> list[Path]:
        """Return the files of the index."""
        return [self._chunk(name, number) for name in INDEX for number in range(-(-len(self) // self.index_rows))]

    def append(self, ids: np.ndarray, cases_at: Callable[[slice], Cases]) -> None:
        """Append cases with these identities, all missing, in one atomic step. Only for the driver.

        `cases_at` returns a part of the cases; one chunk of the index is in memory at a time.
        """
        start, stop = len(self), len(self) + len(ids)
        for name in INDEX:
            self._index(name, slice(start - 1, start))
        self._resize(stop)
        for number in range(start // self.index_rows, -(-stop // self.index_rows)):
            first = number * self.index_rows
            some = slice(max(start, first) - start, min(stop, first + self.index_rows) - start)
            words = np.ascontiguousarray(ids[some]).view("<u8").reshape(-1, 2)
            columns = self.simulator.index(cases_at(some)) | {"case_id": words}
            self._put_index(columns, number, max(start - first, 0))
        self._commit(stop)

    def _put_index(self, columns: Mapping[str, np.ndarray], number: int, start: int) -> None:
        """Write columns into a chunk of the index from row `start` of the chunk on; rows before it are kept."""
        chunks = {}
        for name, column in columns.items():
            array = self.array(name)
            empty = "" if name == "problem" else 0
            chunk = np.full(array.chunks, empty, object if name == "problem" else array.dtype)
            if start:
                chunk[:start] = self._index_chunk(name, number)[:start]
            chunk[start : start + len(column)] = column
            chunks[self._chunk(name, number)] = chunk_bytes(chunk)
        refuse_links(self.path.parents[1], *chunks)
        write_files(chunks)

    def _resize(self, rows: int) -> None:
        """Give all arrays this number of rows."""
        paths = [self.path / name / "zarr.json" for name in (*self.variables, "status", *INDEX)]
        metadata = {path: read_metadata(path, self._deletion) for path in paths}
        shorter = {path: content for path, content in metadata.items() if content["shape"][0] != rows}
        for content in shorter.values():
            content["shape"][0] = rows
        write_metadata(shorter)
        self._opened.clear()

    def _commit(self, rows: int) -> None:
        path = self.path / "zarr.json"
        metadata = read_metadata(path, self._deletion)
        metadata["attributes"]["rows"] = rows
        write_metadata({path: metadata})
        self._rows = rows
        self._last_chunks.clear()
        self.__dict__.pop("ids", None)

    def check_index(self) -> None:
        """Raise DamageError if any part of the index is damaged or lost."""
        for name in INDEX:
            self.array(name)
            for number in range(-(-len(self) // self.index_rows)):
                chunk = self._chunk(name, number)
                if not chunk.exists():
                    raise lost(chunk, self._deletion)
                if not is_intact(file_bytes(chunk)):
                    raise damaged(chunk, self._deletion)

    def _index(self, name: str, rows: slice) -> np.ndarray:
        """Return an index array at some rows; all its chunks must exist."""
        start, stop, _ = rows.indices(len(self))
        parts = []
        for number in range(start // self.index_rows, -(-stop // self.index_rows)):
            first = number * self.index_rows
            parts.append(self._index_chunk(name, number)[max(start - first, 0) : stop - first])
        array = self.array(name)
        empty = np.empty((0, *array.shape[1:]), object if name == "problem" else array.dtype)
        return parts[0] if len(parts) == 1 else np.concatenate([empty, *parts])

    def index(self, name: str, rows: slice) -> np.ndarray | None:
        """Return a column of the index at some rows, None if it is damaged or lost, or something else than a file."""
        try:
            return self._index(name, rows)
        except (DamageError, OSError):
            return None

    def replace_index(self, name: str, rows: slice, column: np.ndarray) -> None:
        """Write a damaged chunk of the index again; `rows` are those of the chunk. Only for the driver."""
        self._put_index({name: column.astype(self.array(name).dtype)}, rows.start // self.index_rows, 0)
        self._last_chunks.clear()
        self.__dict__.pop("ids", None)

    def _index_chunk(self, name: str, number: int) -> np.ndarray:
        """Return a chunk of the index; the last one that was read of each array is kept, as blocks are shorter."""
        last = self._last_chunks.get(name)
        if last is None or last[0] != number:
            chunk = self._read(name, number)
            if chunk is None:
                raise lost(self._chunk(name, number), self._deletion)
            last = self._last_chunks[name] = number, chunk
        return last[1]

    @cached_property
    def index_rows(self) -> int:
        """The rows of a chunk of the index."""
        return int(self.array("case_id").chunks[0])

    def _read(self, name: str, number: int) -> np.ndarray | None:
        """Return a whole chunk, which must not be changed; None if there is no file."""
        array = self.array(name)
        remedy = self._deletion if name in INDEX else RETRY
        return read_chunk(self._chunk(name, number), array.dtype, array.chunks, remedy)

    def _chunk(self, name: str, number: int) -> Path:
        """Return the file of a chunk; along the other dimensions, a chunk spans the whole array."""
        array = self.array(name)
        key: str = array.metadata.encode_chunk_key((number, *(0 for _ in array.shape[1:])))
        return Path(f"{self.path}/{name}/{key}")


def create_layout(path: Path, case: Case, block_size: int, rows: int = 0) -> Layout:
    """Create an empty layout for cases like `case`, which appears at `path` complete or not at all. For the driver.

    Its arrays have room for `rows`: their metadata need not be written again when these are appended.
    """
    refuse_links(path.parents[1], path)
    remove_partials(path)
    simulator = case.simulator
    variables = simulator.variables(case)
    attributes: dict[str, Any] = {
        "block_size": block_size,
        "cost_class": int(cost_class(simulator.work(case))),
        "rows": 0,
        "shared": simulator.shared(case),
        "variables": {name: list(variable.dims) for name, variable in variables.items()},
    }
    new = partial(path)
    try:
        group = zarr.create_group(LinkingStore(new), attributes=attributes)
        for name, variable in variables.items():
            dims, shape = variable.dims, (rows, *variable.shape)
            _create(group, name, variable.dtype, shape, dims, block_size, dict(variable.attrs))
        _create(group, "status", "uint8", (rows,), (), block_size, STATUS_LABELS)
        for name, dtype in INDEX.items():
            shape, dims = ((rows, 2), ("word",)) if name == "case_id" else ((rows,), ())
            _create(group, name, dtype, shape, dims, INDEX_ROWS, {})
        write_metadata({file: json.loads(file_bytes(file)) for file in new.rglob("zarr.json")})
        new.rename(path)
        sync(path.parent)
    finally:
        remove(new)
    return Layout(path)


def _create(group: Any, name: str, dtype: Any, shape: Any, dims: Any, rows: int, attributes: dict[str, Any]) -> None:
    """Create an array with `rows` in a chunk; all-NaN chunks will be written, because NaN can be a result."""
    floating = dtype is not str and np.issubdtype(np.dtype(dtype), np.floating)
    group.create_array(
        name,
        shape=shape,
        chunks=(rows, *(max(1, size) for size in shape[1:])),
        dtype=dtype,
        compressors=COMPRESSORS,
        fill_value=np.nan if floating else None,
        dimension_names=("case", *dims),
        attributes=attributes,
        config={"write_empty_chunks": True},
    )


def layout_folders(directory: Path) -> list[Path]:
    """Return the folders of the layouts of one dynamics, ordered by name; one with files of others only is none."""
    folders = sorted(directory.glob("*_w*-????????????"))
    return [folder for folder in folders if any((folder / name).exists() for name in ("zarr.json", "status", *INDEX))]
