"""The values of an axis, and the seeds: a list, or a spacing with first value, last value and count.

Spaced values are computed in decimal arithmetic and rounded to a double once: 0.03 + 0.01·k is 0.04 and never
0.039999999999999994, on any machine, and a larger grid keeps the values that it shares with a smaller one.

A spec is a list of values or a spacing, a mapping with one name and its arguments: `{linspace: [0, 12, 61]}`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.base.budget import NAME_LENGTH, SEEDS, VALUES, refuse_more
from sweeplib.engine.files.strict_yaml import flow
from sweeplib.errors import InputError, errors_under

Number = int | float
_DIGITS, _TRUSTED = Context(prec=70), Context(prec=45)
"""Decimal arithmetic with 70 digits, and the rounding of its results to the 45 digits that are right after products."""
MAX_SEED = 2**32
"""Seeds are below this number."""
_ROUNDING = 2.0**-52
"""The distance from 1 to the next double."""


def linspace(first: Number, last: Number, count: int) -> list[Number]:
    """Return `count` equally spaced numbers from `first` to `last`."""
    return _even(_exact(first), (_exact(last) - _exact(first)) / max(count - 1, 1), count)


def logspace(first: Number, last: Number, count: int) -> list[Number]:
    """Return 10**x for `count` equally spaced exponents x from `first` to `last`."""
    step = (_exact(last) - _exact(first)) / max(count - 1, 1)
    return _geometric(_power(Fraction(10), _exact(first)), _power(Fraction(10), step), count)


def geomspace(first: Number, last: Number, count: int) -> list[Number]:
    """Return `count` numbers from `first` to `last` with a constant ratio."""
    if first <= 0 or last <= 0:
        raise InputError("geomspace needs positive ends", value=[first, last, count])
    if count == 1:
        return [float(first)]
    ratio = _power(_exact(last) / _exact(first), Fraction(1, count - 1))
    return [float(first), *_geometric(_decimal(_exact(first)), ratio, count - 1)[1:], float(last)]


def stepped(first: Number, last: Number, step: Number = 1) -> list[Number]:
    """Return `first`, `first + step`, ... below `last`, which is excluded, as Python's range."""
    count = _steps(first, last, step)
    _refuse_count(count, [first, last, step], SEEDS)
    if all(isinstance(number, int) for number in (first, last, step)):
        return list(range(int(first), int(last), int(step)))
    return _even(_exact(first), _exact(step), count)


SPACINGS: dict[str, tuple[Callable[..., list[Number]], str]] = {
    "linspace": (linspace, "[first, last, count]"),
    "logspace": (logspace, "[first exponent, last exponent, count]"),
    "geomspace": (geomspace, "[first, last, count]"),
    "range": (stepped, "[first, end, step], end excluded"),
}
"""The function of each spacing, and what its arguments are."""
EXPECTED = "a list, or one of " + ", ".join(f"{{{name}: {usage}}}" for name, (_, usage) in SPACINGS.items())
"""What is expected of a spec."""
GEOMETRIC = {"logspace", "geomspace"}
"""The spacings with a constant ratio."""
CLOSE = 1e-9
"""The part of a spacing, or of a horizon, by which times that are the same may differ."""


def plain(value: Any) -> Any:
    """Return a value of Python as YAML has it: lists, mappings and Python's numbers for arrays, ranges and NumPy's.

    InputError for an array with masked values, or of a type that no key has. NumPy's rounding errors are not kept. An
    array that is evenly or geometrically spaced has the values of that spacing in a YAML file. Another number is the
    decimal of 12 digits at most that it differs from by rounding, if there is one; one of single precision is the
    shortest decimal that it is nearest to. Python's own numbers stay as they are.
    """
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a table of pandas
        return {str(name): plain(value[name].to_numpy()) for name in value.columns}
    array = getattr(value, "values", value)  # of xarray and pandas
    if hasattr(array, "to_numpy"):  # a type of pandas that may lack values
        array = array.to_numpy()
    if isinstance(array, np.ndarray | np.generic):
        return _without_rounding(_complete(array))
    if isinstance(value, Mapping):
        return {name: _plain_under(str(name), content) for name, content in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(content) for content in value]
    return str(value) if isinstance(value, Path) else value


def _plain_under(key: str, value: Any) -> Any:
    """Return `plain(value)`, whose InputError has the key."""
    with errors_under(key):
        return plain(value)


def _complete(array: Any) -> Any:
    """Return an array of what a config can hold; InputError for one with masked values, or of another type."""
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.getmaskarray(array).any():
            expected = "the values alone, such as `array.compressed()`"
            raise InputError("an array with masked values", value=str(array), expected=expected)
        array = array.data
    if array.dtype.kind not in "biufUSO":
        raise InputError(f"an array of type {array.dtype}", value=str(array), expected="numbers, names or true/false")
    return array


