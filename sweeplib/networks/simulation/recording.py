"""Recording: what a run records, and whether one run has what another would record.

Below, `wanted` is the recording of another run of the same problem, and `kind` the name of the dynamics of both.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine import cases
from sweeplib.engine.variable import END_STATE
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES

EXIT_ERRORS = "exit_steps_error", "exit_time_error"
"""The variables of the errors of exits, of dynamics that state them."""
ALIKE = ("end_steps", "end_time", "exit_steps", "exit_time", *EXIT_ERRORS, END_STATE)
"""Variables without the dimension `time` that do not depend on the recording times before the last."""


@dataclass(frozen=True, eq=False)
class Recording(cases.Recording):
    """What is recorded of a run: `observables` at the ODE `times`, and the exits at `thresholds`.

    Threshold T is reached when `exit_on`, an observable with a `level`, by default the excess risk, first is at most
    (1−T) of its initial value. With `stop="exit"` a run may end at its last threshold; it has NaN at later times.
    Raises InputError for times that do not ascend from zero or more, thresholds outside (0, 1) or twice, unknown
    observables or stops, and a stop at exits, or an observable to exit on, without thresholds.

    keep_ends : also keep the states of runs that could go on beyond the last time, if the dynamics has such states.
    """

    times: tuple[float, ...]
    thresholds: tuple[float, ...] = ()
    observables: tuple[str, ...] = ("risk",)
    stop: Literal["end", "exit"] = "end"
    keep_ends: bool = False
    exit_on: str = "risk"

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
        if self.exit_on not in (levels := [name for name in OBSERVABLES if OBSERVABLES[name].level is not None]):
            raise InputError("no observable to exit on", key="exit_on", value=self.exit_on, choices=levels)
        if self.exit_on != "risk" and not self.thresholds:
            raise InputError("no exits", key="exit_on", value=self.exit_on, expected="thresholds beside it")

    @property
    def measured(self) -> tuple[str, ...]:
        """The observables that a run computes: the recorded ones, and the one of the exits if that is not the risk."""
        return self.observables if self.exit_on in ("risk", *self.observables) else (*self.observables, self.exit_on)

    @property
    def of_results(self) -> dict[str, Any]:
        """The fields on which results depend; without the default of `exit_on`, which older identities do not have."""
        left_out = ("keep_ends", "exit_on") if self.exit_on == "risk" else ("keep_ends",)
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @property
    def key(self) -> tuple[Any, ...]:
        """All fields, by which the engine tells recordings apart; without the default of `exit_on`, for old stores."""
        exit_on = () if self.exit_on == "risk" else (self.exit_on,)
        return (self.times, self.thresholds, self.observables, self.stop, self.keep_ends, *exit_on)

    @property
    def of_runs(self) -> dict[str, str]:
        """What a dataset says of its runs: where they stop, and what their exits are of if it is not the risk."""
        return {"stop": self.stop} | ({} if self.exit_on == "risk" else {"exit_on": self.exit_on})

    @property
    def end(self) -> float:
        """The last recording time."""
        return self.times[-1]

    def covers(self, wanted: "Recording", kind: str) -> bool:
        """Whether a run with this recording has all numbers that a run with the `wanted` one would record."""
        times = set(wanted.times) <= set(self.times) and wanted.end == self.end
        return times and self.keep_ends >= wanted.keep_ends and self._records_all(wanted, kind)

    def begins(self, wanted: "Recording", kind: str) -> bool:
        """Whether a run with this recording begins a longer one with the `wanted` one, and kept its end."""
        times = set(wanted.times[: self.reached(wanted)]) <= set(self.times) and wanted.end > self.end
        return times and self.keep_ends and self._records_all(wanted, kind)

    def reached(self, wanted: "Recording") -> int:
        """How many of the `wanted` times are not after the last time of this recording."""
        return sum(time <= self.end for time in wanted.times)

    def _records_all(self, wanted: "Recording", kind: str) -> bool:
        """Whether a run with this recording has all of the `wanted` one but for its times, up to its own last time."""
        changed = {name for name in ("times", "thresholds") if getattr(self, name) != getattr(wanted, name)}
        if not changed <= DYNAMICS[kind].unaffected_by:
            return False
        exits = set(wanted.thresholds)
        # with other thresholds the last exit, at which a run stops, would be another
        enough = exits == set(self.thresholds) if wanted.stop == "exit" else exits <= set(self.thresholds)
        same = self.stop == wanted.stop and self.exit_on == wanted.exit_on
        return enough and same and set(wanted.observables) <= set(self.observables)

    def gives(self, name: str, dims: Sequence[str], wanted: "Recording") -> bool:
        """Whether the variable `name`, with dimensions `dims`, has the values of a run with the `wanted` recording.

        One without the dimension `time` has them if it does not depend on earlier times, or these are the same.
        """
        same = wanted.times[: len(self.times)] == self.times
        return "time" in dims or name in ALIKE or same

    def values_at(self, values: NDArray[Any], dims: Sequence[str], wanted: "Recording") -> NDArray[Any]:
        """The values (n, *dims) of a variable at the `wanted` times and thresholds, NaN at later times."""
        if self == wanted:
            return values
        for axis, dim in enumerate(dims, 1):
            # coordinates along the axis, here and in the result; those later than the last one here become NaN
            old, new = (self.thresholds, wanted.thresholds) if dim == "threshold" else (self.times, wanted.times)
            if dim in ("time", "instant", "threshold") and old != new:
                later = len(new) - self.reached(wanted) if dim != "threshold" else 0
                values = values.take([old.index(value) for value in new[: len(new) - later]], axis)
                padding = [(0, later * (of == axis)) for of in range(values.ndim)]
                values = np.pad(values, padding, constant_values=np.nan)
        return values

    def __eq__(self, other: object) -> bool:
        """Whether two recordings are equal, by a cached digest: comparing times takes longer than planning a case."""
        return isinstance(other, Recording) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    @cached_property
    def _digest(self) -> bytes:
        """A digest of all fields."""
        fields = (self.times, self.thresholds, self.observables, self.stop, self.keep_ends, self.exit_on)
        return hashlib.blake2b(repr(fields).encode(), digest_size=16).digest()


def _floats(key: str, values: Iterable[float]) -> tuple[float, ...]:
    """Return numbers as floats; InputError, with the key, for what is none or not finite."""
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise InputError("not a list of numbers", key=key, value=values, expected="numbers") from None
    bad = next((number for number in numbers if not math.isfinite(number)), None)
    if bad is not None:
        raise InputError("not a finite number", key=key, value=bad, expected="finite numbers")
    return numbers
