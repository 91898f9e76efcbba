"""The limit that describes SGD, as a function of learning rate and dimension, in one panel per width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.seed_values import drawn_scan_dim, scan_dim, scan_dims
from sweeplib.analysis.kit.variables import need_axis
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.pictures.figures.figure import FIGURES, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged, free_axes
from sweeplib.pictures.figures.kit.legend import Entry
from sweeplib.pictures.figures.kit.quantities import is_added, is_asked, with_rounds
from sweeplib.pictures.figures.kit.style import UNDECIDED
from sweeplib.statistics.labelled import labelled

CAPTION = (
    "The simplest limit that describes SGD: the mean of SGD deviates from it by less than the scatter of runs, and "
    "the scatter is less than half (by default) of the change of the risk. Cells reach half way to the next point. "
    "Open: undecided, for the reason in the legend. Small: points that rounds have added. Lines, of which theory "
    "gives only the slopes: gradient flow deviates by γ/p, runs scatter by √(γ/(pd)); and one step changes Q by more "
    "than Q itself."
)
LOOKS: dict[str, dict[str, Any]] = {
    "gradient_flow": {"color": "#2b9a93", "marker": "o", "markersize": 4.6},
    "ode": {"color": "#e39b1f", "marker": "s", "markersize": 4.4},
    "mean_field_hd": {"color": "#8c5fb0", "marker": "h", "markersize": 4.8},
    "mean_field": {"color": "#c8452b", "marker": "D", "markersize": 4.2},
}
"""The looks of limits, by the names of their dynamics."""
OTHERS: tuple[dict[str, Any], ...] = (
    {"color": "#7fb8e6", "marker": "v", "markersize": 4.8},
    {"color": "#5a5a5a", "marker": "P", "markersize": 4.8},
)
"""The looks of candidates that are not built in, in their order."""
NONE: dict[str, Any] = {"color": "#14365f", "marker": "X", "markersize": 5.2}
OPEN = {"color": "#6a6a6a", "marker": "o", "markersize": 4.6, "markerfacecolor": "white", "markeredgewidth": 0.8}
LOST, UNRUN = OPEN | {"marker": "s"}, OPEN | {"marker": "D"}
UNDECIDED_BY: tuple[tuple[dict[str, Any], str], ...] = (
    (OPEN, "undecided: more seeds may tell"),
    (LOST, "undecided: runs were lost"),
    (UNRUN, "undecided: what may decide was not run"),
)
"""The marks of points without a limit, by the reason, and their texts."""
POWERS = ((-1.0, r"$\gamma/p=1/d$", "solid"), (0.5, r"$\gamma/p=\sqrt{d}$", (0, (5, 2))))
"""The power of d that γ/p is along a line of theory, its text and its dashes."""
LINES = [
    Layer("power", power, text, column=column, look={"linestyle": dashes, "gid": text})
    for column, (power, text, dashes) in enumerate(POWERS)
]
"""The layers of the lines of theory."""


def limits_diagram(ds: Data, analyses: ByName, *, where: Where = None) -> Chart:
    """Declare the limits over (γ/p, d), with one panel per width p; other axes need a value in `where`."""
    outline = outline_of(analyses["limits"])
    limit = outline.only("limit")
    need_axis(limit, "d")
    panel = "p" if "p" in free_axes(limit, where) else None
    axes = {drawn_scan_dim(outline, where), "d"}
    split = arranged(limit, axes, where, panel, spare=False, most=1 if panel else 0)
    classes = _classes(list(map(str, outline.axes["candidate"])))
    return Chart(
        x="ratio",
        y="d",
        z="limit",
        data=limits_map,
        needs=("limits",),
        hover=("gamma", "bias_least", "spread"),
        colors={"undecided": UNDECIDED, "none": NONE["color"]} | {name: look["color"] for name, look in LOOKS.items()},
        title="Simplest limit that describes SGD over learning rate and dimension",
        split=split,
        pictures=lambda ds, results: _picture(with_rounds(results["limits"], ds, "limit")),
        levels=(Level((Layer("classes", "code", x="ratio", up="d", look={"classes": classes}), *LINES), log=False),),
        log_axes=("x", "y"),
        size=(2.1, 3.8, 3.0),
    )


def _picture(result: xr.Dataset) -> xr.Dataset:
    """Return the class of each point, whether it was run, and whether the config or a round has asked for it."""
    limit, run = result["limit"], _was_run(result)
    lost = result["bias"].isnull().any("candidate") & (result["seeds_lost"] > 0).any("candidate")
    # minus the place of the reason in UNDECIDED_BY
    undecided = xr.where(result["decidable"] == 0.0, -2, xr.where(lost, -1, 0))
    code = limit.where(limit != 0, undecided).assign_attrs(limit.attrs)
    wanted, added = (limit.copy(data=which(result, limit)) for which in (is_asked, is_added))
    ratio = labelled(field(result, "gamma") / field(result, "p"), "", r"\gamma/p")
    names = {"code": code, "run": run, "wanted": wanted, "added": added}
    return result.assign(names).assign_coords(ratio=ratio)


def _was_run(result: xr.Dataset) -> xr.DataArray:
    """Return a mask: where the compared dynamics were run, even if too many of their runs were lost."""
    return (result["bias"].notnull() | (result["seeds_lost"] > 0)).any("candidate")


def _classes(names: Sequence[str]) -> dict[int, Entry]:
    """Return the looks of points by code, and their texts: candidates, none of them, undecided for a reason."""
    others = [name for name in names if name not in LOOKS]
    looks = [LOOKS.get(name) or OTHERS[others.index(name) % len(OTHERS)] for name in names]
    limits = [*zip(looks, map(dynamics_label, names), strict=True), (NONE, "no limit")]
    classes = dict(enumerate(limits, start=1)) | {-place: reason for place, reason in enumerate(UNDECIDED_BY)}
    return {code: (look | {"linestyle": "none", "gid": f"code-{code}"}, text) for code, (look, text) in classes.items()}


def limits_map(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the limits over d and γ/p, or the scanned axis if γ/p depends on other axes too.

    Of several axes that vary γ it is the longest.
    bias_least and spread are the least of the candidates.
    """
    result = analyses["limits"]
    need_axis(outline_of(result), "d")
    several = scan_dims(outline_of(result))
    scan = max(several, key=result.sizes.__getitem__) if len(several) > 1 else scan_dim(result)
    ratio = field(result, "gamma") / field(result, "p")
    alone = ratio.isel(dict.fromkeys((dim for dim in ratio.dims if dim != scan), 0), drop=True)
    x = labelled(alone, "γ/p") if bool((abs(ratio / alone - 1.0) < 1e-9).all()) else result[scan]
    limit = result["limit"].where(_was_run(result))
    parts = {"limit": limit.assign_attrs(result["limit"].attrs)}
    parts["bias_least"] = labelled(result["bias"].min("candidate"), "least deviation of a limit over the scatter")
    parts["spread"] = labelled(result["spread"].min("candidate"), "least scatter over the change of the risk")
    return xr.Dataset(parts).assign_coords(ratio=x, gamma=field(result, "gamma"), p=field(result, "p"))


FIGURES.add(chart_figure("limits_diagram", limits_diagram, CAPTION, ("limits",)))
