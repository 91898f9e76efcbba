"""The number of samples needed to leave the start, as a function of the dimension."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, analysis_of
from sweeplib.analysis.kit.information import expected_laws, information_exponents, largest_exponent
from sweeplib.analysis.kit.options import CensoredPart, Confidence, LostPart, Part, RandomSeed, Resamples
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.variables import need_axis, passages_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.bootstrap import resampling_of
from sweeplib.statistics.fits import FEWEST_POINTS, MISFIT
from sweeplib.statistics.growth_laws import growth_of, laws
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.laws import law_along
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.seed_means import with_error

Deviating = Annotated[
    Part,
    Field(description="relative deviation of each point from the fitted law that is allowed in addition to its error."),
]
SYMBOL = r"\langle\nu_{\mathrm{ext}}\rangle/d"
"""The symbol of `steps_over_d`."""
FITTED = {
    "reduced_chi2": MISFIT,
    "best_law": ("information exponent whose law fits best",),
    "law_offset": ("offset of the law",),
    "law_amplitude": ("amplitude of the law",),
    "law_chi2": ("chi-squared of the law", r"\chi^2"),
}
"""Names and labels of the numbers of a `Growth` that follow its exponent."""


def sample_complexity(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    resamples: Resamples = 2000,
    random_seed: RandomSeed = 0,
    max_censored: CensoredPart = 0.02,
    max_lost: LostPart = MOST_LOST,
    tolerance: Deviating = 0.02,
) -> xr.Dataset:
    """Return the growth of the mean exit steps n with d, per dynamics, threshold and point of the other axes.

    steps_over_d, steps_over_d_error: n/d and its standard error. NaN, and left out of all fits, where more than
    `max_censored` of the runs did not exit before their end or time limit (seeds_censored), or more than `max_lost`
    failed or were killed (seeds_lost).
    exponent (_low, _high): x of n ∝ d^x, weighted least squares of logarithms, at dimensions with three runs or more.
    The interval is from a wild bootstrap over the seeds; it is wider by √(χ²/n) and Student's t where the points
    scatter more than their errors (`fits`; reduced_chi2 is χ²/n). Two dimensions fit any power, without an interval.
    law_offset, law_amplitude, law_chi2, along `law`, an information exponent κ: fits of n/d = offset + amplitude g(d),
    where g is 0 (κ = 1), log d (κ = 2) or d^(κ−2) (κ ≥ 3). `tolerance` · n/d is added in quadrature to the errors of
    n/d, for the terms that the laws neglect. best_law: the law of least χ² + 2 · (number of parameters), for three
    dimensions or more (`growth_laws`).
    The coordinate information_exponent is that of student and teacher together; expected_law is the same, where theory
    predicts its law for these starts, widths and learning rates (arXiv 2003.10409; `information`).
    """
    sample, exponents = passages(ds, "steps", max_lost), information_exponents(ds)
    ratio, tried = sample.of_most(max_censored) / ds["d"], laws(float(exponents.max()))
    settings = {"resampling": resampling_of(ds.sizes["seed"], resamples, random_seed, confidence), "tried": tried}
    growth = law_along("d", ratio, ds["d"].astype(float), growth_of, "law", tolerance=tolerance, **settings)
    title, needs = "mean exit steps per dimension", f"{FEWEST_POINTS} dimensions at which three runs or more exited"
    variables = with_error("steps_over_d", ratio, title, SYMBOL, error_symbol=rf"\mathrm{{se}}\,{SYMBOL}")
    variables |= sample.counts(ds)
    variables |= with_bounds("exponent", growth[:3], "exponent of the mean exit steps", "x", needs=needs)
    variables |= {name: labelled(array, *FITTED[name]) for name, array in zip(FITTED, growth[3:], strict=True)}
    variables["expected_law"] = expected_laws(ds)
    law = labelled(xr.DataArray(list(tried), dims="law"), "law of an information exponent")
    result = xr.Dataset(variables).assign_coords(law=law, information_exponent=exponents)
    return result.assign_attrs(confidence=confidence, max_lost=max_lost)


def _outline(ds: Outline, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: steps at each d, an exponent, fits along `law`."""
    need_axis(ds, "d")
    outline = passages_outline(ds, "steps_over_d").along("law", laws(largest_exponent(ds)))
    exponent = tuple(dim for dim in outline.dims_of("exit_steps") if dim != "d")
    return outline.with_variables({"exponent": exponent})


ANALYSES.add(
    analysis_of(
        sample_complexity,
        "Growth of the mean exit steps with the input dimension",
        outline=_outline,
        ends=EXITS_ONLY,
        headline="exponent",
        quantities={"exit_steps_exponent": "exponent"},
    )
)
