"""The regime of SGD at each point, classified by the scaling of its measures with the input dimension.

Measures, exponents and candidates for the regime are in the order of `MEASURES` and of `REGIMES[1:]`; code 0 is
undecided. A draw is a sample of the posterior of the three exponents.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, Treated, analysis_of
from sweeplib.analysis.kit.options import Confidence, LostPart, RandomSeed, Resamples, Tolerance
from sweeplib.analysis.kit.problem_fields import ROUNDING, field, one_pass_committee, same_at_all_d
from sweeplib.analysis.kit.regime_samples import need_samples, regime_samples
from sweeplib.analysis.kit.variables import need_axis
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.networks.theory.regimes import (
    REGIMES,
    coupling_exponent,
    deviation_exponent,
    excess_risk_exponent,
    noise_weight_exponent,
    regime,
)
from sweeplib.statistics.bootstrap import Resampling, log_deviations, seed_weights
from sweeplib.statistics.exponents import exponents, interval, least_error, means, need_seeds
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST

MEASURES = {
    "excess_risk": ("risk above gradient flow", r"\langle R-R_{\mathrm{GF}}\rangle", "R"),
    "noise_weight": ("weight of the noise", "V", "V"),
    "deviation": ("spread around the ODE", "D", "D"),
}
"""Long name, symbol, and subscript of the exponent's symbol of each measure."""
EXPONENTS = {
    "excess_risk": excess_risk_exponent,
    "noise_weight": noise_weight_exponent,
    "deviation": deviation_exponent,
}
"""The exponent of each measure by theory, a function of (delta, kappa)."""
PLANE = ("delta", "kappa")
"""The exponents δ and κ of γ ∝ d^−δ and p ∝ d^κ."""
FUTURES, DRAWS_IN_FUTURE = 64, 500
"""Estimates that endless seeds may end at, and draws of the exponents' remaining errors around each."""


class RegimeMeasures(NamedTuple):
    """What is known of one point.

    exponents (measure, 3) : estimate, low, high. probabilities (candidate,) : of the regimes. decidable () : the
    probability that more seeds decide. levels, errors (measure, d) : the measures and their standard errors.
    """

    exponents: Array
    probabilities: Array
    decidable: Array
    levels: Array
    errors: Array


Resolution = Annotated[Tolerance, Field(description="the exponent of d below which a quantity counts as constant.")]
Deviating = Annotated[
    Tolerance,
    Field(description="relative deviation of each point from the fitted law that is allowed in addition to its error."),
]


def regimes(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    resolution: Resolution = 0.06,
    tolerance: Deviating = 0.03,
    max_lost: LostPart = MOST_LOST,
    resamples: Resamples = 4000,
    random_seed: RandomSeed = 0,
) -> xr.Dataset:
    """Return the regime of each point of the axes other than d, its probability, and the exponents that decide it.

    Three measures of SGD at the horizon, at every d:
    excess_risk: mean over the seeds of R_SGD − R_GF, where gradient flow has the same start;
    noise_weight: V = mean(R_SGD − R_GF)/mean(R(0) − R_GF), the effect of Ψ^Var over that of Ψ^GF;
    deviation: D, the standard deviation over the seeds of the growth of log tr Q beyond that of the ODE.
    Each scales as d^−x, and its exponent x has a posterior of `resamples` draws (`exponents`). With r the `resolution`,
    a draw says
    no_ode where x_D ≤ r (SGD does not become deterministic); otherwise
    perfect_learning where x_V > r and x_R > r; plateau where |x_V| ≤ r and x_R ≤ r; bad_learning where x_V < −r and
    x_R ≤ r; other draws are undecided. `probability` is the fraction of draws that say a regime. `regime` is the regime
    said by at least `confidence` of the draws, otherwise undecided; `likeliest` is the regime of most draws.
    `decidable` is the probability that seeds without end decide: the `tolerance` of the laws remains, and where it
    alone leaves an exponent on both sides of r, only more values of d help.
    A dimension at which more than `max_lost` of the runs have no value at the horizon, for example because they
    diverged, timed out or became inaccurate, is left out: the remaining runs are not a random sample. seeds_lost:
    number of these runs.
    The classification does not use the exponents δ and κ. If the dataset has them, *_theory is the prediction of theory
    for plain students with learning rates γ ∝ d^−δ and widths p ∝ d^κ, NaN or undecided for other problems.
    """
    sample = regime_samples(ds, max_lost)
    weights = seed_weights(ds.sizes["seed"], resamples, random_seed)
    d = ds["d"].values.astype(float)

    def cell_outcome(excess: Array, fall: Array, growth: Array) -> RegimeMeasures:
        """Return the outcome of one point, from its samples (seed, d)."""
        resampling = Resampling(weights, np.random.default_rng(random_seed + len(d)), confidence)
        return outcome(excess, fall, growth, d, resampling, resolution, tolerance)

    core = ["seed", "d"]
    parts = xr.apply_ufunc(
        cell_outcome, sample["excess"], sample["fall"], sample["growth"], input_core_dims=[core] * 3,
        output_core_dims=[["measure", "bound"], ["candidate"], [], ["measure", "d"], ["measure", "d"]],
        vectorize=True, output_dtypes=[float] * 5,
    )  # fmt: skip
    variables = _decisions(parts[1], confidence) | _exponents(parts[0]) | _levels(parts[3], parts[4], ds["d"])
    variables["decidable"] = labelled(parts[2], "probability that more seeds decide the regime")
    variables["seeds_lost"] = sample["seeds_lost"]
    result = xr.Dataset(variables).assign_coords(candidate=("candidate", list(REGIMES[1:])))
    result["candidate"] = labelled(result["candidate"], "candidate regime")
    return _with_theory(result, ds).assign_attrs(
        confidence=confidence, resolution=resolution, tolerance=tolerance, max_lost=max_lost
    )


