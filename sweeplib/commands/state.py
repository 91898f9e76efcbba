"""What a run of a sweep's stages does at present, read from the files of its jobs.

A job is a process that makes one result: a stage has one, or one for each analysis or figure. Those that are up to date
are not started.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.engine.process.terminal import clock_time
from sweeplib.engine.storage.records.stage_records import DIED, StageRecord

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design


@dataclass(frozen=True)
class Stage:
    """A stage of a sweep, as a reader sees it: its title and the names of its jobs."""

    title: str
    jobs: tuple[str, ...]


@dataclass(frozen=True)
class RunState:
    """The stages of a sweep and the jobs that this run has started, at the time `now`, in seconds since 1970.

    `over` is "ok" or "failed" when Snakemake has ended.
    """

    stages: tuple[Stage, ...]
    jobs: Mapping[str, StageRecord]
    now: float
    over: str = ""

    def of(self, stage: Stage) -> list[StageRecord]:
        """Return the started jobs of a stage."""
        return [self.jobs[name] for name in stage.jobs if name in self.jobs]

    def running(self, stage: Stage) -> bool:
        """Return whether a job of the stage runs."""
        return not self.over and any(job.ended is None for job in self.of(stage))

    def ended(self, stage: Stage) -> bool:
        """Return whether the stage has started a job, none runs, and no further one will start."""
        started = self.of(stage)
        return (
            bool(started)
            and not self.running(stage)
            and (len(started) == len(stage.jobs) or self.starts_no_more(stage))
        )

    def starts_no_more(self, stage: Stage) -> bool:
        """Return whether no further job of a stage will start: a later stage has begun, or the run has succeeded."""
        later = self.stages[self.stages.index(stage) + 1 :]
        return self.over == "ok" or any(map(self.of, later))

    def problems(self, stage: Stage) -> list[str]:
        """Return why jobs of the stage failed, a line each."""
        return [_named(job, str(job.problem or DIED)) for job in self.of(stage) if self._failed(job)]

    def _failed(self, job: StageRecord) -> bool:
        return job.problem is not None or bool(self.over and job.ended is None)

    def seconds(self, stage: Stage) -> float:
        """Return the time from the start of the stage's first job to now or the end of its last one."""
        started = self.of(stage)
        ends = [job.ended or self.now for job in started]
        return max(ends) - min(job.started for job in started) if started else 0.0

    def counts(self, stage: Stage) -> str:
        """Return how much of a stage is done: cases, or its jobs if it has several; empty if neither can be told."""
        started = self.of(stage)
        if started and len(stage.jobs) > 1:
            others = len(stage.jobs) - len(started)
            done = f"{sum(job.ended is not None for job in started)} of {len(stage.jobs)}"
            return f"{done}, {others} up to date" if others and self.starts_no_more(stage) else done
        job = next((job for job in started if job.total), None)
        if job is None:
            return ""
        return f"{job.done:,} of {job.total:,} cases, {_outcomes(job.cases)}"

    def pace(self, stage: Stage) -> str:
        """Return the share of the work, the rate and the time left of a stage that computes cases; "" if unknown."""
        job = next((job for job in self.of(stage) if job.total), None)
        if job is None:
            return ""
        seconds_left = None if job.ended else job.remaining(self.now)
        # before the first case the time left is the plan's estimate, without the start of the workers
        is_overdue = not job.done and seconds_left == 0.0
        parts = [
            f"{job.share:.0%} of the work" if 0.0 < job.share < 1.0 else "",
            f"{job.rate:,.1f} cases/s" if job.done else "",
            "" if seconds_left is None or is_overdue else f"{clock_time(seconds_left)} left",
        ]
        return ", ".join(filter(None, parts))

    def up_to_date(self, stage: Stage) -> bool:
        """Return whether nothing of a stage was left to do."""
        return not self.of(stage) and self.starts_no_more(stage)

    def doing(self) -> str:
        """Return the oldest step of the running jobs, such as a compilation, with its time; "" if there is none."""
        step, since = self.step()
        return f"{step} ({clock_time(self.now - since)})" if step else ""

    def step(self) -> tuple[str, float]:
        """Return the oldest step of the running jobs and when it began; "" and now if there is none."""
        steps = [job for job in self.jobs.values() if job.ended is None and job.doing]
        oldest = min(steps, key=lambda job: job.doing_since, default=None)
        return (str(oldest.doing), oldest.doing_since) if oldest else ("", self.now)

    def news(self) -> str:
        """Return the last line of news of a running job, such as that its workers are lost."""
        return next((job.news for job in reversed(list(self.jobs.values())) if job.ended is None and job.news), "")

    def links(self) -> list[str]:
        """Return the links to the dashboard of the running simulations, and to its page of the sweep."""
        job = next((job for job in self.jobs.values() if job.dashboard and job.ended is None), None)
        links = {"dashboard": job.dashboard, "this sweep": job.page} if job else {}
        return [f"{name}: {link}" for name, link in links.items() if link]

    @property
    def plan(self) -> dict[str, Any] | None:
        """Return the table of the cases that this run computes, None if it computes none or has not come to it."""
        job = self.jobs.get("simulate")
        return job.table if job and job.table else None


def _outcomes(counts: Mapping[str, int]) -> str:
    """Return the outcomes of cases in words; it takes imports to know of any but ok."""
    if not any(count for status, count in counts.items() if status != "ok"):
        return "0 failed"
    from sweeplib.engine.status import outcomes

    return outcomes(counts)


def _named(job: StageRecord, problem: str) -> str:
    """Return the problem of a job, with its name if its stage has several jobs."""
    _, dot, name = job.name.partition(".")
    return f"{name}: {problem}" if dot else problem


def stages(sweep: "Design") -> tuple[Stage, ...]:
    """Return the stages of a sweep, in their order."""
    all_stages = [
        Stage("plan", ("plan",)),
        Stage("simulations", ("simulate",)),
        Stage("dataset", ("finalise",)),
        Stage("analyses", tuple(f"analyse.{name}" for name in sweep.analyses)),
        Stage("figures", tuple(f"figure.{name}" for name in sweep.figures)),
        Stage("report", ("report",)),
    ]
    return tuple(stage for stage in all_stages if stage.jobs)
