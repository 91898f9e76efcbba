"""Lists for a reader: the sweeps in a folder of results, and the names that a config may use."""

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.commands.status import state
from sweeplib.engine.process.terminal import table
from sweeplib.engine.storage.records.stage_records import stage_record, stage_records
from sweeplib.errors import printable

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.config.catalogue import Entry

MARKS = ("origin.json", "config.yaml", "plan.json")
"""Files of which a sweep's folder has at least one."""
NOTHING = {"missing": 1}
"""The counts of cases by which the state of a sweep without a plan is told: unfinished."""


def sweeps(results: Path) -> "Table | None":
    """Return the sweeps in a folder of results: their state, finished cases and reports; None if there are none."""
    rows = [
        [
            printable(record["sweep"]),
            record["state"],
            "-" if record["cases"] is None else f"{record['done']:,} of {record['cases']:,}",
            record["report"] or "-",
        ]
        for record in sweep_records(results)
    ]
    return table(("sweep", "state", "cases", "report"), rows) if rows else None


def sweep_records(results: Path) -> list[dict[str, Any]]:
    """Return what `sweeps` shows as plain values: the numbers of a sweep without a plan are None."""
    folders = [path for path in sorted(results.glob("*")) if any((path / mark).exists() for mark in MARKS)]
    records = []
    for folder in folders:
        cases, page = _cases(folder), folder / "report" / "index.html"
        total = sum(sum(counts.values()) for counts in cases)
        record: dict[str, Any] = {"sweep": folder.name, "state": state(stage_records(folder), cases or [NOTHING])}
        record |= {"done": total - sum(counts["missing"] for counts in cases), "cases": total}
        record |= {} if cases else {"done": None, "cases": None}
        records.append(record | {"report": str(page) if page.exists() else None})
    return records


def name_records(entries: Iterable["Entry"]) -> list[dict[str, Any]]:
    """Return the names of a kind as plain values: meaning and options, each with its default."""
    return [entry._asdict() | {"options": [option._asdict() for option in entry.options]} for entry in entries]


def _cases(folder: Path) -> list[dict[str, int]]:
    """Return the number of cases of each dynamics of a planned sweep with each status; none without a plan."""
    from sweeplib.engine.storage.store.run_store import recorded_counts

    return list(recorded_counts(folder).values()) if stage_record(folder, "plan").counts else []


def names(entries: Iterable["Entry"], width: int, *, options: bool) -> Iterator[str]:
    """Yield lines of `width` columns about names: the meaning and, with `options`, each option with its default."""
    for entry in entries:
        yield from _wrapped(f"{entry.name}: {entry.meaning}", width, "")
        for option in entry.options if options else ():
            meaning = f": {option.meaning}" if option.meaning else ""
            yield from _wrapped(f"{option.name} = {option.default}{meaning}", width, "    ")


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Return a text in indented lines; long names are not broken, so that they can be copied."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