def outcome(
    excess: Array, fall: Array, growth: Array, d: Array, resampling: Resampling, resolution: float, tolerance: float
) -> RegimeMeasures:
    """Return the outcome of one point, from its samples (seed, d) of `regime_samples`, NaN where a run is missing.

    d : the input dimensions. resolution, tolerance : options of `regimes`.
    """
    risk = means(excess)
    powers = (risk, risk.minus(means(fall)), log_deviations(growth))
    draws = np.array([exponents(power, d, tolerance, resampling) for power in powers])
    least = np.array([least_error(power, d, tolerance) for power in powers])
    return RegimeMeasures(
        np.array([interval(row, resampling.confidence) for row in draws]),
        probabilities(draws[0, 1:], draws[1, 1:], draws[2, 1:], resolution),
        decidable(draws, least, resolution, resampling.confidence, resampling.generator),
        np.array([np.exp(power.logs) for power in powers]),
        np.array([np.exp(power.logs) * np.sqrt(np.diag(power.covariance)) for power in powers]),
    )


def probabilities(risk: Array, weight: Array, deviation: Array, resolution: float) -> Array:
    """Return the fraction of draws that say each regime (candidate, ...); NaN if an exponent is not known.

    risk, weight, deviation (..., draws) : the exponents x_R, x_V, x_D. resolution : below it an exponent counts as 0.
    """
    if not np.isfinite(risk + weight + deviation).all():
        return np.full((len(REGIMES) - 1, *risk.shape[:-1]), np.nan)
    deterministic, falls = deviation > resolution, risk > resolution
    regime_draws = [
        deterministic & (weight > resolution) & falls,
        deterministic & (abs(weight) <= resolution) & ~falls,
        deterministic & (weight < -resolution) & ~falls,
        deviation <= resolution,
    ]
    return np.mean(regime_draws, axis=-1)


def decidable(
    exponents: Array, least: Array, resolution: float, confidence: float, generator: np.random.Generator
) -> Array:
    """Return the probability () that endless seeds decide the regime; NaN if an exponent is not known.

    exponents (3, 1 + draws) : the estimates of today, then draws from their posterior. least (3,) : the errors that
    endless seeds leave; the variance of the draws beyond least² is that of the seeds. Each of FUTURES draws, shrunk to
    that part, is where endless seeds may end; with the errors `least` around it a regime is decided or not.
    """
    best, draws = exponents[:, :1], exponents[:, 1 : 1 + FUTURES]
    if not np.isfinite(exponents).all():
        return np.full((), np.nan)
    seeds_part = np.sqrt(np.clip(1.0 - (least / exponents[:, 1:].std(axis=1)) ** 2, 0.0, None))
    futures = best + (draws - best) * seeds_part[:, None]
    noise = least[:, None, None] * generator.standard_normal((len(least), 1, DRAWS_IN_FUTURE))
    risk, weight, deviation = futures[:, :, None] + noise
    verdicts = probabilities(risk, weight, deviation, resolution).max(axis=0)
    return np.asarray(np.mean(verdicts >= confidence))


def _decisions(probability: xr.DataArray, confidence: float) -> dict[str, xr.DataArray]:
    """Return the regime that is decided with confidence, the likeliest one, and their probabilities, labelled."""
    likeliest = xr.where(probability.max("candidate") > 0.0, 1 + probability.fillna(0.0).argmax("candidate"), 0)
    decided = xr.where(probability.max("candidate") >= confidence, likeliest, 0)
    return {
        "regime": regime_codes(decided, "measured regime"),
        "likeliest": regime_codes(likeliest, "regime that most draws say"),
        "confidence": labelled(probability.max("candidate"), "probability of the likeliest regime"),
        "probability": labelled(probability, "probability of a regime"),
    }


