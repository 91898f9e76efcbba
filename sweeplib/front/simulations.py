"""The simulations of a sweep: its cases and, if it has questions, the rounds that answer them."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweeplib.design.design import Design
    from sweeplib.execution.run import DynamicsSummary


def simulate(
    sweep: "Design", directory: Path, dynamics: Collection[str] | None = None, **options: Any
) -> "dict[str, DynamicsSummary]":
    """Run a sweep, with its rounds if all `dynamics` are to run; return the summaries.

    `options` are those of `run_sweep`.
    """
    if sweep.questions and (dynamics is None or set(dynamics) == set(sweep.runs)):
        from sweeplib.answers import run_rounds

        return run_rounds(sweep, directory, **options)
    from sweeplib.execution.run import run_sweep

    return run_sweep(sweep, directory, dynamics, **options)
