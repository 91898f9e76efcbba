"""The learning rate that minimises the mean number of steps to exit, with its interval, beside theory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Analysis
from sweeplib.analysis.kit.expected import by_dynamics
from sweeplib.analysis.kit.needs import passages_outline
from sweeplib.analysis.kit.options import Along, CensoredPart, Confidence, LostPart
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.phase_retrieval import escape_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.scan import scan_dim
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.networks.theory import exact_optimal_learning_rate, noise_corrected_optimal_learning_rate
from sweeplib.networks.theory import optimal_learning_rate as theory_optimum
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.optima import FEWEST, MeanCurve, Optimum
from sweeplib.statistics.seed_means import FEWEST_SEEDS

NEEDED = f"{FEWEST} learning rates at which three runs or more exited"


class RateScan(NamedTuple):
    """The steps to the exit of each run of a scan, and the learning rates; steps are NaN where a γ is left out.

    `censored` is true where too many runs did not exit (their mean is unknown), `lost` where too many runs were lost.
    `restricted` are the steps to the exit or the horizon, whose mean is less than that of the exits.
    """

    steps: xr.DataArray
    gamma: xr.DataArray
    censored: xr.DataArray
    lost: xr.DataArray
    restricted: xr.DataArray

    def left_out(self, dim: str) -> dict[str, xr.DataArray]:
        """Return the numbers of learning rates along `dim` that are left out, by reason."""
        left_out_because = "learning rates left out, as too many runs"
        return {
            "gammas_censored": labelled(self.censored.sum(dim), f"{left_out_because} did not exit"),
            "gammas_lost": labelled(self.lost.sum(dim), f"{left_out_because} failed or were killed"),
            "gammas_few": labelled(
                _too_few(self.steps).sum(dim), "learning rates left out, as they have one or two runs"
            ),
        }


def rate_scan(ds: xr.Dataset, max_censored: float, max_lost: float) -> RateScan:
    """Return the scan of a dataset, without cells in which more than these fractions of runs are censored or lost."""
    sample = passages(ds, "steps", max_lost)
    censored = sample.too_censored(max_censored)
    gamma = field(ds, "gamma").astype(float).broadcast_like(ds["status"].isel(seed=0, drop=True))
    restricted = sample.restricted()
    return RateScan(restricted.where(~censored), gamma, censored, sample.refused, restricted)


def _too_few(steps: xr.DataArray) -> xr.DataArray:
    count = steps.count("seed")
    return (count > 0) & (count < FEWEST_SEEDS)


def optimal_learning_rate(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    max_censored: CensoredPart = 0.02,
    max_lost: LostPart = MOST_LOST,
    along: Along = None,
) -> xr.Dataset:
    """Return γ of least mean exit steps per dynamics, threshold and point of the other axes, and its theory.

    gamma_opt (_low, _high) is the optimum of the smooth curve through the mean steps, without a form that is given
    (`smooth_curve`): its interval has in it the errors of the means, which may be those of shared starts or samples,
    and what they leave open of the curve. exit_steps_min (_low, _high): the mean exit steps at the optimum, by the
    curve.
    gammas_censored: number of learning rates left out because more than `max_censored` of the runs did not exit before
    their end or time limit; their restricted mean is too short. gammas_lost: number left out because more than
    `max_lost` failed or were killed; their exits are unknown. gammas_few: number left out because they have one or
    two runs, which have no error. With fewer than 5 learning rates left,
    the optimum is NaN.
    at_edge: the optimum or an end of its interval is at the smallest or largest learning rate used, so that the true
    optimum may lie beyond; at_end: the optimum is.
    gamma_opt_theory: the optimum of both annealed and quenched theory; gamma_opt_noise_corrected: with the O(1) shift
    of the exit time by the noise of SGD, which the ODE neglects. NaN where the hypotheses of the theory do not hold
    (`phase_retrieval`). gamma_opt_expected is the latter for stochastic dynamics; for the ODE it is exact at p = 1,
    from all starts on the sphere, and the former, which is linearised at the origin, for wider students.
    """
    dim = scan_dim(ds, along)
    scan = rate_scan(ds, max_censored, max_lost)
    parts = xr.apply_ufunc(
        lambda steps, gamma: MeanCurve(steps, gamma).optimum(confidence), scan.steps, scan.gamma,
        input_core_dims=[["seed", dim], [dim]], output_core_dims=[()] * len(Optimum._fields),
        vectorize=True, output_dtypes=[float] * 6 + [bool, bool, int],
    )  # fmt: skip
    variables = _labelled_optima(*parts) | scan.left_out(dim) | _theory(ds, dim)
    return xr.Dataset(variables).assign_attrs(confidence=confidence, max_lost=max_lost, along=dim)


def _labelled_optima(*parts: xr.DataArray) -> dict[str, xr.DataArray]:
    (at_edge, at_end, gammas_used), steps = parts[6:], r"\min_\gamma\langle\nu_{\mathrm{ext}}\rangle"
    variables = with_bounds("gamma_opt", parts[:3], "optimal learning rate", r"\hat\gamma_{\mathrm{opt}}")
    variables |= with_bounds("exit_steps_min", parts[3:6], "mean exit steps at the optimal learning rate", steps)
    variables["at_edge"] = labelled(at_edge, "the optimum or its interval ends at the edge of the learning rates used")
    variables["at_end"] = labelled(at_end, "the optimum is the first or the last of the learning rates used")
    variables["gammas_used"] = labelled(gammas_used, "learning rates used")
    variables["gamma_opt"].attrs |= {"bound": "at_edge", "theory": "gamma_opt_theory", "needs": NEEDED}
    variables["exit_steps_min"].attrs |= {"bound": "at_edge", "bound_side": "below"}
    variables["at_edge"].attrs |= {"reason": "the optimum may lie beyond the scan", "lasting": "at_end"}
    return variables


def _theory(ds: xr.Dataset, dim: str) -> dict[str, xr.DataArray]:
    constants = ds.drop_vars("gamma").isel({dim: 0}, drop=True)
    applies = escape_theory_holds(constants)
    p, d, Delta, T = (field(constants, name) for name in ("p", "d", "Delta", "threshold"))
    results = {
        "gamma_opt_theory": theory_optimum(p, Delta),
        "gamma_opt_noise_corrected": noise_corrected_optimal_learning_rate(p, d, Delta, T),
    }
    variables = {name: result.where(applies).assign_attrs(result.attrs) for name, result in results.items()}
    limit, corrected = variables.values()
    exact = exact_optimal_learning_rate(d, Delta, T).where(applies & (p == 1) & (d > 2))
    by_kind = by_dynamics(ds, corrected, exact.fillna(limit), np.nan)
    expected = labelled(by_kind, "optimal learning rate of theory", limit.symbol)
    return variables | {"gamma_opt_expected": expected}


def _outline(ds: Outline, *, along: str | None, **_: Any) -> Outline:
    dim = scan_dim(ds, along)
    outline = passages_outline(ds).without(dim)
    along_axes = outline.dims_of("exit_steps")
    return outline.with_variables(dict.fromkeys(("gamma_opt", "exit_steps_min"), along_axes), along=dim)


ANALYSES.add(
    Analysis(
        "optimal_learning_rate",
        optimal_learning_rate,
        "Learning rate of least mean exit steps, beside theory",
        outline=_outline,
        ends=EXITS_ONLY,
        headline="gamma_opt",
        quantities={"gamma_opt": "gamma_opt", "exit_steps_min": "exit_steps_min"},
    ),
)
