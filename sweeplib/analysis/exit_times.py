"""Exit times over the seeds: mean, median, fraction exited, with censoring."""

from __future__ import annotations

from typing import Any

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Analysis
from sweeplib.analysis.kit.expected import exit_times_expected
from sweeplib.analysis.kit.needs import passages_outline
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.passages import Passages, passages
from sweeplib.analysis.kit.problem_fields import step_time, without_values
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.estimators import SEEN, RestrictedMean, proportion_interval
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, STOPPED, with_status
from sweeplib.statistics.seed_means import FEWEST_SEEDS, standard_error
from sweeplib.statistics.survival import fractions_exited, medians

QUANTITIES = {"steps": ("exit steps", r"\nu_{\mathrm{ext}}"), "time": ("exit time", r"t_{\mathrm{ext}}")}


def exit_times(ds: xr.Dataset, *, confidence: Confidence = 0.95, max_lost: LostPart = MOST_LOST) -> xr.Dataset:
    """Return statistics over `seed` of exit steps and exit times, per dynamics, point and threshold.

    exited_fraction (_low, _high): the Kaplan-Meier fraction at the last observed time, with the interval by Clopper and
    Pearson. If all runs were observed up to the same time it is the plain fraction.
    exit_steps_median (_low, _high): the Kaplan-Meier median; NaN where fewer than half of the runs exited. Its interval
    needs seven runs or so: three of which the least and the greatest exit contain the median in 75 % of cases only.
    exit_steps_mean (_low, _high), exit_steps_mean_error: mean of min(exit, horizon), its interval (`estimators`) and
    its standard error, NaN where no run exited. exit_steps_horizon is the last observed time. `restricted` says that
    runs were censored: then the mean, its interval and its label are those of the restricted mean, a lower bound of the
    mean. Runs censored before the horizon enter as in the Kaplan-Meier estimate.
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
    sample = passages(ds, "steps", max_lost)
    fractions = exited_fractions(sample, confidence)
    variables = _counts(without_values(ds), sample)
    variables |= with_bounds("exited_fraction", fractions, "fraction of runs that exited", r"f_{\mathrm{ext}}")
    values = sample.restricted()
    error = standard_error(values).where(sample.reached.any("seed"))
    means = RestrictedMean(sample.horizon)(values, confidence)
    medians = exit_medians(sample, confidence)
    restricted = "restricted " * bool(sample.censored().any())
    time = exit_times_expected(ds)
    for scale, unit, theory in (("steps", 1.0, time / step_time(ds)), ("time", step_time(ds), time)):
        (quantity, symbol), name = QUANTITIES[scale], f"exit_{scale}"
        title, mathematics = f"{restricted}mean {quantity}", rf"\langle {symbol}\rangle"
        variables |= with_bounds(f"{name}_mean", (steps * unit for steps in means), title, mathematics)
        variables[f"{name}_mean"].attrs |= {"bound": "restricted", "bound_side": "above", "comment": SEEN}
        if bool(time.notnull().any()):
            variables[f"{name}_mean"].attrs["theory"] = f"{name}_theory"
            variables[f"{name}_theory"] = labelled(theory, f"{quantity} of theory", mathematics)
        variables[f"{name}_mean_error"] = labelled(
            error * unit, f"standard error of the {title}", rf"\mathrm{{se}}{mathematics}"
        )
        title, mathematics = f"{quantity} to which the mean is restricted", rf"{symbol}^{{\max}}"
        variables[f"{name}_horizon"] = labelled(sample.horizon * unit, title, mathematics)
        bounds = (steps * unit for steps in medians)
        variables |= with_bounds(f"{name}_median", bounds, f"median {quantity}", rf"\mathrm{{med}}\,{symbol}")
    return xr.Dataset(variables).assign_attrs(confidence=confidence, max_lost=max_lost)


def _counts(ds: xr.Dataset, sample: Passages) -> dict[str, xr.DataArray]:
    meanings = {
        "diverged": ("diverged",),
        "timeout": STOPPED,
        "lost": ("failed", "killed"),
        "missing": ("missing",),
    }
    counts = {
        f"seeds_{name}": labelled(with_status(ds, *status).sum("seed"), f"runs {' or '.join(status)}")
        for name, status in meanings.items()
    }
    return counts | {
        "seeds_used": labelled(sample.used.sum("seed"), "runs used"),
        "seeds_censored": labelled(sample.censored().sum("seed"), "runs used that did not exit"),
        "restricted": labelled(sample.censored().any("seed"), "the means are restricted to the horizon").assign_attrs(
            reason="lower bound: some runs did not exit"
        ),
        "refused": labelled(sample.refused, "too many runs failed or were killed: no statistics"),
    }


def exited_fractions(sample: Passages, confidence: float) -> tuple[xr.DataArray, ...]:
    """Return the Kaplan-Meier fraction at the last observed time, and the bounds of its interval (Clopper and Pearson).

    No interval for fewer than FEWEST_SEEDS runs.
    """
    exited, worth = xr.apply_ufunc(
        fractions_exited, sample.exit, sample.end, sample.used, input_core_dims=[["seed"]] * 3,
        output_core_dims=[()] * 2,
    )  # fmt: skip
    enough = sample.used.sum("seed") >= FEWEST_SEEDS
    return exited, *(end.where(enough) for end in proportion_interval(exited, worth, confidence))


def exit_medians(sample: Passages, confidence: float) -> tuple[xr.DataArray, ...]:
    """Return the Kaplan-Meier median and the bounds of its interval; NaN where fewer than half of the runs exited."""
    result: tuple[xr.DataArray, ...] = xr.apply_ufunc(
        medians, sample.exit, sample.end, sample.used, input_core_dims=[["seed"]] * 3, output_core_dims=[()] * 3,
        kwargs={"confidence": confidence},
    )  # fmt: skip
    return result


def _outline(ds: Outline, **_: Any) -> Outline:
    outline = passages_outline(ds)
    names = [f"exit_{quantity}_{statistic}" for quantity in QUANTITIES for statistic in ("mean", "median")]
    return outline.with_variables(dict.fromkeys([*names, "exited_fraction"], outline.dims_of("exit_steps")))


ANALYSES.add(
    Analysis(
        "exit_times",
        exit_times,
        "Exit times over the seeds, with censoring",
        outline=_outline,
        ends=EXITS_ONLY,
        quantities={name: f"{name}_mean" for name in ("exit_steps", "exit_time")}
        | {name: name for name in ("exited_fraction", "exit_steps_median", "exit_time_median")},
    ),
)
