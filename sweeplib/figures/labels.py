"""Words of the figures, all from the attributes of coordinates and variables."""

from collections.abc import Iterable
from typing import Any

import xarray as xr


def axis_label(array: xr.DataArray) -> str:
    r"""Long name symbol (units), as far as the array has them: 'learning rate $\\gamma$'."""
    attrs = array.attrs
    parts = [attrs.get("long_name", str(array.name)), _mathematics(array)]
    if attrs.get("units", "1") not in ("1", ""):
        parts.append(f"({attrs['units']})")
    return " ".join(part for part in parts if part)


def symbol(array: xr.DataArray) -> str:
    """The array's symbol in mathematics, or its name in words."""
    return _mathematics(array) or str(array.name)


def _mathematics(array: xr.DataArray) -> str:
    """The symbol between dollars; "" where there is none, or where it is but the name of a user's own parameter."""
    found = array.attrs.get("symbol", "")
    return f"${found}$" if found and (found != array.name or len(found) == 1) else ""


def value_label(coordinate: xr.DataArray) -> str:
    """A scalar coordinate and its value: '$d$ = 3000'."""
    return f"{symbol(coordinate)} = {number(coordinate.item())}"


def number(value: Any) -> str:
    """A value as one writes it: 3000, 0.5, $10^{6}$, square."""
    if isinstance(value, str | bool):
        return str(value)
    if value >= 1e5 and float(value).is_integer() and set(str(int(value))[1:]) == {"0"}:
        mantissa, exponent = str(int(value))[0], len(str(int(value))) - 1
        return f"$10^{{{exponent}}}$" if mantissa == "1" else rf"${mantissa}\times 10^{{{exponent}}}$"
    return f"{value:.6g}"


def dynamics_label(name: str) -> str:
    """What the dynamics is called in legends."""
    from sweeplib.dynamics import DYNAMICS

    return DYNAMICS[name].label if name in DYNAMICS else name


def dynamics_order(names: Iterable[str]) -> list[str]:
    """The dynamics as they are listed: the overlap chain, other stochastic ones, the ODE."""
    return sorted(map(str, names), key=lambda name: (name == "ode", name != "sgd_chain", name))
