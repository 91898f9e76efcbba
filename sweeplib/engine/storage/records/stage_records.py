"""What the stages of a sweep do, did and made: a record each, `stages/STAGE[.NAME].json` in its folder.

A stage is one of the workflow (`plan`, `simulate`, `finalise`, `analyse.NAME`, `figure.NAME`, `report`), started by
Snakemake or by a command; a dynamics of the simulations (`simulate.DYNAMICS`); or `sweep`, all stages one after the
other. While a stage runs, its record is small news, replaced again and again, for those who show it. What a stage has
made (from what, which files, numbers of cases, what failed) stays in its record until it has made it again, and is on
the disk before the stage ends. Everything that asks whether a result is up to date, whole or failed reads records.

Beside it, `stages/STAGE[.NAME].done` is for the workflow, which deletes what it tracks before a stage starts. It has a
digest, and so changes exactly when what was made does. Figures and the report are tracked by their own files.

`directory` is the folder of a sweep's results, and `name` of a stage is STAGE[.NAME].
"""

import json
import os
import resource
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import psutil

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.process.stage_log import log_path
from sweeplib.engine.process.terminal import harmless
from sweeplib.engine.process.troubles import reason
from sweeplib.engine.storage.records.earlier_records import convert_records, earlier_records
from sweeplib.engine.storage.records.files import digest, intact_json, write_json, write_text
from sweeplib.engine.storage.records.holders import last_sign, numbers, sees, signs_of_life
from sweeplib.engine.storage.records.locks import at_work

FOLDER = "stages"
WHOLE = "sweep"
"""The name of the record of a run of all stages."""
MADE = ("made_from", "files", "digest", "counts", "failures", "complete")
"""The fields that stay until they are made again."""
INTERRUPTED = "interrupted"
DIED = "its process has ended without a word"
SILENCE_ELSEWHERE = 60.0
"""Seconds without a sign of life after which a process on another host counts as dead: clocks of hosts differ less."""


class _Running(threading.local):
    """The records of the stages that this thread runs, the innermost last: threads may run sweeps of their own."""

    def __init__(self) -> None:
        self.records: list[_Record] = []


_running = _Running()


@dataclass(frozen=True)
class StageRecord:
    """What the record of a stage says; times are seconds since 1970.

    Its process is `doing` a step that began at `doing_since`, such as a compilation. Of `total` cases `done` are done,
    at a `rate` per second, the `share` of the work; `cases` are the numbers of those that were computed, by status.
    `seconds_left` is their estimate at the time of `last_news`. The record was touched at `last_sign`. `page` is the
    link to the `dashboard`'s page of the sweep, `table` what the table of the plan shows of the cases to compute,
    `at_the_end` what the command that runs all stages says and records after the last one, `problem` why the stage
    ended early. Once it has ended, `cpu_seconds` and `memory` are what its process and those that it started took: the
    seconds of processors of all, and the most bytes of one.

    What it made last is made from `made_from`. Its `files` have an entry each (`manifest`), by their paths in the
    sweep's folder. `digest` is that of the identities of cases, or of a folder of zarr, whose files a manifest in there
    lists. `counts` are numbers of cases: of a plan by dynamics, of a dynamics by status. `failures` describe what could
    not be made (`attempts`). `complete` is what a run of all stages left that made everything (`up_to_date`).
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
    # not compared: a record whose files were read gets the present time too
    last_sign: float = field(default=0.0, compare=False)
    table: dict[str, Any] = field(default_factory=dict)
    at_the_end: dict[str, Any] = field(default_factory=dict)
    made_from: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    digest: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    complete: dict[str, Any] = field(default_factory=dict)

    def is_of(self, now: Mapping[str, Any]) -> bool:
        """Return whether what the stage made was made from what it would be made from `now`: all its entries agree.

        An empty entry, such as the rows of a sweep without rounds, is one that the record lacks.
        """
        # as it would be read from a record
        plain = json.loads(json.dumps(dict(now), default=str))
        return all((self.made_from.get(name) or None) == (value or None) for name, value in plain.items())

    @property
    def here(self) -> bool:
        """Return whether the stage runs, or ran, among the processes of this machine that are seen from here."""
        return sees(self.host, self.numbers)

    @property
    def running(self) -> bool:
        """Return whether the stage's process is alive: it is seen here, or gives signs of life on another machine."""
        if self.ended is not None or not self.host:
            return False
        if self.here:
            # another process may have the number by now
            return abs(_start_time(self.pid) - self.born) < 1.0
        return time.time() - self.last_sign < SILENCE_ELSEWHERE

    def seconds(self, now: float) -> float:
        """Return how long the stage has taken until `now`, or took."""
        return (self.ended or now) - self.started

    @property
    def outcome(self) -> str | None:
        """Return why the stage failed, None if it did not, or not yet."""
        died = self.ended is None and self.host and not self.running
        return self.problem or (DIED if died else None)

    def remaining(self, now: float) -> float | None:
        """Return the estimate of the seconds that remain at the time `now`, None if there is none."""
        return None if self.seconds_left is None else max(0.0, self.seconds_left - (now - self.last_news))


