"""Names of dynamics and labels of variables, and the part of a dataset at labels of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.simulation.labels import label

if TYPE_CHECKING:
    Array = TypeVar("Array", xr.Dataset, xr.DataArray)

INNER = {"teacher": ("teacher direction", "r"), "task": ("task", r"\tau"), "block": ("block of inputs", "b")}
"""The dimensions that an averaged observable may have of its own, counted from 1: long name and symbol of each."""


def labels_of_made(name: str) -> dict[str, Any]:
    """Return the labels of a coordinate that analyses add to those of their dataset; none for any other name."""
    if name in INNER:
        return dict(zip(("long_name", "symbol"), INNER[name], strict=True)) | {"units": "1"}
    return label("steps") if name == "steps" else {}


def dynamics_label(name: str) -> str:
    """Return the name of a run in legends and labels: its dynamics, and the word that tells it from others."""
    from sweeplib.networks.dynamics import DYNAMICS

    if name not in DYNAMICS:
        return name
    _, _, word = name.partition("-")
    return f"{DYNAMICS[name].label}, {word.replace('_', ' ')}" if word else DYNAMICS[name].label


def with_article(name: str) -> str:
    """Return the name of a dynamics in a sentence, with an article for a deterministic one: "the mean field", "SGD"."""
    label = dynamics_label(name)
    return label if is_stochastic(name) else f"the {label}"


def at_labels(data: Array, labels: Mapping[str, Any]) -> Array:
    """Return the part of data at a label, or an array of labels, of each named axis; KeyError for one that it lacks.

    A label drops its axis. Unlike those of `sel`, arrays of truth values are labels, not masks.
    """
    return data.isel({dim: _positions(data.indexes[dim], wanted) for dim, wanted in labels.items()})


def _positions(index: Any, wanted: Any) -> Any:
    """The places of a label, or of an array of labels, on an index; KeyError for one that it lacks."""
    places = index.get_indexer(np.atleast_1d(wanted))
    if (places < 0).any():
        raise KeyError(f"{index.name}: {np.atleast_1d(wanted)[places < 0]}")
    return places if np.ndim(wanted) else places[0]


def relabelled(ds: xr.Dataset) -> xr.Dataset:
    """Return the dataset of a sweep with the labels that its variables were stored with, where these were dropped.

    xarray drops attributes in its arithmetic, and `drop_attrs` all of them.
    """
    bare = [str(name) for name, variable in ds.variables.items() if "long_name" not in variable.attrs]
    if not bare:
        return ds
    ds = ds.copy()
    for name in bare:
        ds[name].attrs = _known_attributes(name) | ds[name].attrs
    return ds


def _known_attributes(name: str) -> dict[str, Any]:
    """Return the attributes of a variable of a sweep's dataset, by its name."""
    from sweeplib.engine.status import STATUS_LABELS
    from sweeplib.networks.observables import OBSERVABLES
    from sweeplib.networks.simulation.labels import label

    if name == "status":
        return dict(STATUS_LABELS)
    if name in OBSERVABLES:
        observable = OBSERVABLES[name]
        return {"long_name": observable.long_name, "symbol": observable.symbol, "units": observable.units}
    return label(name)
