"""The fields of the problems of a dataset, as analyses read them: over the dims along which they vary.

Fields that are the same everywhere are constants: attributes in the stored dataset, coordinates while analyses and
figures work on it. `CORE` are the parameters of a problem itself, `DEFAULTS` their default values.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.errors import InputError
from sweeplib.networks.problem import CONSTANT_RATE, DEFAULTS, PARAMETERS
from sweeplib.networks.problem.base_parameters import CORE

TEACHER = "teacher_student"
"""The data law that the theory is for."""
KNOWN = frozenset(
    {"gamma", "p", "k", "d", "Delta", "activation", "teacher_activation", "spherical", "a", "a_star", "target", "data"}
    | {
        "second_layer_rate",
        "start",
        "teacher_start",
        "schedule",
        "noise_schedule",
        "batch_size",
        "repeats",
        "samples",
        "sampling",
    }
)
"""The parameters of a problem itself (`CORE`) that some closed form of theory has in it; others must have defaults."""
ROUNDING = 1e-6
"""The difference of logarithms or exponents below which they count as equal."""


def field(ds: xr.Dataset, name: str, default: Any = None) -> xr.DataArray:
    """Return the field of the problem, over the dims along which it varies; `default` if the dataset does not have it.

    The field is a coordinate or, if it is the same in all of the dataset, an attribute. It has no coordinates that are
    single values. InputError if it is neither and there is no default.
    """
    from sweeplib.networks.simulation.labels import label

    if name in ds.coords:
        return (
            without_values(ds[[name]])[name] if ds.variables[name].ndim else xr.DataArray(ds.variables[name], name=name)
        )
    value = ds.attrs.get(name, default)
    if value is None:
        raise InputError("the dataset does not say", key=name, expected=f"a coordinate or attribute {name}")
    value = str(list(value)) if isinstance(value, list | tuple) else value
    return xr.DataArray(value, name=name, attrs=label(name))


def without_values(ds: xr.Dataset) -> xr.Dataset:
    """Return the dataset without coordinates that are single values, such as the constants of its problems.

    xarray compares all coordinates of two arrays at each operation: with those of all fields it takes three times as
    long. `Analysis` gives its result those of the dataset again.
    """
    return ds.drop_vars([name for name in ds.coords if not ds.variables[name].ndim])


def has_direction(values: xr.Dataset | xr.DataArray, ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where the teacher has a direction r, r ≤ k, if `values` have an axis `teacher`; else true."""
    return values["teacher"] <= field(ds, "k") if "teacher" in values.dims else xr.DataArray(True)


def constants(ds: xr.Dataset) -> dict[str, Any]:
    """Return the attributes of the dataset that are fields of the problem or other numbers of its grid, by name.

    Their values are the same at all points.
    """
    from sweeplib.networks.simulation.labels import explained_constants

    names = dict.fromkeys([*PARAMETERS, *explained_constants(ds.attrs.get("fixed", ""))])
    return {name: ds.attrs[name] for name in names if name in ds.attrs}


def step_time(ds: xr.Dataset) -> xr.DataArray:
    """Return the ODE time γ/(pd) of a step of SGD."""
    return field(ds, "gamma") / (field(ds, "p") * field(ds, "d"))


def one_pass_committee(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where a committee learns at a constant rate from a fresh sample a step, the case of the theory.

    All else is as by default (`with_plain_steps`).
    """
    fresh = (field(ds, "batch_size", 1) == 1) & (field(ds, "repeats", 1) == 1) & (field(ds, "samples", 0) == 0)
    taught = (field(ds, "target", "committee") == "committee") & (field(ds, "data", TEACHER) == TEACHER)
    return _is_constant(ds, "schedule") & fresh & taught & with_plain_steps(ds)


def _is_constant(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Return a mask: where a schedule is constant: not in the dataset, None stored as text, or the constant formula."""
    return field(ds, name, "").isin(["", "None", CONSTANT_RATE])


def same_at_all_d(values: xr.DataArray) -> xr.DataArray:
    """Return a mask: where values do not depend on d."""
    return values.max("d") - values.min("d") < ROUNDING if "d" in values.dims else values.notnull()


def ones(layer: xr.DataArray) -> xr.DataArray:
    """Return a mask: where all units of a second layer have the weight 1, given as a number or a text.

    The text is a list of numbers, or the name of a law, such as `signs` or `power(1.5)`.
    """
    if layer.dtype.kind not in "OU":
        return layer == 1.0
    are_ones: xr.DataArray = xr.apply_ufunc(_all_one, layer, vectorize=True, output_dtypes=[bool])
    return are_ones


def _all_one(text: str) -> bool:
    """Return whether the text of a second layer is a list of ones."""
    numbers = str(text).strip("[()]").split(",")
    return not str(text)[:1].isalpha() and all(float(number) == 1.0 for number in numbers if number.strip())


def with_plain_steps(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where label noise is constant, and parameters of no theory, such as decays, have defaults."""
    constant = _is_constant(ds, "noise_schedule")
    return reduce(
        and_, (field(ds, name, DEFAULTS[name]) == DEFAULTS[name] for name in CORE if name not in KNOWN), constant
    )


def with_constants(ds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with its constants as labelled coordinates: ds["p"] exists whether or not p varies.

    Dask arrays become arrays that are computed when they are read.
    """
    from sweeplib.engine.storage.dataset.folder import plain

    ds = plain(ds)
    return ds.assign_coords({name: _coordinate(ds, name) for name in constants(ds) if name not in ds.variables})


def _coordinate(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Return a constant as a coordinate; a flag stored as 1 or 0 becomes true or false."""
    coordinate = field(ds, name)
    return coordinate.astype(bool) if name in PARAMETERS and PARAMETERS[name].type is bool else coordinate


def without_constants(result: xr.Dataset, ds: xr.Dataset) -> xr.Dataset:
    """Return `result`, computed from `ds`, with the constants of `ds` as attributes unless they became an axis.

    It undoes `with_constants`, by which analyses see constants as coordinates.
    """
    # what was a coordinate before stays one
    of_ds = {name: ds.attrs[name] for name in constants(ds) if name not in ds.variables}
    constant = {name: value for name, value in of_ds.items() if not (name in result.coords and result[name].ndim)}
    # a text that explains constants that are no parameters of the problem (`explained_constants`)
    explanation = {"fixed": ds.attrs["fixed"]} if "fixed" in ds.attrs else {}
    return result.drop_vars([name for name in constant if name in result.coords]).assign_attrs(constant | explanation)
