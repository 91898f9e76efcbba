"""Case: one run, and the identity that says when two runs are the same."""

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Literal

import pydantic

from sweeplib.dynamics import DYNAMICS
from sweeplib.dynamics.dynamics import NumericalOptions
from sweeplib.errors import InputError
from sweeplib.maths.activations import ACTIVATIONS, activation
from sweeplib.maths.expectations import expectations
from sweeplib.observables import OBSERVABLES
from sweeplib.problem import PROBLEM_FIELDS, Problem
from sweeplib.random import checked_seed, stream_key
from sweeplib.sources import modules_digest


class Status(IntEnum):
    """What became of a case; `missing` is one not run yet."""

    missing = 0
    ok = 1
    diverged = 2
    failed = 3
    killed = 4
    timeout = 5


@dataclass(frozen=True)
class Recording:
    """What is recorded of a run: `observables` at the ODE `times`, and the exits at `thresholds`.

    Threshold T is reached when the excess risk first is at most (1−T) of its initial value. With `stop="exit"` a run
    may end at its last threshold; it has NaN at later times. Raises InputError for times that do not ascend from zero
    or more, thresholds outside (0, 1), unknown observables, or a stop at exits without thresholds.
    """

    times: tuple[float, ...]
    thresholds: tuple[float, ...] = ()
    observables: tuple[str, ...] = ("risk",)
    stop: Literal["end", "exit"] = "end"

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", _floats("times", self.times))
        object.__setattr__(self, "thresholds", _floats("thresholds", self.thresholds))
        object.__setattr__(self, "observables", tuple(self.observables))
        if not self.times or self.times[0] < 0 or any(b <= a for a, b in zip(self.times, self.times[1:], strict=False)):
            expected = "one or more ascending numbers from 0 on"
            raise InputError("not recording times", key="times", value=self.times, expected=expected)
        outside = next((T for T in self.thresholds if not 0 < T < 1), None)
        if outside is not None:
            raise InputError("not a threshold", key="thresholds", value=outside, expected="a number between 0 and 1")
        if len(set(self.thresholds)) < len(self.thresholds):
            raise InputError("a threshold twice", key="thresholds", value=self.thresholds)
        for name in self.observables:
            if name not in OBSERVABLES:
                raise InputError("unknown observable", key="observables", value=name, choices=OBSERVABLES)
        if self.stop not in ("end", "exit"):
            raise InputError("unknown stop", key="stop", value=self.stop, choices=("end", "exit"))
        if self.stop == "exit" and not self.thresholds:
            raise InputError("no exit to stop at", key="stop", value="exit", expected="thresholds beside it")


@dataclass(frozen=True)
class Case:
    """One run of one problem by one dynamics with one seed: what a row of the run store holds.

    `clock` multiplies the recording times; `options` are the dynamics' numerical ones, as pairs. Random numbers depend
    on `root_seed`, on the seed and on the problem, or of it only on the fields in `pair_by` if that is given: cases
    that agree in these share their samples. Initial conditions always are shared between all cases of equal root seed,
    seed, p, k, d and laws of start.
    """

    problem: Problem
    dynamics: str
    seed: int
    recording: Recording
    clock: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()
    root_seed: int = 0
    pair_by: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        unknown = next((name for name in self.pair_by or () if name not in (*PROBLEM_FIELDS, "seed")), None)
        if unknown is not None:
            raise InputError("unknown problem field", key="pair_by", value=unknown, choices=PROBLEM_FIELDS)

    def check(self) -> None:
        """Raise InputError when the dynamics, its options or the expectations it needs do not fit the problem."""
        DYNAMICS[self.dynamics].check(self.problem)
        expectations(self.problem.activation, self.problem.teacher)
        self.numerical_options()

    def numerical_options(self) -> NumericalOptions:
        """The dynamics' options, the given ones checked, the others at their defaults."""
        return numerical_options(self.dynamics, self.options)

    @property
    def times(self) -> tuple[float, ...]:
        """The ODE times at which the case is recorded."""
        return tuple(self.clock * time for time in self.recording.times)

    @property
    def shape(self) -> Hashable:
        """What cases must have in common to be run together."""
        problem = self.problem
        activations = (problem.activation, problem.teacher)
        kind = (problem.p, problem.k, problem.spherical, problem.second_layer_rate > 0)
        return (self.dynamics, self.options, self.recording, *kind, *activations)

    def stream(self) -> int:
        """The key of the random numbers of its samples."""
        return _stream(self.problem, self.dynamics, self.root_seed, self.pair_by)

    def identity(self) -> bytes:
        """16 bytes that two cases have in common exactly when they stand for the same numbers.

        Counted are the physics, what is recorded, and the code of all modules that the case uses; not counted are
        threads, blocks, paths and other cases.
        """
        return _with_seed(_identity(*self._but_seed()), self.seed)

    def _but_seed(self) -> tuple[Any, ...]:
        return self.problem, self.dynamics, self.recording, self.clock, self.options, self.root_seed, self.pair_by


