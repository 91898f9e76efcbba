"""Rows of a layout: the columns of its index that simulators write, the blocks of some rows."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

OWN_FIELDS = ("problem", "seed", "clock")
"""The columns of the index that are fields of a case: its values as a text, its seed, the factor of its times."""


def by_block(rows: np.ndarray, block_size: int) -> Iterator[tuple[int, slice, np.ndarray]]:
    """Yield, for each block with some of the ascending rows (n,), its number, which rows those are, and where in it."""
    number = rows // block_size
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    for some in (slice(*ends) for ends in pairwise([*starts, len(rows)])):
        block = int(number[some.start])
        yield block, some, rows[some] - block * block_size
