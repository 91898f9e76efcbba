"""The headlines of an analysis: its main numbers with their intervals, in words, for the end of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.simulation.labels import time_text
from sweeplib.statistics.lost_runs import has_run_at

MOST = 3
"""The number of points that are put into words at the end of a command."""

EDGE = "the interval ends at the edge of the scan"
"""What is said of an optimum that may lie beyond the values of the axis that were run (`at_edge` of the analysis)."""
MOST_DECIMALS, LARGEST = 8, 1e15
"""The most decimals of a number, and the largest one, without an exponent."""
BEYOND = ": the truth may lie beyond"
"""What a report adds to it."""


@dataclass(frozen=True)
class Headline:
    """The main number of an analysis in words: its values at the first points, and what is to be said of the others.

    title : the name of the number. interval : what the brackets are, in words.
    inside : value with its interval, place, dynamics, in words, of the first points whose interval ends inside the
    scan.
    others : the value and the dynamics of each further one.
    decided, flagged, bare, points : how many points have an interval or a flag, have a flag of the analysis that the
    interval does not hold, have a value without an interval, and how many there are, of all `dynamics` (a number).
    why : what the flag says, in words. has_value : whether any point has a value. needs : what a value and its interval
    need, in words.
    """

    title: str
    interval: str
    inside: list[tuple[str, str, str]]
    others: list[tuple[float, str]]
    flagged: int
    why: str
    decided: int
    bare: int
    points: int
    has_value: bool
    needs: str
    dynamics: int = 1

    @property
    def lines(self) -> list[str]:
        """The lines at the end of a command: one a point, then one for each kind of the others."""
        lines = [f"{self.title} {value}{_at(place)}{_enclosed(dynamics)}" for value, place, dynamics in self.inside]
        if self.others:
            points = "point" if len(self.others) == 1 else "points"
            lines.append(f"{self.title}: {len(self.others)} more {points} in the report")
        if self.flagged:
            lines.append(f"{self.title}: at {self.flagged} of {self.decided} points {self.why}")
        needed = f"; it needs {self.needs}" if self.needs else ""
        if self.bare:
            lines.append(f"{self.title}: no interval at {self.bare} of {self.points} points{needed}")
        return lines if self.has_value else [f"{self.title}: known at none of {self.points} points{needed}"]

    @property
    def text(self) -> str:
        """The sentences of a report."""
        needed = f", which needs {self.needs}" if self.needs else ""
        if not self.has_value:
            return f"The {self.title} is known at none of {self.points} points{needed}."
        where = " inside of the scan" * (self.why == EDGE and self.flagged > 0)
        sentences = self._values() if self.inside else [f"The {self.title} has no interval{where}."]
        of_all = " of all dynamics" if self.dynamics > 1 else ""
        if self.flagged:
            why = self.why + BEYOND * (self.why == EDGE)
            sentences.append(f"At {self.flagged} of {self.decided} points{of_all} {why}.")
        if self.bare:
            sentences.append(f"At {self.bare} of {self.points} points{of_all} it has no interval{needed}.")
        return " ".join(sentences)

    def _values(self) -> list[str]:
        """Return the sentences of the values: of the dynamics of the first ones, then of each further one."""
        runs = {dynamics for _, _, dynamics in self.inside}
        common = next(iter(runs)) if len(runs) == 1 else ""
        of = "" if common or runs == {""} else " for {}"
        values = [f"{value}{_at(place)}{of.format(run)}" for value, place, run in self.inside]
        apart = []
        for run in dict.fromkeys(dynamics for _, dynamics in self.others):
            numbers = [number for number, dynamics in self.others if dynamics == run]
            if run in runs:
                values.append(f"{_range(numbers)} at {_count(numbers, 'more ')}{of.format(run)}")
            else:
                apart.append(f"For {run} it is {_range(numbers)} at {_count(numbers)}.")
        listed = values[0] if len(values) == 1 else f"{'; '.join(values[:-1])}; and {values[-1]}"
        return [f"The {self.title}{f' of {common}' * bool(common)} is {listed} (brackets: {self.interval}).", *apart]


def _range(numbers: list[float]) -> str:
    """Return the least and the greatest number in words, with digits that tell them apart, five of each at most."""
    low, high = min(numbers), max(numbers)
    # two digits of the smaller number, and one of their difference
    widths = (width for width in (10.0 * (high - low), abs(low), abs(high)) if width > 0.0)
    texts = _texts((low, high), min(widths, default=0.0))
    return texts[0] if texts[0] == texts[1] else f"between {texts[0]} and {texts[1]}"


def _count(numbers: list[float], more: str = "") -> str:
    return f"{len(numbers)} {more}point{'s' * (len(numbers) > 1)}"


def headline(
    result: xr.Dataset,
    name: str,
    most: int = MOST,
    words: Callable[[xr.DataArray, xr.DataArray], str] | None = None,
    dataset: xr.Dataset | None = None,
) -> Headline:
    """Return what is to be said of the variable `name` of the `result` of an analysis, with its `_low` and `_high`.

    Stochastic dynamics come first. A point that the rest are compared with, with an interval of no width, is left out.
    The attribute `needs` of the variable says what an interval needs, and `bound` which flag says that it does not
    hold; unless it has a `bound_side`: then the value is a bound, as its name says.

    most : the number of points in words. words : a function of a coordinate of a point, and of the whole coordinate,
    that puts the first into words, by default as a config does. dataset : points at which it has no runs do not count.
    """
    run = None if dataset is None else has_run_at(result[name], dataset)
    attrs = result[name].attrs
    flag = "" if "bound_side" in attrs else str(attrs.get("bound", ""))
    points = _points(result, name, run, flag)
    decided = [point for point in points if point[f"{name}_low"] < point[f"{name}_high"] or point.get(flag)]
    # where no point has a width, as of deterministic dynamics, none is one that others are compared with
    decided = decided or [point for point in points if point[f"{name}_low"] == point[f"{name}_high"]]
    inside = [point for point in decided if not point.get(flag)]
    inside.sort(key=lambda point: not _is_noisy(point))
    place = partial(_place, result, worded=words or _as_in_config)
    return Headline(
        title=str(attrs["long_name"]),
        interval=interval_of(result),
        inside=[(_value(point, name), *place(point)) for point in inside[:most]],
        others=[(point[name].item(), place(point)[1]) for point in inside[most:]],
        flagged=len(decided) - len(inside),
        why=EDGE if flag in ("", "at_edge") else str(result[flag].attrs["reason"]),
        decided=len(decided),
        bare=sum(bool(np.isfinite(point[name]) & np.isnan(point[f"{name}_low"])) for point in points),
        points=len(points),
        has_value=bool(result[name].notnull().any()),
        needs=str(attrs.get("needs", "")),
        dynamics=len({place(point)[1] for point in points}),
    )


def interval_of(result: xr.Dataset) -> str:
    """Return the meaning of the intervals of an analysis: its attribute `interval`, or its `confidence`."""
    confidence = result.attrs.get("confidence")
    return str(result.attrs.get("interval", "interval" if confidence is None else f"{100 * confidence:g} % interval"))


def undecided_ends(ds: xr.Dataset) -> list[str]:
    """Return a line about each recorded number whose last value is, in some runs, within the error recorded with it."""
    lines = []
    for error in ds.data_vars.values():
        name = error.attrs.get("error_of")
        if name in ds and set(error.dims) == {*ds["status"].dims, "time"}:
            last, bound = ds[name].isel(time=-1), error.isel(time=-1)
            if count := int((abs(last) <= bound).sum()):
                total = int((last.notnull() & bound.notnull()).sum())
                line = f"{count:,} of {total:,} runs end at or below its error, {error.name}"
                lines.append(f"{ds[name].attrs['long_name']}: {line}")
    return lines


def _value(point: xr.Dataset, name: str) -> str:
    """Return a number with its interval, if that is wider than the digits shown."""
    best, low, high = _rounded_variable(point, name)
    return f"{best} [{low}, {high}]" if low != high else best


def number_with_interval(point: xr.Dataset, name: str) -> str:
    """Return a number with its interval, `0.0948 [0.0904, 0.0992]`, or without one, `0.095 (no interval)`."""
    best, low, high = _rounded_variable(point, name)
    return f"{best} {interval_text(low, high)}"


def interval_text(low: str, high: str) -> str:
    """Return the text of an interval between the texts of two numbers, which are "nan" if there is none."""
    return "(no interval)" if "nan" in (low, high) else f"[{low}, {high}]"


def _rounded_variable(point: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the variable `name` of one point, and the ends of its interval, rounded."""
    return rounded_interval(*(point[f"{name}{end}"].item() for end in ("", "_low", "_high")))


