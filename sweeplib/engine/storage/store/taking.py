"""Cases that other run stores have, taken into one's own: by links to their segments, or as segments of some rows.

Places are indices (m,) of cases in the sweep's inventory, rows (m,) theirs in a segment of a source.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.groups import group_name
from sweeplib.engine.storage.records.files import DamageError, damaged, digest
from sweeplib.engine.storage.records.links import refuse_links
from sweeplib.engine.storage.store.earlier_store import EarlierSegment
from sweeplib.engine.storage.store.inventory import Inventory, layout_name, order_of_work
from sweeplib.engine.storage.store.origins import append_origin
from sweeplib.engine.storage.store.other_stores import FINAL, OtherCases, Source
from sweeplib.engine.storage.store.run_store import first_places, words
from sweeplib.engine.storage.store.segment import (
    RETRY,
    counts_of,
    described_variables,
    merged,
    segment_bytes,
    segment_header,
    segment_path,
    write_content,
)


def take(directory: Path, others: OtherCases, say: Callable[[str], None]) -> None:
    """Take the cases that other stores have into that of a sweep; `say` gets a line for each segment that cannot be.

    Only for the driver that holds the lock. Each segment is there whole or not at all: after an interrupt the next run
    takes the others.
    """
    if others.elsewhere is None:
        return
    dynamics, wanted = others.wanted.dynamics, others.wanted
    stored = np.sort(words(wanted.ids[wanted.segment >= 0])[:, 0])
    for source, rows, places in others.elsewhere.by_source():
        first = first_places(wanted.ids[places])
        try:
            # the whole segment would bring cases that are stored here a second time; the first words of ids tell that
            brings_others = _are_in(words(source.segment.ids)[:, 0], stored)
            content = _content(wanted, source, rows[first], places[first], by_itself=brings_others)
            # noted before the segment is there, which counts as computed here without that
            name = source.segment.name if content is None else digest(content)
            append_origin(directory, dynamics, name, source.folder, len(first))
            if content is None:
                _link(directory, dynamics, source.segment.path)
            else:
                write_content(directory, dynamics, content)
        except (DamageError, OSError) as error:
            say(f"not taken from {source.folder}: {error}")


def _are_in(values: np.ndarray, ordered: np.ndarray) -> bool:
    """Return whether any of `values` (n,) is among ascending ones, `ordered` (m,)."""
    at = np.searchsorted(ordered, values)
    return bool((ordered[np.minimum(at, len(ordered) - 1)] == values).any()) if len(ordered) else False


def _content(
    wanted: Inventory, source: Source, rows: np.ndarray, places: np.ndarray, *, by_itself: bool
) -> bytes | None:
    """Return the bytes of a new segment with some rows of a source; None if a link to the source's segment will do.

    places, rows (m,) : of the cases, in the inventory and in the source's segment.
    by_itself : whether the segment must have these rows alone.
    """
    segment, sweep = source.segment, wanted.sweep
    if not segment.is_whole():
        raise damaged(segment.path, RETRY)
    if source.recording == sweep.recording:
        will_do = not by_itself and np.isin(segment.status, FINAL).all() and not isinstance(segment, EarlierSegment)
        return None if will_do else merged([segment], rows)
    # the rows have more than the sweep records: they are written as the sweep's own would be
    cases = wanted.cases(places)
    case, simulator, status = cases[0], segment.simulator, segment.status[rows]
    work = order_of_work(case)
    header = segment_header(cases, layout_name(case, work), group_name(simulator.group(case)), work)
    header |= {"run": wanted.dynamics, "computed": counts_of(status), "seconds": 0.0, "workers": []}
    columns = {"case_id": wanted.ids[places], "status": status} | simulator.index(cases)
    columns |= source.values(rows, sweep.recording)
    described = described_variables(simulator.variables(case))
    return segment_bytes({**header, "processors": list(segment.processors), "variables": described}, columns)


def _link(directory: Path, dynamics: str, path: Path) -> None:
    """Make a segment of another folder one of a sweep: by a link, or a copy where there are none."""
    place = segment_path(directory, dynamics, path.stem)
    refuse_links(directory, place)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.hardlink_to(path)
    except FileExistsError:
        return
    except OSError:
        write_content(directory, dynamics, file_bytes(path))
