"""Cases: a table whose rows are cases, as columns of the fields of their problems and of their own.

A `Reading` reads the columns of a table at one row; functions of a case, called with a `CaseRow`, are thus evaluated
once for each different row of the columns that they read (`Table.column_of`).
"""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine import cases as engine
from sweeplib.engine.base.table import Column, Reading
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem.columns import ProblemRow, Problems, column_property, columns_of
from sweeplib.networks.problem.parameters import PARAMETERS, RESERVED
from sweeplib.networks.simulation.cases import CHECKS, Case, fields_read, level_of, shared_digest
from sweeplib.networks.views import ExitLevel

FIELDS = tuple(field.name for field in dataclasses.fields(Case) if field.name != "problem")
"""The fields of a case that are columns beside those of its problem."""
# no parameter of a problem may have the name of another column
RESERVED.update(FIELDS)


class CaseRow(Case):
    """A case that reads its fields, and those of its problem, from the columns of a table."""

    def __init__(self, read: Reading) -> None:
        self.__dict__.update(read=read, problem=ProblemRow(read))


for _name in FIELDS:
    setattr(CaseRow, _name, column_property(_name))


class Cases(Problems, engine.Cases):
    """n cases as the columns of their problems and their own."""

    others: ClassVar[frozenset[str]] = frozenset(FIELDS)

    @classmethod
    def of(cls, cases: Sequence[Case]) -> "Cases":
        """Return some cases as columns; cases often share one problem, whose fields are read once."""
        if isinstance(cases, Cases):
            return cases
        problems = list({id(case.problem): case.problem for case in cases}.values())
        places = {id(problem): place for place, problem in enumerate(problems)}
        place = np.array([places[id(case.problem)] for case in cases], np.int32)
        columns = columns_of([problem.differing() for problem in problems], place)
        return cls(columns | {name: _column([getattr(case, name) for case in cases]) for name in FIELDS}, len(cases))

    @classmethod
    def with_seeds(cls, case: Case, seeds: Sequence[int]) -> "Cases":
        """Return a table of copies of a case, one for each of the `seeds`."""
        fields = {name: getattr(case, name) for name in FIELDS}
        copies = cls.of_one_value(case.problem.differing() | fields, len(seeds))
        return copies.replaced(seed=Column(list(seeds), np.arange(len(seeds))))

    @overload
    def __getitem__(self, at: int) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> "Cases": ...
    def __getitem__(self, at: int | slice) -> "Case | Cases":
        if isinstance(at, slice):
            return self.at(at)
        place = range(self._rows)[at]  # IndexError beyond the end, which ends an iteration
        case: Case = object.__new__(Case)  # its fields were checked before
        same, differing = self._fields
        values = {name: column.value(place) for name, column in differing.items()}
        case.__dict__.update(same, **values, problem=self.problem(place))
        return case

    @cached_property
    def _fields(self) -> tuple[dict[str, Any], dict[str, Column]]:
        """The own fields of cases that are the same in all, and the columns of those that differ."""
        return self.parts(FIELDS)

    def row(self, read: Reading) -> Any:
        """Return a case that reads its fields from the columns."""
        return CaseRow(read)

    def levels(self) -> list[ExitLevel]:
        """Return, for each case, how kernels see the observable of its exit fall below a threshold (`ExitLevel`).

        Cases of one shape must have one rule, as kernels call it for all of them: others are a bug of the observable.
        """
        levels = self.column_of(level_of)
        if len({level.rule for level in levels.values}) > 1:
            on = self[0].recording.exit_on
            raise SweeplibError(f"the level of {on} has another rule for problems that differ in numbers alone")
        return levels.items()

    def solutions(self) -> NDArray[np.intp]:
        """Return, for each case, the place of the first case that has the same solution, as `engine.Cases` says.

        Where γ does no more than to turn times into steps, cases have one solution that differ in it alone.
        """
        of_all_rates, places = self.column_of(_is_of_all_rates).array(bool), super().solutions()
        if not of_all_rates.any():
            return places
        unread = PARAMETERS.keys() - frozenset().union(*self.column_of(fields_read).values)
        first, codes = self.distinct(self.columns.keys() - unread - {"gamma"})
        return np.where(of_all_rates, first[codes], places)

    def but_seeds(self) -> list[bytes]:
        """Return 32 bytes for each case that identify it except for its seed."""
        shared, ends = self.column_of(shared_digest), self.over(("student_start", "clock"), _ends).array(object)
        # texts of problems without what is not read, once for each such set of fields
        unread_by_any = {unread for _, unread in shared.values}
        texts = {unread: (np.array(self.each_text(unread), object) + ends).tolist() for unread in unread_by_any}
        digests_and_unread, blake2b = shared.items(), hashlib.blake2b
        if len(texts) == 1:
            [lines] = texts.values()
        else:
            lines = [texts[unread][at] for at, (_, unread) in enumerate(digests_and_unread)]
        pairs = zip(digests_and_unread, lines, strict=True)
        return [blake2b(digest + line.encode(), digest_size=32).digest() for (digest, _), line in pairs]

    def check(self) -> None:
        """Raise InputError if a case is not valid, as `Case.check` does."""
        for check in CHECKS:
            self.column_of(check)
        last = self.field("clock") * self.numbers(lambda case: case.recording.times[-1])
        step, largest = self.numbers(_step), self.numbers(_most_steps)
        with np.errstate(all="ignore"):
            # only suspects are checked one by one: the others pass, as these comparisons show
            suspect = ~((last / step < largest) & (step > 0) & ((last > step) | (last == 0.0)))
        for name in ("rates", "noise_factor"):  # formulas of schedules, None for constant ones, which an array has as 0
            suspect |= self.column(name).array(object) != 0
        suspects = self.at(np.flatnonzero(suspect))
        for at in suspects.distinct(suspects.columns.keys() - {"seed"})[0].tolist():
            suspects[at].check()


def _column(items: Sequence[Any]) -> Column:
    """Return items as a column; many may be the same object, which is compared with others once."""
    objects = {id(item): item for item in items}
    places = {key: place for place, key in enumerate(objects)}
    values, codes = Column.of(objects.values())
    return Column(values, codes[[places[id(item)] for item in items]])


def _is_of_all_rates(case: Case) -> bool:
    """Return whether the solution of a case is that of all γ: neither dynamics nor schedule nor observables use it."""
    problem, observed = case.problem, (OBSERVABLES[name] for name in case.recording.measured)
    shares = DYNAMICS[case.dynamics].solves_all_rates(problem, case.numerical_options()) and problem.optimal is None
    return shares and not any("gamma" in observable.acts_on for observable in observed)


def _ends(columns: Mapping[str, Sequence[Any]], _: int) -> list[str]:
    """Return what follows the text of each problem in what identities are made of: law of start, and clock."""
    return [f" {start} {clock!r}" for start, clock in zip(columns["student_start"], columns["clock"], strict=True)]


def _step(case: Case) -> float:
    """Return the ODE time of a step of the dynamics of a case."""
    length = DYNAMICS[case.dynamics].step_length(case.problem, case.numerical_options())
    return length * case.problem.step_time()


def _most_steps(case: Case) -> float:
    """Return a number of steps that is surely not too large; cases with more are checked one by one."""
    return min(DYNAMICS[case.dynamics].most_steps(case.problem, case.numerical_options()), 2.0**61)
