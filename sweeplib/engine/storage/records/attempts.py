"""Attempts of the stages after the simulation (analyses, figures, report); a failed one does not stop the others.

A failure is described in `failures/<kind>.<name>.json`, which the report shows as a card, until an attempt succeeds;
the next workflow tries again.
"""

import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.storage.records.files import read_json, write_json
from sweeplib.engine.storage.records.provenance import versions
from sweeplib.errors import SweeplibError

IN_REPORT = ("plot", "table", "optima")
"""The kinds of attempts of which the report consists."""


@dataclass
class Attempt:
    """An attempt: its kind (for example "analysis"), its name, and the `paths` it wrote or its `problem`."""

    kind: str
    name: str
    paths: tuple[Path, ...] = ()
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f": {self.problem}" if self.problem else "")


@contextmanager
def attempt_of(directory: Path, kind: str, name: str, reproduce: str) -> Iterator[Attempt]:
    """Yield an attempt; an exception raised within becomes its problem, is described on disk, and is not passed on.

    `reproduce` is code that raises the exception again when run in the sweep's directory.
    """
    attempt = Attempt(kind, name)
    try:
        yield attempt
    except (Exception, SystemExit) as error:
        attempt.problem = _in_a_line(error)
        write_json(_path(directory, kind, name), _description(attempt, error, reproduce))
    else:
        _path(directory, kind, name).unlink(missing_ok=True)


def failed_attempts(directory: Path, kind: str, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return the descriptions of the attempts of a kind whose last run failed: all, or those with the names."""
    if names is None:
        names = sorted(path.name[len(kind) + 1 : -len(".json")] for path in (directory / "failures").glob(f"{kind}.*"))
    descriptions = (read_json(_path(directory, kind, name)) for name in names)
    return [description for description in descriptions if description is not None]


def forget_attempts(directory: Path, kind: str) -> None:
    """Remove the descriptions of all attempts of a kind."""
    for path in (directory / "failures").glob(f"{kind}.*.json"):
        path.unlink()


def _path(directory: Path, kind: str, name: str) -> Path:
    return directory / "failures" / f"{kind}.{name}.json"


def _description(attempt: Attempt, error: BaseException, reproduce: str) -> dict[str, Any]:
    """Return what is written of a failed attempt."""
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
    message = str(error) if isinstance(error, SweeplibError) else Trouble.from_exception(error).exception
    return " ".join(message.split())
