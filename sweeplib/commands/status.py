"""The status of a sweep: whether it runs, how far it is, how long it will take, and what went wrong last.

Counts of cases are numbers by status; `directory` is the folder of a sweep's results. A job is a process that makes one
result of a stage, and leaves a record.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.process.terminal import clock_time
from sweeplib.engine.storage.records.stage_records import (
    DIED,
    INTERRUPTED,
    WHOLE,
    StageRecord,
    counts_when_done,
    stage_records,
)

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

EXIT_STATUSES = {"finished": 0, "failed": 1, "unfinished": 3, "running": 4}
"""The exit status of `sweeplib status` by the state of a sweep; 2 is refused input."""
MOST_LISTED = 1000
"""The lines of the table of outcomes that are read: those with reasons are the first."""


@dataclass(frozen=True)
class SweepStatus:
    """The status of a sweep whose results are in the folder `results`.

    state : a name in `EXIT_STATUSES`.
    running : the names of the jobs that run.
    done, total, failed : cases of the present run, of the whole sweep if none runs; failures are cases that failed or
        were killed. `outcomes` has the number of failures and of other outcomes in words.
    seconds_left : None if it cannot be told yet.
    doing : the present step, such as a compilation.
    dashboard, page : links to Dask's dashboard while cases are computed, and to its page of the sweep.
    cases : by dynamics, the number of cases with each status; `reasons` why the first with a status failed or became
        inaccurate, when all cases are done.
    last_error : why the last job or attempt failed that failed and was not repeated.
    report : the path of the report, None if it is not written yet.
    exits : of a finished sweep with thresholds, for each dynamics and threshold, the numbers of `ExitCount`.
    holder : whose command runs, since when, on which host; None if none does.
    """

    sweep: str
    results: str
    state: str
    running: tuple[str, ...]
    done: int
    total: int
    failed: int
    outcomes: str
    seconds_left: float | None
    doing: str | None
    dashboard: str | None
    page: str | None
    last_error: str | None
    report: str | None
    cases: Mapping[str, Mapping[str, int]]
    reasons: tuple[str, ...]
    exits: tuple[Mapping[str, Any], ...] = ()
    holder: str | None = None

    @property
    def exit_status(self) -> int:
        """Return the state as an exit status: see `sweeplib status --help`."""
        return EXIT_STATUSES[self.state]

    def record(self) -> dict[str, Any]:
        """Return the status as plain values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return what is known besides the numbers of cases, for a reader."""
        time_left = f", {clock_time(self.seconds_left)} left" if self.seconds_left is not None else ""
        counts = f"; {self.done:,} of {self.total:,} cases, {self.outcomes}" if self.total else ""
        which = f" ({', '.join(self.running)})" if self.running else ""
        lines = [f"{self.sweep}: {self.state}{which}{counts}{time_left}", self.doing]
        links = {"dashboard": self.dashboard, "this sweep": self.page}
        others = {"at work": self.holder, **links, "last error": self.last_error, "report": self.report}
        lines += [f"{name}: {value}" for name, value in others.items() if value]
        return [line for line in (*lines, *self.reasons) if line]


def status(sweep: "Design", directory: Path) -> SweepStatus:
    """Return the status of a sweep, also while it runs, by the inventory of its cases.

    That is slower than `status_by_records`, but counts the cases that the config has now.
    """
    from sweeplib.engine.storage.store.inventory import counts_of_cases

    return _status(sweep.name, directory, stage_records(directory), counts_of_cases(sweep, directory))


def status_by_records(directory: Path) -> SweepStatus:
    """Return the status of the sweep in a folder by its records alone: nothing of the sweep is executed."""
    from sweeplib.engine.storage.store.run_store import recorded_counts

    return _status(directory.resolve().name, directory, stage_records(directory), recorded_counts(directory))


def status_when_done(sweep: "Design", directory: Path) -> SweepStatus:
    """Return the status of a sweep all of whose stages have ended well, by their markers."""
    from sweeplib.engine.status import Status

    cases = counts_when_done(directory, sweep.runs)
    complete = {name: {status.name: counts.get(status.name, 0) for status in Status} for name, counts in cases.items()}
    return _status(sweep.name, directory, {}, complete)


def _status(
    name: str, directory: Path, jobs_of_sweep: Mapping[str, StageRecord], cases: Mapping[str, Mapping[str, int]]
) -> SweepStatus:
    """Return the status of a sweep from its jobs, by name, and the counts of its cases, by dynamics."""
    from sweeplib.engine.status import failed, outcomes

    now, page = time.time(), directory / "report" / "index.html"
    running = [job for job in jobs_of_sweep.values() if job.running and job.name != WHOLE]
    # the job that computes cases; if none runs, all cases of the dynamics in place of a job's
    computing = next((job for job in running if job.total), _job_of_all(cases.values()))
    present_state = state(jobs_of_sweep, cases.values())
    return SweepStatus(
        name,
        str(directory),
        present_state,
        tuple(job.name for job in running),
        computing.done,
        computing.total,
        failed(computing.cases),
        outcomes(computing.cases),
        computing.remaining(now),
        next((job.doing for job in running if job.doing), None),
        computing.dashboard,
        computing.page,
        _last_error(jobs_of_sweep),
        str(page) if page.exists() else None,
        cases,
        tuple(line for dynamics in cases for line in _reasons(directory, dynamics)),
        _exits(directory) if present_state == "finished" else (),
        _at_work(directory) if running else None,
    )


def _exits(directory: Path) -> tuple[dict[str, Any], ...]:
    """Return how many runs exited by the horizon, from the dataset if there is one."""
    from sweeplib.analysis.kit.exit_counts import exit_counts
    from sweeplib.engine.storage.dataset.folder import open_dataset

    dataset = directory / "dataset.zarr"
    return tuple(map(asdict, exit_counts(open_dataset(dataset)))) if dataset.exists() else ()


def _at_work(directory: Path) -> str | None:
    """Return whose command runs the sweep, or a part of it, in words."""
    from sweeplib.engine.storage.records.holders import other_holder
    from sweeplib.engine.storage.records.locks import SWEEP

    who = other_holder(directory / "locks", SWEEP)
    return None if who is None else who.words


def state(jobs_of_sweep: Mapping[str, StageRecord], cases: Iterable[Mapping[str, int]]) -> str:
    """Return the state of a sweep, a name in `EXIT_STATUSES`, from its jobs, by name, and counts of its cases."""
    occurring = {status for counts in cases for status, count in counts.items() if count}
    if any(job.running for job in jobs_of_sweep.values()):
        return "running"
    ends = {job.outcome for job in jobs_of_sweep.values()} - {None}
    stopped = {INTERRUPTED, DIED}  # Ctrl-C ends the processes of stages before they can tell
    if ends - stopped or _has_failures(occurring - {"ok", "missing"}):
        return "failed"
    return "unfinished" if ends or "missing" in occurring else "finished"


def _has_failures(occurring: set[str]) -> bool:
    """Return whether some of the statuses that occur are failures; it takes imports to know of any."""
    if not occurring:
        return False
    from sweeplib.engine.status import FAILURES

    return any(status.name in occurring for status in FAILURES)


def _job_of_all(counts: Iterable[Mapping[str, int]]) -> StageRecord:
    """Return a record of no job, in place of that of a running one, with the cases of all dynamics together."""
    sums = sum(map(Counter, counts), Counter[str]())
    total = sums.total()
    return StageRecord("", done=total - sums["missing"], total=total, cases=dict(sums))


def _reasons(directory: Path, dynamics: str) -> list[str]:
    """Return why the first case of a dynamics with each status failed or became inaccurate."""
    from sweeplib.engine.storage.records.files import DamageError
    from sweeplib.engine.storage.store.outcomes import first_outcomes, outcomes_path, reason_in_words

    try:
        outcomes = first_outcomes(directory, dynamics, MOST_LISTED)
    except DamageError as error:
        return [str(error)]
    lines: dict[str, str] = {}
    for line in outcomes:
        if why := reason_in_words(line):
            lines.setdefault(line["status"], f"{dynamics}, {line['status']}, case {line['identity'][:8]}: {why}")
    path = [f"all of these cases: {outcomes_path(directory, dynamics)}"] if lines else []
    return [*lines.values(), *path]


def _last_error(jobs_of_sweep: Mapping[str, StageRecord]) -> str | None:
    """Return the outcome of the job that failed last; of all stages, only if none of them has another one.

    Stages whose processes were ended by an interrupt of the whole have none.
    """
    no_errors = {None, DIED} if WHOLE in jobs_of_sweep and jobs_of_sweep[WHOLE].outcome == INTERRUPTED else {None}
    ended = [job for job in jobs_of_sweep.values() if job.outcome not in no_errors]
    last = max(ended, key=lambda job: (job.name != WHOLE, job.ended or job.last_news), default=None)
    return f"{last.name}: {last.outcome}" if last else None
