"""The tasks of the process that measures costs: compile what cases need, then time the cases."""

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
    """Compile what cases need, or load it from numba's cache, where it is afterwards."""
    _taken(list(map(shortened, cases)), np.inf)


def measured(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """Return the seconds that cases took, for at most about `limit` seconds, and how many were done.

    A case that exceeded the limit counts by the fraction of its run that was done. Cases computed in lanes are all
    measured together, as in a block; others are first measured for a few, then for all if there is time.
    """
    few = cases if lanes_of(cases[0].dynamics)[1] > 1 else cases[:: -(-len(cases) // FEW_CASES)]
    seconds, done = _taken(few, limit)
    if len(few) < len(cases) and seconds * len(cases) <= (limit - seconds) * done:
        return _taken(cases, limit)
    return seconds, done


def shortened(case: Case) -> Case:
    """Return the case cut to its first steps; it compiles everything that the case needs."""
    step = DYNAMICS[case.dynamics].step_length(case.problem, case.numerical_options()) * case.problem.step_time()
    last = case.recording.times[-1]
    return replace(case, clock=min(case.clock, 3 * step / last)) if last > 0 else case


def _taken(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """Return the seconds that some cases take, and how many were done; exceptions are ignored, the run reports them."""
    started, done = time.perf_counter(), float(len(cases))
    with suppress(BaseException):
        records = run_cases(cases, timeout=limit / len(cases))
        last = np.array([case.clock * case.recording.times[-1] for case in cases])
        part = np.clip(records.data["end_time"] / np.maximum(last, np.finfo(float).tiny), 0.0, 1.0)
        done = float(np.where(records.status == Status.timeout, np.nan_to_num(part), 1.0).sum())
    return time.perf_counter() - started, done
