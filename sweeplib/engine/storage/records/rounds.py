"""The rounds of a sweep with questions, `answers.json` in its folder: which rows each asked for, and the answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.design.questions import Row, with_rows, without_rows
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.files import read_json, write_json

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

ROUNDS = "answers.json"


@dataclass(frozen=True)
class Rounds:
    """The rows of each round, the answers after the last complete one, and whether the rounds have ended.

    spent : the number of cases that were added for each question, by its name.
    seconds : what these take by the prices, for the questions whose budget is a time.
    prices : the seconds of a unit of work of each dynamics, measured before the first decision that needs them.
    judged : what the last decision was about: how the cases had ended, and the code and options that judged them.

    They are those of a config and of the code that makes the numbers, `made_from`: with another config, rounds begin
    anew, so that the rows of a sweep never depend on its history. Cases that are in the run store are not computed
    again.
    """

    made_from: Mapping[str, Any]
    rows: tuple[tuple[Row, ...], ...] = ()
    answers: tuple[Mapping[str, Any], ...] = ()
    spent: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    judged: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = False

    def with_round(
        self,
        rows: Iterable[Row],
        answers: Iterable[Mapping[str, Any]],
        spent: Mapping[str, int],
        seconds: Mapping[str, float],
    ) -> "Rounds":
        """Return the rounds with the decision after one more: its new rows, if none the rounds end, and its answers."""
        new = tuple(rows)
        rounds = (*self.rows, new) if new else self.rows
        return replace(self, rows=rounds, answers=tuple(answers), spent=spent, seconds=seconds, ended=not new)

    def write(self, directory: Path) -> "Rounds":
        """Write the rounds into the folder of their sweep; return them."""
        rows = [[vars(row) for row in of_round] for of_round in self.rows]  # `asdict` would copy each value
        write_json(directory / ROUNDS, vars(self) | {"rows": rows}, indent=None)
        return self


def rounds_of(sweep: "Design", directory: Path) -> Rounds:
    """Return the rounds of a sweep from the file in its folder; without rows if that is of another config or code.

    DamageError if the file is damaged.
    """
    # without empty entries, as files of version 0.3 have them
    made_from = {name: value for name, value in cases_made_from(without_rows(sweep)).items() if value}
    record = read_json(directory / ROUNDS) if sweep.questions else None
    if record is None or record["made_from"] != made_from:
        return Rounds(made_from)
    rows = tuple(tuple(Row(**row) for row in of_round) for of_round in record["rows"])
    return Rounds(**record | {"made_from": made_from, "rows": rows, "answers": tuple(record["answers"])})


def with_rounds(sweep: "Design", directory: Path) -> "Design":
    """Return a sweep with the rows of the rounds in its folder."""
    return with_rows(sweep, rounds_of(sweep, directory).rows) if sweep.questions else sweep
