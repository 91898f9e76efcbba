"""A layout of the run store: the cases whose arrays have one shape and whose costs are alike, one row each.

Index arrays (`case_id`, `problem`, `seed`, `clock`) are written by the driver alone, when it appends; `case_id` comes
last, so that the rows are the contiguous prefix whose `case_id` is not zero, whatever an append was cut short at.
Data arrays and `status` are chunked by block and written by the one worker that holds the block; `status` comes last,
so that a row either has its result or is missing.
"""

import hashlib
import math
import shutil
from collections.abc import Hashable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from sweeplib.simulation import Case, Status, case_work, recorded_variables
from sweeplib.simulation.variables import STATUS_LABELS
from sweeplib.storage.rows import Rows, shared_fields

INDEX_ROWS = 4096
INDEX = {"problem": "string", "seed": "int64", "clock": "float64", "case_id": "uint64"}


def cost_class(work: float) -> int:
    """floor(log4(work)), by the exponent's bits: the same on every machine."""
    return max(0, math.frexp(work)[1] - 1) // 2


def layout_name(case: Case, work: float | None = None) -> str:
    """The name of the layout that a new case of this work belongs to: readable, then a hash of what all in it share."""
    work = case_work(case) if work is None else work
    digest = _digest(case.shape, case.root_seed, case.pair_by)
    return f"p{case.problem.p}_k{case.problem.k}_w{cost_class(work)}-{digest}"


@lru_cache(maxsize=256)
def _digest(*shared: Hashable) -> str:
    return hashlib.blake2b(repr(shared).encode(), digest_size=4).hexdigest()


