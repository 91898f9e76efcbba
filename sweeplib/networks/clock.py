"""Clock: the unit of the recording times of a sweep, point by point: of ODE time, of steps or of samples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sweeplib.engine import clock
from sweeplib.engine.language import Expression
from sweeplib.errors import InputError, errors_at
from sweeplib.networks.problem import DEFAULTS
from sweeplib.networks.simulation.labels import time_attributes

Count = Literal["steps", "samples"]
FIELDS: dict[Count | None, tuple[str, ...]] = {
    None: (),
    "steps": ("gamma", "p", "d"),
    "samples": ("gamma", "p", "d", "batch_size", "repeats", "samples", "sampling"),
}
"""The fields of a problem on which a unit depends."""
TOTALS: dict[Count | None, str] = {"steps": "steps_taken", "samples": "samples_drawn"}
"""The names of their numbers, without a scale, in datasets."""
LENGTHS: dict[Count | None, str] = {
    None: "1",
    "steps": "gamma/(p*d)",
    "samples": "gamma/(p*d)*repeats/batch_size",
}
"""The ODE time of a step, and of a sample drawn for one."""


@dataclass(frozen=True)
class Clock(clock.Clock):
    """A unit of recording times: a `scale`, by default 1, of ODE time, or of steps or samples, the `count`.

    whole : the times, in this unit, at which a number of whole steps must be taken.
    key : the key of the config that gives the scale.
    """

    scale: Expression | None = None
    count: Count | None = None
    whole: tuple[float, ...] = ()
    key: str = "times.scale"

    @property
    def text(self) -> str:
        """Return the unit in ODE time, an expression."""
        if self.count is None:
            return str(self.scale or 1)
        return LENGTHS[self.count] if self.scale is None else f"{LENGTHS[self.count]}*({self.scale})"

    def names(self, grid_names: Iterable[str]) -> frozenset[str]:
        """Return the names on which the unit depends, of those of a grid."""
        scale = frozenset() if self.scale is None else self.scale.names
        return scale | frozenset(FIELDS[self.count]).intersection(grid_names)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of recording times."""
        return time_attributes(self.count, None if self.scale is None else self.scale.text)

    def lengths(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[float]:
        """Return the unit in ODE time at `count` points; InputError unless it is positive, and for parts of steps."""
        with errors_at(self.key):
            scales = [1.0] * count if self.scale is None else list(map(float, self.scale.evaluated(columns, count)))
        at = next((at for at, value in enumerate(scales) if value <= 0), None)
        if at is not None:
            problem = f"the clock is not positive: {self.scale} at {self._values(columns, at)}"
            raise InputError(problem, key=self.key, value=scales[at], expected="a number greater than 0")
        if self.count is None:
            return scales
        return [self._length(scale, columns, at) for at, scale in enumerate(scales)]

    def _length(self, scale: float, columns: Mapping[str, Sequence[Any]], at: int) -> float:
        """Return the unit in ODE time at one point, of so many steps or samples."""
        of: dict[str, Any] = {
            name: columns[name][at] if name in columns else DEFAULTS.get(name) for name in FIELDS[self.count]
        }
        a_step = float(of["gamma"]) / (of["p"] * of["d"])
        if self.count == "steps":
            self._refuse_parts(scale, "", columns, at)
            return scale * a_step
        size, n = of["batch_size"], of["samples"]
        if n is not None and of["sampling"] == "epochs" and n % size:
            expected = "times in `steps`, or a batch_size that divides the training set"
            problem = f"no clock of samples: the last of the batches of a pass has {n % size} of {size}"
            raise InputError(problem, key="times.samples", value=size, expected=expected)
        self._refuse_parts(scale * of["repeats"] / size, f" of {size} sample{'s' * (size != 1)}", columns, at)
        return scale * of["repeats"] / size * a_step

    def _refuse_parts(self, steps: float, samples: str, columns: Mapping[str, Sequence[Any]], at: int) -> None:
        """Raise InputError where times that must be whole steps are not; a unit is so many steps."""
        for time in self.whole:
            number = time * steps
            if abs(number - round(number)) > 1e-9 + 1e-12 * number:
                where = self._values(columns, at)
                problem = f"parts of steps: {time:.6g}{f' × {self.scale}' if self.scale else ''} {self.count}"
                problem += f" are {number:.6g} steps{samples}" + (f" at {where}" if where else "")
                size = "batch_size*" if self.count == "samples" else ""
                expected = f"whole steps, as of `{size}round(EXPRESSION{size and '/batch_size'})`"
                raise InputError(problem, key=f"times.{self.count}", value=time, expected=expected)

    def _values(self, columns: Mapping[str, Sequence[Any]], at: int) -> str:
        """Return the values at a point of the names of the scale, and of the sizes of batches."""
        scale = frozenset() if self.scale is None else self.scale.names
        names = scale | ({"batch_size", "repeats"} if self.count == "samples" else set())
        return ", ".join(f"{name}={columns[name][at]}" for name in sorted(names.intersection(columns)))
