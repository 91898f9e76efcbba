"""Examination of the run store: every segment is read, and compared with the digest that is its name."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.store.run_store import segment_paths
from sweeplib.engine.storage.store.segment import Segment


def damaged_segments(directory: Path, dynamics: str) -> dict[Path, np.ndarray]:
    """Return the damaged segments of a dynamics, with the identities (n,) of their cases as far as these can be read.

    Something else than a file in the place of a segment is damage too.
    """
    return {path: _ids(path) for path in segment_paths(directory, dynamics) if not _is_whole(path)}


def _is_whole(path: Path) -> bool:
    """Return whether a file is a segment as it was written."""
    with suppress(DamageError, OSError):
        return Segment(path).is_whole()
    return False


def _ids(path: Path) -> np.ndarray:
    """Return the identities (n,) of a segment's cases, none if they cannot be read."""
    with suppress(DamageError, OSError):
        return Segment(path).ids
    return np.empty(0, "S16")
