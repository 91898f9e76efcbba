"""Long names, units and symbols (LaTeX without dollars) of the coordinates of a dataset, of one run or of a sweep.

The labels of parameters of a problem stand where the parameters are declared.
"""

import re
from collections.abc import Mapping
from typing import Any

from sweeplib.networks.problem import PARAMETERS

LABELS: dict[str, tuple[str, str]] = {
    "target_information_exponent": ("information exponent of the target", ""),
    "target_leap_exponent": ("leap exponent of the target", ""),
    "alpha": ("samples over the dimension", r"\alpha"),
    "gamma0": ("prefactor of the learning rate", r"\gamma_0"),
    "p0": ("prefactor of the student width", "p_0"),
    "delta": ("exponent of the learning rate", r"\delta"),
    "kappa": ("exponent of the student width", r"\kappa"),
    "point": ("row of the table", ""),
    "seed": ("replica", ""),
    "round": ("round that asked for the point", ""),
    "reason": ("why the point was asked for", ""),
    "time": ("ODE time", "t"),
    "instant": ("earlier ODE time", "t'"),
    "samples_drawn": ("samples drawn", ""),
    "steps_taken": ("steps taken", ""),
    "steps": ("SGD steps", r"\nu"),
    "quantile": ("level of the quantile over the units", "u"),
    "clock": ("unit of the recording times", ""),
    "threshold": ("exit threshold", "T"),
    "dynamics": ("dynamics", ""),
}
"""The labels of what is no parameter of a problem: long name and symbol."""


def known_label(name: str) -> tuple[str, str] | None:
    """Return the long name and the symbol of a coordinate, None for a name that is not known."""
    parameter = PARAMETERS.get(name)
    return (parameter.label, parameter.symbol) if parameter is not None else LABELS.get(name)


def label(name: str) -> dict[str, Any]:
    """Return the `long_name`, `units` and `symbol` of a coordinate; made of its name if that is not known.

    An option of a run is named `RUN.OPTION`, such as `sde.step`.
    """
    run, _, option = name.rpartition(".")
    latex = rf"\mathrm{{{name}}}".replace("_", r"\_")
    unknown = (f"{option} of {run}", "") if run else (name, latex)
    long_name, symbol = known_label(name) or unknown
    return {"long_name": long_name, "units": "1", "symbol": symbol}


def time_attributes(count: str | None, scale: str | None) -> dict[str, Any]:
    """Return the attributes of recording times, which a config may give in other units.

    count : what is counted in place of ODE time, such as "steps" or "samples"; None for ODE time.
    scale : formula of the unit, such as "p/gamma"; None for 1.
    """
    attributes = label("time")
    if count is not None:
        attributes |= {"long_name": count, "symbol": "", "clock": count}
    if scale is not None:
        name = "time" if count is None else count
        attributes |= {"long_name": f"{name} in units of {scale}", "scale": scale}
    return attributes


def time_text(value: float, attributes: Mapping[str, Any]) -> str:
    """Return a time in words, with its unit: '50 d samples', '12 steps', '1 in units of p/gamma', '12'.

    attributes : those of `time_attributes`.
    """
    count, scale, number = attributes.get("clock"), attributes.get("scale"), f"{value:.6g}"
    if count is None:
        return number if scale is None else f"{number} in units of {scale}"
    if scale is None:
        return f"{number} {count if value != 1 else count.removesuffix('s')}"
    return f"{number} {scale if scale.isidentifier() else f'* ({scale})'} {count}"


def exit_words(exit_on: str) -> str:
    """Return what stands behind the long names of exits: ' (misalignment)', and nothing if they are on the risk."""
    from sweeplib.networks.observables import OBSERVABLES

    if exit_on == "risk":
        return ""
    return f" ({OBSERVABLES[exit_on].long_name if exit_on in OBSERVABLES else exit_on})"


OF_RUNS = "exit_on", "stop"
"""The attributes that say what exits are of, if not of the risk, and where runs stop; combined sweeps share them."""


def explained_constants(fixed: str) -> list[str]:
    """Return the names of the constants that the attribute `fixed` explains."""
    return re.findall(r"(?:^|; )(\w+): ", fixed)
