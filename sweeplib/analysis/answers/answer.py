"""Answer: a value with its interval, whether it is as precise as was asked, and if not, why, and at what cost.

Below: the answers of a sweep for a reader, as lines of a summary and as rows of a table.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import Row
from sweeplib.engine.storage.records.rounds import Rounds, rounds_of

MOST_LINES = 12
"""The answers of which a summary shows a line each; the others are in `answers.json`."""
MOST_DECIMALS = 8
"""The most decimals of a number; where an error needs more, 4 digits, and an exponent, are written."""


def decimal(value: float, digits: int) -> str:
    """Return a number rounded to `digits` digits, without an exponent where it is large: 11070, not 1.107e+04."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def to_the_error(value: float, error: float) -> str:
    """Return a number rounded where its error has two digits: 0.7460 for .74603 ± .0021, 11070 for 11071 ± 950.

    It has 4 digits if the error is 0, not finite or too small for MOST_DECIMALS.
    """
    if not (math.isfinite(error) and error > 0.0):
        return decimal(value, 4)
    # of the rounded error: .0996 is .10, which has its second digit in the hundredths
    decimals = 1 - math.floor(math.log10(float(f"{error:.1e}")))
    if decimals > MOST_DECIMALS:
        return decimal(value, 4)
    return f"{round(value, decimals) + 0.0:.{max(decimals, 0)}f}"  # + 0.0 makes -0.0 a 0


class State(StrEnum):
    """Whether an answer is given; `open` means that more rows would give it, `none` that no number of rows will."""

    given = "given"
    open = "open"
    none = "none"


@dataclass(frozen=True)
class Answer:
    """The answer to a question at one point: coordinates `at`, the value, and its 95 % interval from `low` to `high`.

    question : its name in `answers` of the config.
    wanted : the half width that was asked for, in the units of the value.
    why : the reason why there is no answer yet, or none at all.
    cases : an estimate of the number of cases that are missing for it, of one dynamics until it is recorded; NaN if it
        cannot be told.
    requests : the rows of the next round.
    note : what is to be said of its runs.
    """

    question: str
    at: Mapping[str, Any]
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    wanted: float = math.nan
    state: State = State.open
    why: str = ""
    cases: float = math.nan
    requests: tuple[Row, ...] = field(default=(), repr=False)
    note: str = ""

    @property
    def half_width(self) -> float:
        """Return the larger of the distances from the value to the ends of its interval; NaN if an end is."""
        return float(np.maximum(self.value - self.low, self.high - self.value))

    def record(self) -> dict[str, Any]:
        """Return the answer as plain values, without the requests."""
        numbers = ("value", "low", "high", "wanted", "cases")
        values = {name: value for name, value in vars(self).items() if name != "requests"}
        return values | {name: values[name] if math.isfinite(values[name]) else None for name in numbers}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Answer":
        """Return the answer that a `record` of `answers.json` describes, in which null stands for NaN."""
        values: dict[str, Any] = {name: math.nan if value is None else value for name, value in record.items()}
        return cls(**values | {"state": State(values["state"])})

    @property
    def where(self) -> str:
        """Return the coordinates of the point in words, such as "gamma = 0.1, p = 4"."""
        numbers = {name: f"{value:g}" if isinstance(value, float) else value for name, value in self.at.items()}
        return ", ".join(f"{name} = {number}" for name, number in numbers.items())

    @property
    def interval(self) -> str:
        """Return the interval in words, "" if there is none."""
        if not math.isfinite(self.half_width):
            return ""
        return " to ".join(to_the_error(bound, self.half_width) for bound in (self.low, self.high))

    @property
    def rounded(self) -> str:
        """Return the value in words, "" if there is none."""
        return to_the_error(self.value, self.half_width) if math.isfinite(self.value) else ""

    @property
    def precision(self) -> str:
        """Return the half width of the interval in words, "" if there is none."""
        return to_the_error(self.half_width, self.half_width) if self.interval else ""

    def line(self) -> str:
        """Return the answer in words."""
        return f"{self.question}{f' at {self.where}' if self.at else ''}: {self._with_note(self._outcome())}"

    @property
    def outcome(self) -> str:
        """Return in words whether the answer is given, and what is missing."""
        given = self.state is State.given
        return self._with_note(self.state.value if given else f"{self.state.value}: {self.missing()}")

    def _with_note(self, text: str) -> str:
        return f"{text}; {self.note}" if self.note else text

    def _outcome(self) -> str:
        """Return the value with its interval, and what is missing."""
        value = self.rounded or "no value"
        if self.state is State.given and self.why:
            return f"{value}, {self.why}" if math.isfinite(self.value) else self.why
        if self.interval:
            value += f" ({self.interval})"
        if self.state is State.given:
            return f"{value}: ± {self.precision}, {decimal(self.wanted, 2)} was asked"
        return f"{value}: {'open' if self.state is State.open else 'no answer'}, {self.missing()}"

    def missing(self) -> str:
        """Return why there is no answer, and what it would cost."""
        about = f"{float(f'{self.cases:.2g}'):,.0f}"
        cost = f"; about {about} more runs would give it" if math.isfinite(self.cases) else ""
        return f"{self.why}{cost}"


