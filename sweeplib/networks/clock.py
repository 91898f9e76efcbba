"""Clock: the unit of the recording times of a sweep, point by point: of ODE time, of steps or of samples.

Points are rows of `columns`, the values of fields and of other names of a grid, by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sweeplib.engine import clock
from sweeplib.engine.language import Expression
from sweeplib.errors import InputError, errors_at
from sweeplib.networks.problem import DEFAULTS
from sweeplib.networks.simulation.labels import time_attributes

Count = Literal["steps", "samples"]
"""What is counted where times are no ODE times."""
FIELDS: dict[Count | None, tuple[str, ...]] = {
    None: (),
    "steps": ("gamma", "p", "d"),
    "samples": ("gamma", "p", "d", "batch_size", "repeats", "samples", "sampling"),
}
"""By what is counted, None for ODE time, the fields of a problem on which a unit depends."""
TOTALS: dict[Count | None, str] = {"steps": "steps_taken", "samples": "samples_drawn"}
"""By what is counted, the name of the coordinate with the numbers of it, which have no scale."""
LENGTHS: dict[Count | None, str] = {
    None: "1",
    "steps": "gamma/(p*d)",
    "samples": "gamma/(p*d)*repeats/batch_size",
}
"""By what is counted, its ODE time, an expression: of a step, and of one sample of those drawn for steps."""


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
        """Return the names on which the unit depends: of its scale, and fields among the `grid_names`."""
        scale = frozenset() if self.scale is None else self.scale.names
        return scale | frozenset(FIELDS[self.count]).intersection(grid_names)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of recording times."""
        return time_attributes(self.count, None if self.scale is None else self.scale.text)

    def lengths(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[float]:
        """Return the unit in ODE time at `count` points.

        InputError unless it is positive, and if times that must be whole steps are not.
        """
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
        """Return the unit in ODE time at point `at`, where it is `scale` steps or samples."""
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
        """Raise InputError if a time that must be whole steps is none at point `at`, where a unit is `steps` steps.

        samples : words for the samples of a step, for the message.
        """
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
        """Return the values at point `at` of what the unit depends on, in words: "d=100, p=4"."""
        scale = frozenset() if self.scale is None else self.scale.names
        names = scale | ({"batch_size", "repeats"} if self.count == "samples" else set())
        return ", ".join(f"{name}={columns[name][at]}" for name in sorted(names.intersection(columns)))
