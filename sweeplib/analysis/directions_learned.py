"""The step at which each teacher direction is learned: the first passage of its cosine with the students' span."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Analysis, Treated
from sweeplib.analysis.averages import numbered, steps_at_times
from sweeplib.analysis.exit_times import exit_medians, exited_fractions
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.passages import Passages, recorded_passages
from sweeplib.analysis.kit.variables import require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, values_of

Cosine = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="the cosine from which on a direction counts as learned, above that of random students, √(p/d).",
    ),
]


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
    sample = learning_steps(ds, threshold, max_lost)
    counted = sample.used.sum("seed")
    fractions = with_bounds(
        "learned_fraction",
        (fraction.where(counted > 0) for fraction in exited_fractions(sample, confidence)),
        "fraction of runs that learned the direction",
        r"f_{\mathrm{learned}}",
    )
    symbol = r"\mathrm{med}\,\nu_r"
    long_name = "median step at which the direction is learned"
    medians = with_bounds("learned_steps_median", exit_medians(sample, confidence), long_name, symbol)
    counts = {
        "seeds_used": labelled(counted, "runs used"),
        "seeds_censored": labelled(sample.censored().sum("seed"), "runs used that did not learn the direction"),
    }
    attrs = {"threshold": threshold, "confidence": confidence, "max_lost": max_lost}
    return xr.Dataset(fractions | medians | counts).assign_attrs(attrs)


def learning_steps(ds: xr.Dataset, threshold: float, max_lost: float) -> Passages:
    """Return, per seed and teacher direction, the first recorded steps at which the cosine is at least `threshold`."""
    cosine = numbered(values_of(ds, "subspace_cosine"))
    return recorded_passages(ds, cosine, cosine >= threshold, steps_at_times(ds), max_lost)


def _outline(ds: Outline, **_: Any) -> Outline:
    require(ds, "subspace_cosine")
    directions = range(1, len(ds.axes["teacher"]) + 1)
    outline = ds.along("teacher", directions).only("subspace_cosine").without("seed", "time")
    along_axes = outline.dims_of("subspace_cosine")
    return outline.with_variables(dict.fromkeys(("learned_fraction", "learned_steps_median"), along_axes))


ANALYSES.add(
    Analysis(
        "directions_learned",
        directions_learned,
        "The step at which each teacher direction is learned",
        overlaps=True,
        outline=_outline,
        ends=EXITS_ONLY | {"exit": Treated.refused},
        quantities={name: name for name in ("learned_fraction", "learned_steps_median")},
    ),
)
