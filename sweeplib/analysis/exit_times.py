"""Exit times over the seeds: mean, median, fraction exited, with censoring."""

from __future__ import annotations

from typing import Any

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, analysis_of
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.phase_retrieval import exit_times_expected
from sweeplib.analysis.kit.problem_fields import step_time, without_values
from sweeplib.analysis.kit.variables import passages_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, STOPPED, with_status

QUANTITIES = {"steps": ("exit steps", r"\nu_{\mathrm{ext}}"), "time": ("exit time", r"t_{\mathrm{ext}}")}
"""Long name and symbol of exits in steps of SGD and in ODE time."""
ENDS = {"diverged": ("diverged",), "timeout": STOPPED, "lost": ("failed", "killed"), "missing": ("missing",)}
"""The statuses of runs that are counted, by the names of the numbers."""


def exit_times(ds: xr.Dataset, *, confidence: Confidence = 0.95, max_lost: LostPart = MOST_LOST) -> xr.Dataset:
    """Return statistics over `seed` of exit steps and exit times, per dynamics, point and threshold.

    exited_fraction (_low, _high): the Kaplan-Meier fraction at the last observed time, with the interval by Clopper and
    Pearson. If all runs were observed up to the same time it is the plain fraction.
    exit_steps_median (_low, _high): the Kaplan-Meier median; NaN where fewer than half of the runs exited. Its interval
    needs six runs: three of which the least and the greatest exit contain the median in 75 % of cases only. Its low end
    is at most the time until which six were seen. A high end that more runs do not tell is infinite.
    exit_steps_mean (_low, _high), exit_steps_mean_error: mean of min(exit, horizon), its interval (`estimators`) and
    its standard error, NaN where no run exited. exit_steps_horizon is the last observed time, inf where all exited.
    `restricted` says that runs were censored: then the mean, its interval and its label are those of the restricted
    mean, a lower bound of the mean. Runs censored before the horizon enter as in the Kaplan-Meier estimate; of fewer
    than three that were still seen at the first exit there is no interval.
    exit_steps_theory: noise-corrected for stochastic dynamics, quenched for the ODE, at γ → 0 for gradient flow; NaN
    where the hypotheses of the theory do not hold (`phase_retrieval`), absent if that is everywhere.
    The same for exit_time.
    Numbers of runs: seeds_used (ended regularly, diverged or stopped early), seeds_censored (used, but without an exit
    before their end or time limit), seeds_diverged (treated as runs that never exit: censored at the horizon),
    seeds_timeout (timed out or inaccurate), seeds_lost (failed or killed; nothing is known about their exits),
    seeds_missing (not requested).
    refused: more than the fraction `max_lost` of the runs was lost. Then no run is used and all statistics are NaN,
    because the reason for the loss may be related to the exits.
    """
    sample, cases = passages(ds, "steps", max_lost), without_values(ds)
    variables = {
        f"seeds_{name}": labelled(with_status(cases, *ends).sum("seed"), f"runs {' or '.join(ends)}")
        for name, ends in ENDS.items()
    } | sample.used_runs()
    restricted, reason = sample.censored().any("seed"), "lower bound: some runs did not exit"
    variables["restricted"] = labelled(restricted, "the means are restricted to the horizon", reason=reason)
    variables["refused"] = labelled(sample.refused, "too many runs failed or were killed: no statistics")
    fraction, mean, median = (of(confidence) for of in (sample.fraction, sample.mean, sample.median))
    variables |= with_bounds("exited_fraction", fraction, "fraction of runs that exited", r"f_{\mathrm{ext}}")
    time = exit_times_expected(ds)
    has_theory = bool(time.notnull().any())
    for scale, unit, theory in (("steps", 1.0, time / step_time(ds)), ("time", step_time(ds), time)):
        (quantity, symbol), name = QUANTITIES[scale], f"exit_{scale}"
        mathematics, named = rf"\langle {symbol}\rangle", {"theory": f"{name}_theory"} if has_theory else {}
        variables |= sample.mean_variables(f"{name}_mean", mean, f"mean {quantity}", mathematics, unit=unit, **named)
        if has_theory:
            variables[f"{name}_theory"] = labelled(theory, f"{quantity} of theory", mathematics)
        title, mathematics = f"{quantity} to which the mean is restricted", rf"{symbol}^{{\max}}"
        variables[f"{name}_horizon"] = labelled(sample.horizon * unit, title, mathematics)
        ends = (steps * unit for steps in median)
        variables |= with_bounds(f"{name}_median", ends, f"median {quantity}", rf"\mathrm{{med}}\,{symbol}")
    return xr.Dataset(variables).assign_attrs(confidence=confidence, max_lost=max_lost)


def _outline(ds: Outline, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: means and medians by both clocks, and a fraction."""
    names = [f"exit_{quantity}_{statistic}" for quantity in QUANTITIES for statistic in ("mean", "median")]
    return passages_outline(ds, *names, "exited_fraction")


ANALYSES.add(
    analysis_of(
        exit_times,
        "Exit times over the seeds, with censoring",
        outline=_outline,
        ends=EXITS_ONLY,
        quantities={name: f"{name}_mean" for name in ("exit_steps", "exit_time")}
        | {name: name for name in ("exited_fraction", "exit_steps_median", "exit_time_median")},
    )
)
