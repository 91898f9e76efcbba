"""Refusal of a sweep with cases that its workers do not have the memory for."""

from typing import TYPE_CHECKING

from sweeplib.errors import InputError
from sweeplib.execution.blocks import MEMORY_SHARE
from sweeplib.execution.clusters import cluster_of
from sweeplib.simulation import case_memory

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep


def refuse_large_cases(sweep: "Sweep", dynamics: str, workers: int | None = None) -> None:
    """Raise InputError if a case at a probed point takes more memory than a worker may use, where that is known."""
    limit = cluster_of(sweep).known_memory(workers)
    if limit is None:
        return
    case = max((case for _, case in sweep.probed(dynamics)), key=case_memory)
    needed, most = case_memory(case), int(MEMORY_SHARE * limit)
    if needed > most:
        point = ", ".join(f"{name}={getattr(case.problem, name)}" for name in ("p", "k", "d", "samples"))
        problem = f"a case of {sweep.name} needs more bytes of memory than a worker may take, at {point}"
        expected = f"at most {most}: fewer samples, a smaller d, or workers with more memory"
        raise InputError(problem, key=f"dynamics.{dynamics}", value=needed, expected=expected)
