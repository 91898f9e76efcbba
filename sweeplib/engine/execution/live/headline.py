"""A curve for each dynamics of the results so far, with intervals, read from the blocks as they are done."""

import math
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.engine.base.arrays import logarithmic
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.design.axis import are_numbers
from sweeplib.engine.execution.live.case_map import CaseMap, in_words
from sweeplib.engine.execution.live.graph import ResultCurve, ResultCurves
from sweeplib.engine.hints import Headline
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.store.segment import Segment, segment_path

if TYPE_CHECKING:
    from sweeplib.engine.design.axis import Axis
    from sweeplib.engine.execution.blocks import Block, BlockReport
    from sweeplib.engine.execution.work import Workload

SECONDS_TO_READ, SECONDS_AT_THE_END = 0.02, 0.5
"""How long blocks are read for one news, and for the last one."""
Statistic = Callable[[np.ndarray], tuple[float, float, float, int]]
"""Returns, of values (n,) of runs, an estimate, the low and the high end of its interval, and n."""
OUTSIDE = 0.025
"""The probability on each side of an interval."""
MOST_LOST = 0.02
"""There is no value where more than this part of the runs is lost, as in the analyses."""


class HeadlineCurves:
    """The curves of a run over one axis: what its simulator says stands for a run, its median or its mean.

    It is the longest axis of numbers; each other axis has its middle value. Without such an axis there are no curves.
    """

    def __init__(self, work: "Workload", maps: dict[str, CaseMap]) -> None:
        """Choose the axis of the curves; `maps`, by dynamics, tell where cases are on the axes."""
        axes = work.sweep.grid.axes
        numbers = [axis for axis in axes if len(axis) > 1 and are_numbers(axis.values)]
        self._axis: Axis | None = max(numbers, key=len, default=None)
        self._maps = maps
        # the place on each other axis
        self._middle = {axis.name: len(axis) // 2 for axis in axes if axis is not self._axis}
        # the same in words
        self._at = ", ".join(f"{axis.name} = {in_words(axis.values[self._middle[axis.name]])}"
                             for axis in axes if axis is not self._axis and len(axis) > 1)  # fmt: skip
        self._recording = work.sweep.recording
        self._headline: Headline | None = None  # of the last segment that was read, None before the first
        self._values: dict[str, dict[int, list[np.ndarray]]] = {}  # by dynamics and place: values (n,) of each block
        self._waiting: deque[tuple[Block, str]] = deque()  # blocks to read, with the names of their segments

    def add(self, block: "Block", report: "BlockReport") -> None:
        """Take note of a block that is done, whose values `curves` reads later."""
        # the rows of the segment are the cases of the block only if none was stored before
        if self._axis is not None and not report.stored:
            self._waiting.append((block, report.segment))

    def curves(self, *, ended: bool) -> ResultCurves | None:
        """Read blocks for a while, and return the curves; None without any value. `ended` : whether the run has."""
        until = time.monotonic() + (SECONDS_AT_THE_END if ended else SECONDS_TO_READ)
        unseen = []
        while self._waiting and time.monotonic() < until:
            if not self._read(*(waiting := self._waiting.popleft())):
                unseen.append(waiting)
        self._waiting.extend(unseen)
        if self._axis is None or self._headline is None or not self._values:
            return None
        by_name = {name: self._curve(self._values[name], self._axis) for name in self._maps if name in self._values}
        log_x = logarithmic(np.array(self._axis.values, float))
        return ResultCurves(self._axis.name, self._headline.title, self._at, of=by_name, log_x=log_x)

    def _read(self, block: "Block", name: str) -> bool:
        """Read the values of a block's cases that are at the middle of the other axes, from its segment of a `name`.

        Return whether the segment is seen here, if it has any.
        """
        assert self._axis is not None
        places, positions = self._maps[block.dynamics].along(block, self._axis.name, self._middle)
        if not len(places):
            return True
        try:
            segment = Segment(segment_path(Path(block.directory), block.dynamics, name))
            values, status = self._values_of(segment), segment.status[positions]
        except (DamageError, OSError):  # a file system that does not show it here yet
            return False
        if values is None:
            return True
        values = values[positions]
        results, ended = self._values.setdefault(block.dynamics, {}), status != Status.missing
        for place in np.unique(places[ended]).tolist():
            results.setdefault(place, []).append(values[ended & (places == place)])
        return True

    def _values_of(self, segment: Segment) -> np.ndarray | None:
        """Return the values (n,) that stand for the rows of a segment; None if its simulator draws none.

        They are infinite for a run that did not exit or diverged, NaN for one that is lost: it failed, or was stopped.
        """
        headline = segment.simulator.hints.headline(self._recording, segment.variables)
        if headline is None:
            return None
        self._headline = headline
        last, status = segment.data(headline.variable).reshape(len(segment), -1)[:, -1], segment.status
        if headline.is_passage:
            return np.where(np.isnan(last) & np.isin(status, (Status.ok, Status.diverged)), np.inf, last)
        return np.where(status == Status.diverged, np.inf, last)

    def _curve(self, values: dict[int, list[np.ndarray]], axis: "Axis") -> ResultCurve:
        """Return the curve of a dynamics: a statistic of the values at each place along an axis, where it is finite.

        values : by place, those of each block.
        """
        statistic = _median if self._headline is not None and self._headline.is_passage else _mean
        columns = [(axis.values[place], *_unless_lost(statistic, values[place])) for place in sorted(values)]
        finite = [column for column in columns if math.isfinite(column[1])]
        return ResultCurve(*map(list, zip(*finite, strict=True))) if finite else ResultCurve([], [], [], [], [])


def _unless_lost(statistic: Statistic, parts: list[np.ndarray]) -> tuple[float, float, float, int]:
    """Return a statistic of all values, the ends of its interval and the number of runs; NaN if too many runs are lost.

    parts : the values (n,) of each block, NaN for runs that are lost.
    """
    values = np.concatenate(parts)
    finished = values[~np.isnan(values)]
    if len(values) - len(finished) > MOST_LOST * len(values):
        return math.nan, math.nan, math.nan, len(finished)
    return statistic(finished)


def _median(values: np.ndarray) -> tuple[float, float, float, int]:
    """Return the median, its interval between two order statistics, and the number of values; infinite ones count.

    The interval from the (l+1)th smallest to the (l+1)th largest of n values misses the median with the probability
    2 P(B <= l), B binomial of n trials of probability 1/2.
    """
    ordered, n = np.sort(values), len(values)
    # l; -1 of five values or fewer: even the interval of all of them misses the median too often
    rank = math.floor(scipy.special.bdtrik(OUTSIDE, n, 0.5)) if n > 5 else -1
    rank -= rank >= 0 and scipy.special.bdtr(rank, n, 0.5) > OUTSIDE  # a numerical root may be one too large
    ends = (ordered[rank], ordered[n - 1 - rank]) if rank >= 0 else (math.nan, math.nan)
    middle = ordered[(n - 1) // 2 : n // 2 + 1]
    return float(middle.mean()), float(ends[0]), float(ends[1]), n


def _mean(values: np.ndarray) -> tuple[float, float, float, int]:
    """Return the mean, its interval by Student's t if there are three values and all are finite, and their number."""
    mean, n = float(values.mean()), len(values)
    if n < 3 or not math.isfinite(mean):
        return mean, math.nan, math.nan, n
    # for a picture of a run that goes on: final intervals are those of `statistics`, which the engine cannot import
    half = float(scipy.special.stdtrit(n - 1, 1 - OUTSIDE) * values.std(ddof=1) / math.sqrt(n))
    return mean, mean - half, mean + half, n
