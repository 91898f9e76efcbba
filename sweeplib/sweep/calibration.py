"""What a case costs on this machine: seconds measured on a few real cases, in a process of their own.

A case may kill its process, in a pilot as anywhere: then its layout's cost is extrapolated, and the run finds the case.
"""

import math
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from sweeplib.simulation import Case, Status, Variable, case_work, recorded_variables, run_cases
from sweeplib.sweep.plugins import load_plugins

PILOT_SECONDS = 1.5
PILOT_CASES = 128
FEW_CASES = 16
LEAST_SECONDS = 0.05
COMPILE_SECONDS = 300.0
MOST_DEATHS = 3
SECONDS_A_WORK_UNIT = 1e-10

BLOCK_SECONDS = 2.0
LONGEST_BLOCK_SECONDS = 60.0
BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Pilot:
    """Cases of one layout that stand for all, the costliest first; `name` tells it from the other pilots."""

    name: str
    cases: tuple[Case, ...]

    @property
    def work(self) -> float:
        """The nominal work of the cases."""
        return sum(map(case_work, self.cases))

    @property
    def work_a_case(self) -> float:
        """The nominal work of a case of the layout."""
        return self.work / len(self.cases)


class Calibration:
    """A process that measures; it starts with the context, so that its imports are done when the pilots are known."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        self.plugins = tuple(plugins)

    def __enter__(self) -> "Calibration":
        """Start the process."""
        self.process = self._started()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.communicate()

    def seconds(self, pilots: Sequence[Pilot]) -> dict[str, float]:
        """Seconds a case, by the pilot's name: measured for about 1.5 s in all, extrapolated by work if that is short.

        Compilation comes first and does not count; it leaves the kernels in numba's cache, where the workers find them.
        """
        seconds: dict[str, float] = {}
        for _ in range(MOST_DEATHS):
            left = [pilot for pilot in pilots if pilot.name not in seconds]
            found, died = self._measured(left) if left else ({}, False)
            seconds |= found
            if not died:
                break
            self.process = self._started()
        return _extrapolated(pilots, {name: value for name, value in seconds.items() if not math.isnan(value)})

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "sweeplib.sweep.calibration"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def _measured(self, pilots: Sequence[Pilot]) -> tuple[dict[str, float], bool]:
        """Seconds a case of the pilots there was time for, NaN of one that did not end; whether the process died."""
        try:
            asked = pickle.dumps((sys.path, self.plugins, tuple(pilots)))
            output, _ = self.process.communicate(asked, timeout=COMPILE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
        lines = (line.split() for line in output.decode().splitlines())
        return {name: float(seconds) for name, seconds in lines}, self.process.returncode != 0


def block_size(seconds: float, nbytes: int) -> int:
    """Cases a block: about 2 s of work, in [16, 2048]; fewer where 16 take more than a minute or the chunk 64 MiB.

    A minute, as it is what a crash may cost a worker, and what the last worker may keep the others waiting.
    """
    cases = int(BLOCK_SECONDS / max(seconds, 1e-9))
    cases = min(max(cases, 16), 2048, max(1, BLOCK_BYTES // nbytes))
    return max(1, min(cases, int(LONGEST_BLOCK_SECONDS / max(seconds, 1e-9))))


def even(size: int, cases: int) -> int:
    """The block size that makes as many blocks of `cases` as `size` does, all but equal."""
    return -(-cases // -(-cases // size)) if cases else size


def case_bytes(case: Case) -> int:
    """The bytes of a case's results before compression, its status and index included."""
    return sum(map(_nbytes, recorded_variables(case).values())) + 33


def _nbytes(variable: Variable) -> int:
    return math.prod(variable.shape) * np.dtype(variable.dtype).itemsize


def _extrapolated(pilots: Sequence[Pilot], measured: Mapping[str, float]) -> dict[str, float]:
    """Seconds a case of each pilot: measured, or its work at the rate of its dynamics' costliest that was."""
    rates: dict[str, float] = {}
    for pilot in sorted(pilots, key=lambda pilot: pilot.work_a_case):
        if pilot.name in measured:
            rates[pilot.cases[0].dynamics] = measured[pilot.name] / pilot.work_a_case
    return {
        pilot.name: measured.get(
            pilot.name, pilot.work_a_case * rates.get(pilot.cases[0].dynamics, SECONDS_A_WORK_UNIT)
        )
        for pilot in pilots
    }


def _seconds(pilots: Sequence[Pilot]) -> Iterator[tuple[str, float]]:
    """NaN, as it starts, then the seconds a case of each pilot, the cheapest first, while its dynamics has time.

    All cases of a pilot are run together, as they fill the lanes of a kernel as a block does. Only the first of a
    dynamics is tried on a few, which give a lower bound at least.
    """
    kinds = {pilot.cases[0].dynamics for pilot in pilots}
    left = dict.fromkeys(kinds, PILOT_SECONDS / max(1, len(kinds)))
    rates: dict[str, float] = {}
    for pilot in sorted(pilots, key=lambda pilot: pilot.work):
        dynamics = pilot.cases[0].dynamics
        known = dynamics in rates
        if rates.get(dynamics, 0.0) * pilot.work > left[dynamics]:
            continue
        yield pilot.name, math.nan
        _run([_short(case) for case in pilot.cases], COMPILE_SECONDS)
        for cases in (pilot.cases,) if known else (pilot.cases[:: -(-len(pilot.cases) // FEW_CASES)], pilot.cases):
            seconds, finished = _run(cases, max(left[dynamics], LEAST_SECONDS))
            left[dynamics] -= seconds
            if finished or not known:
                yield pilot.name, seconds / len(cases)
                rates[dynamics] = seconds / len(cases) / pilot.work_a_case if seconds > LEAST_SECONDS else 0.0
            known = True


def _short(case: Case) -> Case:
    """The same case, cut to its first steps: what is compiled for it is what the case needs."""
    return replace(case, clock=min(case.clock, 3 * case.problem.step_time() / case.recording.times[-1]))


def _run(cases: Sequence[Case], timeout: float) -> tuple[float, bool]:
    """The seconds that some cases take, and whether they ended in time. What they raise is the run's to report."""
    started, finished = time.perf_counter(), True
    for _, group in groupby(sorted(cases, key=lambda case: repr(case.shape)), key=lambda case: case.shape):
        together = list(group)
        with suppress(Exception):
            records = run_cases(together, timeout=timeout / len(together))
            finished = finished and Status.timeout not in records.status
    return time.perf_counter() - started, finished


def main() -> None:
    """Read pilots from standard input, write "name seconds" lines as they are measured."""
    path, plugins, pilots = pickle.load(sys.stdin.buffer)
    sys.path[:] = path  # plugins, and what they import, are found where the driver finds them
    load_plugins(plugins)
    for name, seconds in _seconds(pilots):
        sys.stdout.write(f"{name} {seconds}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
