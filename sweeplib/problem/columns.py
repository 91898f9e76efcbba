"""Problems as columns: a kind is what problems share that differ in γ and Δ only; what they read of it is done once."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from sweeplib.problem.parameters import any_problem
from sweeplib.problem.parts import parts_of
from sweeplib.problem.problem import Problem

COLUMNS = ("Delta", "gamma")
"""The fields in which problems of a kind differ, in the order in which a problem's text has them."""

LIVE = 10_000
"""Examples of kinds that are kept as objects, of a thousand bytes each."""

_OPAQUE = object()
_MARKS = {name: f"\0{name}" for name in COLUMNS}


class VariesError(BaseException):
    """A function read what differs within a kind; not an Exception, so that the function does not handle it."""


def varies(_: Any) -> NoReturn:
    """Raise VariesError; the getter of properties that differ within a kind."""
    raise VariesError


class ProblemOfKind(Problem):
    """The problem of a kind, without γ and Δ: reading them raises VariesError.

    A function that returns a value for it returns this value for all problems of the kind.
    """

    gamma = property(varies)
    Delta = property(varies)
    text = property(varies)

    @classmethod
    def of(cls, problem: Problem) -> "ProblemOfKind":
        """Return the problem of the kind of `problem`."""
        made = object.__new__(cls)
        canonical = {name: _OPAQUE if name in COLUMNS else value for name, value in problem.canonical().items()}
        made.__dict__.update({name: value for name, value in vars(problem).items() if name not in (*COLUMNS, "text")})
        made.__dict__["_canonical"] = canonical
        return made


def with_columns(problem: Problem, gamma: Any, Delta: Any) -> Problem:
    """Return a problem of the kind of `problem` with these values, which are not checked; they may be arrays."""
    made: Problem = object.__new__(type(problem))
    made.__dict__.update(vars(problem))
    for cached in ("_canonical", "text"):
        made.__dict__.pop(cached, None)
    made.__dict__.update(gamma=gamma, Delta=Delta)
    return made


class Template(NamedTuple):
    """The JSON text of the problems of a kind: `format` % the texts of the columns `names`."""

    format: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Template":
        """Return the template of problems that have the canonical `values` of one of them, in this order."""
        text = json.dumps({name: _MARKS.get(name, value) for name, value in values.items()}).replace("%", "%%")
        for mark in _MARKS.values():
            text = text.replace(json.dumps(mark), "%s")
        return cls(text, tuple(name for name in COLUMNS if name in values))


@dataclass(frozen=True, eq=False)
class Problems(Sequence[Problem]):
    """n problems as columns.

    examples : a problem of each kind; there may be more than occur.
    kind (n,) : indices of the examples.
    gamma, Delta (n,) : the values in which problems of a kind differ.
    """

    examples: Sequence[Problem]
    kind: NDArray[np.intp]
    gamma: NDArray[np.float64]
    Delta: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, at: int) -> Problem: ...
    @overload
    def __getitem__(self, at: slice) -> "Problems": ...
    def __getitem__(self, at: int | slice) -> "Problem | Problems":
        if isinstance(at, slice):
            return Problems(self.examples, self.kind[at], self.gamma[at], self.Delta[at])
        return with_columns(self.examples[int(self.kind[at])], float(self.gamma[at]), float(self.Delta[at]))


class Examples(Sequence[Problem]):
    """Problems that are added one by one; after the first `LIVE` ones only their texts are kept."""

    def __init__(self) -> None:
        self._problems: list[Problem | str] = []

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        self._problems.append(problem if len(self._problems) < LIVE else problem.text)

    def __len__(self) -> int:
        return len(self._problems)

    @overload
    def __getitem__(self, at: int) -> Problem: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Problem]: ...
    def __getitem__(self, at: int | slice) -> Problem | Sequence[Problem]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        problem = self._problems[at]
        return problem_of(problem) if isinstance(problem, str) else problem


def problem_of(text: str) -> Problem:
    """Return the problem of a text."""
    return Problem.of_valid({name: _tuples(value) for name, value in json.loads(text).items()})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


class Kinds:
    """The kinds of the problems of a grid, found as its points are looked at; `examples` has a problem of each."""

    def __init__(self) -> None:
        self.examples = Examples()
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._each: set[int] = set()

    def numbers(
        self, columns: Mapping[str, Sequence[Any]], count: int, made: Callable[[int], Problem]
    ) -> NDArray[np.intp]:
        """Return the kinds (n,) of `count` points with these columns of the fields, other than γ and Δ, that vary.

        `made` returns the checked problem of a point. It is called for the first point of each kind, and for all points
        of a kind whose check reads γ or Δ.
        """
        rows = list(zip(*map(_keys, columns.values()), strict=True)) if columns else [()] * count
        for at, row in enumerate(rows):
            if row not in self._numbers:
                problem = made(at)
                if reads_columns(problem):
                    self._each.add(len(self.examples))
                self._numbers[row] = len(self.examples)
                self.examples.add(problem)
        found = np.array([self._numbers[row] for row in rows], np.intp)
        for at in np.flatnonzero(np.isin(found, list(self._each))).tolist() if self._each else ():
            made(at)
        return found


def reads_columns(problem: Problem) -> bool:
    """Return whether the check of a valid problem reads γ or Δ, as one of its parts may do."""
    if all(part.check is any_problem for part in parts_of(problem).values()):
        return False
    try:
        ProblemOfKind.of(problem).check()
    except (VariesError, Exception):
        return True
    return False


def _keys(column: Sequence[Any]) -> Sequence[Any]:
    """Return values that are equal only for values with the same text: zero and minus zero are not."""
    return [repr(value) if value == 0 else value for value in column] if 0 in column else column
