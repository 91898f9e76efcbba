"""The gain of overparametrisation against the width: steps of one unit over steps of p, each at its optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.figures.figure import FIGURES, Hue, Panel, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.facets import measured_dynamics, over_width
from sweeplib.figures.kit.points import Curve, Level, Points
from sweeplib.figures.kit.style import INK, THEORY_DASHES, line_look
from sweeplib.late_modules import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CAPTION = (
    "The least mean exit steps of one student unit over those of p units, each at its own optimal learning rate, with "
    "bootstrap intervals over the seeds; open triangles where an optimum may lie beyond the scanned learning rates, so "
    "that the gain is a bound; ∅ on the axis: no value. Dashed: theory for d → ∞, with the limit (12 + Δ)/(2 + Δ), the "
    "tick on the right; solid: theory with the noise of SGD at this d. Points of several colours are shifted sideways."
)


def overparametrisation_gain(
    ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None
) -> Points:
    """Declare the gain against p; by default with a panel for each d and a colour for each Δ."""
    split = over_width(analyses["overparametrisation_gain"], where, panel, hue)

    def limits(axes: Axes, part: xr.Dataset) -> None:
        for index, one in split.colours(part):
            if bool(one["gain_limit"].notnull().all()):
                limit = theory.overparametrisation_gain(np.inf, float(field(one, "Delta")))
                tick: dict[str, Any] = {"linewidth": 1.8, "transform": axes.get_yaxis_transform(), "clip_on": False}
                axes.plot([0.97, 1.0], [limit] * 2, **tick | line_look(index, "end"))

    curves = (
        Curve("limit", r"theory, $d\to\infty$", _limit, THEORY_DASHES["quenched"]),
        Curve("corrected", "noise-corrected theory", "gain_noise_corrected"),
    )
    return Points(
        x="p",
        y="gain",
        needs=("overparametrisation_gain",),
        hover=("gain_limit", "gain_quenched", "at_edge"),
        theory="gain_noise_corrected",
        split=split,
        levels=(Level("gain", curves, log=True, marks=limits),),
        more=lambda _, __, data: data.sel(dynamics=stochastic_or_all(data, "gain")),
        log_x=lambda _: True,
        aside=True,
        entries=(({"color": INK, "linewidth": 1.8, "gid": "end"}, r"$p\to\infty$: $(12+\Delta)/(2+\Delta)$"),),
    )


def stochastic_or_all(data: xr.Dataset, name: str) -> list[str]:
    """Return the stochastic dynamics with a value of the variable `name`, or all with a value if there is none."""
    known = measured_dynamics(data, name)
    return [kind for kind in known if is_stochastic(kind)] or known


def _limit(one: xr.Dataset, p: np.ndarray) -> np.ndarray:
    known = bool(one["gain_limit"].notnull().all())
    return np.where(known, theory.overparametrisation_gain(p, float(field(one, "Delta"))), np.nan)


FIGURES.add(
    chart_figure("overparametrisation_gain", overparametrisation_gain, CAPTION, ("overparametrisation_gain",)),
)
