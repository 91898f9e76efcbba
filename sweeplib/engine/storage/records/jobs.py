"""What the jobs of a sweep do at present, in `jobs/<job>.json` of its folder, for other processes that show it.

A job is a stage of the workflow (`plan`, `simulate`, `finalise`, `analyse.NAME`, `figure.NAME`, `report`), started by
Snakemake or by a command, or `sweep`, all stages one after the other. Its file is small and is replaced while it runs.
It serves readers only, no stage reads it.
"""

import os
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import psutil

from sweeplib.engine.process import place
from sweeplib.engine.process.terminal import harmless
from sweeplib.engine.process.troubles import reason
from sweeplib.engine.storage.records.files import DamageError, read_json, write_json
from sweeplib.engine.storage.records.holders import last_sign, signs_of_life
from sweeplib.engine.storage.records.locks import at_work

WHOLE = "sweep"
"""The name of the job that runs all stages."""
INTERRUPTED = "interrupted"
DIED = "its process has ended without a word"
SILENCE_ELSEWHERE = 60.0
"""Seconds without a sign of life after which a process on another host counts as dead: clocks of hosts differ less."""

_records: list["_Record"] = []
"""The records of the jobs of this process, the innermost last."""


@dataclass(frozen=True)
class Job:
    """A job as its file describes it; times are seconds since 1970.

    `doing` is a step that began at `doing_since`, such as a compilation. Of `total` cases `done` are done, at a `rate`
    per second, the `share` of the work; `cases` are the numbers of those that were computed, by status. `seconds_left`
    is their estimate at the time of `last_news`. The file was touched at `last_sign`. `page` is the link to the
    `dashboard`'s page of the sweep, `table` what the table of the plan shows of the cases that the job computes,
    `at_the_end` what the command that runs all stages says and records after the last one, `problem` why the job ended
    early. Once it has ended, `cpu_seconds` and `memory` are what its process and those that it started took: the
    seconds of processors of all, and the most bytes of one.
    """

    name: str
    pid: int = 0
    host: str = ""
    numbers: str = ""
    born: float = 0.0
    started: float = 0.0
    last_news: float = 0.0
    ended: float | None = None
    problem: str | None = None
    doing: str | None = None
    doing_since: float = 0.0
    news: str | None = None
    done: int = 0
    total: int = 0
    cases: dict[str, int] = field(default_factory=dict)
    share: float = 0.0
    rate: float = 0.0
    seconds_left: float | None = None
    dashboard: str | None = None
    page: str | None = None
    cpu_seconds: float = 0.0
    memory: int = 0
    last_sign: float = 0.0
    table: dict[str, Any] = field(default_factory=dict)
    at_the_end: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> bool:
        """Return whether the job runs, or ran, among the processes of this machine that are seen from here."""
        return place.sees(self.host, self.numbers)

    @property
    def running(self) -> bool:
        """Return whether the job's process is alive: it is seen here, or gives signs of life on another machine."""
        if self.ended is not None:
            return False
        if self.here:
            return abs(_start_time(self.pid) - self.born) < 1.0
        return time.time() - self.last_sign < SILENCE_ELSEWHERE

    def seconds(self, now: float) -> float:
        """Return how long the job has taken so far."""
        return (self.ended or now) - self.started

    @property
    def outcome(self) -> str | None:
        """Return why the job failed, None if it did not, or not yet."""
        died = self.ended is None and not self.running
        return self.problem or (DIED if died else None)

    def remaining(self, now: float) -> float | None:
        """Return the estimate of the remaining seconds, None if there is none."""
        return None if self.seconds_left is None else max(0.0, self.seconds_left - (now - self.last_news))


def jobs(directory: Path, since: float = 0.0) -> dict[str, Job]:
    """Return the jobs in a sweep's folder that were started at `since` or later, by name, the earliest first."""
    records = [job for path in (directory / "jobs").glob("*.json") if (job := _job_in(path)) is not None]
    return {job.name: job for job in sorted(records, key=lambda job: job.started) if job.started >= since}


