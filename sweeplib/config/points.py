"""A table of points, as a file, as columns or as rows: the values of the names, one point a row.

texts : the names of the parameters whose values are texts: their columns stay as they are written.
"""

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.config.designs import designed_columns, is_design
from sweeplib.config.values import values
from sweeplib.engine.base.budget import ROWS, refuse_more
from sweeplib.engine.design.axis import TableAxis
from sweeplib.engine.files.delimited import SUFFIXES, LineError, text_table
from sweeplib.engine.files.regular_files import file_text, open_bytes
from sweeplib.engine.simulator import Simulator
from sweeplib.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

PARQUET = ".parquet"
"""The end of the name of a binary table; all other tables are texts."""
SHAPE = "a CSV or Parquet file, columns `{gamma: [.1, .2], d: [100, 300]}`, or rows `[{gamma: .1, d: 100}]`"
"""What is expected of a table."""


def table_axis(table: Any, simulator: Simulator, root_seed: int) -> TableAxis:
    """Return the rows of a table as an axis: of a file, a mapping of columns, a list of rows, or a design.

    simulator : what its columns are parameters of.
    InputError, with the file and line of a value that is missing or that its name cannot have.
    """
    if isinstance(table, str):
        return _table_axis(*_read(Path(table), simulator.parameters.texts()), table, simulator)
    if is_design(table):
        return _table_axis(designed_columns(table, root_seed), None, None, simulator)
    if isinstance(table, list) and table and all(_is_row(row) for row in table):
        try:
            return table_axis(_columns(table), simulator, root_seed)
        except InputError as error:  # of a column: points.d[2] is points[2].d of the rows
            error.key = re.sub(r"^points\.(.+)\[(\d+)\]$", r"points[\2].\1", error.key or "points")
            raise
    if not _is_row(table):
        raise InputError("not a table of points", key="points", value=table, expected=SHAPE)
    columns = {name: values(column, f"points.{name}", ROWS) for name, column in table.items()}
    return _table_axis(columns, None, None, simulator)


def _is_row(value: Any) -> bool:
    """Return whether a value is a mapping whose keys are texts."""
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


def _table_axis(
    columns: Mapping[str, Any], lines: Sequence[int] | None, file: str | None, simulator: Simulator
) -> TableAxis:
    """Return the axis of some columns; InputError for a value that its name cannot have, and without points.

    file, lines : the file of the columns and the lines of its rows there, None if they have none.
    """
    count = len(next(iter(columns.values()), ()))
    refuse_more("points", count, ROWS, key="points", instead="several sweeps")
    if not count:
        raise InputError("no points", file=file, key="points", expected="names, and a row of values for each point")
    try:
        return TableAxis(columns, simulator)
    except InputError as error:
        _, _, place = (error.key or "").rstrip("]").partition("[")
        if lines is not None and place.isdigit():
            raise error.within(file=f"{file}:{lines[int(place)]}") from None
        raise error.within(prefix="points", file=file) from None


def _read(path: Path, texts: Collection[str]) -> tuple[dict[str, list[Any]], list[int] | None]:
    """Return the columns of a file, and the lines of its rows, None for one without lines.

    InputError for one that cannot be read, and for missing values.
    """
    suffix = path.suffix.lower()
    if suffix not in (PARQUET, *SUFFIXES):
        raise InputError("not a table of points", key="points", value=str(path), expected=SHAPE)
    try:
        frame, lines = (_parquet_frame(path), None) if suffix == PARQUET else _text_frame(path, texts)
    except LineError as error:
        place = f"{path}:{error.line}"
        raise InputError(error.problem, file=place, value=error.value, expected=error.expected) from None
    except InputError:
        raise
    except (OSError, ValueError, ImportError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        problem = f"cannot be read as {'Parquet' if suffix == PARQUET else 'CSV'}: {reason}"
        raise InputError(problem, key="points", value=str(path), expected=SHAPE) from None
    missing = frame.isna().to_numpy()
    if missing.any():
        row, column = (int(places[0]) for places in missing.nonzero())
        file = f"{path}, row {row + 1}" if lines is None else f"{path}:{lines[row]}"
        raise InputError("no value", file=file, key=str(frame.columns[column]), expected="one a row")
    columns = {str(name): frame[name].tolist() for name in frame}
    mixed = {name for name, cells in columns.items() if name not in texts and str in map(type, cells[:1])}
    return {name: list(map(_value, cells)) if name in mixed else cells for name, cells in columns.items()}, lines


def _value(cell: str) -> Any:
    """Return the number of a cell, if it is one, in a column that has other texts."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _text_frame(path: Path, texts: Collection[str]) -> "tuple[pd.DataFrame, list[int]]":
    """Return the table in a text file, and the line of each row; LineError for what is no table."""
    import pandas as pd

    table = text_table(file_text(path, "utf-8-sig"))
    if not table.rows:
        return pd.DataFrame(), []
    text = StringIO()
    csv.writer(text).writerows([table.names, *table.rows])
    text.seek(0)
    frame = pd.read_csv(text, index_col=False, skip_blank_lines=False, dtype=dict.fromkeys(texts, str))
    for at, name in enumerate(table.names):
        if name in texts:  # as they stand: NA, nan and None are texts
            frame[name] = pd.Series([row[at] or None for row in table.rows], dtype=object)
    return frame, table.lines


def _parquet_frame(path: Path) -> "pd.DataFrame":
    """Return the table in a Parquet file."""
    import pandas as pd

    with open_bytes(path) as file:
        return pd.read_parquet(file)
