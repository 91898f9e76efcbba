"""The gain of overparametrisation: steps of one unit over steps of p units, each at its optimal learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, analysis_of
from sweeplib.analysis.kit.options import Along, CensoredPart, Confidence, LostPart
from sweeplib.analysis.kit.phase_retrieval import escape_of
from sweeplib.analysis.kit.seed_values import rate_scan, scan_dim
from sweeplib.analysis.kit.variables import passages_outline
from sweeplib.analysis.optimal_learning_rate import NEEDED, left_out
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.networks import theory
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.optima import least_mean

GAIN = "gain of overparametrisation"
"""The long name of the result."""


def overparametrisation_gain(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    max_censored: CensoredPart = 0.02,
    max_lost: LostPart = MOST_LOST,
    along: Along = None,
) -> xr.Dataset:
    """Return the least mean exit steps at p = 1 over those at p, per dynamics, threshold and point of the other axes.

    gain, gain_low, gain_high: the ratio with its interval, by the parts that each seed has in the errors of both, which
    may share starts or samples, and by what the means leave open of both curves. at_edge: one of the two optima is at
    an end of the learning rates used, so that the gain is a bound.
    gammas_censored, gammas_lost: number of learning rates left out at p because more than `max_censored` of the runs
    did not exit, or more than `max_lost` failed or were killed, as in `optimal_learning_rate`.
    gain_limit: (12 + Δ) p²/(8 + 2p + (2 + Δ) p²), the theory for d → ∞; gain_quenched: from the quenched exit times at
    d; gain_noise_corrected: from the noise-corrected exit times at their optima. NaN where the theory does not hold.
    """
    ds = ds if "p" in ds.dims else ds.expand_dims("p")
    dim = scan_dim(ds, along)
    scan = rate_scan(ds, dim, max_censored, max_lost)
    value, parts, form, freedom, at_edge = scan.law(least_mean, "seed", confidence=confidence)
    # `value` is ln of the least mean steps: its error has parts of seeds, and one by the form of the curve
    narrow: dict[str, Any] = {"p": 1, "drop": True}
    log_gain, widths_differ = value.sel(**narrow) - value, parts["p"] != 1
    of_seeds = ((parts.sel(**narrow) - parts) ** 2).sum("seed", skipna=False)
    error = np.sqrt(of_seeds + (form**2 + form.sel(**narrow) ** 2).where(widths_differ, 0.0))
    fewest = np.minimum(freedom, freedom.sel(**narrow))
    half = error * xr.apply_ufunc(scipy.special.stdtrit, fewest, 0.5 + 0.5 * confidence)
    bounds = (np.exp(log_gain + step * half) for step in (0.0, -1.0, 1.0))
    needs = {"bound": "at_edge", "theory": "gain_limit", "needs": NEEDED}
    variables = with_bounds("gain", bounds, GAIN, r"\nu_1/\nu_p", **needs)
    title, reason = "an optimum is at the edge of the learning rates used", "an optimum may lie beyond the scan"
    variables["at_edge"] = labelled(at_edge | at_edge.sel(**narrow), title, reason=reason)
    variables |= left_out(scan) | _theory(ds, dim)
    return xr.Dataset(variables).assign_attrs(confidence=confidence, max_lost=max_lost, along=dim)


def _theory(ds: xr.Dataset, dim: str) -> dict[str, xr.DataArray]:
    """Return the gains of three theories, labelled, NaN where they do not hold; `dim` scans the learning rate."""
    applies, p, d, Delta, T = escape_of(ds, dim)
    gains = {
        "gain_limit": (theory.overparametrisation_gain(p, Delta), f"{GAIN} for d → ∞"),
        "gain_quenched": (gain_of("quenched", p, d, Delta, T), f"{GAIN}, quenched theory"),
        "gain_noise_corrected": (gain_of("noise_corrected", p, d, Delta, T), f"{GAIN}, noise-corrected theory"),
    }
    return {name: labelled(gain.where(applies), title, r"\nu_1/\nu_p") for name, (gain, title) in gains.items()}


def gain_of(kind: str, p: Any, d: Any, Delta: Any, T: Any) -> Any:
    """Return the gain for `quenched` or `noise_corrected` exit times, each width at its own optimal learning rate."""
    best = {
        "quenched": lambda width: theory.optimal_learning_rate(width, Delta),
        "noise_corrected": lambda width: theory.noise_corrected_optimal_learning_rate(width, d, Delta, T),
    }[kind]
    time = getattr(theory, f"{kind}_exit_time")

    def steps(width: Any) -> Any:
        """Return steps to the exit over d, time · p/γ, of a width at its optimal learning rate."""
        gamma = best(width)
        return time(gamma, width, d, Delta, T) * width / gamma

    # ones in the shape of p
    return steps(p**0) / steps(p)


def _outline(ds: Outline, *, along: str | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: gains along an axis p.

    InputError without the width 1 to compare.
    """
    dim = scan_dim(ds, along)
    if "p" not in ds.axes and ds.dims_of("p"):
        expected = "an axis p in `grid`"
        raise InputError("the widths have no axis of their own", key="p", value=ds.dims_of("p"), expected=expected)
    widths = list(ds.axes.get("p", [ds.attrs.get("p")]))
    if 1 not in widths:
        raise InputError("no width to compare with", key="p", value=widths, expected="1 among them")
    outline = passages_outline(ds, over=dim).along("p", widths)
    along_axes = tuple(dict.fromkeys((*outline.dims_of("exit_steps"), "p")))
    return outline.with_variables({"p": ("p",), "gain": along_axes}, along=dim)


ANALYSES.add(
    analysis_of(
        overparametrisation_gain,
        "Steps that wider students save, beside theory",
        outline=_outline,
        ends=EXITS_ONLY,
        headline="gain",
        quantities=["gain"],
    )
)
