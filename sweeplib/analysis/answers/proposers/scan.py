"""The rows of a scan along an axis as a proposer of optima sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.kit.seed_values import Curves
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.statistics.seed_means import FEWEST_SEEDS

DIGITS = 3
"""The digits of values that are added to an axis."""


@dataclass(frozen=True)
class ScanColumn:
    """The rows of a scan along an axis at one point, in the order of their learning rates.

    x, gamma : values of the axis, which may be whole numbers, and learning rates. steps (seeds, rows) : NaN without a
    run, and where too many runs of a row did not exit, which is `cut_off`. restricted (seeds, rows) : the steps to the
    exit or the horizon. seeds : the numbers of runs that were asked for.
    """

    x: Array
    gamma: Array
    steps: Array
    seeds: NDArray[np.int64]
    cut_off: NDArray[np.bool_]
    restricted: Array
    is_whole: bool = False

    @classmethod
    def of(cls, runs: Curves, seeds: xr.DataArray, place: dict[str, int], dim: str) -> ScanColumn:
        """Return the rows at one point that have runs."""

        def here(array: xr.DataArray) -> xr.DataArray:
            return array.isel({name: index for name, index in place.items() if name in array.dims})

        counts, gamma = here(seeds).values, here(runs.x).values
        order = np.argsort(gamma)
        order = order[counts[order] > 0]
        steps, restricted = (
            here(table).transpose("seed", dim).values[:, order] for table in (runs.values, runs.restricted)
        )
        cut_off, x = here(runs.censored).values[order], seeds[dim].values[order]
        is_whole = np.issubdtype(x.dtype, np.integer)
        return cls(x.astype(float), gamma[order], steps, counts[order], cut_off, restricted, is_whole)

    def gamma_of(self, x: float) -> float:
        """Return the learning rate at a value of the axis: exact where it is a power of it, or exponential."""
        order = np.argsort(self.x)
        return math.exp(_on_lines(self._u[order], np.log(self.gamma)[order], float(self._scaled(np.array(x)))))

    def x_of(self, gamma: float) -> float:
        """Return the value of the axis at a learning rate, rounded."""
        u = _on_lines(np.log(self.gamma), self._u, math.log(gamma))
        x = math.exp(u) if self._is_positive else u
        return float(round(x)) if self.is_whole else float(f"{x:.{DIGITS}g}")

    def least_log(self, row: int, errors: float) -> float:
        """Return a lower bound of the logarithm of the mean steps of a row: of the restricted ones, less its errors."""
        steps = self.restricted_steps(row)
        if len(steps) < FEWEST_SEEDS:
            return -math.inf
        least = steps.mean() - errors * steps.std(ddof=1) / math.sqrt(len(steps))
        return math.log(least) if least > 0.0 else -math.inf

    def restricted_steps(self, row: int) -> Array:
        """Return the steps to the exit or the horizon of the runs of a row."""
        steps = self.restricted[:, row]
        return steps[np.isfinite(steps)]

    @property
    def _is_positive(self) -> bool:
        return bool((self.x > 0.0).all())

    @property
    def _u(self) -> Array:
        return self._scaled(self.x)

    def _scaled(self, x: Array) -> Array:
        return np.asarray(np.log(x) if self._is_positive else x)


def _on_lines(u: Array, v: Array, at: float) -> float:
    """Return v at a point, on lines between, and beyond, points of ascending u; of slope 1 through a single one."""
    if len(u) == 1:
        return float(v[0] + at - u[0])
    near = int(np.clip(np.searchsorted(u, at), 1, len(u) - 1))
    return float(v[near] + (v[near] - v[near - 1]) / (u[near] - u[near - 1]) * (at - u[near]))
