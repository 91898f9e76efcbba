"""A variable of an analysis against a parameter of the problem, as one declaration with settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.seed_values import drawn_scan_dim
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import label
from sweeplib.pictures.figures.figure import Figure, Hue, Panel, Published, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Heights, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged, free_axes
from sweeplib.pictures.figures.kit.scales import logarithmic_along

OTHER_NAMES = {"T": "threshold"}
"""The coordinates, by the names that formulas of `sweeplib.networks.theory` have for them."""


def figure_against(name: str, caption: str, needs: tuple[str, ...], **settings: Any) -> Figure:
    """Return the figure of a variable of an analysis against a parameter, with options where, panel, hue, reference.

    needs : analyses, the first of which has the variable. settings : other arguments of `against`.
    """

    def declare(
        ds: Data,
        analyses: ByName,
        *,
        where: Where = None,
        panel: Panel = None,
        hue: Hue = None,
        reference: Published = (),
    ) -> Chart:
        """Declare the chart; the signature has the options of the figure."""
        facets = {"where": where, "panel": panel, "hue": hue}
        return against(ds, analyses, needs, facets, published=reference, **settings)

    return chart_figure(name, declare, caption, needs)


def against(
    ds: Data,
    analyses: ByName,
    needs: tuple[str, ...],
    facets: Mapping[str, Any],
    *,
    x: str,
    panels: str = "",
    hues: str = "",
    drawn_axes: tuple[str, ...] = (),
    layers: tuple[Layer, ...] = (),
    log: bool | None = None,
    **settings: Any,
) -> Chart:
    """Return the declaration of the variable `y` of the first analysis of `needs` against the parameter `x`.

    `facets` are the options where, panel and hue; `panels` and `hues` are the axes that are panels and colours without
    them, `drawn_axes` others that the figure draws, `layers` what is beside points of y, whose axis is logarithmic if
    `log`, and `settings` those of `Chart`. The learning rate is drawn along
    the axis that scans it. InputError if there is none, or if another parameter varies along other axes than its own.
    """
    outline, where = outline_of(analyses[needs[0]]), facets["where"]
    along = drawn_scan_dim(ds, where) if x == "gamma" else x
    if along == x and x not in outline.axes and outline.dims_of(x):
        problem = f"the {label(x)['long_name']} has no axis of its own"
        raise InputError(problem, value=outline.dims_of(x), expected=f"an axis {x}")
    free, panel, hue = free_axes(outline, where), facets["panel"], facets["hue"]
    hues = SWEEP if SWEEP in free - {panel} else hues
    panel = panel or (panels if panels in free and hue != panels else None)
    hue = hue or (hues if hues in free and panel != hues else None)
    split = arranged(outline, {"dynamics", along, *drawn_axes}, where, panel, hue)
    levels = (Level((Layer("points", settings["y"]), *layers), log=log),)
    settings = {"levels": levels, **settings}
    return Chart(
        x=x, needs=needs, split=split, log_x=lambda at: x != "gamma" or logarithmic_along(at, along), **settings
    )


def theory_along(function: Callable[..., Any], x: str, holds: str) -> Heights:
    """Return the heights of a formula of theory along x; its other arguments are parameters of the problem.

    They are NaN unless the variable `holds` of the data is positive everywhere.
    """
    names = [OTHER_NAMES.get(argument, argument) for argument in inspect.signature(function).parameters]

    def heights(series: xr.Dataset, places: np.ndarray) -> np.ndarray:
        """Return the heights (n,) at values `places` (n,) of x, for the part of the data of one colour."""
        applies = bool((series[holds] > 0.0).all())
        values = [places if argument == x else field(series, argument).values for argument in names]
        return np.where(applies, function(*values), np.nan)

    return heights
