"""Mean exit steps over d against d, with the growth that the information exponent predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.analysis.kit.growth_laws import growth
from sweeplib.figures.figure import FIGURES, Hue, Panel, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.facets import arranged
from sweeplib.figures.kit.labels import dynamics_order
from sweeplib.figures.kit.points import Curve, Level, Points
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import outline_of

CAPTION = (
    "Mean number of steps to the exit over the input dimension, with standard errors over the seeds; ∅ on the axis: "
    "no value. Curves: the law that the information exponent κ of student and teacher predicts, fitted to the first "
    "dynamics with three dimensions; drawn only where starts and learning rates scale as the law requires."
)
DASHES: dict[int, Any] = {1: (0, (1, 1.2)), 2: (0, (5, 2)), 3: "solid"}
HIGHER: Any = (0, (6, 1.5, 1, 1.5))
STEPS = r"\langle\nu_{\mathrm{ext}}\rangle/d"
FORMULAS = {1: "a", 2: r"a+b\,\log d", 3: r"a+b\,d"}


def sample_complexity(
    ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None
) -> Points:
    """Declare n/d against d; axes that are not selected or drawn are fixed at their middle value."""
    found = analyses["sample_complexity"]
    laws = tuple(map(_law, range(1, 1 + max(map(int, outline_of(found).axes["law"])))))
    return Points(
        x="d",
        y="steps_over_d",
        needs=("sample_complexity",),
        hover=("exponent", "information_exponent", "expected_law"),
        split=arranged(found, {"dynamics", "d", "law"}, where, panel, hue),
        levels=(Level("steps_over_d", laws, from_zero=True),),
        log_x=lambda _: True,
    )


def _law(exponent: int) -> Curve:
    def heights(one: xr.Dataset, d: np.ndarray) -> np.ndarray:
        if one["expected_law"].item() != exponent:
            return np.full(d.shape, np.nan)
        fits = one.sel(law=exponent, dynamics=dynamics_order(one["dynamics"].values))
        fit = fits.isel(dynamics=int(np.argmax(fits["law_offset"].notnull().values)))
        curve = fit["law_offset"].item() + fit["law_amplitude"].item() * growth(exponent, d)
        return np.where(curve > 0.0, curve, np.nan)

    formula = FORMULAS.get(exponent, rf"a+b\,d^{exponent - 2}")
    label = rf"fit for $\kappa={exponent}$: ${STEPS}={formula}$"
    return Curve(f"law-{exponent}", label, heights, DASHES.get(exponent, HIGHER))


FIGURES.add(chart_figure("sample_complexity", sample_complexity, CAPTION, ("sample_complexity",)))
