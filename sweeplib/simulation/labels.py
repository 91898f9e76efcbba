"""Long names, units and symbols of the coordinates of a dataset, of one run or of a sweep."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

LABELS: dict[str, tuple[str, str]] = {
    "gamma": ("learning rate", r"\gamma"),
    "p": ("student width", "p"),
    "k": ("teacher width", "k"),
    "d": ("input dimension", "d"),
    "Delta": ("label-noise variance", r"\Delta"),
    "activation": ("activation of the student", r"\sigma"),
    "teacher_activation": ("activation of the teacher", r"\sigma^*"),
    "spherical": ("student rows projected on the sphere", ""),
    "target": ("target", "f^*"),
    "a": ("second layer of the student", "a"),
    "a_star": ("second layer of the teacher", "a^*"),
    "second_layer_rate": ("learning rate of the second layer over that of the first", r"\varepsilon"),
    "offset_scale": ("standard deviation of the first offsets", "s_b"),
    "offset_rate": ("learning rate of the offsets over that of the weights", r"\beta"),
    "m0": ("overlap at the start", "m_0"),
    "start_scale": ("standard deviation of the student's first weights", "s"),
    "data": ("law of the data", ""),
    "contrast": ("contrast of the two classes", "c"),
    "start": ("law of the student's first weights", ""),
    "teacher_start": ("law of the teacher's weights", ""),
    "batch_size": ("samples of a step", "n_b"),
    "repeats": ("steps that use a batch", "r"),
    "schedule": ("schedule of the learning rate", r"\xi(t)"),
    "target_information_exponent": ("information exponent of the target", ""),
    "target_leap_exponent": ("leap exponent of the target", ""),
    "samples": ("size of the training set", "n"),
    "sampling": ("choice of batches from the training set", ""),
    "second_layer_samples": ("fresh samples of the regression of the second layer", "m"),
    "ridge": ("penalty of the regression of the second layer", r"\lambda"),
    "alpha": ("samples over the dimension", r"\alpha"),
    "gamma0": ("prefactor of the learning rate", r"\gamma_0"),
    "p0": ("prefactor of the student width", "p_0"),
    "delta": ("exponent of the learning rate", r"\delta"),
    "kappa": ("exponent of the student width", r"\kappa"),
    "point": ("row of the table of points", ""),
    "seed": ("replica", ""),
    "time": ("ODE time", "t"),
    "instant": ("earlier ODE time", "t'"),
    "steps": ("SGD steps", r"\nu"),
    "quantile": ("level of the quantile over the units", "u"),
    "clock": ("unit of the recording times", ""),
    "threshold": ("exit threshold", "T"),
    "dynamics": ("dynamics", ""),
}


def stored_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a variable of a dataset: one without units is dimensionless, by the CF conventions.

    With units of "1", xarray would write "[1]" on plots.
    """
    return {key: value for key, value in attributes.items() if (key, value) != ("units", "1")}


def label(name: str) -> dict[str, Any]:
    """Return the `long_name`, `units` and `symbol` (LaTeX without dollars) of a coordinate; its name if unknown."""
    run, _, option = name.rpartition(".")
    latex = rf"\mathrm{{{name}}}".replace("_", r"\_")
    unknown = (f"{option} of {run}", "") if run else (name, latex)
    long_name, symbol = LABELS.get(name, unknown)
    return {"long_name": long_name, "units": "1", "symbol": symbol}


ATTRIBUTES = ("Conventions", "config", "digest", "fixed", "git_commit", "processors", "stop", "title", "versions")
"""The attributes of a sweep's dataset other than its constants; constants cannot have these names."""


def meanings(names: Iterable[str]) -> str:
    """Return the meaning of constants, for the attribute `fixed`: 'k: teacher width; p: student width'."""
    return "; ".join(f"{name}: {label(name)['long_name']}" for name in sorted(names))


def named(fixed: str) -> list[str]:
    """Return the names of the constants that the attribute `fixed` explains."""
    return re.findall(r"(?:^|; )(\w+): ", fixed)
