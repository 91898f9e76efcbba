"""Places: indices of points of a grid, and those that are checked of a large one.

A point is an array (dims,) of its index along each axis; an axis may be confined to some indices, its `positions`.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sweeplib.engine.base.budget import PROBES

BATCH = 4096
"""The number of points that are looked at together."""


@runtime_checkable
class Condition(Protocol):
    """An expression, or what else says at which points a run runs."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the grid on whose values it depends."""

    @property
    def text(self) -> str:
        """A text of all that it depends on."""

    def evaluated(self, columns: Mapping[str, Sequence[Any]], count: int) -> Sequence[Any]:
        """Return whether it is true at `count` points, from the values there of its names, in `columns`."""


def some_places(positions: Sequence[Sequence[int]], most: int | None = None) -> Iterator[np.ndarray]:
    """Yield all points (points, dims) with some positions along each axis, in C order, thousands at a time.

    most : of more points than this, so many that are `scattered` over them are yielded.
    """
    lengths = tuple(map(len, positions))
    for numbers in scattered(math.prod(lengths), most):
        indices = np.unravel_index(numbers, lengths) if lengths else ()
        yield at_positions(positions, np.array(indices, np.int64).reshape(-1, len(numbers)).T)


def scattered(size: int, most: int | None = None) -> Iterator[np.ndarray]:
    """Yield the numbers below `size`, thousands at a time; if they are more than `most`, so many, spread over all.

    These are multiples of a number near the golden section of the size, and coprime to it, modulo the size.
    """
    stride, count = 1, size
    if most is not None and size > most:
        stride, count = next(n for n in itertools.count(int(0.618 * size)) if math.gcd(n, size) == 1), most
    for first in range(0, count, BATCH):
        yield np.arange(first, min(first + BATCH, count)) * stride % size


def at_positions(positions: Sequence[Sequence[int]], indices: np.ndarray) -> np.ndarray:
    """Return the points (points, dims) whose indices (points, dims) are those among the positions of each axis."""
    places = np.empty_like(indices)
    for axis, along in enumerate(positions):
        places[:, axis] = np.array(along, np.int64)[indices[:, axis]]
    return places


def probe_places(lengths: Sequence[int], most: int) -> np.ndarray:
    """Return what `probes` yields, as an array (probes, dims)."""
    places = list(probes(lengths, most))
    return np.array(places, np.int64).reshape(len(places), len(lengths))


def probed_places(positions: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]], most: int) -> np.ndarray:
    """Return the points (points, dims) that `probes` yields among the positions of each axis, and those `wanted`.

    wanted : places along each axis. If it is longer than `most`, so many of them are added, at the first of the others.
    """
    places = [at_positions(positions, probe_places([len(along) for along in positions], most))]
    for dim, along in enumerate(positions):
        if len(along) > most:
            others = np.intersect1d(wanted[dim], along)[:most]
            added = np.tile([first for first, *_ in positions], (len(others), 1))
            added[:, dim] = others
            places.append(added)
    return np.concatenate(places)


def probes(lengths: Sequence[int], most: int = PROBES) -> Iterator[tuple[int, ...]]:
    """Yield indices of points of a grid: all if at most `most`, otherwise its corners and `most` on its diagonal.

    The diagonal meets each value of every axis that is no longer than `most`.
    """
    if math.prod(lengths) <= most:
        yield from itertools.product(*map(range, lengths))
        return
    ends = [sorted({0, length - 1}) for length in lengths]
    yield from itertools.islice(itertools.product(*ends), most)
    longest = max(lengths)
    for step in range(0, longest, math.ceil(longest / most)):
        yield tuple(step % length for length in lengths)
