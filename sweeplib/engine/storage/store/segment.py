"""Segments of the run store: what one task computed, a file that never changes, named by the digest of its content.

    runs/sgd/0f3c5b1e...a2.npz

A segment is there with all its rows or not at all. A killed writer leaves a temporary file; a damaged segment is one
whose bytes do not give its name. Two writers of one case leave two segments, with the same numbers if both ended by
themselves. `numpy.load` reads it: `case_id` (n,), `status` (n,), `seed` (n,), `clock` (n,), every recorded variable
(n, ...), and `problem` (n,), the places of texts in `problems.json`. `header.json` has what the rows share, and who
computed them. Every part has a checksum, so that a changed bit is never read as another value. All rows are of one
layout, cases of one shape and similar work, and so of one group in the dataset, with arrays of the same lengths.
"""

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from lzma import LZMAError
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from sweeplib.engine.cases import Cases, Recording
from sweeplib.engine.files.regular_files import IrregularFileError, file_bytes, open_bytes
from sweeplib.engine.simulator import Simulator, simulator_of_cases
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import damaged, digest, lost, refuse_links, write_bytes
from sweeplib.engine.variable import Variable
from sweeplib.errors import SweeplibError

RUNS, SUFFIX = "runs", ".npz"
"""The folder of the segments of all dynamics, and the ending of their names."""
INDEX = {"case_id", "status", "problem", "seed", "clock"}
"""The columns beside the variables."""
HEADER, PROBLEMS = "header.json", "problems.json"
"""The parts of a segment that are no arrays: what its rows share, and the different texts of `problem`."""
MOVE_AWAY = "a folder is in its place: move it away"
RETRY = "`sweeplib retry CONFIG damaged` lets the next run compute its cases again"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time in every segment, so that the same content has the same bytes."""
FIRST, SAVED = 2**16, 0.9
"""The bytes at the beginning of a large array that are tried, and the part below which their length must fall."""
UNREADABLE = (
    *(IsADirectoryError, IrregularFileError, BadZipFile, zlib.error, LZMAError, struct.error, EOFError),
    *(ValueError, KeyError, IndexError, OverflowError, NotImplementedError, RuntimeError),
)
"""What reading a damaged file may raise."""


class Segment:
    """A segment of which the header, the identities and the status of the rows are read.

    ids (n,) : identities, 16 bytes each.
    status (n,) : how the cases ended; no case is missing.
    header : `run`, the name of the run; `layout`, that of what its rows have in common; `group`, that of their group in
        a dataset; `work`, the order of magnitude of the work of a case; `shared`, the fields that all cases share;
        `variables`, with their dims, shapes, types and labels; of the task how many cases ended how (`computed`), its
        `seconds`, `workers` and `processors`, and how many cases went on from earlier runs (`begun`).
    """

    def __init__(self, path: Path) -> None:
        """Read the header, the identities and the statuses; DamageError if they cannot be read."""
        self.path = path
        with self._parts() as read:
            self.header: dict[str, Any] = json.loads(read(HEADER))
            self.ids, self.status = (_array(read(f"{name}.npy")) for name in ("case_id", "status"))
            self.layout, self.group, self.work = (self.header[name] for name in ("layout", "group", "work"))
            self.shared, self.variables = self.header["shared"], self.header["variables"]
            if len(self.ids) != len(self.status):
                raise ValueError("rows")  # `_parts` makes a DamageError of it

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return self.path.stem

    @cached_property
    def simulator(self) -> Simulator:
        """What computes its cases: with the code of then if it is here, else with that of now."""
        return simulator_of_cases(self.shared)

    @cached_property
    def recording(self) -> Recording | None:
        """What is recorded of its cases; None if it has something that is not known here."""
        return self.simulator.recording(self.shared)

    @property
    def processors(self) -> tuple[str, ...]:
        """The types of processors that computed its rows; none if that is not known."""
        return tuple(self.header.get("processors", ()))

    def dims(self, variable: str) -> list[str]:
        """Return the dims of a variable, without that of the cases."""
        return list(self.variables[variable]["dims"])

    def shape(self, variable: str) -> tuple[int, ...]:
        """Return the shape of a variable of one case."""
        return tuple(self.variables[variable]["shape"])

    def cases(self, rows: slice | np.ndarray = slice(None)) -> Cases:
        """Return the cases of some rows."""
        return self.simulator.cases(self.shared, {name: column[rows] for name, column in self.index.items()})

    @cached_property
    def index(self) -> dict[str, np.ndarray]:
        """The columns (n,) from which simulators make cases: a text with the values of each, the seed, the clock."""
        with self._parts() as read:
            problem, seed, clock = (_array(read(f"{name}.npy")) for name in ("problem", "seed", "clock"))
            return {"problem": np.array(json.loads(read(PROBLEMS)), object)[problem], "seed": seed, "clock": clock}

    def data(self, variable: str) -> np.ndarray:
        """Return a recorded variable of all rows, (n, ...)."""
        with self._parts() as read:
            values = _array(read(f"{variable}.npy"))
            if values.shape != (len(self), *self.shape(variable)):
                raise ValueError("shape")  # `_parts` makes a DamageError of it
            return values

    def is_whole(self) -> bool:
        """Return whether every bit of the file is what was written."""
        return digest(file_bytes(self.path)) == self.name

    @contextmanager
    def _parts(self) -> Iterator[Callable[[str], bytes]]:
        """Yield a function that reads a part of the file by its name; DamageError if the file is lost or was changed.

        Whatever is raised within the context because of the content is such an error, too.
        """
        try:
            with open_bytes(self.path) as opened, ZipFile(opened) as file:
                yield file.read
        except FileNotFoundError:
            raise lost(self.path, RETRY) from None
        except (OSError, *UNREADABLE) as error:
            # an error without a number is of a decompressor, any other one of the disk or of permissions
            if isinstance(error, UNREADABLE) or error.errno is None:
                raise damaged(self.path, MOVE_AWAY if self.path.is_dir() else RETRY) from None
            raise


def segment_header(cases: Cases, layout: str, group: str, work: float) -> dict[str, Any]:
    """Return the part of a segment's header that is about its cases.

    layout, group : the names of their layout, and of their group in the dataset. work : its order of magnitude.
    """
    first = cases[0]
    return {"layout": layout, "group": group, "work": work, "shared": first.simulator.shared(first)}


def write_segment(
    directory: Path,
    dynamics: str,
    header: Mapping[str, Any],
    variables: Mapping[str, Variable],
    columns: Mapping[str, np.ndarray],
) -> Path:
    """Write a segment of a dynamics in a sweep's directory; return its path. It survives a power cut after the return.

    header : of `Segment`, without run and variables. columns (n, ...) : `case_id`, `status`, those of
    `Simulator.index`, and the `variables`.
    """
    if clashing := INDEX & variables.keys():
        raise SweeplibError(f"{', '.join(sorted(clashing))}: a variable has the name of a column of the run store")
    whole = {**header, "run": dynamics, "variables": described_variables(variables)}
    return write_content(directory, dynamics, segment_bytes(whole, columns))


def described_variables(variables: Mapping[str, Variable]) -> dict[str, dict[str, Any]]:
    """Return what a header says of variables, by name, as plain values of JSON."""
    return {
        name: {
            "dims": list(variable.dims),
            "shape": list(variable.shape),
            "dtype": str(np.dtype(variable.dtype)),
            "attrs": dict(variable.attrs),
        }
        for name, variable in variables.items()
    }


def write_content(directory: Path, dynamics: str, content: bytes) -> Path:
    """Write the bytes of a segment of a dynamics in a sweep's directory; return its path."""
    path = segment_path(directory, dynamics, digest(content))
    refuse_links(directory, path)
    return write_bytes(path, content)


