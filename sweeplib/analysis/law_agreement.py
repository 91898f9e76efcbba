"""Tests of agreement in law: trajectories and exits of dynamics compared as distributions over the seeds.

Samples are pairs of arrays over the same dims, seeds among them: those of each other dynamics, and those of the
reference, repeated along `dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Treated, analysis_of
from sweeplib.analysis.kit.differences import check_reference
from sweeplib.analysis.kit.options import LostPart
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.variables import is_stochastic, over_time
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.agreement import DIGITS, kolmogorov_smirnov, spread_ratio
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, too_many, values_of, with_status, without_value

if TYPE_CHECKING:
    Samples = tuple[xr.DataArray, xr.DataArray]

HALVES = ("disjoint", "shared")
"""The values of the option `seeds`."""

Compared = Annotated[
    str | None,
    Field(
        description="the dynamics to compare with. `null`: sgd_chain if the sweep has it, else sgd, else the first "
        "with noise."
    ),
]
Seeds = Annotated[
    str, Field(description="`disjoint` compares even seeds with odd seeds, `shared` all seeds with all seeds.")
]


def law_agreement(
    ds: xr.Dataset, *, reference: Compared = None, seeds: Seeds = "disjoint", max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return Kolmogorov-Smirnov tests over `seed` of each dynamics against `reference`, and ratios of spreads.

    `reference`: a stochastic dynamics. By default sgd_chain, which has the law of SGD; if it is not run, sgd; otherwise
    the first stochastic dynamics.
    x_ks, x_ks_pvalue: at each time (and entry) of each observable x with a time axis. The same for exit_steps, per
    threshold, over the steps at which all runs of both dynamics were still observed. Runs that exit after that count as
    later exits without an order among them, so that the p-value is an upper bound where runs are censored. Runs that
    diverged never exit. Runs that stopped at their exits are compared until they stop, because both dynamics stop them
    in the same way. NaN where more than the fraction `max_lost` of the runs of either dynamics was lost: diverged,
    timed out, inaccurate, failed or killed (seeds_lost: their number in both dynamics); for exits, failed or killed.
    x_spread_ratio, x_spread_ratio_error: standard deviation over that of the reference, from all seeds, with its
    jackknife error; NaN where either standard deviation is zero.
    `seeds`: a seed has the same start in all dynamics. Samples of equal seeds are therefore similar, and their p-values
    too large. By default ("disjoint") even seeds of one dynamics are compared to odd seeds of the other; "shared"
    compares all seeds to all seeds.
    """
    reference = _reference(outline_of(ds)) if reference is None else reference
    run, ok = has_run(ds), with_status(ds, "ok")
    first_lost, second_lost = _pair((run & ~ok).sum("seed"), reference)
    result = {"seeds_lost": labelled(first_lost + second_lost, "runs of both that diverged, were stopped or failed")}
    for name in over_time(ds):
        quantity, values = ds[name].attrs["long_name"], values_of(ds, name)
        lost = without_value(values, run) & ~ok
        rounded = _rounded_samples(_pair(values, reference), _pair(ok, reference))
        samples = _unless_either_lost(rounded, _pair(lost, reference), _pair(run, reference), max_lost)
        result |= _tests(name, quantity, samples, seeds) | _spreads(name, quantity, samples)
    if "exit_steps" in ds:
        result |= _exits(ds, reference, seeds, max_lost)
    return xr.Dataset(result).assign_attrs(reference=reference, seeds=seeds, max_lost=max_lost)


def _reference(ds: Outline) -> str:
    """Return the dynamics that is compared to by default: sgd_chain, else sgd, else the first stochastic one."""
    names = [name for name in ds.axes["dynamics"] if is_stochastic(name)]
    if not names:
        raise InputError("no stochastic dynamics to compare with", key="reference", expected="sgd or sgd_chain, run")
    return next((name for name in ("sgd_chain", "sgd") if name in names), names[0])


def _pair(values: xr.DataArray, reference: str) -> Samples:
    """Return the values of the dynamics but `reference`, and those of `reference`, both along these dynamics."""
    others = values.isel(dynamics=(values["dynamics"] != reference).values)
    return xr.broadcast(others, values.sel(dynamics=reference, drop=True))


def _rounded_samples(samples: Samples, ok: Samples) -> Samples:
    """Return the samples rounded to DIGITS digits of the largest value in the cell, over runs that ended regularly."""
    first, second = (abs(sample).where(well).max("seed") for sample, well in zip(samples, ok, strict=True))
    largest = xr.ufuncs.fmax(first, second)
    scale = largest.where(largest > 0.0, 1.0)
    return (samples[0] / scale).round(DIGITS) * scale, (samples[1] / scale).round(DIGITS) * scale


