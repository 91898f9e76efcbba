"""What a case costs on this machine: seconds measured on a few real cases, in a process of their own.

A case may kill its process, hang it or take all memory, in a pilot as anywhere: then the pilot is given up, its cost is
extrapolated, and the run finds the case.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from sweeplib.execution.child import Child, DiedError, EndedError, Limits, MemoryUpError, TimeUpError
from sweeplib.execution.guarded import GRACE
from sweeplib.execution.pilots import compiled, measured
from sweeplib.execution.progress import Steps
from sweeplib.process.troubles import Trouble
from sweeplib.simulation import Case, case_work

PILOT_SECONDS = 1.5
PILOT_CASES = 128
PAIR = 2
"""Cases of which a kernel sees arrays laid out as those of many: of one, it would be compiled for another layout."""

LEAST_SECONDS = 0.1
HANG_SECONDS = 10.0
SETUP_SECONDS = 60.0
MOST_DEATHS = 3
SECONDS_A_WORK_UNIT = 1e-10


@dataclass(frozen=True)
class Pilot:
    """Cases of one layout that stand for all, the costliest first; `name` tells it from the other pilots."""

    name: str
    cases: tuple[Case, ...]

    @property
    def dynamics(self) -> str:
        """The dynamics of the cases."""
        return self.cases[0].dynamics

    @property
    def kind(self) -> tuple[str, ...]:
        """What needs kernels of its own."""
        problem = self.cases[0].problem
        return (self.dynamics, problem.activation, problem.teacher, problem.target)

    @property
    def title(self) -> str:
        """What it measures, for a reader."""
        problem = self.cases[0].problem
        taught = problem.teacher if problem.target == "committee" else problem.target
        pair = problem.activation if taught == problem.activation else f"{problem.activation} of {taught}"
        return f"{self.dynamics} ({pair}, p = {problem.p}, k = {problem.k})"

    @cached_property
    def work_a_case(self) -> float:
        """The nominal work of a case of the layout."""
        return sum(map(case_work, self.cases)) / len(self.cases)


@dataclass(frozen=True)
class Cost:
    """Seconds a case; `measured`, or extrapolated from other cases of the dynamics."""

    seconds: float
    measured: bool


class Calibration:
    """A process that measures; it starts with the context, so that its imports are done when the pilots are known.

    A pilot that takes more than `memory` bytes is ended, and one that takes `hang_seconds` longer than it is measured
    for: ten, or the `timeout` of a case where that is less.
    """

    def __init__(
        self,
        plugins: Sequence[str] = (),
        steps: Steps | None = None,
        memory: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self.plugins, self.steps, self.memory = tuple(plugins), steps or Steps(), memory
        self.hang_seconds = HANG_SECONDS if timeout is None else min(HANG_SECONDS, timeout + GRACE)
        self.setup_seconds = SETUP_SECONDS if timeout is None else self.hang_seconds
        self._deaths = 0
        self._seconds: dict[str, float] = {}
        self._least: dict[str, float] = {}
        self._compiled: set[tuple[str, ...]] = set()

    def __enter__(self) -> "Calibration":
        """Start the process."""
        self.child = Child(self.plugins)
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it does."""
        self.child.close()

    def costs(self, pilots: Iterable[Pilot]) -> dict[str, Cost]:
        """What a case costs, by the pilot's name, after about 1.5 s of measuring in all, or 0.1 s a pilot if more.

        Compilation comes first and does not count; it leaves the kernels in numba's cache, where the workers find them.
        """
        ordered = sorted(pilots, key=lambda pilot: (pilot.kind, pilot.work_a_case))
        seconds = PILOT_SECONDS / max(1, len({pilot.dynamics for pilot in ordered}))
        for _, group in groupby(ordered, key=lambda pilot: pilot.dynamics):
            some = list(group)
            self._measure(some, max(LEAST_SECONDS, seconds / len(some)))
        return _extrapolated(ordered, self._seconds, self._least)

    def _measure(self, pilots: Sequence[Pilot], seconds: float) -> None:
        """Measure the pilots of a dynamics, until one's time is up: the costlier ones' would be, too."""
        for _, group in groupby(pilots, key=lambda pilot: pilot.kind):
            some = list(group)
            others = f" and {len(some) - 1} more" if len(some) > 1 else ""
            try:
                self.compile(some[0])
                with self.steps.step(f"measuring {some[0].title}{others}"):
                    for pilot in some:
                        with suppress(DiedError, MemoryUpError):
                            self._seconds[pilot.name] = self.cost(pilot, seconds)
            except TimeUpError:
                return
            except EndedError:
                continue

    def compile(self, pilot: Pilot) -> None:
        """Let the process compile what a pilot needs, if it was not told to before. EndedError if that ends it."""
        if pilot.kind not in self._compiled:
            self._compiled.add(pilot.kind)
            with self.steps.step(f"compiling {pilot.title}"):
                self._asked(pilot, self.setup_seconds, compiled, pilot.cases[:PAIR])

    def cost(self, pilot: Pilot, seconds: float) -> float:
        """The seconds that a case of a pilot takes, measured for so long; EndedError if that ends the process.

        A line says so, and the next pilot is measured in a new process.
        """
        self._asked(pilot, self.setup_seconds, compiled, pilot.cases[:PAIR])
        taken, done = self._asked(pilot, seconds + self.hang_seconds, measured, pilot.cases, seconds)
        return taken / done if done > 0 else taken

    def _asked(self, pilot: Pilot, seconds: float, task: Callable[..., Any], *args: Any) -> Any:
        """What a task returns that may take so many seconds, compilation aside."""
        if self._deaths >= MOST_DEATHS:
            raise DiedError(Trouble("too many processes died"))
        try:
            return self.child.call(task, *args, limits=Limits(seconds, self.memory))
        except EndedError as error:
            if isinstance(error, TimeUpError):
                self._least[pilot.name] = seconds / len(pilot.cases)
            else:
                self._deaths += 1
            self.steps.say(f"{pilot.title}: {error}; the cost of its cases is extrapolated")
            raise


def _extrapolated(
    pilots: Sequence[Pilot], measured: Mapping[str, float], least: Mapping[str, float]
) -> dict[str, Cost]:
    """What a case of each pilot costs: measured, or its work at the rate of its dynamics' costliest that is known.

    Of some only what they cost at `least` is known.
    """
    rates: dict[str, float] = {}
    known = {**least, **measured}
    for pilot in sorted(pilots, key=lambda pilot: pilot.work_a_case):
        if pilot.name in known:
            rates[pilot.dynamics] = known[pilot.name] / pilot.work_a_case
    return {
        pilot.name: Cost(
            known.get(pilot.name, pilot.work_a_case * rates.get(pilot.dynamics, SECONDS_A_WORK_UNIT)),
            pilot.name in measured,
        )
        for pilot in pilots
    }
