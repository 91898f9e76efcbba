"""Cases: a table whose rows are cases."""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics import DYNAMICS
from sweeplib.errors import SweeplibError
from sweeplib.problem.columns import ProblemRow, Problems, column_property, columns_of
from sweeplib.problem.parameters import RESERVED
from sweeplib.simulation.cases import CHECKS, Case, level_of, shared_digest
from sweeplib.table import Column, Reading
from sweeplib.views import ExitLevel

FIELDS = tuple(field.name for field in dataclasses.fields(Case) if field.name != "problem")
"""The fields of a case that are columns beside those of its problem."""
RESERVED.update(FIELDS)


class CaseRow(Case):
    """A case that reads its fields, and those of its problem, from the columns of a table."""

    def __init__(self, read: Reading) -> None:
        self.__dict__.update(read=read, problem=ProblemRow(read))


for _name in FIELDS:
    setattr(CaseRow, _name, column_property(_name))


class Cases(Problems, Sequence[Case]):
    """n cases as the columns of their problems and their own; a sequence of cases, made when they are asked for."""

    others: ClassVar[frozenset[str]] = frozenset(FIELDS)

    @classmethod
    def of(cls, cases: Sequence[Case]) -> "Cases":
        """Return some cases as columns."""
        if isinstance(cases, Cases):
            return cases
        problems = list({id(case.problem): case.problem for case in cases}.values())
        places = {id(problem): place for place, problem in enumerate(problems)}
        place = np.array([places[id(case.problem)] for case in cases], np.int32)
        columns = columns_of([problem.differing() for problem in problems], place)
        return cls(columns | {name: _column([getattr(case, name) for case in cases]) for name in FIELDS}, len(cases))

    @classmethod
    def with_seeds(cls, case: Case, seeds: Sequence[int]) -> "Cases":
        """Return copies of a case with these seeds."""
        fields = {name: getattr(case, name) for name in FIELDS}
        whole = cls.of_one_value(case.problem.differing() | fields, len(seeds))
        return whole.replaced(seed=Column(list(seeds), np.arange(len(seeds))))

    @overload
    def __getitem__(self, at: int) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> "Cases": ...
    def __getitem__(self, at: int | slice) -> "Case | Cases":
        if isinstance(at, slice):
            return self.at(at)
        place = range(self._rows)[at]
        case: Case = object.__new__(Case)
        same, differing = self._fields
        values = {name: column.value(place) for name, column in differing.items()}
        case.__dict__.update(same, **values, problem=self.problem(place))
        return case

    @cached_property
    def _fields(self) -> tuple[dict[str, Any], dict[str, Column]]:
        """The fields that are the same in all cases, and the columns of the others, without those of problems."""
        return self.parts(FIELDS)

    def __iter__(self) -> Iterator[Case]:
        return (self[at] for at in range(len(self)))

    def row(self, read: Reading) -> Any:
        """Return a case that reads the columns."""
        return CaseRow(read)

    def field(self, name: str, dtype: Any = float) -> NDArray[Any]:
        """Return a field (n, ...) of the cases or of their problems; zero for None."""
        return self.column(name).array(dtype)

    def arrays(self, function: Callable[[Case], Any]) -> NDArray[np.float64]:
        """Return the arrays (n, ...) that a function of a case returns, of one shape."""
        return self.column_of(function).array(float)

    def shapes(self) -> Column:
        """Return the shapes of cases that can be run together."""
        return self.column_of(lambda case: case.shape)

    def levels(self) -> list[ExitLevel]:
        """Return what the exits of cases of one shape are of, one for each."""
        levels = self.column_of(level_of)
        if len({level.rule for level in levels.values}) > 1:
            on = self[0].recording.exit_on
            raise SweeplibError(f"the level of {on} has another rule for problems that differ in numbers alone")
        return levels.items()

    def but_seeds(self) -> list[bytes]:
        """Return 32 bytes for each case that identify it except for its seed."""
        shared, ends = self.column_of(shared_digest), self.over(("student_start", "clock"), _ends).array(object)
        unread_by_any = {unread for _, unread in shared.values}
        texts = {unread: (np.array(self.each_text(unread), object) + ends).tolist() for unread in unread_by_any}
        pairs, blake2b = shared.items(), hashlib.blake2b
        if len(texts) == 1:
            [lines] = texts.values()
        else:
            lines = [texts[unread][at] for at, (_, unread) in enumerate(pairs)]
        lined = zip(pairs, lines, strict=True)
        return [blake2b(digest + line.encode(), digest_size=32).digest() for (digest, _), line in lined]

    def identities(self) -> np.ndarray:
        """Return the identities (n,) of the cases, 16 bytes each (`Case.identity`)."""
        first, codes = self.distinct(self.columns.keys() - {"seed"})
        but_seeds = Column(self.at(first).but_seeds(), codes).items()
        return _identities(zip(but_seeds, _seed_bytes(self.field("seed", np.int64)), strict=True))

    def identities_with(self, seeds: NDArray[np.int64]) -> np.ndarray:
        """Return the identities (n m,) of the cases with each of m seeds."""
        return _identities(itertools.product(self.but_seeds(), _seed_bytes(seeds)))

    def check(self) -> None:
        """Raise InputError if a case is not valid, as `Case.check` does."""
        for check in CHECKS:
            self.column_of(check)
        last = self.field("clock") * self.numbers(lambda case: case.recording.times[-1])
        step, largest = self.numbers(_step), self.numbers(_most_steps)
        with np.errstate(all="ignore"):
            suspect = ~((last / step < largest) & (step > 0) & ((last > step) | (last == 0.0)))
        for name in ("rates", "noise_factor"):
            suspect |= self.column(name).array(object) != 0
        some = self.at(np.flatnonzero(suspect))
        for at in some.distinct(some.columns.keys() - {"seed"})[0].tolist():
            some[at].check()


def _column(items: Sequence[Any]) -> Column:
    """Return objects, many of which may be the same one, as a column."""
    objects = {id(item): item for item in items}
    places = {key: place for place, key in enumerate(objects)}
    values, codes = Column.of(objects.values())
    return Column(values, codes[[places[id(item)] for item in items]])


def _ends(columns: Mapping[str, Sequence[Any]], _: int) -> list[str]:
    """Return what stands after the text of a problem in what identities are made from."""
    return [f" {start} {clock!r}" for start, clock in zip(columns["student_start"], columns["clock"], strict=True)]


def _identities(pairs: Iterable[tuple[bytes, bytes]]) -> np.ndarray:
    """Return the identities of cases from what identifies each except for its seed, and its seed."""
    blake2b = hashlib.blake2b
    return np.frombuffer(b"".join([blake2b(but + seed, digest_size=16).digest() for but, seed in pairs]), "S16")


def _seed_bytes(seeds: NDArray[np.int64]) -> list[bytes]:
    return seeds.astype("<u4").view("V4").tolist()


def _step(case: Case) -> float:
    """Return the ODE time of a step of the dynamics."""
    length = DYNAMICS[case.dynamics].step_length(case.problem, case.numerical_options())
    return length * case.problem.step_time()


def _most_steps(case: Case) -> float:
    """Return a number of steps that is not too large; cases with more are checked one by one."""
    return min(DYNAMICS[case.dynamics].most_steps(case.problem, case.numerical_options()), 2.0**61)