def _unless_either_lost(samples: Samples, lost: Samples, run: Samples, max_lost: float) -> Samples:
    """Return both samples, NaN for all seeds where more than `max_lost` of the runs of either are lost."""
    refused = too_many(lost[0], run[0], max_lost) | too_many(lost[1], run[1], max_lost)
    return samples[0].where(~refused), samples[1].where(~refused)


def _tests(name: str, quantity: str, samples: Samples, seeds: str) -> dict[str, xr.DataArray]:
    """Return the Kolmogorov-Smirnov statistic and p-value of samples, of even against odd seeds if "disjoint".

    name, quantity : the name of the variable, and its long name.
    """
    first, second = samples
    step = 2 if seeds == "disjoint" else 1
    tested = first.isel(seed=slice(0, None, step)), second.isel(seed=slice(step - 1, None, step))
    statistic, pvalue = _over_seeds(kolmogorov_smirnov, tested)
    return {
        f"{name}_ks": labelled(statistic, f"Kolmogorov-Smirnov statistic of the {quantity}", "D"),
        f"{name}_ks_pvalue": labelled(pvalue, f"Kolmogorov-Smirnov p-value of the {quantity}", "P"),
    }


def _spreads(name: str, quantity: str, samples: Samples) -> dict[str, xr.DataArray]:
    """Return the ratio of the standard deviations of samples, with its jackknife error."""
    ratio, error = _over_seeds(spread_ratio, samples)
    return {
        f"{name}_spread_ratio": labelled(ratio, f"spread of the {quantity} over that of the reference", r"s/s'"),
        f"{name}_spread_ratio_error": labelled(error, f"jackknife error of the ratio of spreads of the {quantity}"),
    }


def _over_seeds(function: Callable[..., tuple[Array, Array]], samples: Samples) -> Samples:
    """Return the two numbers that a function of two samples, each (..., seeds), returns."""
    first, second = samples
    # halves of the seeds have other labels, and may be of other lengths
    renamed = second.rename(seed="other_seed").drop_vars("other_seed", errors="ignore")
    result: Samples = xr.apply_ufunc(
        function, first, renamed, input_core_dims=[["seed"], ["other_seed"]], output_core_dims=[[], []]
    )
    return result


def _exits(ds: xr.Dataset, reference: str, seeds: str, max_lost: float) -> dict[str, xr.DataArray]:
    """Return tests of exits in whole steps, up to the step at which every run of both dynamics was still observed."""
    sample = passages(ds, "steps", max_lost)
    first, second = _pair(sample.watched, reference)
    horizon = xr.ufuncs.minimum(first, second)
    whole_steps = xr.ufuncs.ceil(sample.exit - 1e-6).fillna(np.inf).where(sample.used)  # whole in spite of rounding
    pair = _pair(whole_steps, reference)
    # exits beyond the horizon are later than all others for the test, and at it, or the last exit, for the spread
    censored = tuple(exits.where((exits <= horizon) | exits.isnull(), np.inf) for exits in pair)
    latest = xr.ufuncs.fmax(*(exits.where(exits < np.inf).max("seed") for exits in pair))
    last = horizon.where(horizon < np.inf, latest)
    restricted = tuple(exits.where((exits <= last) | exits.isnull(), last) for exits in pair)
    quantity = ds["exit_steps"].attrs["long_name"]
    variables = _tests("exit_steps", quantity, (censored[0], censored[1]), seeds)
    variables |= _spreads("exit_steps", quantity, (restricted[0], restricted[1]))
    observed = labelled(horizon.where(horizon < np.inf), "steps until which all runs of both were observed")
    return variables | {"exit_steps_horizon": observed}


def _outline(ds: Outline, *, reference: str | None, seeds: str, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: the dynamics but the reference, without seeds.

    Names of its variables are not told. InputError unless a stochastic reference, another dynamics, and something to
    compare are in the sweep.
    """
    if seeds not in HALVES:
        raise InputError("no such choice of seeds", key="seeds", value=seeds, choices=HALVES)
    reference = _reference(ds) if reference is None else reference
    check_reference(ds, reference)
    if not over_time(ds) and "exit_steps" not in ds.variables:
        expected = "an observable over time, such as risk, or `thresholds`"
        raise InputError("nothing is recorded that could agree in law", expected=expected)
    return ds.without("seed", "knot").along("dynamics", [name for name in ds.axes["dynamics"] if name != reference])


ANALYSES.add(
    analysis_of(
        law_agreement,
        "Whether each dynamics has the law of a reference over the seeds",
        overlaps=True,
        outline=_outline,
        ends=EXITS_ONLY | {"exit": Treated.compared},
    )
)
