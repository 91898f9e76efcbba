"""The step at which each teacher direction is learned: the first passage of its cosine with the students' span."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Treated, analysis_of
from sweeplib.analysis.averages import numbered, numbered_axes, steps_at_times
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.passages import recorded_passages
from sweeplib.analysis.kit.variables import require, statistics_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, values_of

Cosine = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="the cosine from which on a direction counts as learned, above that of random students, √(p/d).",
    ),
]
NAMES = FRACTION, MEDIAN = "learned_fraction", "learned_steps_median"
"""The variables of the analysis."""


def directions_learned(
    ds: xr.Dataset, *, threshold: Cosine = 0.2, confidence: Confidence = 0.95, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return when each teacher direction is learned: statistics over `seed` of the first steps with a large cosine.

    A direction is learned at the first recorded step at which subspace_cosine is at least `threshold`, which has to be
    above √(p/d), the cosine of random students. Runs in which it is not are censored at their last recorded step, and
    runs that diverge before never learn it. Runs that stop at their exits are refused: an exit says when the direction
    would be learned, so that the runs that go on do not represent those that stopped. Steps between recorded ones are
    not seen: record every step, or read the result as that of the recorded steps.
    learned_fraction (_low, _high): the Kaplan-Meier fraction at the last observed step, with its interval.
    learned_steps_median (_low, _high): the Kaplan-Meier median; NaN where fewer than half of the runs learned it.
    seeds_used, seeds_censored: runs used, and those of them that did not learn the direction. NaN where more than
    `max_lost` of the runs failed or were killed, and for directions beyond the teacher width of a point.
    """
    cosine = numbered(values_of(ds, "subspace_cosine"))
    sample = recorded_passages(ds, cosine, cosine >= threshold, steps_at_times(ds), max_lost)
    title, symbol = "fraction of runs that learned the direction", r"f_{\mathrm{learned}}"
    variables = with_bounds(FRACTION, sample.fraction(confidence), title, symbol)
    title, symbol = "median step at which the direction is learned", r"\mathrm{med}\,\nu_r"
    variables |= with_bounds(MEDIAN, sample.median(confidence), title, symbol) | sample.used_runs("learn the direction")
    return xr.Dataset(variables).assign_attrs(threshold=threshold, confidence=confidence, max_lost=max_lost)


def _outline(ds: Outline, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: numbers of each teacher direction."""
    require(ds, "subspace_cosine")
    return statistics_outline(numbered_axes(ds), "subspace_cosine", *NAMES)


ANALYSES.add(
    analysis_of(
        directions_learned,
        "The step at which each teacher direction is learned",
        overlaps=True,
        outline=_outline,
        ends=EXITS_ONLY | {"exit": Treated.refused},
        quantities=NAMES,
    )
)
