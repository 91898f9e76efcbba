"""The optimum of a scan of learning rates by two forms of a fit, with its interval and the seeds that it needs."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from sweeplib.answers.proposers.scan import Scan, allocation, mixed, optima, powers, slopes, solution
from sweeplib.arrays import Array
from sweeplib.late_modules import scipy

FORMS = (mixed, powers)
FEWEST = 6
"""The fewest rows of a fit: one more than a form has functions."""
ALLOWANCE = 0.0075
"""By how much ln γ of the optimum may be off because of the form: most of what known curves show
(docs/how-to/answers.md)."""
OFF = 2.0
"""The standard errors from which two forms count as different."""
EQUAL = 1e-9
"""The relative error of a mean of equal runs, by rounding."""
EDGE, RARE, Z, DRAWS = 0.01, 0.01, 1.96, 400


class Fit:
    """The optimum `gamma` of a scan: the mean, in ln γ, of the optima `of_forms` of both forms."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.of_forms = [float(optima(form, scan, scan.logs[None], scan.seeds)[0]) for form in FORMS]
        self.gamma = math.sqrt(self.of_forms[0] * self.of_forms[1])
        self.directions = self._directions(scan.seeds)

    def _directions(self, weights: Array) -> Array:
        return np.asarray(sum(slopes(form, self.scan, weights) for form in FORMS) / len(FORMS))

    @property
    def has_optimum(self) -> bool:
        """Whether both forms have an optimum that is not at an end of the rows."""
        low, high = self.scan.gamma[[0, -1]]
        slack = (high / low) ** EDGE
        return all(low * slack < best < high / slack for best in self.of_forms)

    @property
    def form(self) -> float:
        """By how much ln γ may be off because of the form: what was seen of known curves, and what both differ by.

        Where all runs of a row are equal, as those of a deterministic dynamics, also by its misfit.
        """
        apart = [slopes(form, self.scan, self.scan.seeds) for form in FORMS]
        error = self.scan.error(apart[0] - apart[1])
        off = 0.5 * max(0.0, abs(math.log(self.of_forms[0] / self.of_forms[1])) - OFF * error)
        if self.are_equal:
            spread = math.sqrt(float(np.sum(self._residuals**2)) / self._surplus * float(np.sum(self.directions**2)))
            off = max(off, spread * float(scipy.special.stdtrit(self._surplus, 0.975)))
        return ALLOWANCE + off

    @property
    def are_equal(self) -> bool:
        """Whether all runs of each row are equal, so that more of them tell nothing."""
        return bool(np.diag(self.scan.points.covariance).max() <= EQUAL**2)

    @property
    def _surplus(self) -> int:
        """Rows beyond the functions of a form."""
        return len(self.scan.gamma) - FEWEST + 1

    @cached_property
    def _residuals(self) -> Array:
        unit, matrix = solution(FORMS[0], self.scan, self.scan.seeds)
        return np.asarray(self.scan.logs - FORMS[0](self.scan.gamma / unit) @ (matrix @ self.scan.logs))

    @cached_property
    def half(self) -> float:
        """The half width of the interval of ln γ: of the seeds, widened where the rows scatter, and of the form."""
        return self.of_seeds + self.form

    @cached_property
    def of_seeds(self) -> float:
        """The half width that is due to seeds: by slopes, or larger by draws of the means, where few seeds bend it."""
        scan = self.scan
        freedom = float(scan.points.freedom(self.directions[None])[0])
        values, vectors = np.linalg.eigh(scan.points.covariance)
        normal = np.random.default_rng(0).standard_normal((DRAWS, len(values)))
        logs = scan.logs + normal * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        draws = sum(np.log(optima(form, scan, logs, scan.seeds) / self.gamma) for form in FORMS) / len(FORMS)
        bent = float(np.abs(np.quantile(draws, [0.025, 0.975])).max())
        plain = Z * scan.error(self.directions)
        return max(plain, bent) * float(scipy.special.stdtrit(freedom, 0.975)) / Z * self._scatter()

    def _scatter(self) -> float:
        """Return √(χ²/n) of the residuals where chance alone seldom makes it as large, else 1, as for equal runs."""
        if self.are_equal:
            return 1.0
        chi2 = float(np.sum(self._residuals**2 / np.diag(self.scan.points.covariance)))
        return math.sqrt(chi2 / self._surplus) if scipy.special.chdtrc(self._surplus, chi2) < RARE else 1.0

    def goals(self, wanted: float) -> Array:
        """Return the seeds (rows,) that give the interval the half width that is wanted; inf if none do."""
        room = wanted - self.form
        if room <= 0.0:
            return np.full(len(self.scan.gamma), np.inf)
        parts, unit = allocation(self._directions, self.scan)
        goals = parts * unit * self._shared_seed_factor() * (Z * self._scatter() / room) ** 2
        if (goals <= self.scan.seeds).all():  # where slopes are too small
            goals = self.scan.seeds * (self.of_seeds / room) ** 2
        return np.asarray(goals)

    def _shared_seed_factor(self) -> float:
        """Return the factor by which seeds that rows share change the variance."""
        of_own_seeds = float(np.sum(self.directions**2 * self.scan.variation**2 / self.scan.seeds))
        return self.scan.error(self.directions) ** 2 / of_own_seeds if of_own_seeds > 0.0 else 1.0
