"""The measured regimes of SGD over the exponents δ and κ, and the exponents of d that decide them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.regimes import MEASURES
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.networks.theory.regimes import BOUNDARIES, REGIMES
from sweeplib.pictures.figures.figure import FIGURES, Figure, Where
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.labels import axis_label, number
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.rounds import ADDED_SIZE, is_added, with_rounds
from sweeplib.pictures.figures.kit.style import FAINT, INK, TEXT_WIDTH, UNDECIDED
from sweeplib.statistics.lost_runs import has_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

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
OPEN = {"color": "#6a6a6a", "markerfacecolor": "white", "markeredgewidth": 1.0}
TINTS = {"no_ode": "#dfe5ee", "bad_learning": "#fbe9e5", "perfect_learning": "#e3f2f1"}
DASHES: dict[float, Any] = {BOUNDARIES[0]: "solid", BOUNDARIES[1]: (0, (5, 2))}
PLANE = ("delta", "kappa")
CHARACTER = 0.0165
"""The width of a character, as a fraction of the width of the diagram."""
MARGIN = 0.3
"""The room above and below the exponents of theory for points; intervals may extend beyond."""


def phase_diagram(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare the regimes over (δ, κ), and the exponents over κ + δ; other axes need a value in `where`."""
    outline = outline_of(analyses["regimes"]).only("regime")
    for name in PLANE:
        if name not in outline.axes:
            raise InputError("not an axis of this sweep", value=name, expected="delta and kappa in `grid`")
    split = arranged(outline, set(PLANE), where, spare=False, most=0)
    return Chart(
        x="delta",
        y="kappa",
        z="regime",
        needs=("regimes",),
        hover=("likeliest", "confidence", "regime_theory", *(f"{name}_exponent" for name in MEASURES)),
        lines=tuple((-1.0, at, f"κ + δ = {at:g}") for at in BOUNDARIES),
        colors={name: look["color"] for name, look in LOOKS.items()} | {"undecided": UNDECIDED},
        title="Regime of SGD over the exponents of width and learning rate",
        split=split,
    )


def picture(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, where: Where = None) -> Drawing:
    """Return the diagram and, beside it, the exponents: axes of two kinds, which are no levels of layers."""
    split = phase_diagram(ds, analyses, where=where).split
    return _painted(split.selected(_with_runs(with_rounds(analyses["regimes"], ds, "regime"), ds)))


def _with_runs(result: xr.Dataset, ds: xr.Dataset) -> xr.Dataset:
    """Return the regimes with `was_run`, whether a point has runs: a round need not fill the grid of its values."""
    run = has_run(ds)
    return result.assign(was_run=run.any([dim for dim in run.dims if dim not in result["regime"].dims]))


def _painted(result: xr.Dataset) -> Drawing:
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(TEXT_WIDTH, 3.7), layout="constrained")
    grid = drawing.add_gridspec(len(MEASURES), 2, width_ratios=(1.5, 1.0))
    _plane(drawing.add_subplot(grid[:, 0]), result)
    panels = [drawing.add_subplot(grid[row, 1]) for row in range(len(MEASURES))]
    for axes, name in zip(panels, MEASURES, strict=True):
        _exponents(axes, result, name)
        axes.tick_params(labelbottom=axes is panels[-1])
    panels[-1].set_xlabel(axis_label(result["coupling_exponent"]))
    legend_below(drawing, [[_entry(name)] for name in (*LOOKS, "undecided")] + [[_line(at)] for at in BOUNDARIES])
    return drawing


def _plane(axes: Axes, result: xr.Dataset) -> None:
    limits = [_limits(result[name]) for name in PLANE]
    _regions(axes, *limits)
    _names(axes, result, limits[0])
    for point in _points(result):
        place = point["delta"].item(), point["kappa"].item()
        axes.plot(*place, linestyle="none", zorder=4, gid=REGIMES[point["regime"].item()], **_look(point))
    axes.set(xlim=limits[0], ylim=limits[1], xlabel=axis_label(result["delta"]), ylabel=axis_label(result["kappa"]))


def _limits(axis: xr.DataArray) -> tuple[float, float]:
    """Return limits half a step beyond the values of an axis."""
    values = axis.values.astype(float)
    margin = 0.5 * (values.max() - values.min()) / max(len(values) - 1, 1) or 0.5
    return float(values.min()) - margin, float(values.max()) + margin


def _regions(axes: Axes, delta: tuple[float, float], kappa: tuple[float, float]) -> None:
    """Draw the regions of theory in tints, between the lines of its boundaries."""
    ends = np.array(kappa)
    edges = [np.full(2, delta[0]), *(boundary - ends for boundary in sorted(BOUNDARIES)), np.full(2, delta[1])]
    for colour, left, right in zip(TINTS.values(), edges, edges[1:], strict=False):
        axes.fill_betweenx(ends, np.clip(left, *delta), np.clip(right, *delta), color=colour, linewidth=0, zorder=0)
    for boundary, dash in DASHES.items():
        axes.plot(boundary - ends, ends, color=INK, linestyle=dash, linewidth=1.3, zorder=2, gid=f"{boundary}")


