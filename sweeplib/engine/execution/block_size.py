"""The number of cases per block: some seconds of work, in whole groups of the lanes in which they are computed."""

import math

import numpy as np

from sweeplib.engine.cases import Case

BLOCK_SECONDS = 2.0
"""The work of a usual block."""
LONGEST_BLOCK_SECONDS = 60.0
"""The work that a crash may cost a worker, and the time for which the last worker may keep the others waiting."""
BLOCK_OVERHEAD = 0.01
"""Seconds of a block in addition to its cases."""
BLOCK_BYTES = 64 * 2**20
"""The bytes of a block's results, uncompressed, at most."""
FEWEST_CASES, MOST_CASES = 16, 2**15
"""Of a block."""

Lanes = tuple[int, int]
"""The smallest and the largest number of cases that a kernel computes together (`Simulator.lanes`)."""


def block_size(seconds: float, nbytes: int, lanes: Lanes = (1, 1), target: float = BLOCK_SECONDS) -> int:
    """Return the number of cases of a block: about `target` seconds of work, in whole groups of lanes.

    seconds, nbytes : of one case: its work, and its results.
    The number is from 16 to 32,768, but fewer if so many take more than a minute or their results exceed 64 MiB.
    """
    least = max(FEWEST_CASES, lanes[1])
    cases = min(max(int(target / max(seconds, 1e-9)), least), MOST_CASES, max(1, BLOCK_BYTES // nbytes))
    cases = max(1, min(cases, int(LONGEST_BLOCK_SECONDS / max(seconds, 1e-9))))
    group = next((width for width in reversed(lanes) if width <= cases), 1)
    return cases // group * group


def even(size: int, cases: int, lanes: Lanes = (1, 1)) -> int:
    """Return the block size that divides `cases` evenly into as many blocks as `size` does, in groups of lanes."""
    # -(-a // b) is a / b, rounded up
    if not cases:
        return size
    equal = -(-cases // -(-cases // size))
    group = lanes[1] if equal > lanes[1] else lanes[0]
    return min(size, -(-equal // group) * group)


def case_bytes(case: Case) -> int:
    """Return the bytes of a case's results before compression, including its status and index."""
    arrays = case.simulator.variables(case).values()
    return sum(math.prod(array.shape) * np.dtype(array.dtype).itemsize for array in arrays) + 33
