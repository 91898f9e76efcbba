"""A scan along an axis as a proposer of optima sees it: rows with their mean steps, and two forms of their fit.

Both have five functions of γ, fitted to ln steps: 1, ln γ, ln²γ, with γ and γ², or with ln³γ and ln⁴γ. Powers,
exponentials, poles, parabolas in ln γ and their products are near both. Where the steps rise to twice their least value
on both sides, the mean of both optima is within 1 % of the optimum of all smooth curves that were tried
(docs/how-to/answers.md); a parabola of ln steps in ln γ is off by 5 to 15 %, one of the escape rate by up to 12 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.kit.bootstrap import PointErrors
from sweeplib.analysis.kit.seed_means import FEWEST_SEEDS
from sweeplib.analysis.optimal_learning_rate import RateScan as Runs
from sweeplib.arrays import Array
from sweeplib.late_modules import xarray as xr

Form = Callable[[Array], Array]
"""The functions (n, 5) at the learning rates (n,), in units of a typical one."""
FINE = 401
"""Learning rates at which a fit is looked at for its optimum; between them a parabola is exact enough."""
NUDGE = 3e-3
LEAST_PART = 0.02
DIGITS = 3
"""The digits of values that are added to an axis."""


class Scan(NamedTuple):
    """Rows of a scan in the order of their learning rates, with the logarithms of their means, and their seeds."""

    gamma: Array
    points: PointErrors
    seeds: Array

    def at(self, mask: NDArray[np.bool_]) -> Scan:
        """Return some of the rows."""
        return Scan(self.gamma[mask], self.points.at(mask), self.seeds[mask])

    @property
    def logs(self) -> Array:
        """Return the logarithms of the means, without their bias."""
        return self.points.values

    @property
    def variation(self) -> Array:
        """Return the relative standard deviation of a run of each row."""
        return np.asarray(np.sqrt(np.diag(self.points.covariance) * self.seeds))

    def error(self, directions: Array) -> float:
        """Return the standard error of a combination of the logarithms."""
        return float(np.sqrt(directions @ self.points.covariance @ directions))


def mixed(x: Array) -> Array:
    """Return 1, ln γ, ln²γ, γ, γ²."""
    u = np.log(x)
    return np.stack([np.ones_like(x), u, u * u, x, x * x], axis=-1)


def powers(x: Array) -> Array:
    """Return the powers of ln γ from 0 to 4."""
    return np.vander(np.log(x), 5, increasing=True)


def solution(form: Form, scan: Scan, weights: Array) -> tuple[float, Array]:
    """Return the unit of γ of a fit, and the matrix (5, rows) from logarithms to its coefficients."""
    unit = float(np.exp(np.average(np.log(scan.gamma), weights=weights)))
    spread = np.sqrt(weights)
    return unit, np.asarray(np.linalg.pinv(form(scan.gamma / unit) * spread[:, None]) * spread, float)


def optima(form: Form, scan: Scan, logs: Array, weights: Array) -> Array:
    """Return the γ of least steps between the ends of a scan for each row of `logs` (n, rows)."""
    unit, matrix = solution(form, scan, weights)
    fine = np.geomspace(scan.gamma[0], scan.gamma[-1], FINE)
    values = logs @ matrix.T @ form(fine / unit).T
    top = np.clip(values.argmin(axis=1), 1, FINE - 2)
    before, there, after = (np.take_along_axis(values, top[:, None] + step, 1)[:, 0] for step in (-1, 0, 1))
    bend = before - 2.0 * there + after
    shift = 0.5 * (before - after) / np.where(bend > 0.0, bend, np.inf)
    ratio = fine[1] / fine[0]
    return np.asarray(fine[top] * ratio ** np.clip(shift, -1.0, 1.0))


def slopes(form: Form, scan: Scan, weights: Array) -> Array:
    """Return ∂ ln γ_opt/∂ ln steps of each row of a scan."""
    nudges = NUDGE * np.eye(len(scan.gamma))
    up, down = (optima(form, scan, scan.logs + sign * nudges, weights) for sign in (1.0, -1.0))
    return np.asarray(np.log(up / down) / (2.0 * NUDGE))


def allocation(directions: Callable[[Array], Array], scan: Scan) -> tuple[Array, float]:
    """Return the parts of the seeds that rows get for the least variance of a combination at a given number of steps.

    Neyman's allocation |direction| σ/√steps, where the directions depend on the seeds; and the variance for one seed in
    all, if those of different rows are independent.
    """
    sigma, steps = scan.variation, np.exp(scan.logs - scan.logs.min())
    parts = np.full(len(steps), 1.0 / len(steps))
    for _ in range(6):
        wanted = np.abs(directions(parts)) * sigma / np.sqrt(steps)
        parts = np.maximum(0.5 * (parts + wanted / max(wanted.sum(), 1e-300)), LEAST_PART)
        parts /= parts.sum()
    return parts, float(np.sum(directions(parts) ** 2 * sigma**2 / parts))


@dataclass(frozen=True)
class ScanColumn:
    """The rows of a scan along an axis at one point, in the order of their learning rates.

    x, gamma : values of the axis, which may be whole numbers, and learning rates. steps (seeds, rows) : NaN without a
    run, and where too many runs of a row did not exit, which is `late`. restricted (seeds, rows) : the steps to the
    exit or the horizon. seeds : the numbers of runs that were asked for.
    """

    x: Array
    gamma: Array
    steps: Array
    seeds: NDArray[np.int64]
    late: NDArray[np.bool_]
    restricted: Array
    is_whole: bool = False

    @classmethod
    def of(cls, runs: Runs, seeds: xr.DataArray, place: dict[str, int], dim: str) -> ScanColumn:
        """Return the rows at one point that have runs."""

        def here(array: xr.DataArray) -> xr.DataArray:
            return array.isel({name: index for name, index in place.items() if name in array.dims})

        counts, gamma = here(seeds).values, here(runs.gamma).values
        order = np.argsort(gamma)
        order = order[counts[order] > 0]
        steps, restricted = (
            here(table).transpose("seed", dim).values[:, order] for table in (runs.steps, runs.restricted)
        )
        late, x = here(runs.censored).values[order], seeds[dim].values[order]
        is_whole = np.issubdtype(x.dtype, np.integer)
        return cls(x.astype(float), gamma[order], steps, counts[order], late, restricted, is_whole)

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
