"""What cases cost: compile what they need, then time them, whole or the first part of their runs.

A case is timed by running it, with others, up to a `limit` of seconds. Parts are fractions of a case's last time:
`ended` is the part after which a case ends, by an exit or a divergence. `done` counts whole cases: it is the sum over
cases of the part of their steps, by work, that was done.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sweeplib.engine.process.work_time import seconds_at_work, slowdown
from sweeplib.engine.simulator import Measurement
from sweeplib.engine.status import Status
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.driver import run_cases

FEW_CASES, GROWTH = 16, 16
"""The cases that are measured together at first, at most, and the factor by which they grow while there is time."""
FEWEST_TO_EXIT, TO_LIMIT = 4, 4.0
"""The cases that tell how far runs go to an exit, at least; how many times the limit that, or starts, may take."""
RECORDS_FIRST = 2.0
"""How many times more of the records than of the steps may be done for the cost to be that of the steps."""

LATE = 0.5
"""The part of its times after which the rest of a run is taken to cost as much as the part before, by the time."""

NO_STEP, FEW_STEPS = 1e-9, 0.1
"""The factor by which times are shortened to those of no step, and the part of the steps done that does not count."""


class Timing(NamedTuple):
    """The seconds that `cases` cases took together, and how many of them were `done`, by steps, and `recorded`.

    complete : whether no case exceeded the limit.
    ended : the mean part of its times after which a case ends; if not `complete`, what was expected, or more if it came
        further.
    """

    seconds: float
    cases: int
    done: float
    recorded: float
    complete: bool = True
    ended: float = 1.0

    @property
    def a_case(self) -> float:
        """Return the seconds of a case, if all are done."""
        return max(self.seconds, 1e-9) / self.cases

    def a_case_of(self, count: int, fewer: "Timing | None") -> float:
        """Return the seconds of one of `count` cases, more than were timed: costs per call are shared by all.

        fewer : the timing of fewer cases, whose difference is the cost of one more; None if unknown.
        """
        if fewer is None or count <= self.cases:
            return self.a_case
        one_more = np.clip((self.seconds - fewer.seconds) / (self.cases - fewer.cases), 0.0, self.a_case)
        return float(one_more + (self.seconds - self.cases * one_more) / count)


def compiled(cases: Sequence[Case]) -> None:
    """Compile what cases need, or load it from numba's cache, where it is afterwards."""
    _timed(list(map(shortened, cases)), np.inf)


def measured(cases: Sequence[Case], limit: float, ended: float = 1.0) -> Measurement:
    """Return the seconds of a case, measured for about `limit` seconds, not counting the starts of cases.

    All `cases` are computed together, as in a block, if the dynamics has lanes; of others few at first, then more as
    there is time. Runs that are too long to be measured as a whole are taken to end where a few that were followed to
    an exit did, or where similar ones `ended`, by an exit or a divergence.
    """
    kind = DYNAMICS[cases[0].dynamics]
    has_lanes, at_once = kind.lanes[1] > 1, min(len(cases), kind.replicas_at_once)
    sample = _evenly_chosen(cases, kind.lanes[0] if has_lanes else FEWEST_TO_EXIT)
    if ended == 1.0 and cases[0].recording.stop == "exit":
        ended = _timed(sample, TO_LIMIT * limit).ended
    # more and more cases are timed, as there is time; `fewer` is the timing before the last one
    count = min(at_once, max(len(sample), _startable(sample, TO_LIMIT * limit) if has_lanes else FEW_CASES))
    fewer = None
    while True:
        chosen = _evenly_chosen(cases, count)
        timing = _timed(chosen, limit, ended)
        limit -= timing.seconds
        if not timing.complete:
            return Measurement(_extrapolated(chosen, max(limit, timing.seconds), timing), timing.ended, whole=False)
        next_count = min(len(cases), GROWTH * count, int(limit / timing.a_case))
        if next_count < 2 * count:
            return Measurement(timing.a_case_of(at_once, fewer), timing.ended)
        count, fewer = next_count, timing


def _startable(few: Sequence[Case], limit: float) -> int:
    """Return the number of cases that can be started in `limit` seconds, by the starts of `few` cases and of one."""
    one_more = (len(few) * _start(few) - _start(few[:1])) / max(1, len(few) - 1)
    return int(limit / max(one_more, 1e-9))


def _start(cases: Sequence[Case], done: float = 1.0) -> float:
    """Return the seconds of the start of a case: a run of its first steps.

    done : the part of its steps that a case had done when it was timed; if the first steps are much of it, a run
        without steps is timed. But a training set is drawn with the first step.
    """
    bare = list(map(_without_records, cases))
    short = list(map(shortened, bare))
    steps = max(_work_done(case, few.clock * few.recording.times[-1]) for case, few in zip(bare, short, strict=True))
    if steps > FEW_STEPS * done:
        short = [replace(case, clock=NO_STEP * case.clock) for case in bare]
    return _timed(short, np.inf).a_case


