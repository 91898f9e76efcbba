"""Lists for a reader: the sweeps in a folder of results, and the names that a config may use."""

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.process.terminal import table
from sweeplib.storage.files import read_json
from sweeplib.storage.jobs import jobs

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.config.catalogue import Entry

MARKS = ("origin.json", "config.yaml", "plan.json")
"""Files of which a sweep's folder has at least one."""


def sweeps(results: Path) -> "Table | None":
    """Return the sweeps in a folder of results: their state, finished cases and reports; None if there are none."""
    folders = [path for path in sorted(results.glob("*")) if any((path / mark).exists() for mark in MARKS)]
    rows = [[folder.name, _state(folder), _cases(folder), _report(folder)] for folder in folders]
    return table(("sweep", "state", "cases", "report"), rows) if rows else None


def _state(folder: Path) -> str:
    return "running" if any(job.running for job in jobs(folder).values()) else "idle"


def _cases(folder: Path) -> str:
    """Return the number of finished cases of the planned ones."""
    planned = read_json(folder / "plan.done.json") or {}
    done = 0
    for name in planned:
        counts = (read_json(folder / f"{name}.done.json") or {}).get("cases", {})
        done += sum(count for status, count in counts.items() if status != "missing")
    return f"{done:,} of {sum(planned.values()):,}" if planned else "-"


def _report(folder: Path) -> str:
    page = folder / "report" / "index.html"
    return str(page) if page.exists() else "-"


def names(entries: Iterable["Entry"], width: int) -> Iterator[str]:
    """Yield lines of `width` columns about the names of a kind: meaning, then each option with its default."""
    for entry in entries:
        yield from _wrapped(f"{entry.name}: {entry.meaning}", width, "")
        for option in entry.options:
            meaning = f": {option.meaning}" if option.meaning else ""
            yield from _wrapped(f"{option.name} = {option.default}{meaning}", width, "    ")


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
