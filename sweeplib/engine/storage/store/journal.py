"""The journal of a dynamics, `journal/<dynamics>.jsonl`: a line for each block that was computed or taken.

A line has the block, the positions of its `rows` there (the first and the last of each run), the number of cases by
status, seconds, and the processor; if the rows were taken from another sweep, also where they were taken `from`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sweeplib.engine.storage.records.files import append_line, read_lines


def journal(directory: Path, dynamics: str) -> Path:
    """Return the path of the journal of a dynamics."""
    return directory / "journal" / f"{dynamics}.jsonl"


def processors(directory: Path, dynamics: str) -> dict[str, set[str]]:
    """Return the types of processors that computed each block; "" is unknown."""
    models: dict[str, set[str]] = {}
    for line in read_lines(journal(directory, dynamics)):
        if line.get("computed") and "cpu" in line:
            models.setdefault(str(line.get("block")), set()).add(str(line["cpu"]))
    return models


def journal_taken(
    path: Path, block: str, source: str, positions: np.ndarray, counts: Mapping[str, int], cpus: Sequence[str]
) -> None:
    """Write that rows at some ascending positions of a block were taken from a source; a line for each processor."""
    line = {"block": block, "found": 0, "seconds": 0.0, "from": source, "rows": runs_of(positions)}
    for number, cpu in enumerate(cpus or [""]):
        computed = counts if number == 0 else dict.fromkeys(counts, 0)
        append_line(path, line | {"computed": dict(computed)} | ({"cpu": cpu} if cpu else {}))


def runs_of(positions: np.ndarray) -> list[list[int]]:
    """Return the first and the last of each run of ascending positions."""
    if not len(positions):
        return []
    starts = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
    return [[int(run[0]), int(run[-1])] for run in np.split(positions, starts[1:])]


def taken_from(directory: Path, dynamics: str, block: str, position: int) -> str | None:
    """Return where a row was taken from when it was written last, as far as the journal says; None: it was computed."""
    origin = None
    for line in read_lines(journal(directory, dynamics)):
        if line.get("block") == block and any(first <= position <= last for first, last in line.get("rows", ())):
            origin = line.get("from")
    return origin
