"""A case as a row of the run store: the fields that its layout shares, and its own fields."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sweeplib.observables import OBSERVABLES
from sweeplib.problem.columns import problem_of
from sweeplib.simulation import Case, Cases, Recording

OWN_FIELDS = ("problem", "seed", "clock")


class Rows(NamedTuple):
    """n rows as columns (n,): the canonical problems as JSON, seeds, and clocks."""

    problem: np.ndarray
    seed: np.ndarray
    clock: np.ndarray

    def at(self, places: np.ndarray | Sequence[int]) -> "Rows":
        """Return the rows at some indices."""
        return Rows(*(column[places] for column in self))


def rows_of(cases: Cases) -> Rows:
    """Return the rows of some cases."""
    _, run = cases.runs
    return Rows(np.array(cases.texts(), object)[run], cases.seed, cases.clock)


def shared_fields(case: Case) -> dict[str, Any]:
    """Return all fields of a case that its layout shares, as plain JSON values."""
    fields = {field.name: getattr(case, field.name) for field in dataclasses.fields(case)}
    shared = {name: value for name, value in fields.items() if name not in OWN_FIELDS}
    shared["recording"] = dataclasses.asdict(case.recording)
    plain: dict[str, Any] = json.loads(json.dumps(shared, sort_keys=True))
    return plain


def recording_of(shared: dict[str, Any]) -> Recording | None:
    """Return the recording in `shared_fields`; None if it has observables that are not known here."""
    fields = {name: _tuples(value) for name, value in shared["recording"].items()}
    return Recording(**fields) if set(fields["observables"]) <= OBSERVABLES.keys() else None


def cases_of(shared: dict[str, Any], rows: Rows) -> Cases:
    """Return the cases of a layout from `shared_fields` and their rows."""
    given = {name: _tuples(value) for name, value in shared.items() if name != "recording"}
    given["recording"] = Recording(**{name: _tuples(value) for name, value in shared["recording"].items()})
    texts = rows.problem.tolist()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    parts = [_parted(text) for text in numbers]
    firsts = {part[2:]: text for text, part in reversed([*zip(numbers, parts, strict=True)])}
    kinds = {key: kind for kind, key in enumerate(firsts)}
    examples = [Case(problem=problem_of(text), seed=0, **given) for text in firsts.values()]
    problem = np.array([numbers[text] for text in texts], np.intp)
    gamma, Delta = np.array([part[:2] for part in parts], float).reshape(-1, 2).T
    kind = np.array([kinds[part[2:]] for part in parts], np.intp)
    columns = (rows.clock.astype(float), rows.seed.astype(np.int64))
    return Cases(examples, kind[problem], gamma[problem], Delta[problem], *columns)


def _parted(text: str) -> tuple[str, str, str, str]:
    """Return γ and Δ of a canonical problem, which begins with Δ, and the text between them and after them."""
    before, _, after = text.partition(', "gamma": ')
    Delta, _, between = before.removeprefix('{"Delta": ').partition(",")
    gamma, _, rest = after.partition(",")
    return gamma, Delta, between, rest


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
