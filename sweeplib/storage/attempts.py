"""What the stages after the simulation make, one thing at a time: one that fails is described, and stops no other.

The description is `failures/<kind>.<name>.json`, which the report shows as a card. The journal counts how often a thing
has failed, so that a workflow can tell that it is to be tried again.
"""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeplib.errors import SweeplibError
from sweeplib.process.troubles import Trouble
from sweeplib.storage.files import append_line, read_json, read_lines, write_json
from sweeplib.storage.provenance import versions


@dataclass
class Attempt:
    """Something that a stage makes: an analysis, say, and its name; `paths` of what was written, or the `problem`."""

    kind: str
    name: str
    paths: tuple[Path, ...] = ()
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f": {self.problem}" if self.problem else "")


@contextmanager
def attempted(directory: Path, kind: str, name: str, reproduce: str) -> Iterator[Attempt]:
    """An attempt; what is raised within is its problem, described in a sweep's directory, and goes no further.

    `reproduce` is code that raises it again, run in that directory.
    """
    attempt = Attempt(kind, name)
    try:
        yield attempt
    except (Exception, SystemExit) as error:
        attempt.problem = _in_a_line(error)
        write_json(_path(directory, kind, name), _description(attempt, error, reproduce))
        append_line(_journal(directory), {"kind": kind, "name": name, "problem": attempt.problem})
    else:
        _path(directory, kind, name).unlink(missing_ok=True)


def failed_attempts(directory: Path, kind: str, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The descriptions of the attempts of a kind that failed when they were made last: all, or those with the names."""
    if names is None:
        names = sorted(path.name[len(kind) + 1 : -len(".json")] for path in (directory / "failures").glob(f"{kind}.*"))
    found = (read_json(_path(directory, kind, name)) for name in names)
    return [description for description in found if description is not None]


def forget_attempts(directory: Path, kind: str) -> None:
    """Remove the descriptions of all attempts of a kind; the journal keeps their number."""
    for path in (directory / "failures").glob(f"{kind}.*.json"):
        path.unlink()


def past_failures(directory: Path) -> Counter[tuple[str, str]]:
    """How often each (kind, name) has failed until now."""
    lines = read_lines(_journal(directory))
    return Counter((line["kind"], line["name"]) for line in lines if {"kind", "name"} <= line.keys())


def _path(directory: Path, kind: str, name: str) -> Path:
    return directory / "failures" / f"{kind}.{name}.json"


def _journal(directory: Path) -> Path:
    return directory / "journal" / "attempts.jsonl"


def _description(attempt: Attempt, error: BaseException, reproduce: str) -> dict[str, Any]:
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
    said = str(error) if isinstance(error, SweeplibError) else Trouble.from_exception(error).exception
    return " ".join(said.split())
