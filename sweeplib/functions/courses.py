"""Courses: calls of functions that yield their results one recording time after the other, and may go on from a state.

    @simulator(m=Result("1", dims={"time": "times"}))
    def ising(rng, times, T: float = 2.27, L: int = 16, state=None):
        spins, done = state or (rng.choice([-1, 1], (L, L)), 0)
        for time in times:
            while done < time:
                ...
            yield {"m": spins.mean()}, (spins, done)

Another call gets the state and the times that are left, and the generator as it was. So that a call cannot depend on
times that are not reached, it gets them one by one. What is kept of a call is its records, its state, and that of its
generator, under the identity of the case without times: a longer one begins with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.functions.cases import FunctionCase, WholeRun
from sweeplib.functions.function import STATE, TIME, TIMES, Function, TimeUpError, checked_results
from sweeplib.functions.states import plain, state_bytes, state_in

if TYPE_CHECKING:
    from sweeplib.engine.storage.store.checkpoints import Checkpoints


@dataclass
class _Course:
    """How far a call has come: its records, the state after the last of them, and its generator.

    records : those of all times until now, or the last one of a function without times.
    """

    records: list[dict[str, np.ndarray]] = field(default_factory=list)
    state: Any = None
    rng: np.random.Generator | None = None


def kept_name(case: FunctionCase) -> str:
    """Return the name under which the state of a case is kept: its identity without the times."""
    return replace(case, recording=WholeRun()).identity().hex()


def course_results(
    function: Function,
    case: FunctionCase,
    random: Mapping[str, Any],
    values: Mapping[str, Any],
    timeout: float | None,
    checkpoints: Checkpoints | None,
) -> dict[str, Any]:
    """Return the results of a call of a function that yields; it goes on from what is kept, and is kept on its way.

    random : the generator, or the seed. values : those of the arguments, and the number of times.
    """
    times = case.recording.times
    kept = checkpoints if function.goes_on else None
    course = _begun(function, case, kept) or _Course(rng=random.get("rng"))
    if not (times and len(course.records) == len(times)):
        named = dict(random) if course.rng is None else {"rng": course.rng}
        if function.takes_times:
            left = times[len(course.records) :]
            named[TIMES] = iter(left) if function.goes_on else np.array(left)
        if function.goes_on:
            named[STATE] = course.state
        _run(function, function(**named, **dict(case.values)), course, values, timeout, _Keeper(kept, case))
    missing = max(len(times), 1) - len(course.records)
    if missing:
        problem = f"{function.name} yielded {len(course.records)} times; expected {max(len(times), 1)}"
        raise ValueError(f"{problem}, its results at each recording time" if times else problem)
    along = {name: list(result.dims).index(TIME) for name, result in function.results.items() if TIME in result.dims}
    last = course.records[-1]
    return last | {name: np.stack([record[name] for record in course.records], at) for name, at in along.items()}


def _run(
    function: Function,
    entries: Iterator[Any],
    course: _Course,
    values: Mapping[str, Any],
    timeout: float | None,
    keeper: _Keeper,
) -> None:
    """Add what a call yields to its course, and keep that as often as it should be."""
    until = np.inf if timeout is None else time.monotonic() + timeout
    for entry in entries:
        record, course.state = _parts(function, entry)
        if record is not None:
            if not function.takes_times:
                course.records.clear()
            course.records.append(checked_results(function, record, values, along=TIME))
        keeper.keep(course)
        if time.monotonic() > until:
            raise TimeUpError


def _parts(function: Function, entry: Any) -> tuple[Any, Any]:
    """Return the results and the state that a function yields; TypeError for one without a state that should have."""
    if not function.goes_on:
        return entry, None
    if not (isinstance(entry, tuple) and len(entry) == 2):
        raise TypeError(f"{function.name} yielded {type(entry).__name__}; expected its results and its state, a pair")
    return entry


class _Keeper:
    """Keeps the course of a case, as often as it should be."""

    def __init__(self, kept: Checkpoints | None, case: FunctionCase) -> None:
        self.kept, self.case, self.last, self.is_new = kept, case, time.monotonic(), True

    def keep(self, course: _Course) -> None:
        """Keep a course if the last time was long ago, or if it has reached its end and ends are kept."""
        if self.kept is None:
            return
        if self.is_new:
            plain(course.state, {})  # refuses at once what cannot be kept
            self.is_new = False
        times = self.case.recording.times
        ends = self.kept.keep_ends and len(course.records) == len(times)
        if ends or time.monotonic() - self.last >= self.kept.seconds:
            names = course.records[0] if course.records else ()
            stacked = {name: np.stack([record[name] for record in course.records]) for name in names}
            whole = {"times": times[: len(course.records)], **vars(course), "records": stacked}
            self.kept.write(kept_name(self.case), state_bytes(whole))
            self.last = time.monotonic()


def _begun(function: Function, case: FunctionCase, kept: Checkpoints | None) -> _Course | None:
    """Return the course that is kept of a case; None if there is none, or one with other times."""
    content = None if kept is None else kept.read(kept_name(case))
    if content is None:
        return None
    whole = state_in(content)
    if whole["times"] != case.recording.times[: len(whole["times"])]:
        return None
    names, values = tuple(whole["records"]), whole["records"].values()
    records = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return _Course(records, whole["state"], whole["rng"])
