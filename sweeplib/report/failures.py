"""Failures for the report: cases that did not end well, failed attempts, and code that reproduces them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.storage.attempts import failed_attempts
from sweeplib.storage.failures import failure_files
from sweeplib.storage.files import read_json

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

IN_REPORT = ("plot", "table", "optima")
"""The kinds of attempts of the report itself."""

MOST = 100
MEANINGS = {
    "inaccurate": "the error of its results became larger than its bound; it has no values from then on",
    "diverged": "its overlaps became larger than any that are computed",
    "timeout": "it did not end within the time limit",
}
"""What happened to cases that raised no exception, by status."""


@dataclass(frozen=True)
class Failures:
    """The first failed cases, by file name, and the number of failed cases."""

    shown: list[dict[str, Any]]
    total: int


def failures(directory: Path) -> Failures:
    """Return the failed cases described in failures/*.json of a sweep's directory."""
    paths = failure_files(directory)
    return Failures([_row(path) for path in paths[:MOST]], len(paths))


def cards(sweep: "Sweep", directory: Path) -> list[dict[str, Any]]:
    """Return the descriptions of the failed analyses and figures of a sweep, and of failed parts of the report."""
    found = [
        *failed_attempts(directory, "analysis", sweep.analyses),
        *failed_attempts(directory, "figure", sweep.figures),
    ]
    return found + report_cards(directory)


def report_cards(directory: Path) -> list[dict[str, Any]]:
    """Return the descriptions of what failed when the report was written."""
    return [card for kind in IN_REPORT for card in failed_attempts(directory, kind)]


def _row(path: Path) -> dict[str, Any]:
    record = read_json(path) or {}
    problem = ", ".join(f"{name} = {value}" for name, value in record["problem"].items())
    return {
        "file": f"failures/{path.name}",
        "status": record["status"],
        "dynamics": record.get("case", {}).get("dynamics", ""),
        "problem": f"{problem}; seed {record['seed']}",
        "exception": record.get("exception", MEANINGS.get(record["status"], "")),
        "reproduce": record["reproduce"],
    }