def regime_codes(codes: xr.DataArray, long_name: str) -> xr.DataArray:
    """Return codes of regimes with flags that name them (CF conventions)."""
    flags: dict[str, Any] = {"flag_values": list(range(len(REGIMES))), "flag_meanings": " ".join(REGIMES)}
    return labelled(codes.astype(np.uint8), long_name, **flags)


def _exponents(exponents: xr.DataArray) -> dict[str, xr.DataArray]:
    """Return the exponents and the ends of their intervals, labelled.

    exponents : along `measure`, and `bound`: estimate, low, high.
    """
    result: dict[str, xr.DataArray] = {}
    for place, (name, (long_name, _, subscript)) in enumerate(MEASURES.items()):
        bounds = (exponents.isel(measure=place, bound=bound) for bound in range(3))
        result |= with_bounds(f"{name}_exponent", bounds, f"exponent of the {long_name}", f"x_{subscript}")
    return result


def _levels(levels: xr.DataArray, errors: xr.DataArray, d: xr.DataArray) -> dict[str, xr.DataArray]:
    """Return the measures at each d, their errors, and the range of d at which they are known, labelled."""
    result: dict[str, xr.DataArray] = {}
    for place, (name, (long_name, symbol, _)) in enumerate(MEASURES.items()):
        result[name] = labelled(levels.isel(measure=place), long_name, symbol)
        result[f"{name}_error"] = labelled(errors.isel(measure=place), f"standard error of the {long_name}")
        used = d.where(result[name].notnull())
        result[f"{name}_d_low"] = labelled(used.min("d"), f"smallest input dimension of the {long_name}", "d")
        result[f"{name}_d_high"] = labelled(used.max("d"), f"largest input dimension of the {long_name}", "d")
    return result


def _with_theory(result: xr.Dataset, ds: xr.Dataset) -> xr.Dataset:
    """Return the result with the regimes and exponents of theory at each (delta, kappa).

    They are 0 (undecided) and NaN where its hypotheses do not hold; the result is unchanged if the exponents of
    learning rate and width are not coordinates.
    """
    if not all(name in ds.coords or name in ds.attrs for name in PLANE):
        return result
    at, holds = [field(ds, name) for name in PLANE], scaling_holds(ds)
    variables = {"regime_theory": regime_codes(regime(*at).where(holds, 0.0), "regime of theory")}
    for name, exponent in EXPONENTS.items():
        values = exponent(*at)
        variables[f"{name}_exponent_theory"] = values.where(holds).assign_attrs(values.attrs)
    return result.assign(variables).assign_coords(coupling_exponent=coupling_exponent(*at))


def scaling_holds(ds: xr.Dataset) -> xr.DataArray:
    """Return where γ = γ0 d^−delta, p = p0 d^kappa rounded, and the norms of the students are free.

    This requires students off the sphere (on it Q_ii = 1), a frozen second layer, and a committee learned from one
    fresh sample a step.
    """
    delta, kappa = (field(ds, name) for name in PLANE)
    log_d = xr.ufuncs.log(ds["d"])
    rate = xr.ufuncs.log(field(ds, "gamma")) + delta * log_d
    width, growth = field(ds, "p"), xr.ufuncs.exp(kappa * log_d)
    # widths are rounded: p0 d^kappa lies between p − ½ and p + ½ at every d for some p0
    most, least = ((width + 0.5) / growth).min("d"), ((width - 0.5) / growth).max("d")
    return (
        same_at_all_d(rate)
        & (least <= most * (1.0 + ROUNDING))
        & one_pass_committee(ds)
        & ~field(ds, "spherical", False).astype(bool)
        & (field(ds, "second_layer_rate", 0.0) == 0.0)
    )


def _outline(ds: Outline, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: a code at each point, probabilities by `candidate`.

    InputError unless SGD, gradient flow and the ODE are run from recorded starts at several d, with enough seeds.
    """
    need_axis(ds, "d")
    need_samples(ds)
    need_seeds(len(ds.axes["seed"]))
    outline = ds.only("risk").without("dynamics", "seed", "time")
    return outline.along("candidate", REGIMES[1:]).with_variables({"regime": outline.without("d").dims_of("status")})


ANALYSES.add(
    analysis_of(
        regimes,
        "Regime of SGD from the scaling of risk, noise and spread with d",
        outline=_outline,
        ends={"exit": Treated.refused},
        label="regime",
        decidable="decidable",
    )
)
