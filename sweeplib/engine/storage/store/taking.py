"""Cases that other run stores have, taken into a sweep's own: by links to their segments, or as segments of some rows.

`journal/<dynamics>.taken.jsonl` has a line for each segment that was taken: its name, from which sweep, and the number
of cases that were wanted of it.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.groups import group_name
from sweeplib.engine.storage.records.files import DamageError, append_line, damaged, read_lines
from sweeplib.engine.storage.records.links import refuse_links
from sweeplib.engine.storage.store.earlier_store import EarlierSegment
from sweeplib.engine.storage.store.inventory import Inventory, cost_class, layout_name
from sweeplib.engine.storage.store.other_stores import FINAL, OtherCases, Source
from sweeplib.engine.storage.store.run_store import first_places
from sweeplib.engine.storage.store.segment import (
    RETRY,
    counts_of,
    merged,
    segment_header,
    segment_path,
    write_content,
    write_segment,
)


def take(directory: Path, others: OtherCases, say: Callable[[str], None]) -> None:
    """Take the cases that other stores have into that of a sweep; `say` gets a line for each segment that is damaged.

    Only for the driver that holds the lock. Each segment is there whole or not at all: an interrupted run takes the
    others the next time.
    """
    if others.elsewhere is None:
        return
    for source, rows, places in others.elsewhere.by_source():
        first = first_places(others.wanted.ids[places])
        try:
            path = _segment_with(directory, others.wanted, source, rows[first], places[first])
        except (DamageError, OSError) as error:
            say(f"not taken from {source.folder}: {error}")
            continue
        line = {"segment": path.stem, "from": source.folder, "cases": len(first)}
        append_line(_journal(directory, others.wanted.dynamics), line)


def _segment_with(directory: Path, wanted: Inventory, source: Source, rows: np.ndarray, places: np.ndarray) -> Path:
    """Return the place of a segment with the cases at some places, which are in some rows of a source."""
    segment, sweep, dynamics = source.segment, wanted.sweep, wanted.dynamics
    if not segment.is_whole():
        raise damaged(segment.path, RETRY)
    if source.recording == sweep.recording:
        is_final = np.isin(segment.status, FINAL).all()
        if is_final and not isinstance(segment, EarlierSegment):
            return _linked(directory, dynamics, segment.path)
        return write_content(directory, dynamics, merged([segment], rows))
    cases = wanted.cases(places)
    case, simulator = cases[0], segment.simulator
    work = simulator.work(case)
    header = segment_header(cases, layout_name(case, work), group_name(simulator.group(case)), 4.0 ** cost_class(work))
    status = segment.status[rows]
    header |= {"computed": counts_of(status), "seconds": 0.0, "workers": [], "processors": list(segment.processors)}
    columns = {"case_id": wanted.ids[places], "status": status} | simulator.index(cases)
    data = source.values(rows, sweep.recording)
    return write_segment(directory, dynamics, header, simulator.variables(case), columns | data)


def _linked(directory: Path, dynamics: str, path: Path) -> Path:
    """Return the place of a segment of another folder in that of a sweep: a link, or a copy where there are none."""
    place = segment_path(directory, dynamics, path.stem)
    refuse_links(directory, place)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.hardlink_to(path)
    except FileExistsError:
        return place
    except OSError:
        return write_content(directory, dynamics, file_bytes(path))
    return place


def taken_cases(directory: Path, dynamics: str) -> Counter[str]:
    """Return the number of cases that were taken from each other sweep, by its name."""
    counts = Counter[str]()
    for line in read_lines(_journal(directory, dynamics)):
        counts[str(line["from"])] += int(line["cases"])
    return counts


def taken_from(directory: Path, dynamics: str) -> dict[str, str]:
    """Return from which sweep each segment was taken, by its name; those that are not there were computed."""
    return {str(line["segment"]): str(line["from"]) for line in read_lines(_journal(directory, dynamics))}


def _journal(directory: Path, dynamics: str) -> Path:
    return directory / "journal" / f"{dynamics}.taken.jsonl"
