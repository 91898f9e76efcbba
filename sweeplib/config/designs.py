"""Designs of points that are no grid: random, Latin and Sobol points in ranges of several parameters.

The points are a function of the root seed, the kind and the ranges. Those of `random` and `sobol` are the first ones of
a sequence, so that a sweep with more points has those of before; all points of `latin` change with their number.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.config.values import is_number
from sweeplib.engine.base.budget import ROWS, refuse_more
from sweeplib.errors import InputError

DESIGNS = ("sobol", "latin", "random")
"""The kinds of designs; each is a key below `points` whose value is the number of points."""
WHOLE = "a whole number of points, at least 1"
"""What is expected of a number of points."""
RANGES = {
    "uniform": "{uniform: [1, 3]}",
    "loguniform": "{loguniform: [0.01, 1]}",
    "integers": "{integers: [1, 100]}",
    "choices": "{choices: [a, b]}",
}
"""The ranges of a parameter, with an example of each."""


MOST_INTEGER = 2**53
"""Up to it a float is each whole number."""


def is_design(points: Any) -> bool:
    """Return whether what a config has as `points` is a design."""
    return isinstance(points, Mapping) and any(kind in points for kind in DESIGNS)


def designed_columns(points: Mapping[str, Any], root_seed: int) -> dict[str, list[Any]]:
    """Return the values of each parameter at the points of a design, by name; InputError, with its key, for no design.

    points : the kind with the number of points, and a range by parameter: `{sobol: 64, gamma: {uniform: [0, 1]}}`.
    """
    kinds = [kind for kind in DESIGNS if kind in points]
    if len(kinds) > 1:
        raise InputError("two kinds of designs", key="points", value=", ".join(kinds), expected="one of them")
    kind, number = kinds[0], points[kinds[0]]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError("not a number of points", key=f"points.{kind}", value=number, expected=WHOLE)
    refuse_more("points", number, ROWS, key=f"points.{kind}", instead="several sweeps")
    if kind == "sobol" and number & (number - 1):
        near = {2 ** math.floor(math.log2(number)), 2 ** math.ceil(math.log2(number))}
        expected = f"a power of 2, such as {' or '.join(map(str, sorted(near)))}: other numbers leave gaps"
        raise InputError("not a number of Sobol points", key="points.sobol", value=number, expected=expected)
    ranges = {name: _range(f"points.{name}", points[name]) for name in sorted(map(str, points)) if name != kind}
    if not ranges:
        raise InputError("no parameters", key="points", value=dict(points), expected=f"`NAME: {RANGES['uniform']}`")
    numbers = _numbers(kind, number, len(ranges), root_seed)
    return {name: value_of(column) for (name, value_of), column in zip(ranges.items(), numbers.T, strict=True)}


def _numbers(kind: str, number: int, dims: int, root_seed: int) -> NDArray[np.float64]:
    """Return the points of a design of this kind in the unit cube: numbers (number, dims) in [0, 1)."""
    from scipy.stats import qmc

    rng = np.random.default_rng([root_seed, dims])
    if kind == "random":
        return rng.random((number, dims))
    sampler = qmc.Sobol(dims, seed=rng) if kind == "sobol" else qmc.LatinHypercube(dims, seed=rng)
    numbers: NDArray[np.float64] = sampler.random(number)
    return numbers


def _range(key: str, spec: Any) -> Callable[[NDArray[np.float64]], list[Any]]:
    """Return the function that maps numbers in [0, 1) to values in a range; InputError, at `key`, for what is no range.

    spec : the range, such as `{loguniform: [0.01, 1]}`.
    """
    expected = "one of " + ", ".join(RANGES.values())
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise InputError("not a range", key=key, value=spec, expected=expected)
    [(kind, ends)] = spec.items()
    if kind not in RANGES:
        raise InputError("no such range", key=key, value=kind, choices=RANGES)
    key = f"{key}.{kind}"
    if kind == "choices":
        if not isinstance(ends, list) or not ends:
            raise InputError("no choices", key=key, value=ends, expected=RANGES[kind])
        return lambda numbers: [ends[place] for place in (numbers * len(ends)).astype(int).tolist()]
    low, high = _ends(key, kind, ends)
    if kind == "integers":
        return lambda numbers: (low + np.floor(numbers * (high - low + 1))).astype(int).tolist()
    if kind == "uniform":
        return lambda numbers: (low + numbers * (high - low)).tolist()
    return lambda numbers: (low * np.exp(numbers * math.log(high / low))).tolist()


def _ends(key: str, kind: str, ends: Any) -> tuple[float, float]:
    """Return the ends of a range; InputError unless they are a lower and a higher number that it can have."""
    kinds = int if kind == "integers" else int | float
    numbers = isinstance(ends, list) and len(ends) == 2 and all(is_number(e) and isinstance(e, kinds) for e in ends)
    if not numbers or not ends[0] < ends[1] or (kind == "loguniform" and ends[0] <= 0):
        raise InputError("not the ends of a range", key=key, value=ends, expected=RANGES[kind])
    low, high = ends
    if kind == "integers" and max(-low, high, high - low) > MOST_INTEGER:
        raise InputError("not the ends of a range", key=key, value=ends, expected="whole numbers up to 2^53 apart")
    if kind != "integers" and not math.isfinite(high - low if kind == "uniform" else high / low):
        raise InputError("too wide a range", key=key, value=ends, expected="a finite difference and ratio of its ends")
    return low, high
