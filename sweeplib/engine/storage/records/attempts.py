"""Attempts of the stages after the simulation (analyses, figures, report); a failed one does not stop the others.

A failure is described in the record of the stage, which the report shows as a card, until an attempt succeeds; the next
workflow tries again.
"""

import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.storage.records.provenance import versions
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_record, stage_records
from sweeplib.errors import SweeplibError

IN_REPORT = ("plot", "table", "optima")
"""The kinds of attempts of which the report consists."""
_STAGES = {"analysis": "analyse.", "figure": "figure."}
"""The beginnings of the names of the stages that are an attempt themselves, by its kind."""


@dataclass
class Attempt:
    """An attempt to make something: the `paths` it wrote, or its `problem` in a line.

    kind : "analysis", "figure", or one of `IN_REPORT`. name : of what is made.
    """

    kind: str
    name: str
    paths: tuple[Path, ...] = ()
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f": {self.problem}" if self.problem else "")


@contextmanager
def attempt_of(directory: Path, kind: str, name: str, reproduce: str) -> Iterator[Attempt]:
    """Yield an attempt; an exception raised within becomes its problem, is recorded, and is not passed on.

    `reproduce` is code that raises the exception again when run in the sweep's directory.
    """
    attempt = Attempt(kind, name)
    stage = f"{_STAGES[kind]}{name}" if kind in _STAGES else "report"
    with recorded_stage(directory, stage) as record:
        others = [failure for failure in record.failures if (failure["kind"], failure["name"]) != (kind, name)]
        try:
            yield attempt
        except (Exception, SystemExit) as error:
            attempt.problem = _in_a_line(error)
            others.append(_description(attempt, error, reproduce))
        if kind in _STAGES:
            record.news["problem"] = attempt.problem
        if others != record.failures:
            record.tell_failures(others)


def failed_attempts(directory: Path, kind: str, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return the descriptions of attempts of a kind that failed the last time: of all, or of some names."""
    if kind not in _STAGES:
        records = [stage_record(directory, "report")]
    elif names is not None:
        records = [stage_record(directory, f"{_STAGES[kind]}{name}") for name in names]
    else:
        records = [record for stage, record in stage_records(directory).items() if stage.startswith(_STAGES[kind])]
    return [failure for record in records for failure in record.failures if failure["kind"] == kind]


def _description(attempt: Attempt, error: BaseException, reproduce: str) -> dict[str, Any]:
    """Return what the record says of a failed attempt, and the report shows; `reproduce` as in `attempt_of`."""
    return {
        "kind": attempt.kind,
        "name": attempt.name,
        "exception": attempt.problem,
        "traceback": Trouble.from_exception(error).traceback,
        "reproduce": reproduce,
        "versions": versions(),
        "machine": platform.platform(),
    }


def _in_a_line(error: BaseException) -> str:
    """Return what an exception says in one line, with its kind if it is none of sweeplib's own."""
    message = str(error) if isinstance(error, SweeplibError) else Trouble.from_exception(error).exception
    return " ".join(message.split())
