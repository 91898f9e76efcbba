"""Descriptions of cases that did not end well, with code that reproduces them: `failures/<identity>.json`.

There may be thousands, so they are not forced onto the disk; `sweeplib verify` names those that a power cut took.
"""

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweeplib.process.troubles import Trouble
from sweeplib.simulation import Case, Status
from sweeplib.storage.files import write_json
from sweeplib.storage.provenance import versions
from sweeplib.storage.rows import shared_fields

_NAME = re.compile(r"[0-9a-f]{32}\.json")
SNIPPET = """\
from sweeplib.code.plugins import load_plugins
from sweeplib.problem import Problem
from sweeplib.simulation import Case, Recording, run_cases

load_plugins({plugins!r})
records = run_cases([{case!r}])
print(records.status, records.data)
"""


def failure_files(directory: Path) -> list[Path]:
    """Return the descriptions of failed cases in a sweep's directory, which have the names of identities."""
    return sorted(path for path in (directory / "failures").glob("*.json") if _NAME.fullmatch(path.name))


def failure_path(directory: Path, identity: bytes) -> Path:
    """Return the path of the description of a failed case."""
    return directory / "failures" / f"{identity.hex()}.json"


def write_failure(
    directory: Path, case: Case, status: Status, plugins: Sequence[str] = (), trouble: Trouble | None = None
) -> Path:
    """Describe a case that ended with `status`: the case, its trouble, code that reproduces it; return the path."""
    record: dict[str, Any] = {
        "status": status.name,
        "problem": case.problem.canonical(),
        "seed": case.seed,
        "clock": case.clock,
        "case": shared_fields(case),
        "versions": versions(),
        "machine": platform.platform(),
        "reproduce": SNIPPET.format(plugins=tuple(plugins), case=case),
    }
    if trouble is not None:
        record["exception"], record["traceback"] = trouble.exception, trouble.traceback
    return write_json(failure_path(directory, case.identity()), record, durable=False)
