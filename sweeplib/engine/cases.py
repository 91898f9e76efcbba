"""Cases as the engine knows them: rows that have an identity each, and the shape of what they can be run with.

A case is one run of a dynamics at one point with one seed; its recording says what is kept of it, and when.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.base.table import Column, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sweeplib.engine.simulator import Simulator


class Recording(ABC):
    """What is recorded of a case; it has a meaning for its simulator alone, but for how two of them compare.

    By default two recordings have the same results only if they are equal, and no run goes on from a stored one.
    """

    keep_ends: bool
    """Whether the states of runs are kept from which others could go on."""

    @property
    @abstractmethod
    def end(self) -> float:
        """How far a run goes, in the unit of its simulator."""

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]:
        """All that tells this recording from others, with a `repr` of which identities are made."""

    @property
    def of_runs(self) -> dict[str, str]:
        """The attributes by which a dataset says what was recorded of its runs."""
        return {}

    def covers(self, wanted: Any, kind: str) -> bool:
        """Whether a run, of a kind of dynamics, with this recording has all numbers of a run with the `wanted` one."""
        return False

    def begins(self, wanted: Any, kind: str) -> bool:
        """Whether a run with this recording kept its end, and begins a longer one with the `wanted` one."""
        return False

    def reached(self, wanted: Any) -> int:
        """The number of recording times of the `wanted` recording that a run with this one reaches."""
        return 0

    def gives(self, name: str, dims: Sequence[str], wanted: Any) -> bool:
        """Whether the values of a variable with the `wanted` recording can be taken from a run with this one.

        dims : of the variable, without the cases.
        """
        return True

    def values_at(self, values: NDArray[Any], dims: Sequence[str], wanted: Any) -> NDArray[Any]:
        """The `values` (n, *dims) of a variable of runs with this recording, taken at the times of the `wanted` one.

        They are NaN beyond the end of this one.
        """
        return values


class Case(ABC):
    """One run: a row of a run store."""

    dynamics: str
    """The kind of run, a name that its simulator knows."""
    seed: int
    """The number of its replica."""
    recording: Any
    """What is recorded of it."""
    root_seed: int
    """The number on which the random numbers of all cases of a sweep depend."""
    pair_by: tuple[str, ...] | None
    """The parameters by which its random numbers differ from those of other cases; all if None."""

    @property
    @abstractmethod
    def simulator(self) -> Simulator:
        """What computes it."""

    @property
    @abstractmethod
    def shape(self) -> Hashable:
        """What cases must have in common to be run together."""

    def check(self) -> None:  # noqa: B027
        """Raise InputError if it cannot be run; by default values are checked by their types alone."""

    @abstractmethod
    def identity(self) -> bytes:
        """16 bytes that are equal for two cases exactly if they have the same results."""


class Cases(Table, Sequence[Any]):
    """n cases as columns; a sequence of cases, which are made when they are asked for. A place is an index in it."""

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    @abstractmethod
    def but_seeds(self) -> list[bytes]:
        """Return 32 bytes for each case that identify it except for its seed."""

    def field(self, name: str, dtype: Any = float) -> NDArray[Any]:
        """Return a column (n, ...) as an array; zero for None."""
        return self.column(name).array(dtype)

    def arrays(self, function: Callable[[Any], Any]) -> NDArray[np.float64]:
        """Return the arrays (n, ...) that a function of a case returns, of one shape."""
        return self.column_of(function).array(float)

    def shapes(self) -> Column:
        """Return the column of `Case.shape`: cases with the same can be run together."""
        return self.column_of(lambda case: case.shape)

    def works(self) -> NDArray[np.float64]:
        """Return the work (n,) of each case, in the unit of its simulator."""
        return self.numbers(lambda case: case.simulator.work(case))

    def solutions(self) -> NDArray[np.intp]:
        """Return, for each case, the place of the first case that has the same solution; by default its own.

        Cases of one solution are computed together at the cost of one.
        """
        return np.arange(len(self))

    def of_one_shape(self) -> list[NDArray[np.intp]]:
        """Return the places (m,) of the cases that can be run together, one array a shape."""
        shapes, codes = self.shapes()
        # a column may have one shape twice
        numbers = {shape: number for number, shape in enumerate(dict.fromkeys(shapes))}
        number = np.array([numbers[shape] for shape in shapes])[codes]
        return [np.flatnonzero(number == group) for group in numbers.values()]

    def identities(self) -> NDArray[np.bytes_]:
        """Return the identities (n,) of the cases, 16 bytes each (`Case.identity`)."""
        # what cases have but for their seeds is hashed once for all seeds
        first, codes = self.distinct(self.columns.keys() - {"seed"})
        but_seeds = Column(self.at(first).but_seeds(), codes).items()
        return _identities(zip(but_seeds, _seed_bytes(self.field("seed", np.int64)), strict=True))

    def identities_with(self, seeds: NDArray[np.int64]) -> NDArray[np.bytes_]:
        """Return the identities (n m,) of the n cases with each of m seeds, all seeds of a case together."""
        return _identities(itertools.product(self.but_seeds(), _seed_bytes(seeds)))


def _identities(pairs: Iterable[tuple[bytes, bytes]]) -> NDArray[np.bytes_]:
    """Return the identities of cases from pairs: what identifies each but for its seed, and the bytes of its seed."""
    blake2b = hashlib.blake2b
    return np.frombuffer(b"".join([blake2b(but + seed, digest_size=16).digest() for but, seed in pairs]), "S16")


def _seed_bytes(seeds: NDArray[np.int64]) -> list[bytes]:
    """Return four bytes for each seed, the same on every machine."""
    return seeds.astype("<u4").view("V4").tolist()
