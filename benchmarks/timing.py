"""Paired timings: sweeplib, the baseline and the floor take turns, so that other load slows all of them equally."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

TURN = 0.05
"""Seconds for which short work is repeated in a turn."""

LONG, FEWEST = 60.0, 3
"""After so many seconds a benchmark ends, with so many turns at least."""

Work = Callable[[], float]
"""Does some work once and returns how many units of it there were."""


@dataclass(frozen=True)
class Benchmark:
    """A measurement: `ours` against a plain `baseline` that does the same, and a `floor`, a lower bound of the time.

    `unit` is one unit of the work; `reach` is the goal, in seconds per unit.
    """

    name: str
    unit: str
    ours: Work
    baseline: Work | None = None
    baseline_is: str = ""
    floor: Work | None = None
    floor_is: str = ""
    reach: float | None = None


@dataclass(frozen=True)
class Measured:
    """Seconds per unit, the best of all turns; `ratio` and `over_floor` are medians over turns of paired quotients."""

    name: str
    unit: str
    seconds: float
    reach: float | None
    baseline: float | None
    baseline_is: str
    ratio: float | None
    floor: float | None
    floor_is: str
    over_floor: float | None

    def record(self) -> dict[str, object]:
        """Return all values for JSON."""
        return asdict(self)


def measured(benchmark: Benchmark, turns: int) -> Measured:
    """Return the benchmark's seconds per unit, after one turn that is not counted."""
    works = {"ours": benchmark.ours, "baseline": benchmark.baseline, "floor": benchmark.floor}
    there = {name: work for name, work in works.items() if work is not None}
    for work in there.values():
        work()
    taken = {name: [] for name in there}  # type: dict[str, list[float]]
    began = time.perf_counter()
    for turn in range(turns):
        if turn >= FEWEST and time.perf_counter() - began > LONG:
            break
        for name, work in there.items():
            taken[name].append(_seconds(work))
    best = {name: min(times) for name, times in taken.items()}
    return Measured(
        benchmark.name,
        benchmark.unit,
        best["ours"],
        benchmark.reach,
        best.get("baseline"),
        benchmark.baseline_is,
        _quotient(taken.get("baseline"), taken["ours"]),
        best.get("floor"),
        benchmark.floor_is,
        _quotient(taken["ours"], taken.get("floor")),
    )


def _seconds(work: Work) -> float:
    """Return the best of the repetitions that fit into `TURN`; short work is thus timed when nothing else runs."""
    goes = []
    began = time.perf_counter()
    while not goes or time.perf_counter() - began < TURN:
        started = time.perf_counter()
        units = work()
        goes.append((time.perf_counter() - started) / units)
    return min(goes)


def _quotient(above: list[float] | None, below: list[float] | None) -> float | None:
    if above is None or below is None:
        return None
    return statistics.median(_quotients(above, below))


def _quotients(above: list[float], below: list[float]) -> Iterator[float]:
    return (one / other for one, other in zip(above, below, strict=True))
