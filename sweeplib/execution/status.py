"""The status of a sweep's cases, and the reset of cases that did not end well."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.errors import InputError
from sweeplib.simulation import Status
from sweeplib.storage.inventory import inventory
from sweeplib.storage.locks import alone
from sweeplib.storage.outcomes import outcomes_path
from sweeplib.storage.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

RETRIED = ("failed", "killed", "timeout", "diverged", "inaccurate")
DAMAGED = "damaged"
"""Used like a status: the cases of blocks of which a file in the run store is lost or damaged."""


def sweep_status(sweep: "Sweep", directory: Path) -> dict[str, dict[str, int]]:
    """Return the number of cases with each status, by dynamics. It may be called while the sweep runs."""
    return {name: inventory(sweep, name, RunStore(directory, name)).counts() for name in sweep.runs}


def retry(sweep: "Sweep", directory: Path, statuses: Iterable[str] = RETRIED) -> dict[str, int]:
    """Make the cases with one of the `statuses` missing again, so that the next run computes them; return their number.

    `DAMAGED` selects all cases of blocks with a damaged or lost file. The done.json of their dynamics is removed, so
    that a workflow runs it again. The number is by dynamics.
    InputError for a status that cannot be retried, and while another process is at work in the directory.
    """
    names = list(statuses)
    chosen = [_status(name) for name in names if name != DAMAGED]
    reset = {}
    with alone(directory, "clears cases"):
        for dynamics in sweep.runs:
            damaged = _forget_damaged(dynamics, directory) if DAMAGED in names else 0
            reset[dynamics] = damaged + (_reset(sweep, dynamics, directory, chosen) if chosen else 0)
            if reset[dynamics]:
                forget_done(directory, dynamics)
    return reset


def _status(name: str) -> Status:
    if name not in RETRIED:
        raise InputError("not a status to retry", key="statuses", value=name, choices=(*RETRIED, DAMAGED))
    return Status[name]


def _forget_damaged(dynamics: str, directory: Path) -> int:
    return sum(len(layout.forget_damaged()) for layout in RunStore(directory, dynamics).layouts.values())


def forget_done(directory: Path, dynamics: str) -> None:
    """Remove what is written when all cases of a dynamics are done, so that a workflow runs it again."""
    (directory / f"{dynamics}.done.json").unlink(missing_ok=True)
    outcomes_path(directory, dynamics).unlink(missing_ok=True)


def _reset(sweep: "Sweep", dynamics: str, directory: Path, statuses: list[Status]) -> int:
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    chosen = np.isin(wanted.status, statuses)
    for number, layout in enumerate(store.layouts.values()):
        layout.reset(np.unique(wanted.row[chosen & (wanted.layout == number)]))
    return len(np.unique(wanted.ids[chosen]))
