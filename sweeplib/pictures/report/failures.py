"""How cases ended for the report: failures and outcomes other than ok, and failed attempts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeplib.engine.design.design import Design
from sweeplib.engine.status import OUTCOMES, failed
from sweeplib.engine.storage.records.attempts import IN_REPORT, failed_attempts
from sweeplib.engine.storage.store.outcomes import first_outcomes, outcomes_path, reason_in_words

MOST = 100
MEANINGS = {
    "inaccurate": "the error of its results became larger than its bound; it has no values from then on",
    "diverged": "its overlaps became larger than any that are computed",
    "timeout": "it did not end within the time limit",
}
"""What happened to cases that raised no exception, by status."""


@dataclass(frozen=True)
class Outcomes:
    """The first cases that ended otherwise than ok, the number of `failed` ones, and of all `others`, by status.

    tables : the paths of the tables of all of them, from the sweep's directory.
    """

    rows: list[dict[str, str]]
    failed: int
    others: Mapping[str, int]
    tables: Sequence[str] = ()

    @property
    def total(self) -> int:
        """Return the number of cases that ended otherwise than ok."""
        return self.failed + sum(self.others.values())


def outcomes(directory: Path, counts: Mapping[str, Mapping[str, int]]) -> Outcomes:
    """Return how cases ended otherwise than ok, from the tables of a sweep and the numbers of its cases by dynamics."""
    sums = sum((Counter(count) for count in counts.values()), Counter[str]())
    others = {status.name: sums[status.name] for status in OUTCOMES if sums[status.name]}
    rows = [_row(name, line) for name in counts for line in first_outcomes(directory, name, MOST)][:MOST]
    paths = [outcomes_path(directory, name) for name in counts]
    tables = [path.relative_to(directory).as_posix() for path in paths if path.exists()]
    return Outcomes(rows, failed(sums), others, tables)


def cards(sweep: Design, directory: Path) -> list[dict[str, Any]]:
    """Return the descriptions of the failed analyses and figures of a sweep, and of failed parts of the report."""
    descriptions = [
        *failed_attempts(directory, "analysis", sweep.analyses),
        *failed_attempts(directory, "figure", sweep.figures),
    ]
    return descriptions + report_cards(directory)


def report_cards(directory: Path) -> list[dict[str, Any]]:
    """Return the descriptions of what failed when the report was written."""
    return [card for kind in IN_REPORT for card in failed_attempts(directory, kind)]


def _row(dynamics: str, line: Mapping[str, str]) -> dict[str, str]:
    """Return a row of the table of outcomes by its line in the CSV file."""
    names = list(line)
    coordinates = ", ".join(f"{name} = {line[name]}" for name in names[2 : names.index("seed") + 1])
    return {
        "status": line["status"],
        "case": f"{dynamics}: {coordinates}",
        "identity": line["identity"],
        "why": reason_in_words(line) or MEANINGS.get(line["status"], ""),
    }
