"""Status: how a case ended."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """How a case ended; `missing` means not run yet. The numbers are stored in results and must not change.

    Cases that failed or were killed are failures: nothing is known of them. All others that ran have an outcome, which
    is a result: `diverged`, `timeout` (it was stopped at its time limit), and `inaccurate` (the error of its results
    became larger than its bound; it has no values from then on).
    """

    missing = 0
    ok = 1
    diverged = 2
    failed = 3
    killed = 4
    timeout = 5
    inaccurate = 6


FAILURES = (Status.failed, Status.killed)
"""The statuses of cases of which nothing is known."""
OUTCOMES = (Status.diverged, Status.timeout, Status.inaccurate)
"""The statuses other than ok of cases whose end is a result."""


def failed(counts: Mapping[str, int]) -> int:
    """The number of failures, from the numbers of cases by status."""
    return sum(counts.get(status.name, 0) for status in FAILURES)


def outcomes(counts: Mapping[str, int]) -> str:
    """The number of failures, and of each outcome other than ok that occurs, in words: "2 failed, 1 diverged"."""
    counted = [f"{counts[status.name]:,} {status.name}" for status in OUTCOMES if counts.get(status.name)]
    return ", ".join([f"{failed(counts):,} failed", *counted])


class Excess(NamedTuple):
    """Why a run is inaccurate: at a recording time the value of a quantity was above its bound."""

    time: float
    quantity: str
    value: float
    bound: float

    def __str__(self) -> str:
        return f"at time {self.time:.6g}, {self.quantity} = {self.value:.3g} was above its bound {self.bound:.3g}"


STATUS_LABELS = {
    "long_name": "status of the case",
    "flag_values": [int(status) for status in Status],
    "flag_meanings": " ".join(status.name for status in Status),
}
"""The attributes of the variable `status` of stores and datasets."""
