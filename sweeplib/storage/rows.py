"""A case as a row of the run store: the fields that its layout shares, and its own fields."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sweeplib.problem import Problem
from sweeplib.simulation import Case, Recording

OWN_FIELDS = ("problem", "seed", "clock")


class Row(NamedTuple):
    """The fields of a case that are not shared: its canonical problem as JSON, its seed, and its clock."""

    problem: str
    seed: int
    clock: float


class Rows(NamedTuple):
    """Many rows as columns."""

    problem: np.ndarray
    seed: np.ndarray
    clock: np.ndarray

    def at(self, places: np.ndarray | Sequence[int]) -> list[Row]:
        """Return the rows at some indices."""
        columns = (column[places].tolist() for column in self)
        return [Row(*parts) for parts in zip(*columns, strict=True)]


def row_of(case: Case) -> Row:
    """Return the row of a case."""
    return Row(case.problem.text, case.seed, case.clock)


def rows_of(cases: Iterable[Case]) -> Rows:
    """Return the rows of some cases."""
    problems, seeds, clocks = zip(*map(row_of, cases), strict=True)
    return Rows(np.array(problems, object), np.array(seeds, np.int64), np.array(clocks, float))


def shared_fields(case: Case) -> dict[str, Any]:
    """Return all fields of a case that its layout shares, as plain JSON values."""
    fields = {field.name: getattr(case, field.name) for field in dataclasses.fields(case)}
    shared = {name: value for name, value in fields.items() if name not in OWN_FIELDS}
    shared["recording"] = dataclasses.asdict(case.recording)
    plain: dict[str, Any] = json.loads(json.dumps(shared, sort_keys=True))
    return plain


def cases_of(shared: dict[str, Any], rows: Iterable[Row]) -> list[Case]:
    """Return the cases of a layout from `shared_fields` and `row_of`; equal problems and recordings are one object."""
    others = {name: _tuples(value) for name, value in shared.items() if name != "recording"}
    recording = Recording(**{name: _tuples(value) for name, value in shared["recording"].items()})
    problems: dict[str, Problem] = {}
    cases = []
    for row in rows:
        if row.problem not in problems:
            given = json.loads(row.problem)
            problems[row.problem] = Problem.of_valid({name: _tuples(value) for name, value in given.items()})
        problem = problems[row.problem]
        cases.append(Case(problem=problem, seed=row.seed, clock=row.clock, recording=recording, **others))
    return cases


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