@contextmanager
def job(directory: Path, name: str) -> Iterator[None]:
    """A context in which this process does the job `name` of the sweep in `directory`, of which `tell` tells."""
    with at_work(directory, "runs all stages" if name == WHOLE else f"runs the stage {name}"):
        record = _Record(directory / "jobs" / f"{name}.json", name)
        _records.append(record)
        record.tell(force=True)
        before = _cpu_seconds()
        try:
            with signs_of_life(record.path):
                yield
        except BaseException as error:
            record.news["problem"] = _problem_of(error, directory)
            raise
        finally:
            _records.remove(record)
            used = {"cpu_seconds": round(_cpu_seconds() - before, 2), "memory": _peak_memory()}
            record.news |= {"ended": time.time(), "doing": None} | used
            record.tell(force=True)


def tell(*, force: bool = True, **news: Any) -> None:
    """Record news (fields of `Job`) of this process's job, if it does one; without `force` at most twice a second."""
    if _records:
        _records[-1].news |= news | ({"doing_since": time.time()} if "doing" in news else {})
        _records[-1].tell(force=force)


def next_part() -> None:
    """Add the cases of this process's job to those of its parts before, such as rounds; it tells of the next part."""
    if _records:
        _records[-1].next_part()


class _Record:
    """The file of a job of this process; while another living process does the job, the file is left to that one."""

    def __init__(self, path: Path, name: str) -> None:
        now, pid = time.time(), os.getpid()
        self.path, self.written, self.writes = path, 0.0, False
        self.before: dict[str, Any] = {"done": 0, "total": 0, "cases": {}}
        self.news: dict[str, Any] = {
            "name": name,
            "pid": pid,
            "host": socket.gethostname(),
            "numbers": place.numbers(),
            "born": _start_time(pid),
            "started": now,
        }

    def tell(self, *, force: bool) -> None:
        """Write the news, unless the last were written just now or another process does the job."""
        now = time.monotonic()
        if force or now - self.written > 0.5:
            self.written = now
            self.writes = self.writes or not self._is_of_another()
            if not self.writes:
                return
            with suppress(OSError):  # the job itself reports a full disk, where that stops it
                write_json(self.path, self.news | self._whole() | {"last_news": time.time()}, durable=False)

    def next_part(self) -> None:
        self.before = self._whole()
        self.news = {name: value for name, value in self.news.items() if name not in self.before}

    def _whole(self) -> dict[str, Any]:
        """Return the numbers of cases of all parts."""
        numbers = {name: self.before[name] + self.news.get(name, 0) for name in ("done", "total")}
        return numbers | {"cases": dict(Counter(self.before["cases"]) + Counter(self.news.get("cases", {})))}

    def _is_of_another(self) -> bool:
        other = _job_in(self.path)
        return other is not None and other.here and other.running and other.pid != self.news["pid"]


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def _peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kB
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _problem_of(error: BaseException, directory: Path) -> str | None:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return f"ended with exit status {error.code}" if error.code else None
    return reason(error, directory)


def _start_time(pid: int) -> float:
    """Return when a process of this machine was started, 0 if there is none."""
    try:
        process = psutil.Process(pid)
        return 0.0 if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return 0.0


def counts_when_done(directory: Path, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the number of cases of some dynamics with each status that occurs, as of the last run; {} before it."""
    return {name: _numbers((read_json(directory / f"{name}.done.json") or {}).get("cases")) for name in names}


def planned_cases(plan: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of cases of each dynamics by the marker of a plan, also of one by an earlier version."""
    return _numbers(plan.get("cases", plan))


def ended_cases(marker: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the numbers of cases by the marker of a run; none by an earlier version's, which are computed again."""
    return _numbers(marker.get("cases")) if marker and "made_from" in marker else {}


def _numbers(cases: object) -> dict[str, int]:
    """Return the numbers of cases in a record; none if it is the record of something else."""
    return {name: n for name, n in cases.items() if isinstance(n, int)} if isinstance(cases, Mapping) else {}


def _job_in(path: Path) -> Job | None:
    """Return the job that a file describes; None if it is damaged, of another version, or the record of another job."""
    try:
        content = read_json(path) or {}
        names = {field.name for field in fields(Job)} & content.keys() - {"last_sign"}
        values: dict[str, Any] = {name: harmless(v) if isinstance(v := content[name], str) else v for name in names}
        return Job(**values, last_sign=last_sign(path) or 0.0) if values.get("name") == path.stem else None
    except (DamageError, OSError):
        return None
