"""Text on a terminal, or plain lines where there is none: a pipe, a file, a CI log."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST = 1000
"""Columns of a table that is not written to a terminal: lines of pipes are not wrapped."""
LINE = 100
"""Columns of text that is not written to a terminal."""
DISPENSABLE = ("blocks", "on disk", "points", "done", "cases")
"""The headings of columns that a narrow terminal does not show, the first one first."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, give commands to a terminal, or turn the direction of text."""


def harmless(text: str) -> str:
    """Return a text for a terminal, on which it can do nothing but appear: controls are written as Python escapes."""
    return _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def echo(line: object, *, errors: bool = False) -> None:
    """Write a line, which may be of a file that others wrote, to standard output or standard error."""
    stream = sys.stderr if errors else sys.stdout
    stream.write(f"{harmless(str(line))}\n")
    stream.flush()


def console(*, errors: bool = False) -> "Console":
    """Return the console of standard output or standard error: without colours and of any width if it is no terminal.

    The environment variable NO_COLOR turns colours off on a terminal; FORCE_COLOR makes no terminal of a file.
    """
    from rich.console import Console

    stream = sys.stderr if errors else sys.stdout
    width, forced = (None, None) if stream.isatty() else (WIDEST, False)
    return Console(file=stream, width=width, force_terminal=forced, highlight=False, markup=False, emoji=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", caption: str = "") -> "Table":
    """Return a table of rich; numbers are never cut, and stand to the right."""
    from rich.table import Table

    rows = list(rows)
    grid = Table(title=title or None, caption=caption or None, title_justify="left", caption_justify="left")
    for place, heading in enumerate(headings):
        number = all(row[place][:1].isdigit() for row in rows)
        grid.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in rows:
        grid.add_row(*map(harmless, row))
    return grid


def counts_table(counts: Mapping[str, Mapping[str, int]], title: str = "") -> "Table":
    """Return a table of numbers of cases, by dynamics and status; statuses that no case has are left out."""
    statuses = [
        status
        for status in next(iter(counts.values()))
        if status in ("missing", "ok") or any(numbers[status] for numbers in counts.values())
    ]
    rows = [[name, *(f"{numbers[status]:,}" for status in statuses)] for name, numbers in counts.items()]
    return table(("dynamics", *statuses), rows, title)


def show(grid: "Table", target: "Console") -> None:
    """Write a table to a console; if that is no terminal, without lines between its cells and without wrapping.

    Dispensable columns are left out on a narrow terminal: no number is cut.
    """
    from rich import box

    if target.is_terminal and not target.encoding.startswith("utf"):
        grid.box = box.ASCII
    if target.is_terminal:
        _fit(grid, target)
        target.print(grid)
        return
    title, caption = grid.title, grid.caption  # rich would break them at the width of the cells
    grid.title, grid.caption, grid.box, grid.pad_edge = None, None, None, False
    with target.capture() as cells:
        target.print(grid)
    lines = [title, *(line.rstrip() for line in cells.get().splitlines()), caption]
    target.print("\n".join(str(line) for line in lines if line), soft_wrap=True)


def _fit(grid: "Table", target: "Console") -> None:
    """Take dispensable columns, then the lines between cells, out of a table until it fits a console."""
    # measured as if there were room, at the width that the table would like
    wide = target.options.update_width(WIDEST)
    for heading in DISPENSABLE:
        if target.measure(grid, options=wide).maximum <= target.width:
            return
        grid.columns = [column for column in grid.columns if column.header != heading]
    if target.measure(grid, options=wide).maximum > target.width:
        grid.box, grid.pad_edge = None, False


def clock_time(seconds: float) -> str:
    """Return a time such as 12 s or 1:02:03, rounded to seconds."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else str(timedelta(seconds=whole))


def duration(seconds: float) -> str:
    """Return about how long something takes: '30 µs', '2.5 ms', '26 s', '4.5 min', '3.2 h'."""
    least = {"h": 5400.0, "min": 90.0, "s": 0.1, "ms": 1e-3, "µs": 1e-9}  # from how many seconds on a unit is used
    unit = next((unit for unit, bound in least.items() if seconds >= bound), "s")
    value = seconds / {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]
    return f"{value:.2g} {unit}" if value < 99.5 else f"{value:,.0f} {unit}"


def counted(number: int, noun: str = "case") -> str:
    """Return a number of something: '1 case', '2,000 cases', '2 processes'."""
    return f"{number:,} {noun}{('es' if noun.endswith('s') else 's') * (number != 1)}"


def bytes_text(nbytes: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"