def identities(cases: Iterable[Case]) -> Iterator[bytes]:
    """The identities of cases, sooner than one by one where neighbours have all but their seeds in common."""
    last: tuple[Any, ...] = ()
    prefix = b""
    for case in cases:
        parts = case._but_seed()
        if len(last) != len(parts) or any(one is not other for one, other in zip(last, parts, strict=True)):
            last, prefix = parts, _identity(*parts)
        yield _with_seed(prefix, case.seed)


def _with_seed(prefix: bytes, seed: int) -> bytes:
    return hashlib.blake2b(prefix + seed.to_bytes(4, "little"), digest_size=16).digest()


def numerical_options(dynamics: str, options: Iterable[tuple[str, Any]]) -> NumericalOptions:
    """The options of a dynamics, those not given at their defaults; InputError for one it does not have or allow."""
    kind = DYNAMICS[dynamics].Options
    given = dict(options)
    unknown = next((name for name in given if name not in kind.model_fields), None)
    if unknown is not None:
        choices = kind.model_fields or ("none at all",)
        raise InputError(f"{dynamics} has no such option", key=dynamics, value=unknown, choices=choices)
    try:
        return kind(**given)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        expected = first["msg"].removeprefix("Input should be ")
        key = f"{dynamics}.{first['loc'][0]}"
        raise InputError("not a valid option", key=key, value=first["input"], expected=expected) from None


def numerics_version(problem: Problem, dynamics: str, observables: Iterable[str]) -> str:
    """A digest of the code that turns the problem into numbers: the driver, the dynamics, activations, observables."""
    return _numerics_version(dynamics, problem.activation, problem.teacher, tuple(observables))


@lru_cache(maxsize=1024)
def _numerics_version(dynamics: str, student: str, teacher: str, observables: tuple[str, ...]) -> str:
    pair = expectations(student, teacher)
    functions: list[Callable[..., Any]] = [
        activation(student).value,
        activation(teacher).value,
        pair.risk,
        pair.drifts,
        *(OBSERVABLES[name].function for name in observables),
    ]
    modules = {"sweeplib.simulation.driver", DYNAMICS[dynamics].__module__, DYNAMICS.origin(dynamics)}
    modules |= {function.__module__ for function in functions}
    modules |= {ACTIVATIONS.origin(name) for name in (student, teacher) if name in ACTIVATIONS}
    return modules_digest(modules | {OBSERVABLES.origin(name) for name in observables})


@lru_cache(maxsize=4096)
def _stream(problem: Problem, dynamics: str, root_seed: int, pair_by: tuple[str, ...] | None) -> int:
    if pair_by is None:
        return stream_key(root_seed, "samples", dynamics, problem.digest())
    shared = {name: getattr(problem, name) for name in pair_by if name != "seed"}
    return stream_key(root_seed, "samples", dynamics, shared)


@lru_cache(maxsize=4096)
def _identity(
    problem: Problem,
    dynamics: str,
    recording: Recording,
    clock: float,
    options: tuple[tuple[str, Any], ...],
    root_seed: int,
    pair_by: tuple[str, ...] | None,
) -> bytes:
    parts = {
        "problem": problem.canonical(),
        "dynamics": dynamics,
        "options": numerical_options(dynamics, options).model_dump(),
        "recording": asdict(recording),
        "clock": clock,
        "root_seed": root_seed,
        "pair_by": None if pair_by is None else sorted(set(pair_by) - {"seed"}),
        "numerics": numerics_version(problem, dynamics, recording.observables),
    }
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=32).digest()


def _floats(key: str, values: Iterable[float]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise InputError("not a list of numbers", key=key, value=values, expected="numbers") from None
    bad = next((number for number in numbers if not math.isfinite(number)), None)
    if bad is not None:
        raise InputError("not a finite number", key=key, value=bad, expected="finite numbers")
    return numbers