def stage_records(directory: Path, since: float = 0.0) -> dict[str, StageRecord]:
    """Return the records of the stages that began at `since` or later, by name, in the order of their beginnings."""
    folder = directory / FOLDER
    contents = {path.stem: _content(path) for path in folder.glob("*.json")} or earlier_records(directory)
    named = {name: content for name, content in contents.items() if content.get("name") == name}
    records = [_record(content, record_path(directory, name)) for name, content in named.items()]
    in_order = sorted(records, key=lambda record: record.started)
    return {record.name: record for record in in_order if record.started >= since}


def stage_record(directory: Path, name: str) -> StageRecord:
    """Return the record of a stage; one that says nothing if there is none, or any bit of it has changed."""
    path = record_path(directory, name)
    return _record(_content(path) if path.parent.is_dir() else earlier_records(directory).get(name, {}), path)


def record_path(directory: Path, name: str) -> Path:
    """Return the path of the record of a stage."""
    return directory / FOLDER / f"{name}.json"


def done_path(directory: Path, name: str) -> Path:
    """Return the path of the file by which the workflow tracks a stage."""
    return directory / FOLDER / f"{name}.done"


def paths_of_stage(directory: Path, name: str) -> tuple[Path, ...]:
    """Return the paths of the files that are about a stage alone: its record, what the workflow tracks, its log."""
    return tuple(path(directory, name) for path in (record_path, done_path, log_path))


def add_to_record(directory: Path, name: str, **news: Any) -> None:
    """Write news into the record of a stage that this process does not run."""
    path = record_path(directory, name)
    write_json(path, _content(path) | {"name": name} | news, durable=False)


def forget_record(directory: Path, name: str) -> None:
    """Remove the record of a stage, so that the workflow runs it again."""
    if not (directory / FOLDER).exists():
        convert_records(directory, directory / FOLDER)
    for path in paths_of_stage(directory, name):
        path.unlink(missing_ok=True)