class Layout:
    """An open layout.

    `path` is its zarr group, `block_size` its rows a block, `work` the order of a case's work, `shape` = (p, k),
    `shared` what its cases have in common, `variables` the dims of what is recorded, without the case.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.group = zarr.open_group(path, mode="r+")
        attributes: dict[str, Any] = self.group.attrs.asdict()
        self.block_size: int = attributes["block_size"]
        self.work = 4.0 ** attributes["cost_class"]
        self.shape: tuple[int, int] = tuple(attributes["shape"])
        self.shared: dict[str, Any] = attributes["shared"]
        self.variables: dict[str, list[str]] = attributes["variables"]

    @cached_property
    def ids(self) -> np.ndarray:
        """The identities of the rows, 16 bytes each."""
        ids = self.stored_ids(slice(None))
        return ids if ids.all() else ids[: int(np.argmin(ids.astype(bool)))]

    def stored_ids(self, rows: slice) -> np.ndarray:
        """The identities as they stand in the array, b"" where an append was cut short."""
        return np.ascontiguousarray(self._arrays["case_id"][rows]).view("S16").ravel()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_blocks(self) -> int:
        """The number of blocks that hold the rows."""
        return -(-len(self) // self.block_size)

    def status(self, rows: slice = slice(None)) -> np.ndarray:
        """The status of the rows, uint8."""
        status: np.ndarray = self._arrays["status"][rows]
        return status[: len(self)] if rows == slice(None) else status

    def rows(self, rows: slice) -> Rows:
        """What is their own of the cases in these rows."""
        return Rows(*(self._arrays[name][rows] for name in Rows._fields))

    def data(self, variable: str) -> np.ndarray:
        """A recorded variable of all rows, (case, ...)."""
        values: np.ndarray = self._arrays[variable][: len(self)]
        return values

    def block(self, number: int) -> slice:
        """The rows of a block."""
        return slice(number * self.block_size, min((number + 1) * self.block_size, self._arrays["status"].shape[0]))

    def write(self, number: int, positions: np.ndarray, data: dict[str, np.ndarray], status: np.ndarray) -> None:
        """Write results into `positions` of a block: the data first, then `status`. For the block's one writer."""
        rows = self.block(number)
        known = self.status(rows)
        for name in self.variables:
            self._put(name, rows, positions, data[name], merge=bool(known.any()))
        self.write_status(number, positions, status)

    def write_status(self, number: int, positions: np.ndarray, status: np.ndarray) -> None:
        """Write the status of `positions` of a block alone. For the block's one writer."""
        self._put("status", self.block(number), positions, status, merge=True)

    def empty(self, variable: str, cases: int) -> np.ndarray:
        """Values of a variable for some cases, all still at its fill value."""
        array = self._arrays[variable]
        return np.full((cases, *array.shape[1:]), array.fill_value, array.dtype)

    def _put(self, name: str, rows: slice, positions: np.ndarray, values: np.ndarray, *, merge: bool) -> None:
        array = self._arrays[name]
        block = array[rows] if merge else self.empty(name, rows.stop - rows.start)
        block[positions] = values
        array[rows] = block

    def reset(self, rows: np.ndarray) -> None:
        """Make these rows missing again. For the driver, while no worker runs."""
        for number in np.unique(rows // self.block_size):
            inside = rows[rows // self.block_size == number] - number * self.block_size
            self.write_status(int(number), inside, np.full(len(inside), Status.missing, np.uint8))

    def append(self, ids: np.ndarray, rows: Rows) -> None:
        """Append cases, all missing. For the driver. Killed anywhere, the rows are a prefix of what was asked."""
        self._repair()
        start, stop = len(self), len(self) + len(ids)
        for name in (*self.variables, "status", *INDEX):
            array = self._arrays[name]
            array.resize((stop, *array.shape[1:]))
        for name, column in rows._asdict().items():
            self._arrays[name][start:stop] = column.astype(self._arrays[name].dtype)
        self._arrays["case_id"][start:stop] = ids.view("<u8").reshape(-1, 2)
        del self.ids

    def _repair(self) -> None:
        """Cut what an append that was killed left beyond the rows, so that it cannot be taken for rows later."""
        case_id = self._arrays["case_id"]
        if case_id.shape[0] > len(self):
            case_id[len(self) :] = 0
            case_id.resize((len(self), 2))

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        return {name: array.with_config({"write_empty_chunks": True}) for name, array in self.group.arrays()}


def create_layout(path: Path, case: Case, block_size: int) -> Layout:
    """A new, empty layout for cases like `case`; it appears at `path` complete or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    variables = recorded_variables(case)
    attributes: dict[str, Any] = {
        "block_size": block_size,
        "cost_class": cost_class(case_work(case)),
        "shared": shared_fields(case),
        "variables": {name: list(variable.dims) for name, variable in variables.items()},
        "shape": [case.problem.p, case.problem.k],
    }
    group = zarr.create_group(partial, attributes=attributes)
    for name, variable in variables.items():
        _create(group, name, variable.dtype, variable.shape, variable.dims, block_size, dict(variable.attrs))
    _create(group, "status", "uint8", (), (), block_size, STATUS_LABELS)
    for name, dtype in INDEX.items():
        words = name == "case_id"
        _create(group, name, dtype, (2,) if words else (), ("word",) if words else (), INDEX_ROWS, {})
    partial.rename(path)
    return Layout(path)


def _create(group: Any, name: str, dtype: Any, shape: Any, dims: Any, rows: int, attributes: dict[str, Any]) -> None:
    """Create an array of no rows yet; all-NaN chunks are written too, as they are results."""
    floating = dtype != "string" and np.issubdtype(np.dtype(dtype), np.floating)
    group.create_array(
        name,
        shape=(0, *shape),
        chunks=(rows, *(max(1, size) for size in shape)),
        dtype=dtype,
        fill_value=np.nan if floating else None,
        dimension_names=("case", *dims),
        attributes=attributes,
        config={"write_empty_chunks": True},
    )


def layouts(directory: Path) -> Iterator[Layout]:
    """The layouts of one dynamics, in the order of their names."""
    for path in sorted(directory.glob("p*/zarr.json")):
        yield Layout(path.parent)