def _extrapolated(cases: Sequence[Case], limit: float, timing: Timing) -> float:
    """Return the seconds of a whole case from the `timing` of a part of the runs of cases, with their starts.

    limit : seconds for further measurements.
    Where most of the records were made but few of the steps, as at the start of geometric times, both are measured
    apart, by a run that records at its end only.
    """
    start = min(_start(cases, timing.done / len(cases)), timing.a_case)
    remaining, steps = timing.seconds - start * len(cases), 0.0
    if timing.recorded <= RECORDS_FIRST * timing.done:
        done = max(timing.done / len(cases), 1e-9)
        return start + remaining / len(cases) / done ** _growth(cases, remaining, start, done * timing.ended)
    bare = _timed([_without_records(case) for case in cases], limit, timing.ended)
    if bare.done > 0.0:
        steps = max(0.0, bare.seconds - start * len(cases)) / bare.done
    return start + steps + max(0.0, remaining - steps * timing.done) / timing.recorded


def _growth(cases: Sequence[Case], seconds: float, start: float, reached: float) -> float:
    """Return the power of time with which the cost of cases grows, by a run to half the part `reached` of their times.

    seconds, start : what they took to that part, without starts, and what the start of one takes.
    It is 1 but for adaptive steps, of dynamics with the option `rtol`, which become longer as runs come to rest.
    """
    if not hasattr(cases[0].numerical_options(), "rtol") or reached > LATE:
        return 1.0
    half = _timed([_until(case, reached / 2) for case in cases], np.inf).seconds - start * len(cases)
    return float(np.clip(np.log2(seconds / half), 0.0, 1.0)) if 0.0 < half < seconds else 1.0


def _until(case: Case, fraction: float) -> Case:
    """Return the case that ends after a `fraction` of its last time."""
    times = case.recording.times
    end = fraction * times[-1]
    return replace(case, recording=replace(case.recording, times=(*(time for time in times if time < end), end)))


def _evenly_chosen(cases: Sequence[Case], count: int) -> Sequence[Case]:
    """Return `count` of the cases, evenly spaced, or all if there are no more."""
    count = min(count, len(cases))
    return [cases[at] for at in ((np.arange(count) + 0.5) * len(cases) / count).astype(int)]


def _without_records(case: Case) -> Case:
    """Return the case that records at its last time only."""
    return replace(case, recording=replace(case.recording, times=case.recording.times[-1:]))


def shortened(case: Case) -> Case:
    """Return the case cut to its first steps; it compiles everything that the case needs."""
    step = DYNAMICS[case.dynamics].step_length(case.problem, case.numerical_options()) * case.problem.step_time()
    last = case.recording.times[-1]
    return replace(case, clock=min(case.clock, 3 * step / last)) if last > 0 else case


def _at_one_rate(case: Case) -> Case:
    """Return the case with a schedule that is 1 at all knots in place of an optimal one, whose search is slow."""
    optimal = case.problem.optimal
    if optimal is None:
        return case
    flat = optimal.through([1.0] * optimal.knots, case.recording.times[-1])
    return replace(case, problem=replace(case.problem, schedule=flat))


def _timed(cases: Sequence[Case], limit: float, ended: float = 1.0) -> Timing:
    """Return the timing of cases that are run together for about `limit` seconds.

    ended : the part of its times after which a case is expected to end.
    Exceptions are ignored: the run of the sweep meets and reports them.
    """
    started, count = seconds_at_work(), len(cases)
    done, recorded, complete = float(count), float(count), True
    with suppress(BaseException):
        # the clock goes on while other processes have the processor
        records = run_cases(list(map(_at_one_rate, cases)), timeout=slowdown() * limit / count)
        ends = np.nan_to_num(records.data["end_time"])
        times = np.multiply.outer([case.clock for case in cases], cases[0].recording.times)
        fractions = np.clip(ends / np.maximum(times[:, -1], np.finfo(float).tiny), 0.0, 1.0)
        later = times[:, np.array(cases[0].recording.times) > 0]
        records_share = (later <= ends[:, None]).sum(axis=1) / max(1, later.shape[1])
        complete = not (records.status == Status.timeout).any()
        fractions = fractions if complete else np.array(list(map(_work_done, cases, ends.tolist())))
        ended = float(fractions.mean()) if complete else max(ended, float(fractions.mean()))
        if not complete:
            # parts of the whole: of the steps by their work, of the records by their number
            done, recorded = (count * min(1.0, float(share.mean()) / ended) for share in (fractions, records_share))
    return Timing(seconds_at_work() - started, count, done, recorded, complete, ended)


def _work_done(case: Case, end: float) -> float:
    """Return the part of the work of a case, after its start, that is done at the ODE time `end`."""
    last, work = case.clock * case.recording.times[-1], DYNAMICS[case.dynamics].work
    begun, whole = work(case.problem, 0.0), work(case.problem, last)
    return (work(case.problem, min(end, last)) - begun) / (whole - begun) if whole > begun else 1.0
