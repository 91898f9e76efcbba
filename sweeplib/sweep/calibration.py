"""What a case costs on this machine: seconds measured on a few real cases, in a process of their own.

A case may kill its process, in a pilot as anywhere: then its layout's cost is extrapolated, and the run finds the case.
"""

import math
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from sweeplib.simulation import Case, Status, case_work, recorded_variables, run_cases
from sweeplib.sweep.plugins import load_plugins

PILOT_SECONDS = 2.0
PILOT_CASES = 16
START_SECONDS = 120.0
TRUSTED_SECONDS = 0.1
MOST_DEATHS = 3
SECONDS_A_WORK_UNIT = 1e-9
BLOCK_SECONDS = 2.0
LONGEST_BLOCK_SECONDS = 60.0
BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Pilot:
    """Cases of a layout that stand for all, the costliest first."""

    layout: str
    cases: tuple[Case, ...]


def measured_seconds(pilots: Sequence[Pilot], plugins: Sequence[str] = ()) -> dict[str, float]:
    """Seconds a case of each layout, about 2 s of measuring in all; extrapolated by work where a layout takes longer.

    Compilation comes first and does not count; it leaves the kernels in numba's cache, where the workers find them.
    """
    measured: dict[str, float] = {}
    left = _cheapest_first(pilots)
    for _ in range(MOST_DEATHS):
        found, died = _in_another_process(left, plugins)
        measured |= found
        left = left[len(found) + 1 :]
        if not died or not left:
            break
    return _extrapolated(pilots, measured)


def _cheapest_first(pilots: Sequence[Pilot]) -> list[Pilot]:
    return sorted(pilots, key=lambda pilot: case_work(pilot.cases[0]))


def block_size(seconds: float, nbytes: int) -> int:
    """Cases a block: about 2 s of work, in [16, 2048]; fewer where 16 take more than a minute or the chunk 64 MiB."""
    cases = int(BLOCK_SECONDS / max(seconds, 1e-9))
    cases = min(max(cases, 16), 2048, max(1, BLOCK_BYTES // nbytes))
    return max(1, min(cases, int(LONGEST_BLOCK_SECONDS / max(seconds, 1e-9))))


def case_bytes(case: Case) -> int:
    """The bytes of a case's results before compression, its status and index included."""
    return sum(_nbytes(variable) for variable in recorded_variables(case).values()) + 26


def _nbytes(variable: Any) -> int:
    return math.prod(variable.shape) * np.dtype(variable.dtype).itemsize


def _extrapolated(pilots: Sequence[Pilot], measured: Mapping[str, float]) -> dict[str, float]:
    """Seconds a case of each layout: measured, or work at the rate of the costliest layout that was."""
    work = {pilot.layout: sum(map(case_work, pilot.cases)) / len(pilot.cases) for pilot in pilots}
    known = sorted(measured, key=work.__getitem__)
    rate = measured[known[-1]] / work[known[-1]] if known else SECONDS_A_WORK_UNIT
    return {name: measured.get(name, rate * units) for name, units in work.items()}


def _in_another_process(pilots: Sequence[Pilot], plugins: Sequence[str]) -> tuple[dict[str, float], bool]:
    """Seconds a case of the first of the layouts, as many as there was time for; and whether the next one killed."""
    if not pilots:
        return {}, False
    command = [sys.executable, "-m", "sweeplib.sweep.calibration"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        output, _ = process.communicate(pickle.dumps((tuple(plugins), pilots)), timeout=START_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    lines = (line.split() for line in output.decode().splitlines())
    return {layout: float(seconds) for layout, seconds in lines}, process.returncode != 0


def _seconds(pilots: Sequence[Pilot]) -> Iterator[tuple[str, float]]:
    """Each layout in turn with its seconds a case, until the time is up."""
    left, rate = PILOT_SECONDS, 0.0
    for pilot in pilots:
        work = sum(map(case_work, pilot.cases))
        if rate * work > left:
            return
        _run([replace(case, clock=case.clock * 1e-9) for case in pilot.cases], left)
        seconds, finished = _run(pilot.cases, left)
        if not finished:
            return
        left -= seconds
        rate = seconds / work if seconds > TRUSTED_SECONDS else 0.0
        yield pilot.layout, seconds / len(pilot.cases)


def _run(cases: Sequence[Case], timeout: float) -> tuple[float, bool]:
    """The seconds that some cases take, and whether they ended in time. What they raise is the run's to report."""
    started, finished = time.perf_counter(), True
    for _, together in groupby(sorted(cases, key=lambda case: repr(case.shape)), key=lambda case: case.shape):
        try:
            records = run_cases(list(together), timeout=timeout)
        except Exception:
            continue
        finished = finished and Status.timeout not in records.status
    return time.perf_counter() - started, finished


def main() -> None:
    """Read pilots from standard input, write "layout seconds" lines as they are measured."""
    plugins, data = pickle.load(sys.stdin.buffer)
    load_plugins(plugins)
    for layout, seconds in _seconds(data):
        sys.stdout.write(f"{layout} {seconds}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
