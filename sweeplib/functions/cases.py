"""Cases of functions: rows with the values of the parameters and the number of the replica.

A function's `code` is the digest of its source: a case belongs to one function with one code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from sweeplib.engine import cases as engine
from sweeplib.engine.base.table import Column, Reading
from sweeplib.engine.simulator import FUNCTIONS, simulator_named
from sweeplib.functions.function import TIMES, registered

if TYPE_CHECKING:
    from sweeplib.engine.simulator import Simulator
    from sweeplib.functions.function import Function

FIELDS = ("dynamics", "code", "recording", "seed", "root_seed", "pair_by")
"""The columns of a case that are no parameters of its function."""


@dataclass(frozen=True)
class WholeRun(engine.Recording):
    """The recording of a function: all that it returns, at some `times` if it takes these."""

    times: tuple[float, ...] = ()
    keep_ends: bool = field(default=False, compare=False)

    @property
    def end(self) -> float:
        """Return the last time; 1 without times."""
        return self.times[-1] if self.times else 1.0

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what tells it from another recording: the times."""
        return self.times


@dataclass(frozen=True)
class FunctionCase(engine.Case):
    """One call of a function: the values of its parameters, in their order, and the number of the replica.

    dynamics, code : the name of the function and the digest of its code, by which processes that have its file find it.
    """

    dynamics: str
    code: str
    values: tuple[tuple[str, Any], ...]
    seed: int
    root_seed: int = 0
    pair_by: tuple[str, ...] | None = None
    recording: Any = WholeRun()

    @property
    def simulator(self) -> Simulator:
        """Return what calls the function."""
        return simulator_named(f"{FUNCTIONS}.{self.dynamics}.{self.code}")

    @property
    def shape(self) -> Hashable:
        """Return what cases must share to be run together: the function, its code, the shapes of its results."""
        lengths = tuple(variable.shape for variable in self.simulator.variables(self).values())
        return (self.dynamics, self.code, *lengths)

    def identity(self) -> bytes:
        """Return 16 bytes that are equal for two cases exactly if they have the same results."""
        return bytes(FunctionCases.of([self]).identities().tobytes())


class FunctionCases(engine.Cases):
    """n calls of one function, as the columns of its parameters and the `FIELDS`; a sequence of `FunctionCase`."""

    @classmethod
    def of(cls, cases: Sequence[FunctionCase]) -> FunctionCases:
        """Return some cases of one function as columns."""
        if isinstance(cases, FunctionCases):
            return cases
        values = [dict(case.values) for case in cases]
        columns = {name: Column.of([row[name] for row in values]) for name in values[0]}
        columns |= {name: Column.of([getattr(case, name) for case in cases]) for name in FIELDS}
        return cls(columns, len(cases))

    @property
    def function(self) -> Function:
        """Return the function that all of them call."""
        name, code = (str(self.column(name).values[0]) for name in ("dynamics", "code"))
        return registered(name, code)

    @overload
    def __getitem__(self, at: int) -> FunctionCase: ...
    @overload
    def __getitem__(self, at: slice) -> FunctionCases: ...
    def __getitem__(self, at: int | slice) -> FunctionCase | FunctionCases:
        if isinstance(at, slice):
            return self.at(at)
        # IndexError beyond the end, which ends an iteration
        return self.row(Reading(self, range(len(self))[at], {}))

    def row(self, read: Reading) -> Any:
        """Return the case of a row."""
        values = tuple((name, read(name)) for name in self.function.arguments)
        fields = (read(name) for name in ("seed", "root_seed", "pair_by", "recording"))
        return FunctionCase(read("dynamics"), read("code"), values, *fields)

    def but_seeds(self) -> list[bytes]:
        """Return 32 bytes for each case that identify it except for its seed: function, code, values and times.

        Of arrays the declared lengths count, by which a call fails or not, and of several dimensions their order.
        """
        function = self.function
        names = [*function.arguments, "root_seed", "pair_by"]
        times = self.column("recording").values[0].times
        arrays = {name: result.dims for name, result in function.results.items() if result.dims}
        dims = {name: list(lengths) for name, lengths in arrays.items() if len(lengths) > 1}
        lengths = {name: list(lengths.values()) for name, lengths in arrays.items()}
        others = [entry for entry in (times, dims, lengths) if entry]
        shared = json.dumps([function.name, function.code, list(function.results), names, *others])
        rows = zip(*(self.column(name).items() for name in names), strict=True)
        return [hashlib.blake2b(f"{shared} {text_of(row)}".encode(), digest_size=32).digest() for row in rows]


def lengths_of(case: FunctionCase) -> dict[str, Any]:
    """Return what lengths of results may depend on: the values of the arguments, and the number of recording times."""
    return {**dict(case.values), TIMES: len(case.recording.times)}


def text_of(values: Any) -> str:
    """Return values as a text of JSON, in which 1 and 1.0 differ."""
    return json.dumps(values, sort_keys=True)


def generator_of(case: FunctionCase) -> np.random.Generator:
    """Return the generator of a case; cases with one seed and equal values of the `pair_by` share its numbers."""
    return np.random.default_rng(int.from_bytes(stream_of(case, 16), "big"))


def stream_of(case: FunctionCase, size: int) -> bytes:
    """Return random bytes of a case, others for each size; of cases with one seed and equal values of the `pair_by`.

    Without `pair_by` all values count.
    """
    chosen = dict(case.values)
    if case.pair_by is not None:
        chosen = {name: chosen[name] for name in case.pair_by if name in chosen}
    stream = json.dumps([case.root_seed, text_of(chosen), case.seed])
    return hashlib.blake2b(stream.encode(), digest_size=size).digest()
