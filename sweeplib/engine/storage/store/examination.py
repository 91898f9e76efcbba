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
    damaged = {}
    for path in segment_paths(directory, dynamics):
        ids = np.empty(0, "S16")
        with suppress(DamageError, OSError):
            segment = Segment(path)
            ids = segment.ids
            if segment.is_whole():
                continue
        damaged[path] = ids
    return damaged