def _without_rounding(array: Any) -> Any:
    """Return an array of floats as lists of the short decimals, or the spacings, of which it is the rounding."""
    if array.dtype.kind != "f":
        return array.tolist()
    if not array.ndim:
        number = float(str(array))
        short = float(f"{number:.12g}")
        return short if abs(short - number) <= 4 * _ROUNDING * abs(number) else number
    numbers = [_without_rounding(element) for element in array]
    return (_spacing_values(numbers, array) if array.ndim == 1 and len(array) > 2 else None) or numbers


def _spacing_values(numbers: list[float], array: Any) -> list[Number] | None:
    """Return the values of the spacing that an array follows but for rounding, None if it follows none.

    numbers : the numbers of the array without rounding errors.
    """
    if not np.isfinite(array).all():
        return None
    relative = max(64 * _ROUNDING, np.finfo(array.dtype).eps)
    even = linspace(numbers[0], numbers[-1], len(numbers))
    if np.allclose(array, even, rtol=0.0, atol=relative * np.abs(array).max()):
        return even
    if min(numbers[0], numbers[-1]) <= 0.0:
        return None
    geometric = geomspace(numbers[0], numbers[-1], len(numbers))
    return geometric if np.allclose(array, geometric, rtol=relative, atol=0.0) else None


def count(spec: Any) -> int:
    """Return the number of values of `spec` without computing them; 0 if it is neither a list nor a spacing."""
    if isinstance(spec, list):
        return len(spec)
    [(name, arguments)] = spec.items() if isinstance(spec, dict) and len(spec) == 1 else [("", [])]
    if not isinstance(arguments, list) or not all(map(is_number, arguments)):
        return 0
    if name == "range" and len(arguments) in (2, 3) and arguments[2:] != [0]:
        return _steps(*arguments)
    return int(arguments[2]) if len(arguments) == 3 else 0


def values(spec: Any, key: str, most: int = VALUES) -> list[Any]:
    """Return the values of `spec`, a list or a spacing, at most `most`; InputError, with `key`, if it is invalid."""
    if isinstance(spec, list):
        return spec
    if not isinstance(spec, dict):
        raise InputError("not a list of values", key=key, value=spec, expected=EXPECTED)
    if len(spec) != 1:
        raise InputError("not one spacing", key=key, value=spec, expected=EXPECTED)
    [(name, arguments)] = spec.items()
    if name not in SPACINGS:
        if isinstance(arguments, list) and name in ("values", "list"):
            raise InputError("a list has no name", key=key, value=spec, expected=f"the list alone: {flow(arguments)}")
        raise InputError("unknown spacing", key=key, value=name, expected=EXPECTED, choices=SPACINGS)
    return _values_of_spacing(name, arguments, f"{key}.{name}", most)


def up_to(horizon: float | None, times: Sequence[float], spec: Any) -> tuple[float, ...]:
    """Return the times up to a horizon, which is the last; those of a spacing go on to one that is later.

    All times of a horizon are times of a longer one, but for the horizon itself if it is not one of the spacing.

    times : ascending times, the values of `spec`.
    """
    if horizon is None:
        return tuple(times)
    last, before = times[-1], times[-2] if len(times) > 1 else times[-1]
    later = list[float]()
    if isinstance(spec, dict) and last > before and (before > 0.0 or not GEOMETRIC & spec.keys()):
        geometric = GEOMETRIC & spec.keys()
        number = math.log(horizon / last) / math.log(last / before) if geometric else (horizon - last) / (last - before)
        if number + len(times) > VALUES:
            expected = f"an earlier one, of at most {VALUES:,} times"
            raise InputError("too many times", key="horizon", value=horizon, expected=expected)
        places = range(1, math.ceil(number - CLOSE))
        later = [last * (last / before) ** k if geometric else last + k * (last - before) for k in places]
    earlier = [time for time in times if time < horizon * (1.0 - CLOSE)]
    return (*earlier, *(float(f"{time:.12g}") for time in later), float(horizon))


def ascending(numbers: Sequence[Any], key: str, most: float | None, sort: bool = False) -> tuple[float, ...]:
    """Return finite numbers from 0, or strictly between 0 and `most`; InputError, below `key`, for others.

    They must ascend, or are put in ascending order if `sort`.
    """
    if not numbers and most is None:
        raise InputError("no times", key=key, value=list(numbers), expected="at least one")
    for place, number in enumerate(numbers):
        if not is_number(number) or not (number >= 0.0 if most is None else 0.0 < number < most):
            requirement = "a finite number from 0" if most is None else f"a number between 0 and {most:g}"
            raise InputError("not a valid value", key=f"{key}[{place}]", value=number, expected=requirement)
    ordered = sorted(numbers) if sort else list(numbers)
    for place in range(1, len(ordered)):
        if not ordered[place] > ordered[place - 1]:
            requirement = f"more than {ordered[place - 1]}, the one before" if not sort else "different values"
            raise InputError("not ascending", key=f"{key}[{place}]", value=ordered[place], expected=requirement)
    return tuple(map(float, ordered))


