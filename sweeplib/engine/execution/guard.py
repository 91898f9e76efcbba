"""Guarded computation of cases: one that raises, kills its process, hangs or takes all memory harms no other case.

In the process of the worker, exceptions of a case are caught. Suspect cases are computed in a child process, a group at
a time, and one by one if the group ends the process. Lanes are cases that a kernel computes together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.execution.child import DiedError, Limits, RaisedError, TaskError, lent
from sweeplib.engine.execution.machine import unfit
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.records import Begun, Checkpoints, Records
from sweeplib.engine.simulator import home_of
from sweeplib.engine.status import Excess, Status

GRACE = 1.0
"""Seconds by which cases may exceed their time limit before their process is ended."""
SLOWER = 5.0
"""The factor by which cases may exceed their expected time, known within 1.7, before they are suspected to hang."""

Explained = Callable[[Case, Status, Trouble | Excess], None]
"""Is called with a case that is not ok, its status, and why it has it."""
Compute = Callable[[Sequence[Case]], Records]
"""Returns the records of cases of one shape. TaskError if it has none."""


@dataclass(frozen=True)
class Allowance:
    """Limits of cases: `timeout` seconds each (None: no limit), and `memory` bytes of their process.

    `expected` are the measured seconds per case, None if they were not measured. Cases go on from `checkpoints`.
    """

    timeout: float | None = None
    expected: float | None = None
    memory: int | None = None
    checkpoints: Checkpoints | None = None

    def timeout_of(self, cases: Sequence[Case]) -> float | None:
        """Return the mean limit in seconds per case; a few cases take as long as a full group of lanes."""
        if self.timeout is None:
            return None
        return self.timeout * max(1.0, _lanes(cases)[1] / len(cases))

    def seconds(self, cases: Sequence[Case]) -> float | None:
        """Return the seconds after which one of some cases that are computed together is suspected to hang.

        None without a time limit. A measured cost makes them fewer: `SLOWER` times what the cases should take.
        """
        timeout = self.timeout_of(cases)
        if timeout is None:
            return None
        count = max(len(cases), _lanes(cases)[1])
        likely = np.inf if self.expected is None else timeout + SLOWER * count * self.expected
        return float(min(count * timeout, likely)) + GRACE


def computed_here(
    cases: Sequence[Case], allowance: Allowance, explained: Explained, begun: Begun | None = None
) -> Records:
    """Return the records of cases of one shape, computed in this process; `explained` is called for each not ok.

    All go on from where runs have `begun`; if the run raises, each case is computed alone, from the start. UnfitError
    for a fault of the machine.
    """

    def compute(group: Sequence[Case], begun: Begun | None = None) -> Records:
        """Return the records of cases, computed in this process; RaisedError, or the machine's fault, if it raises."""
        try:
            timeout = allowance.timeout_of(group)
            return cases[0].simulator.run(group, timeout=timeout, begun=begun, checkpoints=allowance.checkpoints)
        except BaseException as error:  # includes SystemExit of a plugin; Ctrl-C only reaches the main thread
            if fault := unfit(error):
                raise fault from None
            raise RaisedError(Trouble.from_exception(error)) from None

    if begun is None:
        return _guarded(cases, compute, explained)
    outcome = _tried(cases, partial(compute, begun=begun))
    return _reported(outcome, cases, explained) if isinstance(outcome, Records) else _alone(cases, compute, explained)


def computed_apart(
    cases: Sequence[Case], plugins: Sequence[str], allowance: Allowance, explained: Explained
) -> Records:
    """Return the records of cases of one shape, computed in a child process; `explained` is called for each not ok.

    A case that ends its process has the status killed; if no limit was exceeded, it must have done so twice. UnfitError
    for a fault of the machine.
    """
    width = _lanes(cases)[1]
    groups = [cases[first : first + width] for first in range(0, len(cases), width)]
    with lent(plugins, home_of(cases[0].simulator)) as child:

        def compute(cases: Sequence[Case]) -> Records:
            """Return the records of cases, computed by the other process within their limits of time and memory."""
            run = partial(_run, timeout=allowance.timeout_of(cases), checkpoints=allowance.checkpoints)
            return child.call(run, cases, limits=Limits(allowance.seconds(cases), allowance.memory))

        return Records.joined([_guarded(group, compute, explained) for group in groups])


def _run(cases: Sequence[Case], timeout: float | None, checkpoints: Checkpoints | None) -> Records:
    """Return the records of cases: the task of the child process, which has to import it by name."""
    return cases[0].simulator.run(cases, timeout=timeout, checkpoints=checkpoints)


def _lanes(cases: Sequence[Case]) -> tuple[int, int]:
    """Return the smallest and the largest number of cases like these that are computed together."""
    return cases[0].simulator.lanes(cases[0])


def _guarded(cases: Sequence[Case], compute: Compute, explained: Explained) -> Records:
    """Return the records of cases; each case is computed alone if the group raises or ends its process."""
    outcome = _tried(cases, compute)
    if isinstance(outcome, DiedError) and len(cases) == 1:
        outcome = _tried(cases, compute)
    if isinstance(outcome, Records):
        return _reported(outcome, cases, explained)
    if len(cases) > 1:
        return _alone(cases, compute, explained)
    status = Status.failed if isinstance(outcome, RaisedError) else Status.killed
    explained(cases[0], status, outcome.trouble)
    return Records(data={}, status=np.array([status], np.uint8))


def _alone(cases: Sequence[Case], compute: Compute, explained: Explained) -> Records:
    """Return the records of cases, each of which is computed alone."""
    return Records.joined([_guarded([case], compute, explained) for case in cases])


def _reported(records: Records, cases: Sequence[Case], explained: Explained) -> Records:
    """Return the records of cases unchanged; `explained` is called for those that are inaccurate or raised."""
    for place, excess in records.excess.items():
        explained(cases[place], Status.inaccurate, excess)
    for place, trouble in records.raised.items():
        explained(cases[place], Status.failed, trouble)
    return records


def _tried(cases: Sequence[Case], compute: Compute) -> Records | TaskError:
    """Return the records of cases, or the error that their computation raised."""
    try:
        return compute(cases)
    except TaskError as error:
        return error