def rounded_interval(best: float, low: float, high: float) -> Iterator[str]:
    """Yield the text of the three numbers, to two digits of the interval's width and at most five digits of the first.

    Without an interval, whose ends are NaN, they have two digits of the number.
    """
    return iter(_texts((best, low, high), high - low if np.isfinite(high - low) else abs(best)))


def _texts(numbers: Sequence[float], width: float) -> list[str]:
    """Return numbers to two digits of a width, and at most five of the first; whole ones if that is 0 or none.

    They have an exponent where they need more than MOST_DECIMALS, or are beyond LARGEST.
    """
    if numbers[0] == width == 0.0 or not np.isfinite(numbers[0]):
        return [f"{number:.0f}" for number in numbers]
    digits = [max(number, np.finfo(float).tiny) for number in (width, abs(numbers[0]))]
    decimals = int(min(np.array([1, 4]) - np.floor(np.log10(digits))))
    if decimals > MOST_DECIMALS or any(LARGEST < abs(number) < np.inf for number in numbers):
        return [f"{round(number, decimals):.15g}" for number in numbers]
    return [f"{number:.{max(0, decimals)}f}" for number in numbers]


def _points(result: xr.Dataset, name: str, run: xr.DataArray | None, flag: str) -> list[xr.Dataset]:
    """Return a dataset for each point with a value or a run, with the variable `name`, its interval and its `flag`.

    run : the points that have runs; None: all have.
    """
    dims = result[name].dims
    parts = result[[variable for variable in (name, f"{name}_low", f"{name}_high", flag) if variable in result]]
    counts = np.ones(result[name].shape, bool) if run is None else (run | result[name].notnull()).values
    places = map(tuple, np.argwhere(counts))
    return [parts.isel(dict(zip(dims, place, strict=True))) for place in places]