def seeds_in(spec: Any, most: int = SEEDS) -> tuple[int, ...]:
    """Return the seeds that a config gives: their number, a list, or a spacing."""
    if isinstance(spec, int) and not isinstance(spec, bool):
        if not 1 <= spec <= SEEDS:
            expected = f"1 or more, {SEEDS} at most" if spec > SEEDS else "1 or more"
            raise InputError("not a number of seeds", key="seeds", value=spec, expected=expected)
        return tuple(range(spec))
    expected = f"different whole numbers from 0 to {MAX_SEED - 1}, one at least"
    if not isinstance(spec, list | dict):
        forms = "a whole number, a list, a spacing, or an expression"
        raise InputError("not seeds", key="seeds", value=spec, expected=forms)
    seeds = values(spec, "seeds", most)
    refuse_more("seeds", len(seeds), most, key="seeds", instead="fewer, or several sweeps")
    for place, seed in enumerate(seeds):
        whole = isinstance(seed, int | float) and not isinstance(seed, bool) and seed == seed // 1
        if not whole or not 0 <= seed < MAX_SEED:
            raise InputError("not a seed", key=f"seeds[{place}]", value=seed, expected=expected)
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError("not seeds", key="seeds", value=seeds, expected=expected)
    return tuple(sorted(map(int, seeds)))


def _values_of_spacing(name: str, arguments: Any, key: str, most: int) -> list[Number]:
    """Return the values of a spacing by its arguments; InputError, with their key, for wrong ones."""
    function, usage = SPACINGS[name]
    lengths = (2, 3) if name == "range" else (3,)
    if not isinstance(arguments, list) or len(arguments) not in lengths:
        raise InputError(f"wrong arguments of {name}", key=key, value=arguments, expected=usage)
    for place, number in enumerate(arguments):
        if not is_number(number):
            expected = "a finite number"
            raise InputError("not a number", key=f"{key}[{place}]", value=number, expected=expected)
    if name != "range":
        _refuse_count(arguments[2], arguments[2], most, f"{key}[2]")
    try:
        with errors_under(key):
            if name == "range":
                _refuse_count(_steps(*arguments), arguments, most)
            return function(*arguments)
    except (OverflowError, ArithmeticError):
        raise InputError("beyond the range of numbers", key=key, value=arguments) from None


def _refuse_count(count: Any, value: Any, most: int, key: str | None = None) -> None:
    """Raise InputError, about `value`, for a number of values that is not from 1 to `most`."""
    if not isinstance(count, int) or not 1 <= count <= most:
        expected = f"a whole number of values, 1 to {most}"
        raise InputError("wrong number of values", key=key, value=value, expected=expected)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def _steps(first: Number, last: Number, step: Number = 1) -> int:
    """Return the number of values of a range, whose `last` is excluded; InputError for a step of 0."""
    if step == 0:
        raise InputError("range needs a step other than 0", value=[first, last, step])
    return max(0, -((_exact(first) - _exact(last)) // _exact(step)))


def _even(first: Fraction, step: Fraction, count: int) -> list[Number]:
    """Return the doubles nearest to `first`, `first + step`, ...: quotients of integers, each rounded once."""
    start, length = first.numerator * step.denominator, step.numerator * first.denominator
    denominator = first.denominator * step.denominator
    return [(start + i * length) / denominator for i in range(count)]


def _geometric(first: Decimal, ratio: Decimal, count: int) -> list[Number]:
    """Return the doubles nearest to `first`, `first * ratio`, ...: products of many digits, each rounded once."""
    numbers, value = [], first
    for _ in range(count):
        numbers.append(float(_TRUSTED.plus(value)))
        value = _DIGITS.multiply(value, ratio)
    return numbers


def _exact(number: Number) -> Fraction:
    """Return the decimal number in the shortest text of `number`, exactly."""
    return Fraction(repr(number))


def _decimal(number: Fraction) -> Decimal:
    """Return a number with the digits of `_DIGITS`."""
    return _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))


def _power(base: Fraction, exponent: Fraction) -> Decimal:
    """Return base**exponent with the digits of `_DIGITS`."""
    return _DIGITS.power(_decimal(base), _decimal(exponent))


OPTIONS = "a mapping from all names to their options: `{first: {option: value}, second: {}}`"
"""What is expected of names with options."""


def named_options(value: Any) -> Any:
    """Return a mapping from names to options, from a list of names or a mapping in which options may be null.

    InputError for a name that is too long for the files that are called after it.
    """
    for name in value if isinstance(value, dict | list) else ():
        if isinstance(name, str) and len(name.encode(errors="replace")) > NAME_LENGTH:
            raise InputError("too long a name for files", value=name, expected=f"at most {NAME_LENGTH} bytes")
    if isinstance(value, dict):
        return {name: {} if options is None else options for name, options in value.items()}
    if not isinstance(value, list):
        raise InputError("not names", value=value, expected=f"a list of names, or {OPTIONS}")
    names: dict[str, Any] = {}
    for place, name in enumerate(value):
        if not isinstance(name, str):
            raise InputError("not a name", key=f"[{place}]", value=name, expected=f"a name; with options, {OPTIONS}")
        if name in names:
            raise InputError("name given twice", key=f"[{place}]", value=name)
        names[name] = {}
    return names
