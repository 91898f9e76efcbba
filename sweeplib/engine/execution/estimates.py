"""Estimates: seconds of a processor that are known within a factor, of a case, a layout and a dynamics.

A layout is all cases of a dynamics of one shape and similar cost; a block is some of them, the task of a worker.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sweeplib.engine.execution.block_size import BLOCK_OVERHEAD
from sweeplib.engine.process.terminal import duration

OF_WHOLE_RUNS, OF_PARTS, GUESSED = 1.5, 1.7, 3.0
"""The factors within which costs are known that follow from whole runs, from parts of runs, and from other cases."""


@dataclass(frozen=True)
class Cost:
    """Seconds per case, known within a `factor`; `measured`, or between two that were, or extrapolated from others."""

    seconds: float
    measured: bool = True
    factor: float = OF_WHOLE_RUNS

    @property
    def most(self) -> float:
        """Return the seconds that a case takes at most."""
        return self.factor * self.seconds


class Range(NamedTuple):
    """Seconds, at least and at most."""

    least: float
    most: float

    def __str__(self) -> str:
        """Return both ends in words, the unit once if it is the same: '20 to 45 s', '26 s', '50 s to 2 min'."""
        least, most = map(duration, self)
        unit = most.partition(" ")[2]
        return most if least == most else f"{least.removesuffix(f' {unit}')} to {most}"

    def over(self, number: int) -> "Range":
        """Return the seconds if a number of workers share the work."""
        return Range(self.least / number, self.most / number)

    @classmethod
    def around(cls, seconds: float, factor: float) -> "Range":
        """Return the range of seconds that are known within a factor."""
        return cls(seconds / factor, seconds * factor)

    @classmethod
    def total(cls, ranges: Iterable["Range"]) -> "Range":
        """Return the sum of ranges, 0 to 0 of none."""
        return cls(*np.sum([(0.0, 0.0), *ranges], axis=0).tolist())


@dataclass(frozen=True)
class LayoutPlan:
    """Cases of one shape and cost: `todo` cases in blocks of `block_size`, with `seconds` and `bytes` per case.

    measured, factor : whether the seconds were, or are extrapolated, and within which factor they are known.
    steps : of a case on average.
    memory : the bytes of the large arrays of a case, such as weights and a training set.
    share : the part of the seconds that is left, below 1 where runs go on from earlier ones.
    """

    todo: int
    block_size: int
    seconds: float
    bytes: int
    measured: bool = True
    steps: float = 0.0
    memory: int = 0
    share: float = 1.0
    factor: float = OF_WHOLE_RUNS

    @property
    def blocks(self) -> int:
        """Return the number of blocks that are not done."""
        return -(-self.todo // self.block_size)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that are expected to remain."""
        return self.todo * self.seconds * self.share + self.blocks * BLOCK_OVERHEAD

    @property
    def cpu_range(self) -> Range:
        """Return the CPU seconds that remain, at least and at most."""
        return Range.around(self.cpu_seconds, self.factor)


@dataclass(frozen=True)
class DynamicsPlan:
    """The cases of one dynamics: points of the grid, cases, finished cases, and the layouts of the rest.

    copies : the number of cases that the run will take from each other folder of results.
    begun : the number of cases to compute that go on from earlier runs, by where these ended.
    loading : the CPU seconds in which a worker loads machine code before its first cases.
    """

    points: int
    cases: int
    done: int
    layouts: dict[str, LayoutPlan]
    copies: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    loading: float = 0.0

    @property
    def todo(self) -> int:
        """Return the number of cases to compute."""
        return sum(layout.todo for layout in self.layouts.values())

    @property
    def blocks(self) -> int:
        """Return the number of blocks, each one task."""
        return sum(layout.blocks for layout in self.layouts.values())

    @property
    def seconds_a_case(self) -> float:
        """Return the mean seconds of a case to compute."""
        return sum(layout.todo * layout.seconds for layout in self.layouts.values()) / max(1, self.todo)

    @property
    def guessed(self) -> int:
        """Return the number of cases to compute whose cost was not measured."""
        return sum(layout.todo for layout in self.layouts.values() if not layout.measured)

    @property
    def memory(self) -> int:
        """The bytes of memory that a case to compute takes at most, for its weights and its training set."""
        return max((layout.memory for layout in self.layouts.values() if layout.todo), default=0)

    @property
    def seconds_a_step(self) -> float:
        """The seconds that an SGD step takes on average; 0 where the number of steps is not known."""
        steps = sum(layout.todo * layout.steps for layout in self.layouts.values())
        return self.seconds_a_case * self.todo / steps if steps else 0.0

    @property
    def bytes(self) -> int:
        """Return the bytes that the cases to compute will take on disk, before compression."""
        return sum(layout.todo * layout.bytes for layout in self.layouts.values())

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that are expected to remain."""
        return sum((layout.cpu_seconds for layout in self.layouts.values()), 0.0)

    @property
    def cpu_range(self) -> Range:
        """Return the CPU seconds that remain, at least and at most."""
        return Range.total(layout.cpu_range for layout in self.layouts.values())
