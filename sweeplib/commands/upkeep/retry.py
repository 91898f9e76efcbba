"""Cases that the next run computes again: those with a status, those of damaged segments, or one case by its name."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from sweeplib.commands.upkeep.cases import chosen_case, is_case
from sweeplib.engine.design.design import Design
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import remove_files
from sweeplib.engine.storage.records.locks import alone
from sweeplib.engine.storage.records.stage_records import forget_record
from sweeplib.engine.storage.store.examination import damaged_segments
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.outcomes import outcomes_path
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.errors import InputError

RETRIED = ("failed", "killed", "timeout", "diverged", "inaccurate")
"""The statuses whose cases may be computed again."""
DAMAGED = "damaged"
"""The word, used like a status, for the cases of damaged segments of the run store."""
ALL = "all"
"""The word for all statuses of RETRIED."""


def retry(sweep: Design, directory: Path, selection: Sequence[str]) -> dict[str, int]:
    """Make cases missing, so that the next run computes them again; return their number by dynamics.

    `selection` names statuses, `all` of these (an empty one does too), `damaged`, or one case. The record of their
    dynamics is removed, so that a workflow runs it again. InputError for anything else; BusyError while another
    process is at work in the directory.
    """
    names = [name for name in selection if not is_case(name)]
    if len(names) < len(selection) > 1:
        raise InputError("one case at a time", value=" ".join(selection), expected="one case, or statuses")
    for name in names:
        if name not in (*RETRIED, DAMAGED, ALL):
            choices = (*RETRIED, ALL, DAMAGED)
            expected = f"one of {', '.join(choices)}, an identity, or coordinates such as p=4,seed=3"
            raise InputError("not a status to retry", value=name, choices=choices, expected=expected)
    with alone(directory, "clears cases"):
        if len(names) < len(selection):
            reset = _reset_case(sweep, directory, selection[0])
        else:
            chosen = RETRIED if ALL in names or not names else names
            reset = {dynamics: _reset(sweep, dynamics, directory, {*names, *chosen}) for dynamics in sweep.runs}
        for dynamics in filter(reset.get, reset):
            forget_record(directory, f"simulate.{dynamics}")
            outcomes_path(directory, dynamics).unlink(missing_ok=True)
    return reset


def _reset_case(sweep: Design, directory: Path, name: str) -> dict[str, int]:
    """Make the case `name` missing; return the number of cases, 1 or 0 if it was not there, by its dynamics."""
    chosen = chosen_case(sweep, directory, name)
    if chosen.segment is None:
        return {chosen.store.dynamics: 0}
    chosen.store.forget(np.array([chosen.identity], "S16"))
    return {chosen.store.dynamics: 1}


def _reset(sweep: Design, dynamics: str, directory: Path, names: Collection[str]) -> int:
    """Make cases of a dynamics missing, those with statuses in `names` and of damaged segments; return their number."""
    damaged = _forget_damaged(sweep, dynamics, directory) if DAMAGED in names else 0
    statuses = [Status[name] for name in names if name in RETRIED]
    if not statuses:
        return damaged
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    chosen = np.unique(wanted.ids[np.isin(wanted.status, statuses)])
    if len(chosen):
        store.forget(chosen)
    return damaged + len(chosen)


def _forget_damaged(sweep: Design, dynamics: str, directory: Path) -> int:
    """Delete damaged segments; return how many cases the next run computes if there were any."""
    damaged = damaged_segments(directory, dynamics)
    if folder := next(filter(Path.is_dir, damaged), None):
        raise InputError("a folder is in the place of a file", file=folder, expected="nothing there: move it away")
    remove_files(directory, list(damaged))
    return inventory(sweep, dynamics, RunStore(directory, dynamics)).counts()["missing"] if damaged else 0
