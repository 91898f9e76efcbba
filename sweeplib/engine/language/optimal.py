"""`optimal(6)`: the schedule that minimises the risk of the ODE at the last time, among those of 6 knots."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sweeplib.engine.language.reader import Reader
from sweeplib.engine.language.schedules import schedule
from sweeplib.errors import InputError

NAME = "optimal"
MOST_KNOTS, MOST_STARTS, STARTS = 32, 1000, 4
"""The largest numbers of knots and of starts, and the number of starts if a config names none."""
_CALL = re.compile(rf"\s*{NAME}\s*\(")


@dataclass(frozen=True)
class OptimalSchedule:
    """Linear between `knots` equally spaced times, zero and the last among them; a constant with one knot.

    It minimises the mean risk of the ODE from the starts of the seeds 0 to `starts` − 1.
    """

    knots: int
    starts: int = STARTS

    @classmethod
    def of(cls, text: str) -> "OptimalSchedule | None":
        """Return the schedule that `optimal(knots)` or `optimal(knots, starts)` asks for; None for other texts."""
        return cls(*_Reader(text).numbers()) if _CALL.match(text) else None

    @property
    def text(self) -> str:
        """Return its one spelling."""
        return f"{NAME}({self.knots})" if self.starts == STARTS else f"{NAME}({self.knots}, {self.starts})"

    def through(self, rates: Iterable[float], last: float) -> str:
        """Return the formula of the schedule that has given `rates` ξ (knots,) at its knots, the last knot at `last`.

        It is the first rate plus a term (change of slope) max(0, t − knot) for each knot but the last, and never
        negative.
        """
        values = [float(rate) for rate in rates]
        width = last / max(1, self.knots - 1)
        # before the first knot it is constant
        slopes = [0.0, *((after - rate) / width for rate, after in pairwise(values))]
        turns = [
            f"({after - slope!r})*max(0, t - {place * width!r})"
            for place, (slope, after) in enumerate(pairwise(slopes))
        ]
        return schedule(f"max(0, {' + '.join([repr(values[0]), *turns])})").text


def canonical_schedule(text: str) -> str:
    """Return the one spelling of a schedule, which is given as a formula or as `optimal(...)`."""
    optimal = OptimalSchedule.of(text)
    return schedule(text).text if optimal is None else optimal.text


class _Reader(Reader):
    """Reads the numbers of `optimal(knots, starts)`."""

    kind = "schedule"
    allowed = f"`{NAME}(knots)` or `{NAME}(knots, starts)`, as in `{NAME}(6)`"

    def numbers(self) -> list[int]:
        """Return the number of knots and, if it is given, that of starts."""
        match self.tree:
            case ast.Call(args=[_, *others] as arguments, keywords=[]) if len(others) < 2:
                bounds = ("knots", MOST_KNOTS), ("starts", MOST_STARTS)
                return [self._whole(node, *bound) for node, bound in zip(arguments, bounds, strict=False)]
        raise InputError("not an optimal schedule", value=self.text, expected=self.allowed)

    def _whole(self, node: ast.expr, name: str, most: int) -> int:
        """Return the number of knots or starts in a part of the text; InputError unless it is from 1 to `most`."""
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int | float) or isinstance(value, bool) or not (1 <= value <= most and value % 1 == 0):
            raise self.refused(node, f"not a number of {name}", f"a whole number from 1 to {most}")
        return int(value)
