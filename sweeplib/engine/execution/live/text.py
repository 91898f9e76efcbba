"""The words and tables of the page as HTML; all that comes from a sweep is escaped."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.execution.live.picture import COLOURS, kinds
from sweeplib.engine.process.terminal import clock_time
from sweeplib.engine.status import FAILURES, OUTCOMES, Status, outcomes

if TYPE_CHECKING:
    from sweeplib.engine.execution.live.news import KnownRun

SILENT_SECONDS = 15.0
"""After which the page says when it heard of a run last."""


def heading(run: "KnownRun") -> str:
    """Return the name of a run, a bar of how far it is, and its state in words, as HTML."""
    counts = _whole(run)
    share = 100 * (1 - counts["missing"] / max(1, sum(counts.values())))
    bar = f'<div class="bar"><div style="width: {share:.2f}%"></div></div>'
    lines = "".join(f"<p>{escape(line)}</p>" for line in _lines(run))
    return f'<h1>{escape(run.begun.sweep)}</h1>{bar}{lines}<p class="quiet">Results: {escape(run.begun.results)}</p>'


def plain(run: "KnownRun") -> str:
    """Return the plain text that the page shows without web sockets; the template escapes it."""
    again = "Loaded anew, this page shows the present numbers. The map needs JavaScript and web sockets."
    return "\n".join([run.begun.sweep, *_lines(run), again])


def _named(counts: np.ndarray) -> dict[str, int]:
    """Return the number of cases with each status, from counts (cells, status)."""
    return {status.name: int(count) for status, count in zip(Status, counts.sum(0), strict=True)}


def _whole(run: "KnownRun") -> dict[str, int]:
    """Return the number of cases of all dynamics with each status."""
    return _named(np.concatenate(list(run.maps.values())))


def _lines(run: "KnownRun") -> list[str]:
    """Return how far a run is, its rate and the time left, in lines."""
    counts = _whole(run)
    total = sum(counts.values())
    now = f"{total - counts['missing']:,} of {total:,} cases, {outcomes(counts)}"
    if run.news is None:
        return [now, "The first cases are being computed."]
    if run.news.ended:
        return [now, "All cases have ended."]
    if run.lost:
        return [now, "The command that ran this sweep has ended before its cases; the same command continues it."]
    totals = run.news.totals
    silent = time.time() - run.heard
    seconds = totals["seconds_left"] - silent
    time_left = "" if math.isnan(seconds) else f", {clock_time(max(0.0, seconds))} left"
    pace = f"{totals['rate']:,.1f} cases a second{time_left}"
    late = [f"No block was done in the last {clock_time(silent)}."] if silent > SILENT_SECONDS else []
    return [now, pace, *late]


def paces(run: "KnownRun") -> str:
    """Return a table of the dynamics of a run; the time left of the run is shared out by the work that they have left.

    The time is left empty where it is not known, NaN, because costs are guessed.
    """
    if run.news is None:
        return ""
    paces, rows = run.news.paces, []
    whole = sum(pace.remaining for pace in paces.values())
    for name, pace in paces.items():
        seconds = run.news.totals["seconds_left"] * pace.remaining / whole if whole else 0.0
        time_left = "" if math.isnan(seconds) or not (seconds and run.news.totals["rate"]) else clock_time(seconds)
        counts = _named(run.maps[name])
        rate = f"{pace.rate:,.1f}" if pace.done else ""
        done, ends = f"{pace.done:,} of {pace.total:,}", f"{counts['ok']:,} ok, {outcomes(counts)}"
        rows.append([name, done, rate, time_left, ends])
    headings = ("dynamics", "cases of this run", "cases a second", "time left", "in all")
    return f"<h2>Dynamics</h2>{_table(headings, rows, numbers=range(1, 4))}"


def legend(counts: np.ndarray, *, running: bool) -> str:
    """Return the meaning of the colours that occur on a map, from its counts (cells, statuses), as HTML."""
    numbers, present = _named(counts), kinds(counts.sum(0))
    named = {"ok": ["ok"], "left": ["left"], "failed": [status.name for status in FAILURES if numbers[status.name]]}
    named["other"] = [status.name for status in OUTCOMES if numbers[status.name]]
    names = [name for name in named if name in ("ok", "left") or present[name]]
    keys = [f'<span class="key" style="background: {COLOURS[name]}"></span>{", ".join(named[name])}' for name in names]
    keys += ["◆ being computed"] * running
    return "".join(f'<span class="key-text">{key}</span>' for key in keys)


def failures(run: "KnownRun") -> str:
    """Return a table of the kinds of failures as HTML, "" without any."""
    kinds = run.news.failures if run.news else []
    if not kinds:
        return ""
    headings = ("cases", "dynamics", "status", "message", "first case")
    rows = [[f"{row['cases']:,}", *(row[name] for name in ("dynamics", "status", "message", "first"))] for row in kinds]
    return f"<h2>Failures of this run</h2>{_table(headings, rows, numbers=(0,), message=3)}"


def answers(run: "KnownRun") -> str:
    """Return a table of the answers after the last round as HTML, "" without any."""
    if not run.news or not run.news.answers:
        return ""
    headings = ("question", "at", "value", "95 % interval", "asked", "answer")
    return f"<h2>Answers after the last round</h2>{_table(headings, map(_answer, run.news.answers), numbers=(2, 3, 4))}"


def _answer(record: Mapping[str, Any]) -> list[str]:
    """Return the cells of an answer, in the order of the headings."""
    at = ", ".join(f"{name} = {_number(value)}" for name, value in record["at"].items())
    interval = f"{_number(record['low'])} to {_number(record['high'])}" if record["low"] is not None else ""
    precision = "" if record["wanted"] is None else f"± {_number(record['wanted'], 2)}"
    return [
        record["question"],
        at,
        _number(record["value"]),
        interval,
        precision,
        ": ".join(filter(None, [record["state"], record["why"]])),
    ]


def _number(value: Any, digits: int = 4) -> str:
    """Return a value of an answer as text: a number to some digits, and nothing for None."""
    return "" if value is None else f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), message: int = -1
) -> str:
    """Return a table in HTML, with its cells escaped.

    numbers, message : the columns that are aligned to the right, and the one whose lines are broken.
    """
    classes = [' class="number"' if place in numbers else ' class="message"' if place == message else ""
               for place in range(len(headings))]  # fmt: skip
    head = "".join(f"<th scope='col'{kind}>{name}</th>" for kind, name in zip(classes, headings, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for kind, cell in zip(classes, row, strict=True))}</tr>"
        for row in rows
    )
    return f'<div class="wide" tabindex="0"><table><tr>{head}</tr>{body}</table></div>'
