"""The risk at the end of runs against the learning rate, compared to the floor of theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.scan import drawn_scan_dim
from sweeplib.figures.figure import FIGURES, Hue, Panel, Published, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.facets import arranged
from sweeplib.figures.kit.points import Curve, Level, Points
from sweeplib.figures.kit.scales import logarithmic_along
from sweeplib.figures.kit.style import DIM
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import Outline, outline_of
from sweeplib.theory import asymptotic_risk

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CAPTION = (
    "Mean population risk over the last part of the runs against the learning rate, with standard errors over the "
    "seeds; ∅ on the axis: no value. Solid: the floor γΔ/(1 − 6γ) of theory. Below: the ratio to theory."
)


def risk_floor(
    ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None, reference: Published = ()
) -> Points:
    """Declare the final risk against γ, and below, where theory applies, its ratio to theory."""
    found, dim = analyses["risk_floor"], drawn_scan_dim(ds, where)
    split = arranged(found, {"dynamics", dim}, where, panel, hue)
    floor = Curve(
        "theory",
        r"theory, $\gamma\Delta/(1-6\gamma)$",
        _floor,
        once=split.hue not in outline_of(found).dims_of("Delta"),
    )
    levels = [Level("risk_floor", (floor,), log=True)]
    if not isinstance(found, Outline) and bool((split.selected(found["risk_floor_theory"]) > 0.0).any()):
        ratio = Level(
            "risk_floor", over="positive_floor", label="over theory", at=1.0, marks=_without, height=1.0 / 2.2
        )
        levels.append(ratio)
    return Points(
        x="gamma",
        y="risk_floor",
        needs=("risk_floor",),
        hover=("risk_drift",),
        theory="risk_floor_theory",
        split=split,
        levels=tuple(levels),
        more=lambda _, __, data: data.assign(positive_floor=data["risk_floor_theory"].where(lambda floor: floor > 0.0)),
        log_x=lambda gamma: logarithmic_along(gamma, dim),
        published=reference,
    )


def _floor(one: xr.Dataset, gamma: np.ndarray) -> np.ndarray:
    applies = bool((one["risk_floor_theory"] > 0.0).any())
    return asymptotic_risk(gamma, field(one, "Delta").values) if applies else np.full(gamma.shape, np.nan)


def _without(axes: Axes, part: xr.Dataset) -> None:
    """Say in a panel without any ratio why there is none."""
    if not bool(part["positive_floor"].notnull().any()):
        axes.text(0.5, 0.5, "no floor in theory", color=DIM, transform=axes.transAxes, ha="center", va="center")


FIGURES.add(chart_figure("risk_floor", risk_floor, CAPTION, ("risk_floor",)))
