"""What a case costs on this machine: seconds measured on a few real cases, in a process of their own.

A case may kill its process, hang it or take all memory, in a pilot as anywhere: then the pilot is given up, its cost is
extrapolated, and the run finds the case.
"""

import json
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from sweeplib.simulation import Case, case_work
from sweeplib.sweep.progress import Steps

PILOT_SECONDS = 1.5
PILOT_CASES = 128
PAIR = 2
"""Cases of which a kernel sees arrays laid out as those of many: of one, it would be compiled for another layout."""

LEAST_SECONDS = 0.1
COMPILE_SECONDS = 300.0
HANG_SECONDS = 10.0
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
        return (self.dynamics, problem.activation, problem.teacher)

    @property
    def title(self) -> str:
        """What it measures, for a reader."""
        problem = self.cases[0].problem
        pair = (
            problem.activation
            if problem.teacher == problem.activation
            else f"{problem.activation} of {problem.teacher}"
        )
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


class DiedError(Exception):
    """A pilot whose process died, or that is not tried as too many did before."""


class TimeUpError(Exception):
    """A pilot that was ended as its time was up."""


class Calibration:
    """A process that measures; it starts with the context, so that its imports are done when the pilots are known."""

    def __init__(self, plugins: Sequence[str] = (), steps: Steps | None = None) -> None:
        self.plugins, self.steps = tuple(plugins), steps or Steps()
        self._deaths = 0
        self._seconds: dict[str, float] = {}
        self._least: dict[str, float] = {}
        self._compiled: set[tuple[str, ...]] = set()

    def __enter__(self) -> "Calibration":
        """Start the process."""
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it does."""
        self._end()

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
                        with suppress(DiedError):
                            self._seconds[pilot.name] = self.cost(pilot, seconds)
            except TimeUpError:
                return
            except DiedError:
                continue

    def compile(self, pilot: Pilot) -> None:
        """Let the process compile what a pilot needs, if it was not told to before; DiedError or TimeUpError."""
        if pilot.kind not in self._compiled:
            self._compiled.add(pilot.kind)
            with self.steps.step(f"compiling {pilot.title}"):
                self._asked(pilot, None)

    def cost(self, pilot: Pilot, seconds: float) -> float:
        """The seconds that a case of a pilot takes, measured for so long.

        DiedError or TimeUpError, after a line that says so, where it does not come to an end; the next is measured in
        a new process.
        """
        taken, done = self._asked(pilot, seconds)
        return taken / done if done > 0 else taken

    def _asked(self, pilot: Pilot, seconds: float | None) -> Any:
        if self._deaths >= MOST_DEATHS:
            raise DiedError
        try:
            self._send((pilot.cases, seconds))
            answer = self._answer(COMPILE_SECONDS)
            return answer if seconds is None else self._answer(seconds + HANG_SECONDS)
        except (DiedError, TimeUpError) as error:
            if isinstance(error, DiedError):
                self._deaths += 1
            else:
                self._least[pilot.name] = ((seconds or 0.0) + HANG_SECONDS) / len(pilot.cases)
            self.steps.say(f"{pilot.title}: {error}; the cost of its cases is extrapolated")
            self._end()
            self._start()
            raise

    def _start(self) -> None:
        command = [sys.executable, "-m", "sweeplib.sweep.pilots"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._read = b""
        with suppress(DiedError):  # told when it is asked
            self._send((sys.path, self.plugins))

    def _end(self) -> None:
        self.process.kill()
        with suppress(OSError):  # of what it did not read
            self.process.communicate()

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(pickle.dumps(message))
            self.process.stdin.flush()
        except OSError:
            raise DiedError("its process died") from None

    def _answer(self, limit: float) -> Any:
        """The next line of the process; DiedError or TimeUpError if there is none in so many seconds."""
        assert self.process.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self._read:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeUpError(f"no end in {limit:.0f} s")
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                raise DiedError("its process died")
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)


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
