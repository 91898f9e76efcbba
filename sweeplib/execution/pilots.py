"""What the process that measures is asked: what cases take, once all that they need is compiled."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from sweeplib.dynamics import DYNAMICS
from sweeplib.execution.block_size import lanes_of
from sweeplib.simulation import Case, Status, run_cases

FEW_CASES = 16


def compiled(cases: Sequence[Case]) -> None:
    """Compile what cases need, or load it; numba's cache has it afterwards."""
    _taken(list(map(shortened, cases)), np.inf)


def measured(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """The seconds that cases took, for about `limit` at most, and how many were done.

    Those given up count by the part of their way that they went. Where they are computed in lanes, all together, as in
    a block; else first a few, then all if there is time.
    """
    few = cases if lanes_of(cases[0].dynamics)[1] > 1 else cases[:: -(-len(cases) // FEW_CASES)]
    seconds, done = _taken(few, limit)
    if len(few) < len(cases) and seconds * len(cases) <= (limit - seconds) * done:
        return _taken(cases, limit)
    return seconds, done


def shortened(case: Case) -> Case:
    """The same case, cut to its first own steps: what is compiled for it is what the case needs."""
    step = DYNAMICS[case.dynamics].step_length(case.problem, case.numerical_options()) * case.problem.step_time()
    last = case.recording.times[-1]
    return replace(case, clock=min(case.clock, 3 * step / last)) if last > 0 else case


def _taken(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """The seconds that some cases take, and how many were done. What they raise is the run's to report."""
    started, done = time.perf_counter(), float(len(cases))
    with suppress(BaseException):
        records = run_cases(cases, timeout=limit / len(cases))
        last = np.array([case.clock * case.recording.times[-1] for case in cases])
        part = np.clip(records.data["end_time"] / np.maximum(last, np.finfo(float).tiny), 0.0, 1.0)
        done = float(np.where(records.status == Status.timeout, np.nan_to_num(part), 1.0).sum())
    return time.perf_counter() - started, done
