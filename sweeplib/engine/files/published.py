"""Published values: CSV files whose columns have the names of a dataset, and that say where they come from.

The files of the package lie in `networks/reference/` and are known by their names; a user's own by their paths, which
end in `.csv`, `.tsv` or `.txt` (`delimited`). Comments come first: `# source: ...`, the label in figures;
`# how: ...`, how the values were read or computed; `# drawn: curve` where the rows are points of a curve; `# legend:
source` where the legend leaves out distances. Then names of the columns, then a row a line. A column is one of numbers,
or one of texts.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sweeplib.engine.base.budget import FILE_BYTES
from sweeplib.engine.files.delimited import SHAPE, SUFFIXES, LineError, text_table
from sweeplib.engine.files.regular_files import file_bytes, open_bytes
from sweeplib.errors import InputError

FOLDER = Path(__file__).parents[2] / "networks" / "reference"
SUFFIX = ".csv"
DRAWN = ("points", "curve")
"""How values are drawn; the first is what files without a remark have."""
LEGENDS = ("distances", "source")
"""What the legend says of them: the source and distances, as of files without a remark, or the source alone."""

Value = float | str
"""A cell: a number, or a text in a column of texts."""


@dataclass(frozen=True)
class Reference:
    """Published values: the columns, of one length, and where they come from.

    `source` labels them in figures, `how` says how they were read or computed, `look` is one of `DRAWN`,
    `legend` of `LEGENDS`.
    """

    name: str
    columns: Mapping[str, tuple[Value, ...]]
    source: str
    how: str = ""
    look: str = "points"
    legend: str = "distances"

    def rows(self) -> Iterator[dict[str, Value]]:
        """Yield the rows, as the values by the names of their columns."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))


def known_references() -> list[str]:
    """The names of the files of the package."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def reference(name: str) -> Reference:
    """The values in a file of the package, given by its name, or in a user's own, given by its path.

    InputError for a file that is not there, that cannot be read, or that is no table.
    """
    return _table(Path(name).stem, _text(name))


def references_digest(names: Iterable[str]) -> str:
    """A hash of the contents of some files, given as to `reference`; a file that is not there counts as empty."""
    digest = hashlib.blake2b(digest_size=12)
    for name in names:
        path = _path(name)
        digest.update(hashlib.blake2b(file_bytes(path) if path.is_file() else b"").digest())
    return digest.hexdigest()


def is_path(name: str) -> bool:
    """Return whether the name of a reference is the path of a user's file."""
    return name.lower().endswith(SUFFIXES)


def _path(name: str) -> Path:
    """Return the path of a reference, from its path or its name in the package."""
    return Path(name) if is_path(name) else FOLDER / f"{name}{SUFFIX}"


def _text(name: str) -> str:
    """Return the text of a reference, ours by its name or a user's file; InputError if it cannot be read."""
    path = _path(name)
    if not is_path(name) and name not in known_references():
        expected = f"a file's path that ends in {SUFFIX}, or one of " + ", ".join(known_references())
        raise InputError("no such reference", value=name, expected=expected, choices=known_references())
    try:
        with open_bytes(path) as file:
            content = file.read(FILE_BYTES + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        near = [other.name for other in path.parent.glob(f"*{SUFFIX}")]
        raise InputError(f"no such file: {path}", value=path.name, expected="a CSV file", choices=near) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise InputError(f"cannot be read: {reason}", value=path.name, expected="a CSV file") from None
    if len(content) > FILE_BYTES:
        raise InputError("file too large", value=path.name, expected=f"at most {FILE_BYTES} bytes")
    return text


def _table(name: str, text: str) -> Reference:
    """Return the reference of a name from the text of its file; InputError, with the line, if that is none."""
    try:
        table = text_table(text)
    except LineError as error:
        problem = f"line {error.line} of {name}: {error.problem}"
        raise InputError(problem, value=error.value, expected=error.expected) from None
    if not table.rows:
        raise InputError("no table", value=name, expected=SHAPE)
    remarks = (line.lstrip("# \t").partition(":") for line in table.remarks)  # `# key: value`
    comments = {key.strip(): value.strip() for key, _, value in remarks}
    columns = {column: _column([row[place] for row in table.rows]) for place, column in enumerate(table.names)}
    look, legend = comments.get("drawn", DRAWN[0]), comments.get("legend", LEGENDS[0])
    if look not in DRAWN:
        raise InputError(f"{name}: not a way to be drawn", value=look, choices=DRAWN)
    if legend not in LEGENDS:
        raise InputError(f"{name}: not what a legend can say", value=legend, choices=LEGENDS)
    return Reference(name, columns, comments.get("source") or name, comments.get("how", ""), look, legend)


def _column(cells: list[str]) -> tuple[Value, ...]:
    """The cells as numbers, if all of them are (an empty one is NaN), or as they are; true and false are 1 and 0."""
    spelt = {"": "nan", "true": "1", "false": "0"}
    try:
        return tuple(float(spelt.get(cell.lower(), cell)) for cell in cells)
    except ValueError:
        return tuple(cells)
