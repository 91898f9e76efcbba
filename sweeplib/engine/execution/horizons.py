"""Horizons in a plan: what is left of runs that go on, and by which one runs exit that do not by the present one.

The horizon is the recording time at which a run ends. A run exits when it passes a threshold; it is late if it has not
passed all thresholds by the horizon. A trial runs some cases for a second, with horizons doubled as often as need be.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.execution.calibration import Calibration, Pilot, evenly_spaced
from sweeplib.engine.execution.child import TaskError, TimeUpError
from sweeplib.engine.hints import Hints
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.inventory import Inventory
from sweeplib.engine.storage.store.other_stores import Demand
from sweeplib.engine.storage.store.segment import Segment

SAMPLE, SEGMENTS, SECONDS = 32, 16, 1.0
"""The cases that are tried, the segments of a layout that are read for them, and the seconds of each trial."""
DOUBLINGS, FEW = 5, 0.05
"""How often the horizon is doubled at most, and the part of the cases that may stay late: then it is not doubled."""

PILOTS, STORED = "pilots", "of these"
"""What the cases of a trial are called after their number."""

Unexited = tuple[tuple[Case, ...], float]
"""A sample of the stored cases that are late, and their part (0 to 1) of the stored cases that were looked at."""
Unit = Mapping[str, Any]
"""The attributes of recording times that say their unit."""


def unexited(wanted: Inventory) -> Unexited:
    """Return a sample of the stored cases of an inventory that are late, and their part of those looked at.

    Some segments of each layout are looked at, if its simulator has thresholds.
    """
    late, total = list[Case](), 0
    by_layout: dict[str, list[tuple[Segment, np.ndarray]]] = {}
    for number, rows, _ in wanted.by_segment():
        segment = wanted.store.segments[number]
        by_layout.setdefault(segment.layout, []).append((segment, rows[segment.status[rows] == Status.ok]))
    for parts in by_layout.values():
        for segment, rows in (parts[at] for at in evenly_spaced(len(parts), SEGMENTS)):
            passage = segment.simulator.hints.passage(segment.cases(slice(1))[0])
            if passage is not None and len(rows):
                # unique: two cases of an inventory may have one row
                late_rows = np.unique(rows[np.isnan(segment.data(passage)[rows]).any(axis=1)])
                total += len(np.unique(rows))
                late += segment.cases(late_rows) if len(late_rows) else []
    return tuple(late[at] for at in evenly_spaced(len(late), SAMPLE)), len(late) / max(1, total)


def shares(demand: Demand) -> dict[str, float]:
    """Return the mean part (0 to 1) of the way of missing cases that is left, by layout; {} if no run has begun."""
    wanted, begun = demand.wanted, demand.begun
    if begun is None:
        return {}
    # the last entry is for cases that have not begun, whose source is -1
    ends = np.array([source.recording.end for source in begun.sources] + [0.0])
    progress = ends[begun.source] / wanted.sweep.recording.end
    return {name: 1.0 - float(progress[places].mean()) for name, places in wanted.missing.items()}


@dataclass(frozen=True)
class HorizonTrial:
    """The result of a trial of `count` cases: `late` do not exit by the horizon, `remaining` not by `factor` times it.

    cases : `PILOTS` or `STORED`, what the cases are called in a sentence after their number.
    where : the values of a late case by which it differs from the others, ready for a sentence.
    slow, diverged : the numbers of those that take too long to tell, and of those that diverge before an exit.
    """

    cases: str
    count: int
    late: int
    remaining: int
    factor: int
    where: str
    slow: int = 0
    diverged: int = 0

    def line(self, who: str, horizon: float, unit: Unit, hints: Hints) -> str:
        """Return a sentence that says who does not exit by the horizon, and by which later one most do.

        who : its beginning, such as "sgd: 3 of 32 pilots do". horizon : a recording time, in `unit`.
        """
        later = self.factor * horizon
        then = f"; of {self.count} {self.cases} {self.remaining} do not by {hints.end_in_words(later, unit)} either"
        if self.remaining <= FEW * self.count and not self.slow:
            then = f"; nearly all do by `horizon={later:g}`"
        ends = {"take too long to tell": self.slow, "diverge": self.diverged} if self.cases == PILOTS else {}
        further = "".join(f"; {number} more {verb}" for verb, number in ends.items() if number)
        by = f"by the horizon {hints.end_in_words(horizon, unit)}"
        return f"{who} not exit {by}{self.where}{then if self.factor > 1 else ''}{further}"


def horizon_lines(
    dynamics: str,
    missing: Sequence[Case],
    stored: Unexited,
    calibration: Calibration,
    earlier: HorizonTrial | None = None,
    unit: Unit = MappingProxyType({}),
) -> tuple[list[str], HorizonTrial | None]:
    """Return a line about late cases among the missing, one about those among the stored, and the trial, if any.

    missing : the pilots' cases. stored : what `unexited` returns.
    earlier : the trial in the plan before, if only seeds have changed since: it makes another one superfluous, and
    stored cases, of which there are more, tell how many are late.
    """
    (sample, fraction), lines, trial = stored, [], earlier
    if missing and (earlier is None or not sample):
        pilots = [missing[at] for at in evenly_spaced(len(missing), SAMPLE)]
        is_of_pilots = earlier is not None and earlier.cases == PILOTS
        trial = earlier if is_of_pilots else _trial(dynamics, pilots, PILOTS, calibration)
        if trial and trial.late:
            who = f"{dynamics}: {trial.late} of {trial.count} pilots do"
            lines.append(trial.line(who, missing[0].recording.end, unit, missing[0].simulator.hints))
        elif trial:
            horizon = missing[0].simulator.hints.end_in_words(missing[0].recording.end, unit)
            by = f"whether they exit by the horizon {horizon}"
            ends = {f"take too long to tell {by}": trial.slow, "diverge before an exit": trial.diverged}
            parts = [f"{number} of {trial.count} pilots {end}" for end, number in ends.items() if number]
            lines += [f"{dynamics}: {'; '.join(parts)}"] if parts else []
    if sample:
        late = earlier if earlier and earlier.late else _trial(dynamics, sample, STORED, calibration)
        share = f"{100 * fraction:.{3 if fraction > 0.995 else 2}g} % of the stored runs did"
        any_trial = late or HorizonTrial(STORED, len(sample), 0, 0, 1, "")
        end, hints = sample[0].recording.end, sample[0].simulator.hints
        lines.append(any_trial.line(f"{dynamics}: {share}", end, unit, hints))
        trial = late or trial
    return lines, trial


def _trial(dynamics: str, cases: Sequence[Case], called: str, calibration: Calibration) -> HorizonTrial | None:
    """Return the trial of cases in the process of a calibration.

    None without thresholds, if cases cannot end at their passage, or if the trial fails. If no case was done in time,
    all count as `slow`. called : `PILOTS` or `STORED`, what a sentence calls the cases.
    """
    hints = cases[0].simulator.hints
    if hints.passage(cases[0]) is None or hints.to_passage(cases[0], 1) is None:
        return None
    pilot, count = Pilot(f"{dynamics}/horizon", tuple(cases)), len(cases)
    try:
        calibration.compile(pilot)
        # a trial ends by itself: the limit is for a case that hangs
        first, remaining, factor = calibration.result(pilot, calibration.setup_seconds, tried, cases)
        where = _values(cases, first.late[0]) if first.late else ""
        return HorizonTrial(called, count, len(first.late), remaining, factor, where, first.slow, first.diverged)
    except TimeUpError:
        return HorizonTrial(called, count, 0, 0, 1, "", count)
    except TaskError:
        return None


class Outcome(NamedTuple):
    """Which of some cases, by their places, are late, for how many there is no time to tell, and how many diverge."""

    late: list[int]
    slow: int
    diverged: int


def tried(cases: Sequence[Case]) -> tuple[Outcome, int, int]:
    """Return the outcome of cases by their horizon, how many stay late, and by which factor of it, the last one tried.

    The horizon is doubled until they are few or there is no more time. The process that measures costs calls it.
    """
    deadline, factor = time.monotonic() + SECONDS, 1
    first = _outcome(cases, range(len(cases)), factor, deadline)
    remaining, never = first.late, 0
    while len(remaining) > FEW * len(cases) and factor < 2**DOUBLINGS and time.monotonic() < deadline:
        later = _outcome(cases, remaining, 2 * factor, deadline)
        if later.slow:
            # the time was up: it is the outcome of some of them only
            break
        # a late case that diverges later exits by no horizon
        remaining, never, factor = later.late, never + later.diverged, 2 * factor
    return first, len(remaining) + never, factor


def _outcome(cases: Sequence[Case], places: Sequence[int], factor: int, deadline: float) -> Outcome:
    """Return the outcome of the cases at `places` by `factor` times their horizon; the cheapest are tried first.

    deadline : when to stop, by `time.monotonic`.
    """
    late, slow, diverged, waiting = list[int](), 0, 0, len(places)
    by_shape = sorted(places, key=lambda at: repr(cases[at].shape))
    groups = [list(group) for _, group in groupby(by_shape, key=lambda at: repr(cases[at].shape))]
    simulator = cases[0].simulator
    hints, passage = simulator.hints, simulator.hints.passage(cases[0])
    assert passage is not None  # by `_trial`
    for group in sorted(groups, key=lambda group: simulator.work(cases[group[0]])):
        seconds = max(0.0, deadline - time.monotonic()) / waiting
        records = simulator.run([hints.to_passage(cases[at], factor) for at in group], timeout=seconds)
        no_exit = np.isnan(records.data[passage]).any(axis=1)
        waiting -= len(group)
        slow += int((records.status == Status.timeout).sum())
        diverged += int((no_exit & (records.status == Status.diverged)).sum())
        late += [group[at] for at in np.flatnonzero(no_exit & (records.status == Status.ok))]
    return Outcome(sorted(late), slow, diverged)


def _values(cases: Sequence[Case], at: int) -> str:
    """Return the parameters in which the case at a place differs from any other: ', for example at p = 4, d = 1000'."""
    parameters = [case.simulator.hints.values(case) for case in cases]
    names = [name for name in parameters[at] if len({repr(values.get(name)) for values in parameters}) > 1]
    values = {name: parameters[at][name] for name in names}
    text = ", ".join(f"{name} = {v:.4g}" if isinstance(v, float) else f"{name} = {v}" for name, v in values.items())
    return f", for example at {text}" if names else ""
