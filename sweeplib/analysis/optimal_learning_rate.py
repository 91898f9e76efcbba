"""The learning rate that minimises the mean number of steps to exit, with its interval, beside theory."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, analysis_of
from sweeplib.analysis.kit.options import Along, CensoredPart, Confidence, LostPart
from sweeplib.analysis.kit.phase_retrieval import by_dynamics, escape_of
from sweeplib.analysis.kit.seed_values import Curves, rate_scan, scan_dim
from sweeplib.analysis.kit.variables import passages_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.networks.theory import exact_optimal_learning_rate, noise_corrected_optimal_learning_rate
from sweeplib.networks.theory import optimal_learning_rate as theory_optimum
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.optima import FEWEST, minimum
from sweeplib.statistics.seed_means import FEWEST_SEEDS

NEEDED = f"{FEWEST} learning rates at which three runs or more exited"
"""What an optimum needs, as messages say it."""


def left_out(scan: Curves) -> dict[str, xr.DataArray]:
    """Return the numbers of learning rates of a scan that are left out, by reason."""
    count, words = scan.values.count("seed"), "learning rates left out, as"
    reasons = {
        "gammas_censored": (scan.censored, "too many runs did not exit"),
        "gammas_lost": (scan.lost, "too many runs failed or were killed"),
        "gammas_few": ((count > 0) & (count < FEWEST_SEEDS), "they have one or two runs"),
    }
    return {name: labelled(where.sum(scan.along), f"{words} {why}") for name, (where, why) in reasons.items()}


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
    scan = rate_scan(ds, dim, max_censored, max_lost)
    *numbers, at_edge, at_end, used = scan.law(minimum, confidence=confidence)
    needs = {"bound": "at_edge", "theory": "gamma_opt_theory", "needs": NEEDED}
    variables = with_bounds("gamma_opt", numbers[:3], "optimal learning rate", r"\hat\gamma_{\mathrm{opt}}", **needs)
    title, symbol = "mean exit steps at the optimal learning rate", r"\min_\gamma\langle\nu_{\mathrm{ext}}\rangle"
    bound = {"bound": "at_edge", "bound_side": "below", "needs": NEEDED}
    variables |= with_bounds("exit_steps_min", numbers[3:6], title, symbol, **bound)
    title = "the optimum or its interval ends at the edge of the learning rates used"
    reason = "the optimum may lie beyond the scan"
    variables["at_edge"] = labelled(at_edge, title, reason=reason, lasting="at_end")
    variables["at_end"] = labelled(at_end, "the optimum is the first or the last of the learning rates used")
    variables["gammas_used"] = labelled(used, "learning rates used")
    variables |= left_out(scan) | _theory(ds, dim)
    return xr.Dataset(variables).assign_attrs(confidence=confidence, max_lost=max_lost, along=dim)


def _theory(ds: xr.Dataset, dim: str) -> dict[str, xr.DataArray]:
    """Return the optimal learning rates of theory, labelled; `dim` scans the learning rate.

    An exact optimum is known for one unit and d > 2 under the ODE; wider students have the linearised one.
    """
    applies, p, d, Delta, T = escape_of(ds, dim)
    results = {
        "gamma_opt_theory": theory_optimum(p, Delta),
        "gamma_opt_noise_corrected": noise_corrected_optimal_learning_rate(p, d, Delta, T),
    }
    variables = {name: result.where(applies).assign_attrs(result.attrs) for name, result in results.items()}
    limit, corrected = variables.values()
    exact = exact_optimal_learning_rate(d, Delta, T).where(applies & (p == 1) & (d > 2))
    by_kind = by_dynamics(ds, corrected, exact.where(p == 1, limit), np.nan)
    expected = labelled(by_kind, "optimal learning rate of theory", limit.symbol)
    return variables | {"gamma_opt_expected": expected}


def _outline(ds: Outline, *, along: str | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: optima over seeds and the axis that scans γ."""
    dim = scan_dim(ds, along)
    return passages_outline(ds, "gamma_opt", "exit_steps_min", over=dim).with_variables({}, along=dim)


ANALYSES.add(
    analysis_of(
        optimal_learning_rate,
        "Learning rate of least mean exit steps, beside theory",
        outline=_outline,
        ends=EXITS_ONLY,
        headline="gamma_opt",
        quantities=["gamma_opt", "exit_steps_min"],
    )
)
