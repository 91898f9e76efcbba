"""Cases computed so that one that raises, kills its process, hangs or takes all memory is found, and harms no other.

Here, in the process of the worker, what a case raises is caught. Cases under suspicion are computed in a child process,
a group at a time, and each alone where the group ends the process.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sweeplib.execution.block_size import lanes_of
from sweeplib.execution.child import Child, DiedError, EndedError, Limits, RaisedError
from sweeplib.process.troubles import Trouble
from sweeplib.simulation import Case, Records, Status, run_cases

GRACE = 1.0
"""Seconds that cases may take longer than their time limit before their process is ended."""
SLOWER = 3.0
"""How many times longer than expected cases may take before one of them is suspected to hang."""

Failed = Callable[[Case, Status, Trouble | None], None]
Computed = Callable[[list[Case]], Records]


@dataclass(frozen=True)
class Allowance:
    """What cases may take: `timeout` seconds each (None: any time), and `memory` bytes of their process.

    `expected` are the seconds that a case was measured to take, None where it was not.
    """

    timeout: float | None = None
    expected: float | None = None
    memory: int | None = None

    def timeout_of(self, cases: Sequence[Case]) -> float | None:
        """The seconds that each of some cases may take on average: a few take as long as a whole group of lanes."""
        if self.timeout is None:
            return None
        return self.timeout * max(1.0, lanes_of(cases[0].dynamics)[1] / len(cases))

    def seconds(self, cases: Sequence[Case]) -> float | None:
        """The seconds after which one of some cases that are computed together is suspected to hang."""
        timeout = self.timeout_of(cases)
        if timeout is None:
            return None
        count = max(len(cases), lanes_of(cases[0].dynamics)[1])
        likely = np.inf if self.expected is None else timeout + SLOWER * count * self.expected
        return float(min(count * timeout, likely)) + GRACE


def computed_here(cases: list[Case], allowance: Allowance, failed: Failed) -> Records:
    """The records of cases of one shape; those that raise are told to `failed`, as all that do not end well."""

    def compute(some: list[Case]) -> Records:
        try:
            return run_cases(some, timeout=allowance.timeout)
        except BaseException as error:  # SystemExit of a plugin, say: this is no main thread, nobody interrupts it
            raise RaisedError(Trouble.from_exception(error)) from None

    return _guarded(cases, compute, failed)


def computed_apart(cases: list[Case], plugins: Sequence[str], allowance: Allowance, failed: Failed) -> Records:
    """The records of cases of one shape, computed in a child process.

    A case that ends its process is told to `failed`, as killed; where nobody ended the process for it, it has to die of
    the same case twice.
    """

    def compute(some: list[Case]) -> Records:
        records: Records = _child(plugins).call(
            _run_cases, some, allowance.timeout_of(some), limits=Limits(allowance.seconds(some), allowance.memory)
        )
        return records

    width = lanes_of(cases[0].dynamics)[1]
    groups = [cases[first : first + width] for first in range(0, len(cases), width)]
    return _joined([_guarded(group, compute, failed) for group in groups])


def _run_cases(cases: list[Case], timeout: float | None) -> Records:
    return run_cases(cases, timeout=timeout)


class _Children(threading.local):
    """The children of a thread, by their plugins; they end with this process."""

    def __init__(self) -> None:
        self.by_plugins: dict[tuple[str, ...], Child] = {}


_children = _Children()


def _child(plugins: Sequence[str]) -> Child:
    kept, key = _children.by_plugins, tuple(plugins)
    if key not in kept:
        kept[key] = Child(key)
    return kept[key]


def _guarded(cases: list[Case], compute: Computed, failed: Failed) -> Records:
    """The records of cases, each computed alone where all together raise or end their process."""
    outcome = _tried(cases, compute)
    if isinstance(outcome, DiedError) and len(cases) == 1:
        outcome = _tried(cases, compute)
    if isinstance(outcome, Records):
        for case, status in zip(cases, outcome.status, strict=True):
            if status != Status.ok:
                failed(case, Status(status), None)
        return outcome
    if len(cases) > 1:
        return _joined([_guarded([case], compute, failed) for case in cases])
    status = Status.failed if isinstance(outcome, RaisedError) else Status.killed
    failed(cases[0], status, outcome.trouble)
    return Records(data={}, status=np.array([status], np.uint8))


def _tried(cases: list[Case], compute: Computed) -> Records | RaisedError | EndedError:
    try:
        return compute(cases)
    except (RaisedError, EndedError) as error:
        return error


def _joined(records: list[Records]) -> Records:
    """Records of one or more cases each as one; NaN where there are no data."""
    known = next((part.data for part in records if part.data), {})
    data = {
        name: np.concatenate([part.data[name] if part.data else _no_data(values, part) for part in records])
        for name, values in known.items()
    }
    return Records(data=data, status=np.concatenate([part.status for part in records]))


def _no_data(like: np.ndarray, records: Records) -> np.ndarray:
    return np.full((len(records.status), *like.shape[1:]), np.nan)
