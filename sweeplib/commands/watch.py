"""`sweeplib watch`: the live view of a sweep that runs elsewhere, in another terminal or by `snakemake` itself."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.commands.screen import view
from sweeplib.commands.state import RunState, stages
from sweeplib.commands.status import status
from sweeplib.engine.process.terminal import echo
from sweeplib.engine.storage.records.stage_records import WHOLE, StageRecord, stage_records

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_BETWEEN_STAGES = 15.0
"""How long no job may run before a sweep counts as ended that `sweeplib sweep` did not start: Snakemake needs some."""


def watch(sweep: "Design", directory: Path, *, clock: Callable[[], float] = time.time) -> int:
    """Show a sweep until it ends; return the exit status: 1 if a stage failed.

    If it does not run, its status is written instead. Nothing of the sweep is changed, and an interrupt of this view
    does not reach it.
    """
    jobs_now = stage_records(directory)
    if not any(job.running for job in jobs_now.values()):
        echo("\n".join(status(sweep, directory).lines()))
        return 0
    since, stages_of_sweep = _start(jobs_now), stages(sweep)
    last_job = clock()
    with view(sweep.name) as display:
        while True:
            jobs_now = stage_records(directory, since)
            last_job = clock() if any(job.running for job in jobs_now.values()) else last_job
            over = _outcome(jobs_now, idle=clock() - last_job)
            jobs = {name: job for name, job in jobs_now.items() if name != WHOLE}
            state = RunState(stages_of_sweep, jobs, clock(), over)
            display.update(state)
            if over:
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
    echo("\n".join(_last_lines(sweep.name, directory, state)))
    return int(over == "failed")


def _last_lines(name: str, directory: Path, state: RunState) -> list[str]:
    """Return how a run ended, why its stages failed, and the path of the report."""
    page = directory / "report" / "index.html"
    problems = [f"{stage.title}: {problem}" for stage in state.stages for problem in state.problems(stage)]
    report = [f"report: {page}"] if page.exists() else []
    return [f"{name}: {'ended' if state.over == 'ok' else 'failed'}", *problems, *report]


def _start(jobs_now: Mapping[str, StageRecord]) -> float:
    """Return when the present run was started: that of all stages, or the first of the jobs that run."""
    whole = jobs_now.get(WHOLE)
    return whole.started if whole and whole.running else min(job.started for job in jobs_now.values() if job.running)


def _outcome(jobs_now: Mapping[str, StageRecord], idle: float) -> str:
    """Return "ok" or "failed" if a run has ended, otherwise "".

    jobs_now : records by name, with that of all stages (WHOLE) if `sweeplib sweep` runs them. Otherwise a run counts as
    ended when no job has run for `idle` seconds, more than SECONDS_BETWEEN_STAGES.
    """
    whole = jobs_now.get(WHOLE)
    ended = not whole.running if whole else idle > SECONDS_BETWEEN_STAGES
    if any(job.running for name, job in jobs_now.items() if name != WHOLE) or not ended:
        return ""
    return "failed" if any(job.outcome for job in jobs_now.values()) else "ok"
