"""Cases that ended otherwise than ok: why, as their workers tell, and a table of them.

`journal/<dynamics>.reasons.jsonl` has a line for all cases of a block that ended for the same reason: an exception, or
a quantity above its bound. Diverged cases and those that were stopped at their time limit need none. A case may have
several lines, of earlier attempts; the last one with its present status counts. `outcomes/<dynamics>.csv` has a line
for each case, those with a reason first. It follows from the run store and the reasons, and is written at the end of a
run. Places are indices (n,) of cases in the sweep's inventory.
"""

import csv
import io
import platform
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.files.regular_files import open_text
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.status import FAILURES, Excess, Status
from sweeplib.engine.storage.records.files import REPAIR, append_line, damaged, lost, read_lines, write_text
from sweeplib.engine.storage.records.provenance import versions
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store.inventory import Inventory
from sweeplib.engine.storage.store.run_store import RunStore, by_segment, whole

Reason = Trouble | Excess
"""Why a case ended as it did: an exception, or a quantity above its bound."""

EXPLAINED = (*FAILURES, Status.inaccurate)
"""The statuses of cases that have a reason."""
SAID = ("time", "quantity", "value", "bound", "exception")
"""What the table has of a reason."""


def reasons_path(directory: Path, dynamics: str) -> Path:
    """Return the path of the reasons of a dynamics."""
    return directory / "journal" / f"{dynamics}.reasons.jsonl"


def outcomes_path(directory: Path, dynamics: str) -> Path:
    """Return the path of the table of the cases of a dynamics that ended otherwise than ok."""
    return directory / "outcomes" / f"{dynamics}.csv"


def append_reasons(directory: Path, dynamics: str, endings: Iterable[tuple[bytes, Status, Reason]]) -> None:
    """Append why cases ended as they did, by their identities; equal reasons with equal status are one line."""
    cases: dict[tuple[Status, Reason], list[str]] = {}
    for identity, status, reason in endings:
        cases.setdefault((status, reason), []).append(identity.hex())
    for (status, reason), ids in cases.items():
        line: dict[str, Any] = {"status": status.name, "cases": ids}
        if isinstance(reason, Trouble):
            line |= {"exception": reason.exception, "traceback": reason.traceback}
            line |= {"versions": versions(), "machine": platform.platform()}
        else:
            line |= reason._asdict()
        append_line(reasons_path(directory, dynamics), line)


def reasons(directory: Path, dynamics: str) -> dict[tuple[bytes, Status], dict[str, Any]]:
    """Return the last reason why each case, by its identity, ended with a status, as its line in the journal has it."""
    return {
        (bytes.fromhex(identity), Status[line["status"]]): line
        for line in read_lines(reasons_path(directory, dynamics))
        for identity in line["cases"]
    }


def reason_in_words(line: Mapping[str, Any]) -> str:
    """Return why a case ended as it did, from a line of the journal or of the table; empty if that has no reason."""
    if line.get("quantity"):
        return str(Excess(float(line["time"]), line["quantity"], float(line["value"]), float(line["bound"])))
    return str(line.get("exception", ""))


def cases_without_reason(wanted: Inventory) -> list[bytes]:
    """Return the identities of the cases that should have a reason and have none."""
    ended = np.isin(wanted.status, EXPLAINED)
    if not ended.any():
        return []
    explained = reasons(wanted.store.directory, wanted.dynamics)
    pairs = zip(wanted.ids[ended], wanted.status[ended], strict=True)
    return sorted(
        {bytes(identity) for identity, status in pairs if (whole(identity), Status(int(status))) not in explained}
    )


def write_outcomes(wanted: Inventory) -> None:
    """Write the table of the cases that ended otherwise than ok; remove it if all ended ok."""
    path = outcomes_path(wanted.store.directory, wanted.dynamics)
    if text := outcomes_table(wanted):
        write_text(path, text, durable=False)
    else:
        path.unlink(missing_ok=True)


def outcomes_table(wanted: Inventory) -> str:
    """Return the table of the cases that ended otherwise than ok as CSV, empty if there are none."""
    places = np.flatnonzero(wanted.status > Status.ok)
    if not len(places):
        return ""
    # those with a reason first
    places = places[np.argsort(~np.isin(wanted.status[places], EXPLAINED), kind="stable")]
    names, text = (*wanted.sweep.grid.names, "seed"), io.StringIO()
    columns = [wanted.column(name, places).tolist() for name in names]
    ends = np.where(np.isnan(last := _ends(wanted, places)), "", last.astype(object)).T.tolist()
    written = csv.writer(text, lineterminator="\n")
    written.writerow(["identity", "status", *names, *_end_names(wanted.store), *SAID])
    for identity, status, coordinates, end, reason in zip(
        wanted.ids[places].tolist(),
        wanted.status[places].tolist(),
        zip(*columns, strict=True),
        ends,
        _reason_cells(wanted, places),
        strict=True,
    ):
        written.writerow([whole(identity).hex(), Status(status).name, *coordinates, *end, *reason])
    return text.getvalue()


def first_outcomes(directory: Path, dynamics: str, most: int) -> list[dict[str, str]]:
    """Return the first `most` lines of the table of a dynamics; none if all cases ended ok, or its first run goes on.

    DamageError for another file in its place, and if the last run that ended has left one that is gone.
    """
    path = outcomes_path(directory, dynamics)
    if not path.exists():
        record = stage_record(directory, f"simulate.{dynamics}")
        if record.made_from and record.counts.keys() - {Status.ok.name}:
            raise lost(path, REPAIR)
        return []
    try:
        with open_text(path, newline="") as text:
            table = csv.DictReader(text, strict=True)
            lines = list(islice(table, most))
        is_table = [*(names := table.fieldnames or [])[:2]] == ["identity", "status"] and {"seed", *SAID} <= {*names}
        is_table &= all(line.keys() == {*names} and None not in line.values() for line in lines)
        for line in lines if is_table else ():
            reason_in_words(line)  # whose numbers are read
    except (ValueError, csv.Error):
        is_table = False
    if not is_table:
        raise damaged(path, REPAIR)
    return lines


def _ends(wanted: Inventory, places: np.ndarray) -> np.ndarray:
    """Return how far the cases at places (n,) came: the values (ends, n) of the variables `_end_names`, or NaN."""
    names = _end_names(wanted.store)
    ends = np.full((len(names), len(places)), np.nan)
    for number, rows, indices in by_segment(wanted.segment[places], wanted.row[places]):
        for end, name in zip(ends, names, strict=True):
            end[indices] = wanted.store.segments[number].data(name)[rows]
    return ends


def _end_names(store: RunStore) -> tuple[str, ...]:
    """Return the variables that say how far runs of a store came."""
    return next((segment.simulator.ends for segment in store.segments), ())


def _reason_cells(wanted: Inventory, places: np.ndarray) -> Iterator[list[Any]]:
    """Yield the cells of the columns `SAID` for each case at some places, empty where a case has no reason."""
    explained = np.isin(wanted.status[places], EXPLAINED).any()
    lines = reasons(wanted.store.directory, wanted.dynamics) if explained else {}
    for identity, status in zip(wanted.ids[places].tolist(), wanted.status[places].tolist(), strict=True):
        line = lines.get((whole(identity), Status(status)), {})
        yield [" ".join(cell.split()) if isinstance(cell := line.get(name, ""), str) else cell for name in SAID]
