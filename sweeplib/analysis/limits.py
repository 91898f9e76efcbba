"""The limit that describes SGD: the simplest that differs from the mean of SGD by less than the scatter of its runs.

R_SGD and R_X are the risks of SGD and of a candidate X for the limit, from the same starts. The dimension `candidate`
has the candidates in their order, the simplest first; its positions count from 1 as codes of the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Treated, analysis_of
from sweeplib.analysis.kit.options import Confidence, LostPart, Positive
from sweeplib.analysis.kit.problem_fields import field, one_pass_committee
from sweeplib.analysis.kit.regime_samples import sgd_values
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.analysis.kit.variables import need_later_time, need_start, need_stochastic, require
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, too_many, values_of, without_value
from sweeplib.statistics.seed_means import interval_by_error

Candidates = Annotated[
    Sequence[str], Field(min_length=1, description="the dynamics that may describe SGD, from the simplest.")
]
Spread = Annotated[
    Positive,
    Field(
        le=1e6,
        description="the largest seed error, as a fraction of the change of the risk, at which a limit describes SGD.",
    ),
]
Margin = Annotated[
    float,
    Field(
        ge=1,
        le=1e6,
        description="the factor by which orders of magnitude have to differ for theory to expect a limit.",
    ),
]


def limits(
    ds: xr.Dataset,
    *,
    candidates: Candidates = ("gradient_flow", "ode"),
    confidence: Confidence = 0.95,
    most_spread: Spread = 0.5,
    max_lost: LostPart = MOST_LOST,
    margin: Margin = 2.0,
) -> xr.Dataset:
    """Return the first of the `candidates`, ordered from the simplest, that describes SGD, at each point.

    With the same starts, and the scatter of SGD: the standard deviation of R_SGD − R_X over the seeds for the candidate
    X of which it is least, at each recorded time. For each candidate X:
    bias: the largest deviation of R_X over the scatter, at any time. The square of the deviation is that of the mean
    of R_SGD − R_X, plus the variance of R_SGD − R_X beyond the scatter: a limit of infinite width deviates
    differently at each start. bias_error is its standard error, by the jackknife over the seeds,
    bias_low and bias_high the interval of Student's t at the time of the largest bias. Its low end is the highest of
    all times whose intervals reach the highest one, each of as many times as small a chance to be above the truth.
    spread: the largest scatter over the largest |R_X − R_X(0)|; spread_low and spread_high: its interval, likewise, of
    its logarithm, by the jackknife of both.
    X describes SGD where bias < 1 and spread < `most_spread`: it lies within the scatter of the runs, and this scatter
    is small compared to the change of the risk. `describes` is 1 for all such X, with the decisions of the confidence
    intervals. `limit` is the position of the first of them in `candidates`, counted from 1; the next position means
    "none". It is 0, undecided, where 1 lies within the interval of a bias that decides, `most_spread` within that of
    the spread, or where runs are missing; `decidable` is 0 where the limit that would decide has not been run,
    elsewhere 1.
    seeds_lost: number of pairs of runs without a value at some time. Where at any time these are more than the fraction
    `max_lost` of all pairs, bias and spread are NaN and the limit is undecided: runs that diverge, time out or
    become inaccurate differ systematically from the others.
    limit_theory: the limit that theory expects, in the same code. It is 0 where theory does not apply
    (`_orders`), and where orders of magnitude that decide differ by less than the factor `margin`: theory gives
    no constants.
    agreement: the fraction of the points with a limit and a limit_theory, `points_compared`, at which these are equal;
    agreement_low, agreement_high: its interval of Clopper and Pearson, for independent points.
    Other limits take part if their dynamics are run and named in `candidates`.
    """
    differences = [_difference(ds, name, max_lost) for name in candidates]
    measures = xr.concat(differences, "candidate", combine_attrs="override").assign_coords(candidate=list(candidates))
    measures = _with_interval(_discrepancies(measures), confidence)
    measures["candidate"] = labelled(measures["candidate"], "limit that may describe SGD")
    within, beyond = _decisions(measures, most_spread)
    measures["describes"] = labelled(within.astype(np.uint8), "whether a limit describes SGD")
    ran = xr.concat([has_run(ds).sel(dynamics=name, drop=True).any("seed") for name in candidates], beyond["candidate"])
    measures["limit"] = _simplest_limit(within, beyond)
    measures["decidable"] = labelled(_decidable(beyond, ran), "whether more seeds may decide the limit")
    limit = measures["limit"]
    expected = limits_expected(ds, candidates, most_spread, margin).broadcast_like(limit).transpose(*limit.dims)
    flags = {name: limit.attrs[name] for name in ("flag_values", "flag_meanings")}
    measures["limit_theory"] = labelled(expected, f"{limit.attrs['long_name']}, theory", **flags)
    return measures.assign(_agreement(limit, expected, confidence)).assign_attrs(
        confidence=confidence, most_spread=most_spread, max_lost=max_lost, margin=margin
    )


def _difference(ds: xr.Dataset, name: str, max_lost: float) -> xr.Dataset:
    """Return R_SGD − R_X after the start for the dynamics X `name`, NaN where too many pairs are lost.

    difference : over seeds and times. moved : |R_X − R_X(0)| of each seed, at the time at which the mean over the
    seeds is largest. seeds_lost : pairs.
    """
    run, risk = has_run(ds), values_of(ds, "risk")
    limit = risk.sel(dynamics=name, drop=True)
    paired = sgd_values(run, run) & run.sel(dynamics=name, drop=True)
    difference = (sgd_values(risk, run) - limit).where(paired).isel(time=slice(1, None))
    lost = without_value(difference, paired)
    moved = abs(limit - limit.isel(time=0)).where(paired)
    moved = moved.isel(time=moved.mean("seed").fillna(-1.0).argmax("time")).reset_coords(drop=True)
    return xr.Dataset(
        {
            "difference": difference.where(~too_many(lost, paired, max_lost).any("time")),
            "moved": moved,
            "seeds_lost": labelled(lost.any("time").sum("seed"), "pairs of runs without a value at some time"),
        }
    )


def _discrepancies(differences: xr.Dataset) -> xr.Dataset:
    """Return bias and spread, and their errors by the jackknife, at each time, and the number of pairs, per candidate.

    differences : of all candidates, as `_difference` returns them.
    """
    x, moved = differences["difference"], differences["moved"]
    count = x.count("seed")
    pairs = count.where(count > 2)
    centre = x.mean("seed")
    y = x - centre
    variance = (y**2).sum("seed") / (pairs - 1)
    # the mean and the variance without each seed in turn
    share = y.fillna(0.0) / (pairs - 1)
    means = centre - share
    variances = ((y**2).sum("seed") - (y**2).fillna(0.0) - (pairs - 1) * share**2) / (pairs - 2)
    variances = variances.where(y.notnull(), variance)  # a pair that a candidate lacks changes nothing of it
    # the scatter of SGD is taken around the candidate that leaves least of it
    best = variance.fillna(np.inf).argmin("candidate")
    scatter = variance.isel(candidate=best)
    bias = _relative_deviation(centre, variance, scatter)
    scatters = variances.isel(candidate=best)
    biases = _relative_deviation(means, variances, scatters)
    with np.errstate(divide="ignore", invalid="ignore"):  # of runs that do not scatter
        # the change of the risk scatters too, where a part of the runs has left the plateau
        changes = (moved.sum("seed") - moved) / (moved.count("seed") - 1)
        logarithms = 0.5 * xr.ufuncs.log(scatters) - xr.ufuncs.log(changes)
        errors = [_jackknifed(values.where(x.notnull()), pairs) for values in (biases, logarithms)]
    return xr.Dataset(
        {
            "bias": labelled(bias, "deviation of a limit over the scatter of SGD", "b"),
            "bias_error": labelled(errors[0], "standard error of the bias"),
            "spread": labelled(scatter**0.5 / moved.mean("seed"), "scatter of SGD over the change of the risk"),
            "spread_relative_error": errors[1],
            "pairs": pairs,
            "seeds_lost": differences["seeds_lost"],
        }
    )


def _jackknifed(values: xr.DataArray, pairs: xr.DataArray) -> xr.DataArray:
    """Return the standard error of a number from its values without each of the `pairs` in turn, over `seed`."""
    error: xr.DataArray = (((values - values.mean("seed")) ** 2).sum("seed") * (pairs - 1) / pairs) ** 0.5
    return error


def _relative_deviation(mean: xr.DataArray, variance: xr.DataArray, scatter: xr.DataArray) -> xr.DataArray:
    """Return the root of (mean² + variance − scatter)/scatter: the deviation of a limit over the scatter of SGD.

    mean, variance : of R_SGD − R_X over the seeds. scatter : the variance of SGD, that of the best candidate.
    """
    root: xr.DataArray = ((mean**2 + variance - scatter).clip(0.0) / scatter) ** 0.5
    return root


def _with_interval(measures: xr.Dataset, confidence: float) -> xr.Dataset:
    """Return the measures of `_discrepancies` at the times at which each is largest, with intervals by Student's t."""
    bias, spread, pairs = measures["bias"], measures["spread"], measures["pairs"]
    bounds = _largest(bias, measures["bias_error"], pairs, confidence)
    with np.errstate(divide="ignore"):  # of runs that do not scatter
        logarithms = _largest(xr.ufuncs.log(spread), measures["spread_relative_error"], pairs, confidence)
    spreads = spread.max("time"), *map(xr.ufuncs.exp, logarithms[1:])
    measures = measures.drop_vars(["pairs", "spread", "spread_relative_error"])
    measures = measures.isel(time=bias.fillna(-1.0).argmax("time"))
    biases = bounds[0], bounds[1].clip(0.0), bounds[2]
    intervals = with_bounds("bias", biases, bias.attrs["long_name"], "b")
    return measures.assign(intervals | with_bounds("spread", spreads, spread.attrs["long_name"])).drop_vars("time")