def _names(axes: Axes, result: xr.Dataset, delta: tuple[float, float]) -> None:
    """Write the names of the regions between two rows of markers, where there is most room."""
    rows = np.unique(result["kappa"].values.astype(float))
    gaps = sorted(0.5 * (rows[1:] + rows[:-1]), key=lambda kappa: abs(kappa - rows.mean()))
    edges = (delta[0], *sorted(BOUNDARIES), delta[1])
    for name, lower, upper in zip(TINTS, edges, edges[1:], strict=False):
        room = []
        for kappa in gaps:
            left = lower if lower == delta[0] else lower - kappa
            right = upper if upper == delta[1] else upper - kappa
            room.append((right - max(left, delta[0]), 0.5 * (right + max(left, delta[0])), kappa))
        if room:
            _, middle, kappa = max(room, key=lambda gap: round(gap[0], 9))
            style = {"color": LOOKS[name]["color"], "style": "italic", "ha": "center", "va": "center", "zorder": 3}
            title = _region_title(name)
            if max(room)[0] <= 0.0:  # the region is beyond the values of δ
                continue
            narrow = max(room)[0] < CHARACTER * len(title) * (delta[1] - delta[0])
            axes.text(middle, kappa, title.replace(" ", "\n") if narrow else title, **style)


def _exponents(axes: Axes, result: xr.Dataset, name: str) -> None:
    values, theory = result[f"{name}_exponent"], result[f"{name}_exponent_theory"]
    order = np.argsort(result["coupling_exponent"].values, axis=None)
    at, expected = result["coupling_exponent"].values.ravel()[order], theory.values.ravel()[order]
    zero = result.attrs["resolution"]
    axes.axhspan(-zero, zero, color="#e9e9e9", linewidth=0, zorder=0)
    axes.plot(at, expected, color=INK, linewidth=1.0, zorder=2)
    for boundary, dash in DASHES.items():
        axes.axvline(boundary, color=FAINT, linestyle=dash, linewidth=0.7, zorder=0)
    for point in _points(result):
        _with_interval(axes, point, name)
    finite = expected[np.isfinite(expected)], values.values[np.isfinite(values.values)]
    highest = max((numbers.max() for numbers in finite if numbers.size), default=0.0)
    axes.set_ylim(finite[0].min(initial=0.0) - MARGIN, highest + MARGIN)
    axes.set_ylabel(f"${values.attrs['symbol']}$")
    axes.set_title(f"{result[name].attrs['long_name']} $\\propto d^{{-{values.attrs['symbol']}}}$", fontsize=8)


def _with_interval(axes: Axes, point: xr.Dataset, name: str) -> None:
    value, low, high = (point[f"{name}_exponent{bound}"].item() for bound in ("", "_low", "_high"))
    style = _look(point) | {"linestyle": "none", "markersize": 3.4, "markeredgewidth": 0.7}
    errors = np.clip([[value - low], [high - value]], 0.0, None)
    axes.errorbar(point["coupling_exponent"].item(), value, errors, elinewidth=0.6, capsize=0, zorder=3, **style)


def _points(result: xr.Dataset) -> list[xr.Dataset]:
    """Return the points that have runs."""
    flat = result.drop_dims(["d", "candidate"], errors="ignore").stack(place=PLANE, create_index=False)
    return [flat.isel(place=place) for place in np.flatnonzero(flat["was_run"].values)]


def _look(point: xr.Dataset) -> dict[str, Any]:
    """Return marker and colour of the regime; open and grey where it is undecided, small where a round added it."""
    name, likeliest = REGIMES[point["regime"].item()], REGIMES[point["likeliest"].item()]
    look = LOOKS[name] if name in LOOKS else LOOKS.get(likeliest, LOOKS["perfect_learning"]) | OPEN
    return look | {"markersize": ADDED_SIZE * look["markersize"]} if is_added(point, point["regime"]).all() else look


def _entry(name: str) -> Entry:
    look = LOOKS.get(name, LOOKS["perfect_learning"] | OPEN)
    return look | {"linestyle": "none", "gid": name}, _region_title(name)


def _region_title(name: str) -> str:
    return name.replace("_", " ").replace("ode", "ODE")


def _line(boundary: float) -> Entry:
    return {"color": INK, "linestyle": DASHES[boundary], "gid": f"{boundary}"}, rf"$\kappa+\delta={number(boundary)}$"


FIGURES.add(Figure("phase_diagram", picture, CAPTION, ("regimes",), phase_diagram, phase_diagram))
