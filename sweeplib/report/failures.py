"""The cases that did not end well, and what reproduces them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST = 100


@dataclass(frozen=True)
class Failures:
    """The first failures, by file name, and how many there are in all."""

    shown: list[dict[str, Any]]
    total: int


def failures(directory: Path) -> Failures:
    """What failures/*.json of a sweep's directory say."""
    paths = sorted((directory / "failures").glob("*.json"))
    return Failures([_row(path) for path in paths[:MOST]], len(paths))


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
