"""Cases that the next run computes again: those with a status, those of damaged blocks, or one case by its name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.errors import InputError
from sweeplib.execution.status import DAMAGED, RETRIED, forget_done
from sweeplib.execution.status import retry as retry_statuses
from sweeplib.storage.locks import alone
from sweeplib.upkeep.cases import chosen_case, is_case

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

ALL = "all"


def retry(sweep: "Sweep", directory: Path, what: Sequence[str]) -> dict[str, int]:
    """Make cases missing, so that the next run computes them again; return their number by dynamics.

    `what` names statuses, `all` of these (as does nothing), `damaged`, or one case. InputError for anything else, and
    while another process is at work in the directory.
    """
    names = [name for name in what if not is_case(name)]
    if len(names) < len(what):
        if len(what) > 1:
            raise InputError("one case at a time", value=" ".join(what), expected="one case, or statuses")
        return _retry_case(sweep, directory, what[0])
    for name in names:
        if name not in (*RETRIED, DAMAGED, ALL):
            choices = (*RETRIED, ALL, DAMAGED)
            expected = f"one of {', '.join(choices)}, an identity, or coordinates such as p=4,seed=3"
            raise InputError("not a status to retry", value=name, choices=choices, expected=expected)
    statuses = set(names) - {ALL} | (set(RETRIED) if ALL in names or not names else set())
    return retry_statuses(sweep, directory, sorted(statuses))


def _retry_case(sweep: "Sweep", directory: Path, name: str) -> dict[str, int]:
    with alone(directory, "clears a case"):
        chosen = chosen_case(sweep, directory, name)
        dynamics = chosen.store.dynamics
        if chosen.row < 0 or chosen.status.name == "missing":
            return {dynamics: 0}
        list(chosen.store.layouts.values())[chosen.layout].reset(np.array([chosen.row]))
        forget_done(directory, dynamics)
    return {dynamics: 1}