def counts_when_done(directory: Path, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the number of cases by status after the last run of each of some dynamics; {} of one before its first."""
    return {name: stage_record(directory, f"simulate.{name}").counts for name in names}


@contextmanager
def recorded_stage(directory: Path, name: str) -> Iterator["_Record"]:
    """A context in which this process runs a stage; it yields the record, and `tell` writes into the innermost one's.

    Within a context of the same stage, it yields the record of that.
    """
    path = record_path(directory, name)
    outer = next((record for record in _running.records if record.path == path), None)
    with nullcontext(outer) if outer else _new_record(directory, name) as record:
        _running.records.append(record)
        try:
            yield record
        finally:
            _running.records.pop()


@contextmanager
def _new_record(directory: Path, name: str) -> Iterator["_Record"]:
    """A context in which a stage runs, with its beginning, its end, its problem and what it took in a new record."""
    with at_work(directory, "runs all stages" if name == WHOLE else f"runs the stage {name}"):
        record, before = _Record(directory, name), _cpu_seconds()
        record.tell(force=True)
        try:
            with signs_of_life(record.path):
                yield record
        except BaseException as error:
            record.news["problem"] = _problem_of(error, directory)
            raise
        finally:
            used = {"cpu_seconds": round(_cpu_seconds() - before, 2), "memory": _peak_memory()}
            record.news |= {"ended": time.time(), "doing": None} | used
            record.tell(force=True)


def tell(*, force: bool = True, **news: Any) -> None:
    """Record news (fields of `StageRecord`) of the stage that this thread runs, if any.

    force : if false, they are only written if the last ones are half a second old; they are kept for the next ones.
    """
    if _running.records:
        _running.records[-1].news |= news | ({"doing_since": time.time()} if "doing" in news else {})
        _running.records[-1].tell(force=force)


def next_part() -> None:
    """Add the cases of this process's stage to those of its parts before, such as rounds; it tells of the next part."""
    if _running.records:
        _running.records[-1].next_part()


class _Record:
    """The record of a stage of this process; its news are left out while another living process runs the stage.

    news : the fields that this process has set, those of `MADE` of earlier runs among them.
    """

    def __init__(self, directory: Path, name: str) -> None:
        """Begin the record of a stage that this process runs from now on; nothing is written yet."""
        now, pid = time.time(), os.getpid()
        self.directory, self.name, self.path = directory, name, record_path(directory, name)
        self.written, self.writes = 0.0, False  # when it was written last; whether it is this process's by now
        # the numbers of cases of earlier parts, such as rounds
        self.before: dict[str, Any] = {"done": 0, "total": 0, "cases": {}}
        self.news: dict[str, Any] = {
            "name": name,
            "pid": pid,
            "host": socket.gethostname(),
            "numbers": numbers(),
            "born": _start_time(pid),
            "started": now,
        }

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The descriptions of what could not be made."""
        return list(self.news.get("failures", []))

    def write_result(
        self,
        made_from: Mapping[str, Any],
        *,
        digest: str = "",
        counts: Mapping[str, int] | None = None,
        files: Mapping[str, Any] | None = None,
    ) -> None:
        """Record on the disk what the stage has made now; then write the file that the workflow tracks, if it changes.

        The arguments are the fields of `StageRecord`. A stage with `files` is tracked by these.
        """
        self.news |= {"made_from": made_from, "digest": digest, "counts": counts or {}, "files": files or {}}
        self.tell(force=True, durable=True)
        path, text = done_path(self.directory, self.name), _done_text(digest, self.news["counts"])
        if not files and not (path.is_file() and file_bytes(path) == text.encode()):
            write_text(path, text)

    def tell_failures(self, failures: Sequence[Mapping[str, Any]]) -> None:
        """Record what could not be made, on the disk."""
        self.news["failures"] = list(failures)
        self.tell(force=True, durable=True)

    def tell(self, *, force: bool, durable: bool = False) -> None:
        """Write what is new in the record, if `force` is set or half a second has passed since it was written.

        durable : whether that is results: a full disk is an error, and it is written whoever else runs the stage.
        """
        now = time.monotonic()
        if force or now - self.written > 0.5:
            self.written = now
            # the stage itself reports a full disk, where that stops it
            with nullcontext() if durable else suppress(OSError):
                self._write(durable=durable)

    def _write(self, *, durable: bool) -> None:
        """Write the record; before the first time, take over what another run has made, or leave it to a living one."""
        if not self.writes:
            if not self.path.parent.exists():
                convert_records(self.directory, self.path.parent)
            other = stage_record(self.directory, self.name)
            if not durable and other.running and other.here and other.pid != self.news["pid"]:
                return
            self.writes = True
            self.news = {name: getattr(other, name) for name in MADE} | self.news
        content = self.news | self._whole() | {"last_news": time.time()}
        content = {name: value for name, value in content.items() if value not in (None, "", {}, [])}
        write_json(self.path, content, durable=durable)

    def next_part(self) -> None:
        """Count the cases so far as those of earlier parts."""
        self.before = self._whole()
        self.news = {name: value for name, value in self.news.items() if name not in self.before}

    def _whole(self) -> dict[str, Any]:
        """Return the numbers of cases of all parts."""
        numbers = {name: self.before[name] + self.news.get(name, 0) for name in ("done", "total")}
        return numbers | {"cases": dict(Counter(self.before["cases"]) + Counter(self.news.get("cases", {})))}


def is_whole_done(path: Path) -> bool:
    """Return whether a file by which the workflow tracks a stage has what was written, by the checksum in it."""
    of_result, _, checksum = (file_bytes(path) if path.is_file() else b"").partition(b" ")
    return checksum == f"{digest(of_result)}\n".encode()


def _done_text(digest_of_result: str, counts: Mapping[str, int]) -> str:
    """Return the text of the file that the workflow tracks: a digest of the result, and a checksum of that."""
    of_result = digest(json.dumps([digest_of_result, counts], sort_keys=True).encode())
    return f"{of_result} {digest(of_result.encode())}\n"


def _cpu_seconds() -> float:
    """Return the seconds of processors of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _peak_memory() -> int:
    """Return the most bytes that this process, or one of its children that have ended, has had."""
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts in kB
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _problem_of(error: BaseException, directory: Path) -> str | None:
    """Return in a line why a stage ended early, None for a plain exit."""
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


def _content(path: Path) -> dict[str, Any]:
    """Return what a file says; {} if there is none, or it cannot be read, or any bit of it has changed."""
    with suppress(OSError):
        return intact_json(path)
    return {}


def _record(content: Mapping[str, Any], path: Path) -> StageRecord:
    """Return the record of a file's content; an empty one if that is of another stage.

    Fields that this version does not know are left out.
    """
    if content.get("name") != path.stem:
        return StageRecord(path.stem)
    names = {field.name for field in fields(StageRecord)} & content.keys() - {"last_sign", "name"}
    values: dict[str, Any] = {name: harmless(v) if isinstance(v := content[name], str) else v for name in names}
    return StageRecord(path.stem, **values, last_sign=last_sign(path) or 0.0)
