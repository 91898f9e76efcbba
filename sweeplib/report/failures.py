"""The cases that did not end well, what else failed, and what reproduces them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.storage.attempts import failed_attempts

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

IN_REPORT = ("plot", "table", "optima")
"""What the report itself makes, and what may fail of it."""

MOST = 100


@dataclass(frozen=True)
class Failures:
    """The first cases that failed, by file name, and how many there are in all."""

    shown: list[dict[str, Any]]
    total: int


def failures(directory: Path) -> Failures:
    """What failures/*.json of a sweep's directory say of cases, whose files are named by one word."""
    paths = sorted(path for path in (directory / "failures").glob("*.json") if "." not in path.stem)
    return Failures([_row(path) for path in paths[:MOST]], len(paths))


def cards(sweep: "Sweep", directory: Path) -> list[dict[str, Any]]:
    """The descriptions of what failed last of the analyses and figures of a sweep, and of what the report makes."""
    found = [
        *failed_attempts(directory, "analysis", sweep.analyses),
        *failed_attempts(directory, "figure", sweep.figures),
    ]
    return found + report_cards(directory)


def report_cards(directory: Path) -> list[dict[str, Any]]:
    """The descriptions of what failed when the report was made."""
    return [card for kind in IN_REPORT for card in failed_attempts(directory, kind)]


def _row(path: Path) -> dict[str, Any]:
    record = json.loads(path.read_text(encoding="utf-8"))
    problem = ", ".join(f"{name} = {value}" for name, value in record["problem"].items())
    return {
        "file": f"failures/{path.name}",
        "status": record["status"],
        "dynamics": record.get("case", {}).get("dynamics", ""),
        "problem": f"{problem}; seed {record['seed']}",
        "exception": record.get("exception", ""),
        "reproduce": record["reproduce"],
    }
