"""Laws along an axis: what the means over the seeds at several places say together, with intervals.

A law is a function of the values (seed, n) of one cell, NaN where there is no run, and of the places (n,), or several
coordinates of each (k, n), that returns a NamedTuple of numbers and arrays (k,): `minimum` and `first_crossing`
(`optima`), `power_of` and `power_law` (`fits`), `growth_of` (`growth_laws`), `sum_of_powers` (`sums_of_powers`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from sweeplib.engine.base.late_modules import xarray as xr


def law_along(
    axis: str, values: xr.DataArray, x: xr.DataArray, law: Callable[..., Any], inner: str = "", **settings: Any
) -> tuple[xr.DataArray, ...]:
    """Return the numbers of a law of values over `seed` and an axis, each over all other axes, in the law's order.

    x : the places along the axis. settings : other arguments of the law. inner : the dimension of those numbers that
    are arrays, and of several coordinates of a place.
    """
    # the fields of the NamedTuple that the law returns say how many numbers there are, and which are arrays
    kinds = list(get_type_hints(get_type_hints(law)["return"]).values())
    is_number = [kind in (float, bool, int) for kind in kinds]
    numbers: tuple[xr.DataArray, ...] = xr.apply_ufunc(
        law, values, x, input_core_dims=[["seed", axis], [dim for dim in (inner, axis) if dim in x.dims]],
        output_core_dims=[[] if number else [inner] for number in is_number], vectorize=True, kwargs=settings,
        output_dtypes=[kind if number else float for kind, number in zip(kinds, is_number, strict=True)],
    )  # fmt: skip
    return numbers
