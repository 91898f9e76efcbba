"""Cases as columns: what is the same for many of them is computed once, and no object is made for each."""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from sweeplib.dynamics import DYNAMICS
from sweeplib.problem import Problem
from sweeplib.problem.columns import ProblemOfKind, Template, VariesError, varies, with_columns
from sweeplib.simulation.cases import Case, Identities, identities

SAMPLE = 64
"""The first numbers of a column: if most of them differ, each of all gets a text of its own."""

Array = NDArray[np.float64]
Value = TypeVar("Value")
CHECKED = 3
"""The number of cases at which a formula that was evaluated for columns is compared to its values one by one."""


class _CaseOfKind(Case):
    """A case of a kind, without its clock and seed: reading them raises VariesError."""

    clock = property(varies)
    seed = property(varies)


@dataclass(frozen=True, eq=False)
class Cases(Sequence[Case]):
    """n cases as columns.

    Cases of a kind differ in γ, Δ, clock and seed only; `examples` has a case of each kind.

    kind (n,) : indices of the examples.
    gamma, Delta, clock (n,) : of the problems, and the factors of the recording times.
    seed (n,) int64 : the replicas.
    """

    examples: Sequence[Case]
    kind: NDArray[np.intp]
    gamma: Array
    Delta: Array
    clock: Array
    seed: NDArray[np.int64]

    @classmethod
    def of(cls, cases: Sequence[Case]) -> "Cases":
        """Return some cases as columns; each problem that is an object of its own is a kind."""
        if isinstance(cases, Cases):
            return cases
        known: dict[tuple[Any, ...], int] = {}
        examples: list[Case] = []
        kind = np.empty(len(cases), np.intp)
        for at, case in enumerate(cases):
            shared = id(case.problem), id(case.recording), id(case.pair_by), case.clock
            kind[at] = known.setdefault((*shared, case.dynamics, case.options, case.root_seed), len(examples))
            if kind[at] == len(examples):
                examples.append(case)
        problems = [case.problem for case in examples]
        return cls(
            examples,
            kind,
            np.array([problem.gamma for problem in problems], float)[kind],
            np.array([problem.Delta for problem in problems], float)[kind],
            np.array([case.clock for case in examples], float)[kind],
            np.array([case.seed for case in cases], np.int64),
        )

    @classmethod
    def with_seeds(cls, case: Case, seeds: Sequence[int]) -> "Cases":
        """Return copies of a case with these seeds."""
        count, problem = len(seeds), case.problem
        gamma, Delta, clock = (np.full(count, value) for value in (problem.gamma, problem.Delta, case.clock))
        kind = np.zeros(count, np.intp)
        made = cls([case], kind, gamma, Delta, clock, np.array(seeds, np.int64))
        vars(made).update(_alike=True, _kinds=[case], _places=kind, runs=(np.zeros(1, np.intp), kind))
        return made

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, at: int) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> "Cases": ...
    def __getitem__(self, at: int | slice) -> "Case | Cases":
        if isinstance(at, slice):
            return self.at(at)
        example = self.examples[int(self.kind[at])]
        problem, own = example.problem, (float(self.gamma[at]), float(self.Delta[at]))
        if repr(own) != repr((problem.gamma, problem.Delta)):
            problem = with_columns(problem, *own)
        return _with(example, problem=problem, clock=float(self.clock[at]), seed=int(self.seed[at]))

    def __iter__(self) -> Iterator[Case]:
        return (self[at] for at in range(len(self)))

    def at(self, places: slice | NDArray[np.intp]) -> "Cases":
        """Return the cases at some indices, or in a slice."""
        kind, gamma, Delta = self.kind[places], self.gamma[places], self.Delta[places]
        return Cases(self.examples, kind, gamma, Delta, self.clock[places], self.seed[places])

    @cached_property
    def runs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first of each run of cases that differ only in their seed, and the number (n,) of each case's run."""
        new = np.zeros(len(self), bool)
        new[:1] = True
        for column in (self.kind, *map(_bits, (self.gamma, self.Delta, self.clock))):
            new[1:] |= column[1:] != column[:-1]
        return np.flatnonzero(new), np.cumsum(new) - 1

    @cached_property
    def _present(self) -> NDArray[np.intp]:
        """The kinds that occur."""
        return np.unique(self.kind)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """The index (n,) of each case's kind among those that occur."""
        return np.searchsorted(self._present, self.kind)

    @cached_property
    def _kinds(self) -> list[Case]:
        """The examples of the kinds that occur."""
        return [self.examples[kind] for kind in self._present.tolist()]

    @cached_property
    def _alike(self) -> bool:
        """Whether all cases of a kind differ from its example in their seed only."""
        examples = [(case.problem.gamma, case.problem.Delta, case.clock) for case in self._kinds]
        columns = np.array(examples, float).reshape(len(examples), 3).T
        pairs = zip((self.gamma, self.Delta, self.clock), columns, strict=True)
        return all(bool((_bits(own) == _bits(theirs)[self._places]).all()) for own, theirs in pairs)

    def each(self, function: Callable[[Case], Value]) -> tuple[list[Value], NDArray[np.intp]]:
        """Return values of a function of a case, and for each case the index (n,) of its value.

        The function must not read the seed. It is called once for each kind if it reads neither γ nor Δ nor the clock,
        otherwise once for each run.
        """
        if self._alike:
            return [function(case) for case in self._kinds], self._places
        try:
            return [function(_of_kind(case)) for case in self._kinds], self._places
        except (VariesError, Exception):
            first, run = self.runs
            return [function(self[at]) for at in first.tolist()], run

    def numbers(self, function: Callable[[Case], float | None], dtype: Any = float) -> NDArray[Any]:
        """Return the numbers (n,) that a function of a case returns; zero for None. It must not read the seed.

        A formula of γ, Δ and the clock is evaluated for all cases of a kind at once, if it can be.
        """
        if not self._alike:
            try:
                return np.array([function(_of_kind(case)) or 0 for case in self._kinds], dtype)[self._places]
            except (VariesError, Exception):
                found = self._formula(function)
                if found is not None:
                    return found.astype(dtype)
        values, places = self.each(function)
        return np.array([value or 0 for value in values], dtype)[places]

    def _formula(self, function: Callable[[Case], Any]) -> Array | None:
        """Return the values (n,) of a formula, None if it cannot be evaluated for arrays as it is for numbers."""
        found = np.empty(len(self))
        for example, here in zip(self._kinds, _groups(self._places, len(self._kinds)), strict=True):
            try:
                with np.errstate(all="ignore"):
                    found[here] = np.asarray(function(self._of_arrays(example, here)), float)
                spread = here[np.linspace(0, len(here) - 1, CHECKED).astype(int)].tolist()
                exact = all(found[at] == function(self[at]) for at in spread)
            except Exception:
                return None
            if not exact or not np.isfinite(found[here]).all():
                return None
        return found

    def _of_arrays(self, example: Case, here: NDArray[np.intp]) -> Case:
        """Return a case whose γ, Δ and clock are arrays, those of the cases `here`."""
        problem = with_columns(example.problem, self.gamma[here], self.Delta[here])
        return _with(example, problem=problem, clock=self.clock[here])

    def field(self, name: str, dtype: Any = float) -> NDArray[Any]:
        """Return a field (n, ...) of the problems other than γ and Δ; zero for None."""
        values = [getattr(case.problem, name) for case in self._kinds]
        return np.array([0 if value is None else value for value in values], dtype)[self._places]

    def arrays(self, function: Callable[[Case], Any]) -> Array:
        """Return the arrays (n, ...) that a function of a case returns, of one shape. It must not read the seed."""
        values, places = self.each(function)
        return np.array(values, float)[places]

    def shapes(self) -> tuple[list[Hashable], NDArray[np.intp]]:
        """Return the shapes of cases that can be run together, and the index (n,) of each case's shape."""
        return self.each(lambda case: case.shape)

    def texts(self, but: frozenset[str] = frozenset()) -> list[str]:
        """Return the texts of the problems, or those of the fields that are not in `but`, run by run."""
        if self._alike:
            texts = [_text(case.problem.text, but) for case in self._kinds]
            return [texts[place] for place in self._places[self.runs[0]].tolist()]
        return self._formatted([_template(case.problem, but) for case in self._kinds])

    def _formatted(self, templates: Sequence[Template]) -> list[str]:
        """Return the texts of the runs by the templates of the kinds that occur."""
        first, _ = self.runs
        if len(templates) == 1:
            [(form, names)] = templates
            columns = [self._numerals[name].tolist() for name in names]
            return [form % row for row in zip(*columns, strict=True)] if columns else [form % ()] * len(first)
        texts, places = np.empty(len(first), object), self._places[first]
        for (form, names), here in zip(templates, _groups(places, len(templates)), strict=True):
            columns = [self._numerals[name][here].tolist() for name in names]
            texts[here] = [form % row for row in zip(*columns, strict=True)] if columns else form % ()
        found: list[str] = texts.tolist()
        return found

    @cached_property
    def _numerals(self) -> dict[str, NDArray[np.object_]]:
        """The shortest decimals of γ, Δ and the clock of each run."""
        first, _ = self.runs
        return {name: _numerals(getattr(self, name)[first]) for name in ("gamma", "Delta", "clock")}

    def but_seeds(self) -> list[bytes]:
        """Return 32 bytes for each case that identify it except for its seed (`Identities.but_seed`)."""
        prefixes, templates = [], []
        for case in self._kinds:
            shared, unread = _identities(case).shared(case.problem)
            form, names = _template(case.problem, unread)
            prefixes.append(shared)
            start = case.problem.student_start.replace("%", "%%")
            templates.append(Template(f"{form} {start} %s", (*names, "clock")))
        texts, blake2b = self._formatted(templates), hashlib.blake2b
        first, run = self.runs
        if len(prefixes) == 1:
            [prefix] = prefixes
            found = [blake2b(prefix + text.encode(), digest_size=32).digest() for text in texts]
        else:
            pairs = zip([prefixes[place] for place in self._places[first].tolist()], texts, strict=True)
            found = [blake2b(prefix + text.encode(), digest_size=32).digest() for prefix, text in pairs]
        return found if len(found) == len(self) else [found[at] for at in run.tolist()]

    def identities(self) -> np.ndarray:
        """Return the identities (n,) of the cases (`Case.identity`)."""
        seeds, blake2b = self.seed.astype("<u4").view("V4").tolist(), hashlib.blake2b
        pairs = zip(self.but_seeds(), seeds, strict=True)
        found = [blake2b(but_seed + seed, digest_size=16).digest() for but_seed, seed in pairs]
        return np.frombuffer(b"".join(found), "S16")

    def check(self) -> None:
        """Raise InputError if a case is not valid, as `Case.check` does."""
        self.each(Case.check_kind)
        step, largest = self.numbers(_step), self.numbers(_most_steps)
        last = self.clock * np.array([case.recording.times[-1] for case in self._kinds])[self._places]
        with np.errstate(all="ignore"):
            steps = last / step
        scheduled = np.array([case.problem.rates is not None for case in self._kinds])[self._places]
        first, _ = self.runs
        for at in first[(scheduled | ~((steps < largest) & (step > 0)))[first]].tolist():
            self[at].check()


