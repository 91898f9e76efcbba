"""The tasks of the process that measures costs: compile what cases need, then time the cases."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sweeplib.dynamics import DYNAMICS
from sweeplib.execution.block_size import lanes_of
from sweeplib.simulation import Case, Status, run_cases

FEW_CASES = 16
RECORDS_FIRST = 2.0
"""How many times more of the records than of the steps may be done for the cost to be that of the steps."""


class Taken(NamedTuple):
    """The seconds that some cases took, and how many cases they are by their steps and by their records."""

    seconds: float
    done: float
    recorded: float


def compiled(cases: Sequence[Case]) -> None:
    """Compile what cases need, or load it from numba's cache, where it is afterwards."""
    _taken(list(map(shortened, cases)), np.inf)


def measured(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """Return the seconds that cases took, for at most about `limit` seconds, and how many were done.

    A case that exceeded the limit counts by the fraction of its run that was done. Cases computed in lanes are all
    measured together, as in a block; others are first measured for a few, then for all if there is time. Where most of
    the records were made but few of the steps, as at the start of geometric times, both are measured apart.
    """
    few = cases if lanes_of(cases[0].dynamics)[1] > 1 else cases[:: -(-len(cases) // FEW_CASES)]
    part = _taken(few, limit)
    if part.recorded > RECORDS_FIRST * part.done:
        return _apart(few, limit, part)
    if len(few) < len(cases) and part.seconds * len(cases) <= (limit - part.seconds) * part.done:
        part = _taken(cases, limit)
    return part.seconds, part.done


def _apart(cases: Sequence[Case], limit: float, part: Taken) -> tuple[float, float]:
    """Return the seconds of a case and 1, from a `part` of the cases and a run of them that records at its end only."""
    bare = _taken([_without_records(case) for case in cases], limit)
    if bare.done == 0.0:
        return part.seconds, part.done
    steps = bare.seconds / bare.done
    return steps + max(0.0, part.seconds - steps * part.done) / part.recorded, 1.0


def _without_records(case: Case) -> Case:
    return replace(case, recording=replace(case.recording, times=case.recording.times[-1:]))


def shortened(case: Case) -> Case:
    """Return the case cut to its first steps; it compiles everything that the case needs."""
    step = DYNAMICS[case.dynamics].step_length(case.problem, case.numerical_options()) * case.problem.step_time()
    last = case.recording.times[-1]
    return replace(case, clock=min(case.clock, 3 * step / last)) if last > 0 else case


def _at_one_rate(case: Case) -> Case:
    """Return the case with a schedule of as many knots in place of an optimal one, which takes time to find."""
    optimal = case.problem.optimal
    if optimal is None:
        return case
    flat = optimal.through([1.0] * optimal.knots, case.recording.times[-1])
    return replace(case, problem=replace(case.problem, schedule=flat))


def _taken(cases: Sequence[Case], limit: float) -> Taken:
    """Return what some cases take; exceptions are ignored, the run reports them."""
    started, done, recorded = time.perf_counter(), float(len(cases)), float(len(cases))
    with suppress(BaseException):
        records = run_cases(list(map(_at_one_rate, cases)), timeout=limit / len(cases))
        ends = np.nan_to_num(records.data["end_time"])
        times = np.multiply.outer([case.clock for case in cases], cases[0].recording.times)
        part = np.clip(ends / np.maximum(times[:, -1], np.finfo(float).tiny), 0.0, 1.0)
        later = times[:, np.array(cases[0].recording.times) > 0]
        made = (later <= ends[:, None]).sum(axis=1) / max(1, later.shape[1])
        ended = records.status != Status.timeout
        done, recorded = (float(np.where(ended, 1.0, fraction).sum()) for fraction in (part, made))
    return Taken(time.perf_counter() - started, done, recorded)
