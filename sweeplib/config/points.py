"""A table of points, as a file, as columns or as rows: the values of the names, one point a row."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.budget import ROWS, refuse_more
from sweeplib.config.values import values
from sweeplib.design.axis import TableAxis
from sweeplib.errors import InputError
from sweeplib.problem import NAMED_FIELDS
from sweeplib.regular_files import open_bytes, open_text

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {".csv": "CSV", ".parquet": "Parquet"}
SHAPE = "a CSV or Parquet file, columns `{gamma: [.1, .2], d: [100, 300]}`, or rows `[{gamma: .1, d: 100}]`"


def table_axis(table: Any) -> TableAxis:
    """Return the rows of a table, the path of a file, a mapping of columns or a list of rows, as an axis.

    InputError, with the file and line of a value that is missing or that its name cannot have.
    """
    if isinstance(table, str):
        return _table_axis(_read(Path(table)), table)
    if isinstance(table, list) and table and all(_is_row(row) for row in table):
        try:
            return table_axis(_columns(table))
        except InputError as error:
            error.key = re.sub(r"^points\.(.+)\[(\d+)\]$", r"points[\2].\1", error.key or "points")
            raise
    if not _is_row(table):
        raise InputError("not a table of points", key="points", value=table, expected=SHAPE)
    return _table_axis({name: values(column, f"points.{name}", ROWS) for name, column in table.items()}, None)


def _is_row(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of some rows; InputError for a row without the names of the first one."""
    for place, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            expected = f"the names of the first row: {', '.join(map(str, rows[0]))}"
            raise InputError(
                "not the same names", key=f"points[{place}]", value=", ".join(map(str, row)), expected=expected
            )
    return {name: [row[name] for row in rows] for name in rows[0]}


def _table_axis(columns: Mapping[str, Any], file: str | None) -> TableAxis:
    """Return the axis of some columns; InputError, with the line of the file if they are of one."""
    count = len(next(iter(columns.values()), ()))
    refuse_more("points", count, ROWS, key="points", instead="several sweeps")
    if not count:
        raise InputError("no points", file=file, key="points", expected="names, and a row of values for each point")
    try:
        return TableAxis(columns)
    except InputError as error:
        _, _, place = (error.key or "").rstrip("]").partition("[")
        if file is not None and place.isdigit():  # the first line has the names
            raise error.within(file=f"{file}:{int(place) + 2}") from None
        raise error.within(prefix="points", file=file) from None


def _read(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a file; InputError for one that cannot be read, and for missing values."""
    import pandas as pd

    if path.suffix not in FORMATS:
        raise InputError("not a table of points", key="points", value=str(path), expected=SHAPE)
    try:
        frame = _csv_frame(path) if path.suffix == ".csv" else _parquet_frame(path)
    except InputError:
        raise
    except (OSError, ValueError, ImportError, csv.Error, pd.errors.ParserError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        problem = f"cannot be read as {FORMATS[path.suffix]}: {reason}"
        raise InputError(problem, key="points", value=str(path), expected=SHAPE) from None
    missing = frame.isna().to_numpy()
    if missing.any():
        row, column = (int(places[0]) for places in missing.nonzero())
        raise InputError("no value", file=f"{path}:{row + 2}", key=str(frame.columns[column]), expected="one a row")
    columns = {str(name): frame[name].tolist() for name in frame}
    mixed = {name for name, cells in columns.items() if name not in NAMED_FIELDS and str in map(type, cells[:1])}
    return {name: list(map(_value, cells)) if name in mixed else cells for name, cells in columns.items()}


def _value(cell: str) -> Any:
    """Return the number of a cell, if it is one, in a column that has other texts."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _csv_frame(path: Path) -> "pd.DataFrame":
    """Return the table in a CSV file; InputError for names of columns that are missing, repeated or not separated."""
    import pandas as pd

    with open_text(path, "utf-8-sig", newline="") as file:
        names = [name.strip() for name in next(csv.reader(file), [])]
    if any(not name or name in names[:place] for place, name in enumerate(names)):
        expected = "a name for each column, all different"
        raise InputError("not the names of columns", file=f"{path}:1", value=names, expected=expected)
    if len(names) == 1 and {";", "\t"} & set(names[0]):
        expected = "commas between columns"
        raise InputError("not the names of columns", file=f"{path}:1", value=names[0], expected=expected)
    if not names:
        return pd.DataFrame()
    options: dict[str, Any] = {
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        "dtype": dict.fromkeys(NAMED_FIELDS, str),
    }
    with open_bytes(path) as file:
        return pd.read_csv(file, header=0, names=names, index_col=False, **options)


def _parquet_frame(path: Path) -> "pd.DataFrame":
    """Return the table in a Parquet file."""
    import pandas as pd

    with open_bytes(path) as file:
        return pd.read_parquet(file)
