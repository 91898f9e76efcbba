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
generator, under the identity of the case without times: a longer one begins with it. A record is the results at one
recording time, arrays by name; a function without times has one record, the last that it yields.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.functions.cases import FunctionCase, FunctionCases, WholeRun, lengths_of, stream_of
from sweeplib.functions.function import STATE, TIME, TIMES, Function, TimeUpError
from sweeplib.functions.global_generators import BYTES, set_global_states, states_since
from sweeplib.functions.results import checked_results
from sweeplib.functions.states import plain, state_bytes, state_in

if TYPE_CHECKING:
    from sweeplib.engine.records import Checkpoints


@dataclass
class _Course:
    """How far a call has come: its records, the state after the last of them, and its generator.

    records : those of all times until now, or the last one of a function without times.
    """

    records: list[dict[str, np.ndarray]] = field(default_factory=list)
    state: Any = None
    rng: np.random.Generator | None = None


def kept_names(cases: Sequence[FunctionCase]) -> list[str]:
    """Return the names under which the states of cases are kept: their identities without the times."""
    rows = FunctionCases.of(cases)
    identities = rows.replaced(recording=rows.constant(WholeRun())).identities()
    return [identity.hex() for identity in identities.view("V16").tolist()]


def course_results(
    function: Function,
    case: FunctionCase,
    random: Mapping[str, Any],
    timeout: float | None,
    checkpoints: Checkpoints | None,
) -> dict[str, Any]:
    """Return the results of a call of a function that yields, by name; it goes on from what is kept of an earlier one.

    random : the argument for random numbers, {"rng": generator} or {"seed": number}, {} if the function has none.
    timeout : the seconds that it may take; TimeUpError after them. checkpoints : where it is kept on its way.
    """
    times = case.recording.times
    course = (None if checkpoints is None else _begun(case, checkpoints)) or _Course(rng=random.get("rng"))
    # without times the record of a kept course may be one on its way: only the call says that it is the last
    if not times or len(course.records) < len(times):
        named: dict[str, Any] = dict(random) if course.rng is None else {"rng": course.rng}
        if function.takes_times:
            times_left = times[len(course.records) :]
            named[TIMES] = iter(times_left) if function.goes_on else np.array(times_left)
        if function.goes_on:
            named[STATE] = course.state
        _run(function, function(**named, **dict(case.values)), course, case, timeout, checkpoints)
    expected = max(len(times), 1)
    if len(course.records) != expected:
        problem = f"{function.name} yielded {len(course.records)} times; expected {expected}"
        raise ValueError(f"{problem}, its results at each recording time" if times else problem)
    along = {name: list(result.dims).index(TIME) for name, result in function.results.items() if TIME in result.dims}
    last = course.records[-1]
    return last | {name: np.stack([record[name] for record in course.records], at) for name, at in along.items()}


def _run(
    function: Function,
    entries: Iterator[Any],
    course: _Course,
    case: FunctionCase,
    timeout: float | None,
    checkpoints: Checkpoints | None,
) -> None:
    """Add what a call yields to its course; keep the course now and then, at its end, and when its time is up.

    entries : what the call yields. timeout : the seconds that it may take; TimeUpError after them.
    """
    values, times = lengths_of(case), case.recording.times
    last = time.monotonic()
    until = np.inf if timeout is None else last + timeout
    for entry in entries:
        record, course.state = _parts(function, entry)
        if record is not None:
            if not function.takes_times:  # the last record is the result
                course.records.clear()
            course.records.append(checked_results(function, record, values, along=TIME))
        now = time.monotonic()
        if checkpoints is not None:
            is_end = checkpoints.keep_ends and len(course.records) == len(times)
            if is_end or now > until or now - last >= checkpoints.seconds:
                _keep(course, case, checkpoints)
                last = now
            else:
                plain(course.state, {})  # what cannot be kept is refused at once
        if now > until:
            raise TimeUpError


def _parts(function: Function, entry: Any) -> tuple[Any, Any]:
    """Return the results and the state of what a function yields, None without one; TypeError if it should have one."""
    if not function.goes_on:
        return entry, None
    if not (isinstance(entry, tuple) and len(entry) == 2):
        raise TypeError(f"{function.name} yielded {type(entry).__name__}; expected its results and its state, a pair")
    return entry


def _keep(course: _Course, case: FunctionCase, checkpoints: Checkpoints) -> None:
    """Keep a course among the checkpoints, with the times that it has reached."""
    names = course.records[0] if course.records else ()
    stacked = {name: np.stack([record[name] for record in course.records]) for name in names}
    times = case.recording.times[: len(course.records)]
    whole = {"times": times, "records": stacked, "state": course.state, "rng": course.rng}
    if states := states_since(stream_of(case, BYTES)):
        whole["global_states"] = states
    checkpoints.write(kept_names([case])[0], state_bytes(whole))


def _begun(case: FunctionCase, checkpoints: Checkpoints) -> _Course | None:
    """Return the course that is kept of a case; None if there is none, or its times are not the first of the case.

    The global generators are then as they were.
    """
    content = checkpoints.read(kept_names([case])[0])
    if content is None:
        return None
    whole = state_in(content)
    if whole["times"] != case.recording.times[: len(whole["times"])]:
        return None
    if "global_states" in whole:
        set_global_states(whole["global_states"])
    names, values = tuple(whole["records"]), whole["records"].values()
    records = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return _Course(records, whole["state"], whole["rng"])