def _largest(
    values: xr.DataArray, errors: xr.DataArray, pairs: xr.DataArray, confidence: float
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Return the largest of values over `time`, with its interval by Student's t.

    The low end is the largest of all times. It allows for that choice: the confidence is that of as many intervals as
    there are times at which the largest value may lie (`rivals`).
    """
    _, low, high = interval_by_error(values, errors, pairs, confidence)
    rivals = (high >= low.max("time")).sum("time").clip(1)
    _, low, _ = interval_by_error(values, errors, pairs, 1.0 - (1.0 - confidence) / rivals)
    at = values.fillna(-np.inf).argmax("time")
    return values.isel(time=at), low.max("time"), high.isel(time=at)


def _decisions(measures: xr.Dataset, most_spread: float) -> tuple[xr.DataArray, xr.DataArray]:
    """Return two masks along `candidate`: where it describes SGD, and where it does not; neither is undecided."""
    within = (measures["bias_high"] < 1.0) & (measures["spread_high"] < most_spread)
    beyond = (measures["bias_low"] > 1.0) | (measures["spread_low"] >= most_spread)
    return within, beyond


def _decidable(beyond: xr.DataArray, ran: xr.DataArray) -> xr.DataArray:
    """Return 0 where the first candidate that is not ruled out (`beyond`) has not been run, elsewhere 1."""
    first = (~beyond).argmax("candidate")
    return (ran.isel(candidate=first).drop_vars("candidate") | beyond.all("candidate")).astype(float)


def _simplest_limit(within: xr.DataArray, beyond: xr.DataArray) -> xr.DataArray:
    """Return the code of the first candidate that describes SGD (`first_described`), with flags that name the codes.

    within, beyond (..., candidate) : where a candidate is decided to describe SGD, or decided not to.
    """
    names = within["candidate"].values.tolist()
    flags: dict[str, Any] = {"flag_values": list(range(len(names) + 2))}
    flags["flag_meanings"] = " ".join(("undecided", *names, "none"))
    return labelled(first_described(within, beyond), "simplest limit that describes SGD", **flags)


def first_described(within: xr.DataArray, beyond: xr.DataArray) -> xr.DataArray:
    """Return the position, from 1, of the first candidate that is `within` while all before it are `beyond`.

    One more than the last position where all are `beyond`; 0 where it is undecided.
    within, beyond (..., candidate) : where a candidate is decided to describe SGD, or decided not to.
    """
    all_before = beyond.astype(int).cumprod("candidate").shift(candidate=1, fill_value=1) == 1
    describes = within & all_before
    none = xr.where(beyond.all("candidate"), within.sizes["candidate"] + 1, 0)
    return xr.where(describes.any("candidate"), describes.argmax("candidate") + 1, none).astype(np.uint8)


def _agreement(limit: xr.DataArray, expected: xr.DataArray, confidence: float) -> dict[str, xr.DataArray]:
    """Return the fraction of points at which the measured limit is the expected one, with its interval.

    Of points at which both codes are decided, their number is `points_compared`; each sweep of a comparison by itself.
    """
    compared = (limit > 0) & (expected > 0)
    over = [dim for dim in compared.dims if dim != SWEEP]
    # without axes a sum of truth values stays one
    count, equal = (mask.astype(int).sum(over) for mask in (compared, compared & (limit == expected)))

    def fraction(equal: Any, count: Any) -> tuple[float, float, float]:
        """Return a fraction of points with its interval; NaN of none."""
        if not count:
            return np.nan, np.nan, np.nan
        return float(equal / count), *scipy.stats.binomtest(int(equal), int(count)).proportion_ci(confidence)

    numbers = xr.apply_ufunc(fraction, equal, count, output_core_dims=[()] * 3, vectorize=True)
    compared_points = labelled(count, "points decided by runs and by theory")
    name = "fraction of the decided points where theory puts them"
    return with_bounds("agreement", numbers, name) | {"points_compared": compared_points}


def limits_expected(ds: xr.Dataset, candidates: Sequence[str], most_spread: float, margin: float) -> xr.DataArray:
    """Return the position of the first of the `candidates` that describes SGD by theory, from 1; one more for none.

    It is 0 where theory is silent: where the orders that decide differ by less than the factor `margin`, for other
    problems than plain students with a frozen second layer, and from the first candidate on whose order is not known.
    """
    scatter, biases = _orders(ds)
    unknown = xr.full_like(scatter, np.nan)
    bias = xr.concat([biases.get(name, unknown) for name in candidates], "candidate")
    within = (margin * bias < scatter) & (margin * scatter < most_spread)
    beyond = (bias >= margin * scatter) | (scatter >= margin * most_spread)
    return first_described(within, beyond).where(_holds(ds), np.uint8(0))


def _orders(ds: xr.Dataset) -> tuple[xr.DataArray, dict[str, xr.DataArray]]:
    """Return the order n^(−1/2) of the scatter of runs, and by its name the order of what each limit leaves out.

    A student of width p learns a committee in d dimensions with r = γ/p. Ψ^Var enters Q̇ with the weight r, so that
    the risk changes in the time 1/max(1, r), in n = d/(r max(1, r)) steps. In units of the change of the risk, without
    constants: runs scatter by n^(−1/2): √(r/d) up to r = 1, r/√d beyond, where √d makes no limit possible;
    gradient flow and the mean fields leave Ψ^Var out, min(r, 1);
    the mean fields leave out the fluctuations of the cosines between units, 1/p in sums over pairs of units;
    for d → ∞ also the mean square 1/d of these cosines; and the ODE neglects n^(−1).
    """
    p, d = field(ds, "p"), field(ds, "d")
    ratio, p, d = xr.broadcast(field(ds, "gamma") / p, p, d)
    steps = d / (ratio * ratio.clip(1.0))
    noise = ratio.clip(max=1.0)
    mean_field = xr.ufuncs.maximum(1.0 / p, noise)
    return steps**-0.5, {
        "mean_field_hd": xr.ufuncs.maximum(1.0 / d, mean_field),
        "mean_field": mean_field,
        "gradient_flow": noise,
        "ode": 1.0 / steps,
    }


def _holds(ds: xr.Dataset) -> xr.DataArray:
    """Return where theory says what describes SGD: for plain students of a committee with a frozen second layer."""
    plain = ~field(ds, "spherical", False).astype(bool) & (field(ds, "second_layer_rate", 0.0) == 0.0)
    return one_pass_committee(ds) & plain


def _outline(ds: Outline, *, candidates: Sequence[str], **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: a code at each point, measures along `candidate`.

    InputError unless the candidates and a stochastic dynamics are run, with the risk from the start on.
    """
    require(ds, "risk")
    names = ds.axes["dynamics"]
    for name in candidates:
        if name not in names:
            raise InputError("not among the dynamics that were run", key="candidates", value=name, choices=names)
    need_stochastic(ds)
    need_start(ds)
    need_later_time(ds)
    outline = ds.only("risk").without("dynamics", "seed", "time")
    return outline.along("candidate", candidates).with_variables({"limit": outline.dims_of("status")})


ANALYSES.add(
    analysis_of(
        limits,
        "The simplest limit that describes SGD within its seed error",
        outline=_outline,
        ends={"exit": Treated.refused},
        headline="agreement",
        label="limit",
        decidable="decidable",
    )
)
