"""Labels and numbers in figures, from the attributes of coordinates and variables."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sweeplib.analysis.kit.labels import dynamics_label, labels_of_made
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.pictures.figures.kit.typeset import expression_text, name_latex, name_text

HERMITE = re.compile(r"he(\d+)")
"""The name of a normalised Hermite polynomial, with its order."""
MINUS = "\N{MINUS SIGN}"
DIGITS, MOST_DIGITS, ALL_DIGITS = 4, 6, 17
"""The significant digits of a fraction in titles and legends, those of any number, and those of any double."""


def axis_label(array: xr.DataArray) -> str:
    r"""Return 'long name symbol (units)', as far as the array has them: 'learning rate $\\gamma$'."""
    return " ".join(text for text in (_long_name(array), _beside_name(array), _unit(array)) if text)


def wrapped_label(array: xr.DataArray, width: int = 32) -> str:
    """Return the label of a long axis: the long name in lines of that width, then the symbol and the unit.

    A unit that the name says, as in `SGD steps`, is not said again.
    """
    lines = textwrap.wrap(_long_name(array), width)
    is_said = re.search(rf"\b{re.escape(str(array.attrs.get('units', '')))}\b", _long_name(array)) is not None
    unit = "" if is_said and "scale" not in array.attrs else _unit(array)
    end = " ".join(text for text in (_beside_name(array), unit) if text)
    return ("\n".join(lines) + " " + end).strip()


def short_label(array: xr.DataArray, width: int, most: int) -> tuple[str, str]:
    """Return the label of an axis, and a text "symbol: long name" for elsewhere, "" if the label has the long name.

    A long name of more than `most` lines of `width` characters has no room: the label is the symbol and the unit then.
    Without a symbol all stays in the label.
    """
    end, name = _beside_name(array), _long_name(array)
    if not end or len(textwrap.wrap(name, width)) <= most:
        return wrapped_label(array, width), ""
    return " ".join(filter(None, (end, _unit(array)))), f"{end}: {name}"


def lines_of(text: str, width: int) -> list[str]:
    """Return a text with mathematics in lines of about `width` letters, of formulas those that are seen.

    For `textwrap` each formula is a word of as many x between two control characters, which no text has.
    """
    formulas = re.findall(r"\$[^$]*\$", text)
    widths = iter("x" * len(re.sub(r"\\[a-z]+(?=[ _{])|[\\{}$^_ ]", "", formula)) for formula in formulas)
    lines = textwrap.wrap(re.sub(r"\$[^$]*\$", lambda _: f"\0{next(widths)}\1", text), width, break_long_words=False)
    originals = iter(formulas)
    return [re.sub("\0x*\1", lambda _: next(originals), line) for line in lines]


def symbol(array: xr.DataArray) -> str:
    """Return the array's symbol in mathematics, or its name if it has none."""
    return _mathematics(array) or name_text(str(array.name))


def plain_mean(mean: xr.DataArray) -> xr.DataArray:
    """Return a mean with the label of values that are not restricted, for a figure that marks those that are."""
    return mean.assign_attrs(long_name=mean.attrs["long_name"].removeprefix("restricted "))


def _attributes(array: xr.DataArray) -> Mapping[Any, Any]:
    """Return the attributes of an array, or those that it had: xarray of 2025 loses those of some coordinates."""
    return array.attrs or labels_of_made(str(array.name))


def _long_name(array: xr.DataArray) -> str:
    """Return the long name without the unit of scaled times; "" for a user's parameter that is shown as a symbol."""
    name = str(_attributes(array).get("long_name", array.name))
    if _is_own_name(array):
        return "" if name_latex(name) else name_text(name)
    return name.removesuffix(f" in units of {array.attrs['scale']}") if "scale" in array.attrs else name


def _unit(array: xr.DataArray) -> str:
    """Return the unit of an array: that of scaled times, an expression, or `units` in brackets."""
    if "scale" in array.attrs:
        return f"in units of {expression_text(array.attrs['scale'])}"
    units = array.attrs.get("units", "1")
    return f"({units})" if units not in ("1", "") else ""


def _mathematics(array: xr.DataArray) -> str:
    """Return the symbol between dollars; "" if there is none, or if it is just the name of a user's parameter."""
    symbol = _attributes(array).get("symbol", "")
    if _is_own_name(array):
        latex = name_latex(str(array.name))
        return f"${latex}$" if latex else ""
    return f"${symbol}$" if symbol and (symbol != array.name or len(symbol) == 1) else ""


def _is_own_name(array: xr.DataArray) -> bool:
    """Return whether the name, the long name and the symbol of an array are the same: a parameter of a config."""
    name, spelled = str(array.name), str(_attributes(array).get("symbol", "")).replace(r"\_", "_")
    return (
        _attributes(array).get("long_name", name) == name
        and spelled in ("", name, rf"\mathrm{{{name}}}")
        and len(name) > 1
    )


def _beside_name(array: xr.DataArray) -> str:
    """Return the symbol between dollars, but "" if it only repeats the long name."""
    name = _attributes(array).get("long_name", str(array.name))
    spelled = _attributes(array).get("symbol", "").replace(r"\_", "_") == rf"\mathrm{{{name}}}"
    return "" if spelled and not _is_own_name(array) else _mathematics(array)


