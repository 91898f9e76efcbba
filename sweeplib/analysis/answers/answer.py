"""Answer: a value with its interval, whether it is as precise as was asked, and if not, why, and at what cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sweeplib.engine.design.questions import Row


def decimal(value: float, digits: int) -> str:
    """Return a number rounded to `digits` digits, without an exponent where it is large: 11070, not 1.107e+04."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


class State(StrEnum):
    """Whether an answer is given; `open` means that more rows would give it, `none` that no number of rows will."""

    given = "given"
    open = "open"
    none = "none"


@dataclass(frozen=True)
class Answer:
    """The answer to a question at one point: coordinates `at`, the value, and its 95 % interval from `low` to `high`.

    wanted : the half width that was asked for, in the units of the value.
    why : the reason why there is no answer yet, or none at all.
    cases : an estimate of the number of cases that are missing for it, of one dynamics until it is recorded; NaN if it
        cannot be told.
    requests : the rows of the next round.
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

    @property
    def half_width(self) -> float:
        """Return the larger of the distances from the value to the ends of its interval."""
        return max(self.value - self.low, self.high - self.value)

    def record(self) -> dict[str, Any]:
        """Return the answer as plain values, without the requests."""
        numbers = ("value", "low", "high", "wanted", "cases")
        values = {name: value for name, value in vars(self).items() if name != "requests"}
        return values | {name: values[name] if math.isfinite(values[name]) else None for name in numbers}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Answer":
        """Return the answer that `record` describes."""
        values: dict[str, Any] = {name: math.nan if value is None else value for name, value in record.items()}
        return cls(**values | {"state": State(values["state"])})

    @property
    def where(self) -> str:
        """Return the coordinates in words."""
        numbers = {name: f"{value:g}" if isinstance(value, float) else value for name, value in self.at.items()}
        return ", ".join(f"{name} = {number}" for name, number in numbers.items())

    @property
    def interval(self) -> str:
        """Return the interval in words, "" if there is none."""
        return f"{decimal(self.low, 4)} to {decimal(self.high, 4)}" if math.isfinite(self.half_width) else ""

    def line(self) -> str:
        """Return the answer in words."""
        return f"{self.question}{f' at {self.where}' if self.at else ''}: {self._outcome()}"

    def _outcome(self) -> str:
        """Return the value with its interval, and what is missing."""
        value = decimal(self.value, 4) if math.isfinite(self.value) else "no value"
        if self.state is State.given and self.why:
            return f"{value}, {self.why}" if math.isfinite(self.value) else self.why
        if self.interval:
            value += f" ({self.interval})"
        if self.state is State.given:
            return f"{value}: ± {decimal(self.half_width, 2)}, {decimal(self.wanted, 2)} was asked"
        return f"{value}: {'open' if self.state is State.open else 'no answer'}, {self.missing()}"

    def missing(self) -> str:
        """Return why there is no answer, and what it would cost."""
        about = f"{float(f'{self.cases:.2g}'):,.0f}"
        cost = f"; about {about} more runs would give it" if math.isfinite(self.cases) else ""
        return f"{self.why}{cost}"