def answers_of(sweep: Design, directory: Path) -> list[Answer]:
    """Return the answers after the last complete round in a sweep's folder; none before the first one."""
    return [Answer.of(record) for record in rounds_of(sweep, directory).answers]


def answer_lines(sweep: Design, directory: Path) -> list[str]:
    """Return how many questions of a sweep are answered, and its answers; those that are missing come first."""
    rounds = rounds_of(sweep, directory)
    answers = sorted(map(Answer.of, rounds.answers), key=lambda answer: answer.state is State.given)
    lines = [f"  {answer.line()}" for answer in answers]
    more = [f"  and {len(lines) - MOST_LINES} more, in {directory / 'answers.json'}"] * (len(lines) > MOST_LINES)
    return [summary_line(rounds), *lines[:MOST_LINES], *more]


def summary_line(rounds: Rounds) -> str:
    """Return in one line how many answers are given, and what follows."""
    if not rounds.answers:
        return "answers: none before the first round is complete"
    count = sum(record["state"] == State.given for record in rounds.answers)
    rows = rounds.rows[-1] if rounds.rows else ()
    number, points = len(rounds.rows), f"{len(rows):,} point{'' if len(rows) == 1 else 's'}"
    after = f"after {number} round{'s' * (number != 1)}" if rounds.ended else f"round {number} adds to {points}"
    return f"answers: {count} of {len(rounds.answers)} given, {after}"


def tables(sweep: Design, directory: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of the answers of a sweep, and of the rows of its rounds."""
    rounds = rounds_of(sweep, directory)
    answers = {"Answers, each with its precision, or what is missing": cells(list(map(Answer.of, rounds.answers)))}
    return answers | ({"Rows that rounds asked for": round_cells(rounds)} if rounds.rows else {})


def round_cells(rounds: Rounds) -> dict[str, Any]:
    """Return a table, by `headings` and `rows`: how many points each round asked for, by reason, with how many seeds.

    A round is one time at which rows were added, for the answers that were open then.
    """
    seed_numbers: dict[tuple[int, str], list[int]] = {}
    for number, rows in enumerate(rounds.rows, 1):
        for row in rows:
            seed_numbers.setdefault((number, row.reason), []).append(row.seeds)
    lines = [[number, reason, len(counts), _between(counts)] for (number, reason), counts in seed_numbers.items()]
    return {"headings": ("round", "reason", "points", "seeds"), "rows": lines}


def _between(numbers: list[int]) -> str:
    """Return the least and the greatest number in words, such as "64 to 256"."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def cells(answers: list[Answer]) -> dict[str, Any]:
    """Return the table of the answers as plain values, by `headings` and `rows`."""
    headings = ("question", "at", "value", "95 % interval", "half width", "asked", "answer")
    rows = [
        [
            answer.question,
            answer.where,
            answer.rounded,
            answer.interval,
            answer.precision,
            decimal(answer.wanted, 2) if math.isfinite(answer.wanted) else "",
            answer.outcome,
        ]
        for answer in answers
    ]
    return {"headings": headings, "rows": rows}