def value_label(coordinate: xr.DataArray, among: xr.DataArray | None = None, digits: int = DIGITS) -> str:
    """Return a scalar coordinate and its value: '$d$ = 3000'. Dynamics and sweeps are their name alone.

    A fraction has `digits` significant digits, or more if they are needed to tell apart the values `among` which it is.
    A point of a table is the values by which those `among` which it is differ: '$d$ = 3000, $p$ = 4'. A time has its
    unit: 'after 50 $d$ samples', '$t$ = 2 $d$'.
    """
    value = coordinate.item()
    if coordinate.name == POINT and among is not None and (names := _varying(among)):
        return ", ".join(value_label(coordinate.coords[name], among.coords[name], digits) for name in names)
    if coordinate.name == "dynamics":
        return dynamics_label(value)
    if coordinate.name == SWEEP:
        return str(value)
    if coordinate.name in NAMED:
        return f"{symbol(coordinate)} = {NAMED[str(coordinate.name)](value)}"
    if isinstance(value, str):
        escaped = value.replace("$", r"\$")  # between two dollars matplotlib reads mathematics
        return f"{symbol(coordinate)} = {escaped}"
    digits = digits_apart(coordinate if among is None else among, digits)
    is_fraction = isinstance(value, float) and not (value.is_integer() and abs(value) < 10**MOST_DIGITS)
    rounded = float(f"{value:.{digits}g}") if is_fraction else value
    if coordinate.attrs.keys() & {"clock", "scale"}:
        return _time_label(coordinate, rounded)
    text = number(rounded, max(digits, MOST_DIGITS))
    return f"{symbol(coordinate)} = {text.replace('-', MINUS)}"


def row_label(row: xr.DataArray, among: xr.DataArray) -> str:
    """Return the parameters by which a row of a table of points differs from others, a line each."""
    return value_label(row, among).replace(", ", "\n")


def _time_label(time: xr.DataArray, value: float) -> str:
    """Return a time in its unit: '$t$ = 2 $d$' in ODE time, 'after 50 $d$ samples' where samples are counted."""
    scale, count = time.attrs.get("scale"), time.attrs.get("clock")
    text = number(value) if scale is None or value == 0.0 else expression_text(f"{value!r}*({scale})")
    text = expression_text(scale) if scale is not None and value == 1.0 else text
    if count is None:
        return f"{symbol(time)} = {text}"
    return f"after {text} {count.removesuffix('s') if value == 1.0 and scale is None else count}"


def _varying(points: xr.DataArray) -> list[str]:
    """Return the coordinates by which points of a table differ, but for those of rounds and the unit of the times."""
    along = {str(name): values for name, values in points.coords.items() if values.dims == points.dims}
    return [
        name
        for name, values in along.items()
        if name not in (POINT, "round", "reason", "clock") and len(set(map(repr, values.values.tolist()))) > 1
    ]


def digits_apart(values: xr.DataArray, least: int) -> int:
    """Return the least number of significant digits, from `least` on, with which different values have other texts."""
    different = set(values.values.ravel().tolist()) if values.dtype.kind in "iuf" else set()
    enough = (n for n in range(least, ALL_DIGITS) if len({f"{value:.{n}g}" for value in different}) == len(different))
    return next(enough, ALL_DIGITS)


def target_label(name: str) -> str:
    """Return a target in mathematics if it is a formula, else its name."""
    from sweeplib.errors import InputError
    from sweeplib.networks.problem import TARGETS, target

    try:
        return name if name in TARGETS else f"${target(name).label}$"
    except InputError:  # a target or an activation of a plugin that is not loaded
        return name


def activation_label(name: str) -> str:
    """Return a normalised Hermite polynomial as h with its order, any other activation as its name."""
    match = HERMITE.fullmatch(name)
    # a minus sign at the beginning of an argument
    return f"$h_{{{match[1]}}}$" if match else re.sub(r"(?<=[( ])-", MINUS, name)


NAMED: dict[str, Callable[[str], str]] = {
    "target": target_label,
    "activation": activation_label,
    "teacher_activation": activation_label,
    "schedule": expression_text,
    "noise_schedule": expression_text,
}
"""The functions that put values that are names or formulas into labels, by coordinate."""


def number(value: Any, digits: int = MOST_DIGITS) -> str:
    r"""Return a value in usual notation, of at most `digits` digits: 3000, 0.5, $10^{4}$, $2\times 10^{-5}$, square."""
    if isinstance(value, str | bool) or not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and digits >= ALL_DIGITS:  # as many digits as a fraction has do not tell it from others
        return str(value)
    factor, exponent = _scientific(value, digits)
    if 0.0 < abs(value) < 1e-3 or (value >= 1e4 and len(factor) == 1) or exponent >= digits:
        return power_of_ten(value, digits)
    return f"{value:.{digits}g}"


def power_of_ten(value: float, digits: int = MOST_DIGITS) -> str:
    r"""Return a number as a power of ten, with a factor of at most `digits` digits: $10^{-1}$, $2\times 10^{3}$."""
    factor, exponent = _scientific(value, digits)
    power = f"10^{{{exponent}}}"
    return f"${power}$" if factor == "1" else rf"${factor}\times {power}$"


def _scientific(value: float, digits: int) -> tuple[str, int]:
    """Return the factor of a number, of at most `digits` digits, and the exponent of ten."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa):.{digits}g}", int(exponent)


def dynamics_order(names: Iterable[str]) -> list[str]:
    """Return the dynamics in their order in legends: stochastic ones first, in the order of `names`."""
    return sorted(map(str, names), key=lambda name: not is_stochastic(name))
