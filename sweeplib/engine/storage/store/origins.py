"""Origins: from which sweeps the segments of a store were taken, and which cases are to be computed here.

`journal/<dynamics>.taken.jsonl` has a line for each segment that was taken: its name, the folder of the sweep, and the
number of cases that were wanted of it. A segment does not say it itself: where it is a link, it is that of the other
sweep. `journal/<dynamics>.forgotten.jsonl` has the identities of cases that were made missing here, by `retry` or a
repair: to take what another sweep has of them would undo that.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sweeplib.engine.storage.records.files import append_line, read_lines
from sweeplib.engine.storage.store.segment import segment_path


def append_origin(directory: Path, dynamics: str, name: str, folder: str, cases: int) -> None:
    """Append that a segment was taken, or is about to be, from the sweep in a folder, for a number of cases.

    name, folder : of the segment, and of the other sweep's results.
    """
    append_line(_journal(directory, dynamics), {"segment": name, "from": folder, "cases": cases})


def taken_from(directory: Path, dynamics: str) -> dict[str, str]:
    """Return the name of the sweep from which each segment was taken, by the segment's; others were computed here."""
    return {str(line["segment"]): str(line["from"]) for line in read_lines(_journal(directory, dynamics))}


def taken_cases(directory: Path, dynamics: str) -> Counter[str]:
    """Return the number of cases that were taken from each other sweep, by its name."""
    lines = {line["segment"]: line for line in read_lines(_journal(directory, dynamics))}
    counts = Counter[str]()
    for name, line in lines.items():
        if segment_path(directory, dynamics, name).exists():
            counts[str(line["from"])] += int(line["cases"])
    return counts


def append_forgotten(directory: Path, dynamics: str, identities: Iterable[bytes]) -> None:
    """Append the identities of cases that were made missing."""
    append_line(_forgotten(directory, dynamics), {"cases": [identity.hex() for identity in identities]})


def forgotten_cases(directory: Path, dynamics: str) -> set[bytes]:
    """Return the identities of the cases that were made missing."""
    lines = read_lines(_forgotten(directory, dynamics))
    return {bytes.fromhex(identity) for line in lines for identity in line["cases"]}


def origin_paths(directory: Path, dynamics: str) -> tuple[Path, Path]:
    """Return the paths of the two files, which need not be there."""
    return _journal(directory, dynamics), _forgotten(directory, dynamics)


def _forgotten(directory: Path, dynamics: str) -> Path:
    return directory / "journal" / f"{dynamics}.forgotten.jsonl"


def _journal(directory: Path, dynamics: str) -> Path:
    return directory / "journal" / f"{dynamics}.taken.jsonl"