@lru_cache(maxsize=8192)
def _template(problem: Problem, but: frozenset[str]) -> Template:
    """The template of the texts of problems of a kind, without the fields in `but`."""
    values = json.loads(problem.text)
    return Template.of({name: value for name, value in values.items() if name not in but})


@lru_cache(maxsize=8192)
def _text(text: str, but: frozenset[str]) -> str:
    """The text of a problem, without the fields in `but`."""
    return json.dumps({name: value for name, value in json.loads(text).items() if name not in but})


def _with(case: Case, **fields: Any) -> Case:
    """Return a case with other fields, which are not checked."""
    made: Case = object.__new__(type(case))
    made.__dict__.update(vars(case))
    made.__dict__.update(fields)
    return made


def _of_kind(case: Case) -> Case:
    made: Case = object.__new__(_CaseOfKind)
    made.__dict__.update({name: value for name, value in vars(case).items() if name not in ("clock", "seed")})
    made.__dict__["problem"] = ProblemOfKind.of(case.problem)
    return made


def _identities(case: Case) -> Identities:
    return identities(case.dynamics, case.recording, case.options, case.root_seed, case.pair_by)


def _step(case: Case) -> float:
    """The ODE time of a step of the dynamics."""
    kind = DYNAMICS[case.dynamics]
    return kind.step_length(case.problem, case.numerical_options()) * case.problem.step_time()


def _most_steps(case: Case) -> float:
    """A number of steps that is not too large; cases with more are checked one by one."""
    largest = DYNAMICS[case.dynamics].most_steps(case.problem, case.numerical_options())
    return min(largest, 2.0**61)


def _bits(column: Array) -> NDArray[np.int64]:
    return np.ascontiguousarray(column, float).view(np.int64)


def _numerals(column: Array) -> NDArray[np.object_]:
    """Return the shortest decimals of numbers, of which many may be equal."""
    values = column.tolist()
    if 2 * len(set(values[:SAMPLE])) > len(values[:SAMPLE]):
        return np.array(list(map(repr, values)), object)
    distinct = set(values)
    if 2 * len(distinct) > len(values) or 0.0 in distinct:  # zero equals minus zero, whose text is another
        return np.array(list(map(repr, values)), object)
    texts = {value: repr(value) for value in distinct}
    return np.array([texts[value] for value in values], object)


def _groups(places: NDArray[np.intp], count: int) -> list[NDArray[np.intp]]:
    """Return, for each number below `count`, the indices at which `places` has it, ascending."""
    if count == 1:
        return [np.arange(len(places))]
    return np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places, minlength=count))[:-1])
