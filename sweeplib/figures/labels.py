"""Labels and numbers in figures, from the attributes of coordinates and variables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sweeplib.analysis.recorded import is_stochastic

if TYPE_CHECKING:
    import xarray as xr

HERMITE = re.compile(r"he(\d+)")
MINUS = "\N{MINUS SIGN}"


def axis_label(array: xr.DataArray) -> str:
    r"""Return 'long name symbol (units)', as far as the array has them: 'learning rate $\\gamma$'."""
    attrs = array.attrs
    parts = [attrs.get("long_name", str(array.name)), _beside_name(array)]
    if attrs.get("units", "1") not in ("1", ""):
        parts.append(f"({attrs['units']})")
    return " ".join(part for part in parts if part)


def wrapped_label(array: xr.DataArray, width: int = 32) -> str:
    """Return the label of a long axis: the long name in lines of that width, the symbol at the end."""
    lines = textwrap.wrap(array.attrs.get("long_name", str(array.name)), width)
    return ("\n".join(lines) + " " + _beside_name(array)).strip()


def symbol(array: xr.DataArray) -> str:
    """Return the array's symbol in mathematics, or its name if it has none."""
    return _mathematics(array) or str(array.name)


def _mathematics(array: xr.DataArray) -> str:
    """Return the symbol between dollars; "" if there is none, or if it is just the name of a user's parameter."""
    found = array.attrs.get("symbol", "")
    return f"${found}$" if found and (found != array.name or len(found) == 1) else ""


def _beside_name(array: xr.DataArray) -> str:
    """Return the symbol between dollars, but "" if it only repeats the long name."""
    name = array.attrs.get("long_name", str(array.name))
    spelled = array.attrs.get("symbol", "").replace(r"\_", "_") == rf"\mathrm{{{name}}}"
    return "" if spelled else _mathematics(array)


def value_label(coordinate: xr.DataArray, digits: int | None = None) -> str:
    """Return a scalar coordinate and its value, with `digits` significant digits for a fraction: '$d$ = 3000'.

    Dynamics are their name alone.
    """
    value = coordinate.item()
    if coordinate.name == "dynamics":
        return dynamics_label(value)
    if coordinate.name in NAMED:
        return f"{symbol(coordinate)} = {NAMED[str(coordinate.name)](value)}"
    rounded = float(f"{value:.{digits}g}") if digits is not None and isinstance(value, float) else value
    text = number(rounded)
    return f"{symbol(coordinate)} = {text if isinstance(value, str) else text.replace('-', MINUS)}"


def target_label(name: str) -> str:
    """Return a target in mathematics if it is a formula, else its name."""
    from sweeplib.errors import InputError
    from sweeplib.problem import TARGETS, target

    try:
        return name if name in TARGETS else f"${target(name).label}$"
    except InputError:  # a target or an activation of a plugin that is not loaded
        return name


def activation_label(name: str) -> str:
    """Return a Hermite polynomial in mathematics, any other activation as its name."""
    found = HERMITE.fullmatch(name)
    return rf"$\mathrm{{He}}_{{{found[1]}}}$" if found else name


NAMED: dict[str, Callable[[str], str]] = {
    "target": target_label,
    "activation": activation_label,
    "teacher_activation": activation_label,
}
"""The labels of values that are names, by coordinate."""


def number(value: Any) -> str:
    r"""Return a value in usual notation: 3000, 0.5, $10^{6}$, $2\times 10^{-5}$, square."""
    if isinstance(value, str | bool):
        return str(value)
    mantissa, exponent = f"{value:.5e}".split("e")
    digits = f"{float(mantissa):g}"
    if 0.0 < abs(value) < 1e-3 or (value >= 1e5 and len(digits) == 1):
        power = f"10^{{{int(exponent)}}}"
        return f"${power}$" if digits == "1" else rf"${digits}\times {power}$"
    return f"{value:.6g}"


def dynamics_label(name: str) -> str:
    """Return the name of the dynamics in legends."""
    from sweeplib.dynamics import DYNAMICS

    return DYNAMICS[name].label if name in DYNAMICS else name


def dynamics_order(names: Iterable[str]) -> list[str]:
    """Return the dynamics in their order in legends: stochastic ones first, in the order of `names`."""
    return sorted(map(str, names), key=lambda name: not is_stochastic(name))
