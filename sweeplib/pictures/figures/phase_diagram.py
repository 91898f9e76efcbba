"""The measured regimes of SGD over the exponents δ and κ, and the exponents of d that decide them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from sweeplib.analysis.regimes import MEASURES
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.theory.regimes import BOUNDARIES, REGIMES
from sweeplib.pictures.figures.figure import FIGURES, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.labels import axis_label, number
from sweeplib.pictures.figures.kit.legend import Entry
from sweeplib.pictures.figures.kit.quantities import is_added, with_rounds
from sweeplib.pictures.figures.kit.style import INK, UNDECIDED
from sweeplib.statistics.lost_runs import has_run

CAPTION = (
    "Regimes of SGD with γ = γ₀ d^−δ and p = p₀ d^κ. Left: the measured regime, by marker and colour; open where no "
    "regime has the requested confidence, with the marker of the likeliest; small where a round has added the point. "
    "Lines and tints: theory. Right: the measured exponents of d that decide, with their intervals, and the lines of "
    "theory; shaded: counted as zero."
)
LOOKS: dict[str, dict[str, Any]] = {
    "perfect_learning": {"color": "#2b9a93", "marker": "o", "markersize": 6.5},
    "plateau": {"color": "#e39b1f", "marker": "s", "markersize": 6.2},
    "bad_learning": {"color": "#c8452b", "marker": "v", "markersize": 7.0},
    "no_ode": {"color": "#14365f", "marker": "X", "markersize": 7.2},
}
"""The looks of regimes by name."""
OPEN = {"color": "#6a6a6a", "markerfacecolor": "white", "markeredgewidth": 1.0, "gid": "undecided"}
"""What makes the look of a regime that of an undecided point."""
TITLES = {name: name.replace("_", " ").replace("ode", "ODE") for name in LOOKS}
"""What a legend calls the regimes, by name."""
CLASSES: dict[int, Entry] = {
    REGIMES.index(name): (look | {"linestyle": "none", "gid": name}, TITLES[name]) for name, look in LOOKS.items()
}
CLASSES |= {-code: (look | OPEN, "undecided" * (code == 1)) for code, (look, _) in CLASSES.items()}
"""Looks by regime and, of points where it is undecided, by the negative of the likeliest one, with their texts."""
TINTS = {"no_ode": "#dfe5ee", "bad_learning": "#fbe9e5", "perfect_learning": "#e3f2f1"}
"""The colours of regions of theory, from the least κ + δ on."""
DASHES: dict[float, Any] = {BOUNDARIES[0]: "solid", BOUNDARIES[1]: (0, (5, 2))}
"""The dashes of the boundaries of theory, by their κ + δ."""
PLANE = ("delta", "kappa")
MARGIN = 0.3
"""The room above and below the exponents of theory for points; intervals may extend beyond."""
EDGES = (-np.inf, *sorted(BOUNDARIES), np.inf)
"""The κ + δ between which regions of theory lie."""
REGIONS = [
    Layer("region", low, TITLES[name], up="kappa", look=LOOKS[name] | {"until": high, "tint": tint})
    for (name, tint), (low, high) in zip(TINTS.items(), pairwise(EDGES), strict=True)
]
LINES = [
    Layer("sum", at, rf"$\kappa+\delta={number(at)}$", column=column, look={"linestyle": dash, "gid": f"{at}"})
    for column, (at, dash) in enumerate(DASHES.items())
]
POINTS = Layer("kinds", "code", up="kappa", look={"classes": CLASSES})
UPRIGHT = [Layer("upright", at, look={"linestyle": dash, "linewidth": 0.7}) for at, dash in DASHES.items()]
"""The layers of the regions and their boundaries over (δ, κ), of the points, and of the boundaries over κ + δ."""
THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
"""The look of exponents of theory."""


def phase_diagram(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare the regimes over (δ, κ), and the exponents over κ + δ; other axes need a value in `where`."""
    result = analyses["regimes"]
    outline = outline_of(result).only("regime")
    for name in PLANE:
        if name not in outline.axes:
            raise InputError("not an axis of this sweep", value=name, expected="delta and kappa in `grid`")
    split = arranged(outline, set(PLANE), where, spare=False, most=0)
    chart_options: dict[str, Any] = {
        "needs": ("regimes",),
        "split": split,
        "pictures": _picture,
        "log_axes": (),
    }
    exponents, labels = None, ["", ""]
    if not isinstance(result, Outline):
        labels = [axis_label(result[name]) for name in ("delta", "coupling_exponent")]
        levels = tuple(_exponents(split.selected(result), name) for name in MEASURES)
        size = (1.0, 1.0, 3.7)
        exponents = Chart("coupling_exponent", "regime", levels=levels, x_label=labels[1], size=size, **chart_options)
    return Chart(
        x="delta",
        y="kappa",
        z="regime",
        hover=("likeliest", "confidence", "regime_theory", *(f"{name}_exponent" for name in MEASURES)),
        lines=tuple((-1.0, at, f"κ + δ = {at:g}") for at in BOUNDARIES),
        colors={name: look["color"] for name, look in LOOKS.items()} | {"undecided": UNDECIDED},
        title="Regime of SGD over the exponents of width and learning rate",
        levels=(Level((POINTS, *REGIONS, *LINES), log=False),),
        x_label=labels[0],
        size=(1.5, 1.5, 3.7),
        beside=exponents,
        **chart_options,
    )


def _picture(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the regimes with the class of each point, and whether it has runs."""
    result, runs = with_rounds(analyses["regimes"], ds, "regime"), has_run(ds)
    regime, likeliest = (result[name].transpose(*PLANE, ...).astype(int) for name in ("regime", "likeliest"))
    # a round need not fill the grid of its values
    run = runs.any([dim for dim in runs.dims if dim not in regime.dims])
    code = regime.where(regime > 0, -likeliest.clip(1))
    return result.assign(code=code, run=run, added=regime.copy(data=is_added(result, regime)))


def _exponents(result: xr.Dataset, name: str) -> Level:
    """Return the level of the exponent of the measure `name`, beside that of theory; shaded where it counts as zero."""
    values, theory = result[f"{name}_exponent"], result[f"{name}_exponent_theory"].values
    symbol, finite = values.attrs["symbol"], theory[np.isfinite(theory)]
    top = max((array.max() for array in (finite, values.values[np.isfinite(values.values)]) if array.size), default=0.0)
    layers = (
        Layer("kinds", f"{name}_exponent", look={"classes": CLASSES}),
        Layer("path", f"{name}_exponent_theory", look=THEORY),
        Layer("shade", result.attrs["resolution"]),
        *UPRIGHT,
    )
    bottom, least = finite.min(initial=0.0) - MARGIN, np.nanmin(values.values, initial=0.0)
    limits = bottom if least > bottom else least - MARGIN, top + MARGIN
    title = rf"{result[name].attrs['long_name']} $\propto d^{{-{symbol}}}$"
    return Level(layers, label=f"${symbol}$", limits=limits, log=False, title=title)


FIGURES.add(chart_figure("phase_diagram", phase_diagram, CAPTION, ("regimes",)))