def _is_noisy(point: xr.Dataset) -> bool:
    return "dynamics" in point.coords and is_stochastic(str(point["dynamics"].item()))


def _as_in_config(coordinate: xr.DataArray, _: xr.DataArray) -> str:
    """Return a coordinate of a point as a config has it, `p = 4`; the name alone of a dynamics."""
    value, attrs = coordinate.item(), coordinate.attrs
    if attrs.keys() & {"clock", "scale"}:
        return f"{'time = ' if 'clock' not in attrs else ''}{time_text(value, attrs)}"
    return str(value) if coordinate.name == "dynamics" else f"{coordinate.name} = {_text(value)}"


def _place(
    result: xr.Dataset, point: xr.Dataset, worded: Callable[[xr.DataArray, xr.DataArray], str]
) -> tuple[str, str]:
    """Return where a point is, in words: its coordinates along dimensions of several values, and its dynamics.

    worded : puts a coordinate of the point, and the whole coordinate, into words.
    """
    dims = [str(dim) for dim in result.dims if dim in point.coords and result.sizes[dim] > 1]
    values = ", ".join(worded(point[dim], result[dim]) for dim in dims if dim != "dynamics")
    return values, worded(point["dynamics"], result["dynamics"]) if "dynamics" in point.coords else ""


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _enclosed(dynamics: str) -> str:
    return f" ({dynamics})" if dynamics else ""


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
