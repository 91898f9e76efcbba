"""Wasserstein-2 distances between the empirical measures of the units of two dynamics with the same start."""

from __future__ import annotations

from functools import cache, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.differences import check_reference, from_reference, from_start
from sweeplib.analysis.kit.labels import with_article
from sweeplib.analysis.kit.options import LostPart
from sweeplib.analysis.kit.variables import is_stochastic, statistics_outline
from sweeplib.analysis.unit_measure import points, require_units
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.seed_means import with_error

Units = Annotated[
    Annotated[int, Field(ge=1, le=10_000)] | None,
    Field(
        description="the number of units that are compared, drawn at random; `null` is all. The time grows as its "
        "cube, up to a second for 1000 units at each time of each run; wider students need this option."
    ),
]

MOST_UNITS = 1000
"""The widths of students whose distances are computed without `units`; an assignment then takes up to a second."""
NAMES = ("unit_distance", "unit_synchronous", "unit_moved")
PREFERRED = ("mean_field", "nonlinear_dynamics", "mean_field_hd", "ode")
"""The dynamics that are taken for a reference by default, the first that is run."""

Compared = Annotated[
    str | None,
    Field(description="the dynamics to compare with. `null`: mean_field, else another without noise."),
]


def unit_distance(
    ds: xr.Dataset, *, reference: Compared = None, units: Units = None, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return distances of the units (m_1, ..., m_k, ‖w‖/√d) of each dynamics from those of `reference`, over time.

    unit_distance is W₂² = min over permutations π of the mean over i of |x_i − y_π(i)|², per seed: the Wasserstein
    distance of the empirical measures, by an exact assignment. unit_synchronous has π = 1, each unit and itself in the
    other dynamics, with the same start: the coupling of propagation of chaos, W₂ ≤ unit_synchronous. unit_moved is W₂
    from a dynamics' own start, NaN if that is not recorded. All are roots. NAME and NAME_error are mean and standard
    error over the seeds; NaN for the reference itself, and where more than the fraction `max_lost` of the pairs has no
    value.

    reference : a dynamics; by default mean_field, or another deterministic one.
    units : the number of units that are compared, drawn at random, the same at all times and in all dynamics; by
        default all, up to a width of 1000. The time of an assignment grows as the cube of this number: 5 to 40 ms at
        300 units, .1 to 1 s at 1000, two for each time, seed and dynamics. Fewer units are further apart: W₂ of two
        samples of n units of one law is about n^(−1/2).
    """
    reference = _reference(ds) if reference is None else reference
    state = points(ds)
    assigned, synchronous = partial(_distance, wasserstein, units), partial(_distance, root_mean_square, units)
    distance = from_reference(ds, state, assigned, reference, max_lost)
    coupled = from_reference(ds, state, synchronous, reference, max_lost)
    moved = from_start(ds, state, assigned, max_lost)
    label = with_article(reference)
    variables = with_error("unit_distance", distance, f"Wasserstein distance of the units from {label}", "W_2")
    title = f"root mean squared distance of each unit from itself in {label}"
    variables |= with_error("unit_synchronous", coupled, title, r"\langle|x_i-y_i|^2\rangle^{1/2}")
    variables |= with_error("unit_moved", moved, "Wasserstein distance of the units from their start", "W_2")
    attrs = {} if units is None else {"units": units}
    return xr.Dataset(variables).assign_attrs(reference=reference, max_lost=max_lost, **attrs)


def wasserstein(first: Array, second: Array) -> float:
    """Return W₂ of the empirical measures of as many points (n, numbers) each."""
    if np.array_equal(first, second):
        return 0.0
    cost = scipy.spatial.distance.cdist(first, second, "sqeuclidean")
    return float(np.sqrt(cost[scipy.optimize.linear_sum_assignment(cost)].mean()))


def root_mean_square(first: Array, second: Array) -> float:
    """Return the root of the mean over points (n, numbers) of the squared distance to that of the same index."""
    return float(np.sqrt(((first - second) ** 2).sum(axis=1).mean()))


def _distance(of_points: Any, units: int | None, first: xr.DataArray, second: xr.DataArray) -> xr.DataArray:
    """Return the distance of the units (student, number) of two dynamics, over all other dims.

    of_points : a function of two arrays (n, numbers). units : how many of the n are compared; None is all.
    """

    def of_pair(x: Array, y: Array) -> float:
        """Return the distance of two students; NaN if one has no units, or units that are not finite."""
        x, y = _existing_units(x), _existing_units(y)
        if not len(x) or not len(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
            return np.nan
        if len(x) != len(y):
            expected = "dynamics with as many units"
            raise InputError("no assignment of different numbers of units", value=[len(x), len(y)], expected=expected)
        if units is not None and units < len(x):
            x, y = x[_choice(len(x), units)], y[_choice(len(x), units)]
        scale = _power_of_two(x, y)
        return scale * float(of_points(x / scale, y / scale))

    dims = ["student", "number"]
    distances: xr.DataArray = xr.apply_ufunc(
        of_pair, first, second, input_core_dims=[dims, dims], vectorize=True, output_dtypes=[float]
    )
    return distances


def _power_of_two(x: Array, y: Array) -> float:
    """Return a unit in which squares do not overflow, in runs that diverge; division by it is exact."""
    _, exponent = np.frexp(max(np.abs(x).max(), np.abs(y).max()))
    return float(np.ldexp(1.0, int(exponent)))


def _existing_units(units: Array) -> Array:
    """Return the units without those beyond the width, and without overlaps with teachers that do not exist."""
    rows = units[~np.isnan(units[:, -1])]
    return rows[:, ~np.isnan(rows).all(axis=0)]


@cache
def _choice(number: int, units: int) -> NDArray[np.intp]:
    """Return `units` places out of `number`, drawn at random, the same at each call, ascending."""
    return np.sort(np.random.default_rng(0).permutation(number)[:units])


def _reference(ds: xr.Dataset | Outline) -> str:
    """Return the dynamics that is compared to without another choice; InputError if all are stochastic."""
    names = [str(name) for name in outline_of(ds).axes["dynamics"]]
    fits = [name for name in (*PREFERRED, *names) if name in names and not is_stochastic(name)]
    if not fits:
        raise InputError(
            "no deterministic dynamics to compare with", key="reference", expected="mean_field or ode, run"
        )
    return fits[0]


def _outline(ds: Outline, *, reference: str | None, units: int | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: statistics over seeds and units; the times remain.

    InputError without recorded units or a reference, and for wide students without the option `units`.
    """
    require_units(ds)
    check_reference(ds, _reference(ds) if reference is None else reference)
    width = ds.sizes["student"]
    if units is None and width > MOST_UNITS:
        expected = f"a number of units to compare, such as {MOST_UNITS}: all take {(width / 1000) ** 3:.2g} s each time"
        raise InputError(f"an exact distance of {width} units takes long", key="units", value=units, expected=expected)
    return statistics_outline(ds, "self_overlap", *NAMES, over=["student"])


DOC = "Wasserstein distances between the units of the dynamics"
ANALYSES.add(analysis_of(unit_distance, DOC, overlaps=True, outline=_outline, quantities=NAMES))