def store_folder(directory: Path, dynamics: str) -> Path:
    """Return the folder of the segments of a dynamics in a sweep's directory."""
    return directory / RUNS / dynamics


def segment_path(directory: Path, dynamics: str, name: str) -> Path:
    """Return the place of a segment by its name."""
    return store_folder(directory, dynamics) / f"{name}{SUFFIX}"


def segment_bytes(header: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of a segment; the same content has the same ones.

    header, columns : as in `Segment` and `write_segment`; `problem` (n,) are texts here, each of which is written once.
    """
    texts = columns["problem"].tolist()
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    problems = np.array([places[text] for text in texts], np.int32)
    arrays = {**columns, "problem": problems, "case_id": np.asarray(columns["case_id"], "S16")}
    parts = {HEADER: _text(header), PROBLEMS: _text(list(places))}
    parts |= {f"{name}.npy": _npy(arrays[name]) for name in sorted(arrays)}
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as file:
        for name, content in parts.items():
            # 1 is the fastest level of compression
            file.writestr(ZipInfo(name, EARLIEST), content, ZIP_DEFLATED if _shrinks(content) else ZIP_STORED, 1)
    return buffer.getvalue()


def empty_values(variable: Variable, count: int) -> np.ndarray:
    """Return a variable (count, ...) of cases of which nothing is known: NaN, or zero where the type has no NaN."""
    dtype = np.dtype(variable.dtype)
    return np.full((count, *variable.shape), fill_value(dtype), dtype)


def fill_value(dtype: np.dtype[Any]) -> Any:
    """Return the value that stands for none: NaN, or zero where the type has no NaN."""
    return np.nan if np.issubdtype(dtype, np.floating) else dtype.type(0)


def merged(segments: Sequence[Segment], rows: slice | np.ndarray = slice(None)) -> bytes:
    """Return the bytes of one segment with some rows of several of one layout, by default all.

    rows : of the segments one after the other. The header sums up what the headers say of tasks.
    """
    first = segments[0]
    indices = [{"case_id": segment.ids, "status": segment.status, **segment.index} for segment in segments]
    columns = {name: np.concatenate([index[name] for index in indices])[rows] for name in indices[0]}
    columns |= {name: np.concatenate([segment.data(name) for segment in segments])[rows] for name in first.variables}
    headers = [segment.header for segment in segments]
    part_of_rows = len(columns["status"]) / sum(map(len, segments))
    together: dict[str, Any] = {
        "computed": counts_of(columns["status"]),
        # of tasks of which only some rows stay, a part of the time
        "seconds": part_of_rows * sum(header.get("seconds", 0.0) for header in headers),
        "begun": sum(header.get("begun", 0) for header in headers),
    }
    for name in ("workers", "processors"):
        together[name] = list(dict.fromkeys(entry for header in headers for entry in header.get(name, ())))
    return segment_bytes({**first.header, **together}, columns)


def counts_of(status: np.ndarray) -> dict[str, int]:
    """Return the number of cases with each status that occurs among some (n,), by its name."""
    values, counts = np.unique(status, return_counts=True)
    return {Status(value).name: int(count) for value, count in zip(values, counts, strict=True)}


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _npy(values: np.ndarray) -> bytes:
    """Return an array as the bytes of a file of NumPy's, without pickles."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(values), allow_pickle=False)
    return buffer.getvalue()


def _array(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def _shrinks(content: bytes) -> bool:
    """Return whether compression is worth its time: numbers that look random take as much space as before."""
    first = content[:FIRST]
    return len(content) <= FIRST or len(zlib.compress(first, 1)) < SAVED * len(first)
