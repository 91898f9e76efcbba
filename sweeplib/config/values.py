"""The values of an axis: a list, or first, last and how many.

Spaced values are worked out in decimal arithmetic and rounded to a double once: 0.03 + 0.01·k is 0.04 and never
0.039999999999999994, on any machine, and a grid that grows keeps the values that it shares with the old one.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from sweeplib.errors import InputError

Number = int | float
MAX_VALUES = 1_000_000
_DIGITS = Context(prec=50)


def linspace(first: Number, last: Number, count: int) -> list[Number]:
    """Return `count` numbers from `first` to `last`, equally far apart."""
    return [float(value) for value in _even(first, last, count)]


def logspace(first: Number, last: Number, count: int) -> list[Number]:
    """Return 10**x for `count` equally spaced exponents x from `first` to `last`."""
    return [_number(_power(Fraction(10), exponent)) for exponent in _even(first, last, count)]


def geomspace(first: Number, last: Number, count: int) -> list[Number]:
    """Return `count` numbers from `first` to `last`, each the same multiple of the one before."""
    if first <= 0 or last <= 0:
        raise InputError("geomspace needs positive ends", value=[first, last, count])
    if count == 1:
        return [float(first)]
    start, ratio = _exact(first), _exact(last) / _exact(first)
    inner = [_number(_decimal(start) * _power(ratio, Fraction(i, count - 1))) for i in range(1, count - 1)]
    return [float(first), *inner, float(last)]


def stepped(first: Number, last: Number, step: Number = 1) -> list[Number]:
    """Return `first`, `first + step`, ... below `last`, as Python's range: `last` is not among them."""
    if step == 0:
        raise InputError("range needs a step other than 0", value=[first, last, step])
    count = max(0, -((_exact(first) - _exact(last)) // _exact(step)))
    _refuse_count(int(count), [first, last, step])
    whole = all(isinstance(number, int) for number in (first, last, step))
    values = (_exact(first) + i * _exact(step) for i in range(int(count)))
    return [int(value) if whole else float(value) for value in values]


SPACINGS: dict[str, tuple[Callable[..., list[Number]], str]] = {
    "linspace": (linspace, "[first, last, count]"),
    "logspace": (logspace, "[first exponent, last exponent, count]"),
    "geomspace": (geomspace, "[first, last, count]"),
    "range": (stepped, "[first, end, step], the end left out"),
}
EXPECTED = "a list, or one of " + ", ".join(f"{{{name}: {usage}}}" for name, (_, usage) in SPACINGS.items())


def values(spec: Any, key: str) -> list[Any]:
    """Return the values that `spec` stands for: those of a list as they are, or those of a spacing."""
    if isinstance(spec, list):
        return spec
    if not isinstance(spec, dict):
        raise InputError("not a list of values", key=key, value=spec, expected=EXPECTED)
    if len(spec) != 1:
        raise InputError("not one spacing", key=key, value=spec, expected=EXPECTED)
    [(name, arguments)] = spec.items()
    if name not in SPACINGS:
        raise InputError("unknown spacing", key=key, value=name, choices=SPACINGS)
    return _spaced(name, arguments, f"{key}.{name}")


def _spaced(name: str, arguments: Any, key: str) -> list[Number]:
    function, usage = SPACINGS[name]
    lengths = (2, 3) if name == "range" else (3,)
    if not isinstance(arguments, list) or len(arguments) not in lengths:
        raise InputError(f"wrong arguments of {name}", key=key, value=arguments, expected=usage)
    for place, number in enumerate(arguments):
        if isinstance(number, bool) or not isinstance(number, int | float) or number - number != 0:
            expected = "a finite number"
            raise InputError("not a number", key=f"{key}[{place}]", value=number, expected=expected)
    if name != "range":
        _refuse_count(arguments[2], arguments, f"{key}[2]")
    try:
        return function(*arguments)
    except (OverflowError, ArithmeticError):
        raise InputError("beyond the range of numbers", key=key, value=arguments) from None
    except InputError as error:
        raise error.within(prefix=key) from None


def _refuse_count(count: Any, arguments: list[Any], key: str | None = None) -> None:
    if not isinstance(count, int) or not 1 <= count <= MAX_VALUES:
        expected = f"a whole number of values, 1 to {MAX_VALUES}"
        raise InputError("wrong number of values", key=key, value=count if key else arguments, expected=expected)


def _even(first: Number, last: Number, count: int) -> list[Fraction]:
    start, length = _exact(first), _exact(last) - _exact(first)
    return [start + length * Fraction(i, max(count - 1, 1)) for i in range(count)]


def _exact(number: Number) -> Fraction:
    """Return the decimal number that the shortest text of `number` says."""
    return Fraction(repr(number))


def _decimal(number: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))


def _power(base: Fraction, exponent: Fraction) -> Decimal:
    return _DIGITS.power(_decimal(base), _decimal(exponent))


def _number(value: Decimal) -> float:
    """Return the double nearest to `value`, trusting all but the last five of its digits."""
    return float(Context(prec=_DIGITS.prec - 5).plus(value))
