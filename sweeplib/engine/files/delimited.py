"""Tables as text: names in the first line, then a row a line; between cells commas, semicolons, tabs or blanks."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass

SUFFIXES = (".csv", ".tsv", ".txt")
"""The ends of the names of such files, in small or capital letters."""
SHAPE = "a line with the names of the columns, then rows of values"
IN_NUMBER = re.compile(
    r"[+-]?[\d.' \u00a0]*\d,\d[\d.,' \u00a0]*(?:[eE][+-]?\d+)?|[+-]?\d{1,3}(?:[' \u00a0]\d{3})+(?:\.\d*)?"
)
"""A number with a decimal comma, or with signs between thousands."""
POINTS = "numbers with a decimal point and nothing between thousands: 0.05, 1000"
"""What is expected of numbers, for messages."""


class LineError(Exception):
    """What is wrong with a line: its number in the file, the problem, the value, what was expected."""

    def __init__(self, line: int, problem: str, value: object, expected: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.value, self.expected = line, problem, value, expected


@dataclass(frozen=True)
class TextTable:
    """A table of texts: the names of its columns, and its rows with a cell for each.

    lines : the number, in the text, of each row's line. remarks : the lines that begin with #.
    """

    names: list[str]
    rows: list[list[str]]
    lines: list[int]
    remarks: list[str]


def text_table(text: str) -> TextTable:
    """Return the table in a text, which may have empty lines and, where its lines begin with #, remarks.

    LineError for names that are missing or repeated, a row with more or fewer cells than there are names, and numbers
    with commas. A table without a line has no names.
    """
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    remarks = [line for _, line in numbered if line.lstrip().startswith("#")]
    numbered = [(number, line) for number, line in numbered if not line.lstrip().startswith("#")]
    if not numbered:
        return TextTable([], [], [], remarks)
    separator = _separator(numbered[0][1])
    cells = [(number, row) for number, row in _cells(numbered, separator) if any(row)]
    (first, names), body = cells[0], cells[1:]
    if any(not name or name in names[:place] for place, name in enumerate(names)):
        raise LineError(first, "not the names of columns", names, "a name for each column, all different")
    for number, row in body:
        _check(number, row, names, separator)
    return TextTable(names, [row for _, row in body], [number for number, _ in body], remarks)


def _separator(line: str) -> str:
    """Return what stands between the names in a line: a tab, a semicolon, a comma or a blank."""
    counts = {sign: line.strip().count(sign) for sign in "\t;,"}
    most = max(counts, key=counts.__getitem__)
    return most if counts[most] or " " not in line.strip() else " "


def _cells(numbered: Iterable[tuple[int, str]], separator: str) -> Iterable[tuple[int, list[str]]]:
    """Yield the cells of each line, which has its number; LineError for one that cannot be read."""
    for number, line in numbered:
        if separator == " ":
            yield number, line.split()
        else:
            read = csv.reader([line], delimiter=separator, skipinitialspace=True)
            try:
                yield number, [cell.strip() for cell in next(read)]
            except csv.Error as error:
                raise LineError(number, f"cannot be read: {error}", line, SHAPE) from None


def _check(number: int, row: list[str], names: list[str], separator: str) -> None:
    """Raise LineError for the row of a line if it has another number of cells than names, or a comma in a number."""
    if (count := len(row)) != len(names):
        cells = f"{count} value{'s' * (count != 1)}"
        expected = f"{len(names)}, one per column"
        if separator == "," and count > len(names) and all(re.fullmatch(r"[\d.eE+-]+", cell) for cell in row):
            expected += f": a comma separates values, also one in a number; {POINTS}"
        raise LineError(number, cells, separator.join(row), expected)
    for cell in row:
        if ("," in cell or "'" in cell or " " in cell or "\u00a0" in cell) and IN_NUMBER.fullmatch(cell):
            raise LineError(number, "a comma or another sign in a number", cell, POINTS)
