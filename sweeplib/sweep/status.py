"""Where a sweep stands, and how to have another go at what did not end well."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.errors import InputError
from sweeplib.simulation import Status
from sweeplib.storage.failures import failure_path
from sweeplib.storage.inventory import inventory
from sweeplib.storage.locks import driver_lock
from sweeplib.storage.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.sweep.sweep import Sweep

RETRIED = ("failed", "killed", "timeout", "diverged")


def sweep_status(sweep: "Sweep", directory: Path) -> dict[str, dict[str, int]]:
    """How many cases of each dynamics of a sweep have each status. May be asked while the sweep runs."""
    return {name: inventory(sweep, name, RunStore(directory, name)).counts() for name in sweep.runs}


def retry(sweep: "Sweep", directory: Path, statuses: Iterable[str] = RETRIED) -> dict[str, int]:
    """How many cases of each dynamics are missing again, as they had one of the `statuses`; the next run computes them.

    The dynamics' done.json goes with them, so that a workflow sees there is something to do.
    InputError for a status that cannot be had another go at, and while a driver runs.
    """
    chosen = [_status(name) for name in statuses]
    reset = {}
    for dynamics in sweep.runs:
        with driver_lock(directory, dynamics):
            reset[dynamics] = _reset(sweep, dynamics, directory, chosen)
            if reset[dynamics]:
                (directory / f"{dynamics}.done.json").unlink(missing_ok=True)
    return reset


def _status(name: str) -> Status:
    if name not in RETRIED:
        raise InputError("not a status to retry", key="statuses", value=name, choices=RETRIED)
    return Status[name]


def _reset(sweep: "Sweep", dynamics: str, directory: Path, statuses: list[Status]) -> int:
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    chosen = np.isin(wanted.status, statuses)
    for number, layout in enumerate(store.layouts.values()):
        layout.reset(np.unique(wanted.row[chosen & (wanted.layout == number)]))
    identities = np.unique(wanted.ids[chosen])
    for identity in identities:
        failure_path(directory, bytes(identity).ljust(16, b"\0")).unlink(missing_ok=True)
    return len(identities)
