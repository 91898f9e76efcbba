"""The risk along runs of every dynamics that was run, with the spread over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sweeplib.analysis.kit.problem_fields import field, ones, with_plain_steps
from sweeplib.analysis.kit.variables import is_stochastic, require
from sweeplib.engine.base.arrays import DECADE, geometric
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.networks.theory import least_network_risk
from sweeplib.pictures.figures.figure import FIGURES, Hue, LogAxes, Panel, Published, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged
from sweeplib.pictures.figures.kit.labels import axis_label
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.scales import above_error, is_log
from sweeplib.pictures.figures.kit.style import DASHES, Looks
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import has_run, sample_of, values_of, without_value

CAPTION = (
    "Population risk against time: the median over the seeds of each dynamics, with a band from the 10 % to the 90 % "
    "quantile for stochastic dynamics. Dynamics without noise: thin dark lines on top. Curves end where more than 2 % "
    "of the runs have no value because they stopped at their exits, diverged, timed out or became inaccurate. A "
    "logarithmic axis has no place for the time 0, and for risks that are not above their error. Dash-dotted and "
    "level, for two Gaussians: the least risk of students of any width."
)
BAND = (0.1, 0.5, 0.9)
"""The levels of the quantiles: the ends of the band, and the median."""
DARKER, LIGHTER = 0.6, 0.55
"""The parts of a colour that are left in thin dark lines, and in the broad light line."""
LEAST: dict[str, Any] = {"linestyle": (0, (6, 2, 1, 2)), "linewidth": 0.9, "zorder": 1, "gid": "least"}
"""The look of the level of the least risk."""
LAYERS = Layer("marked", "risk"), Layer("band", "risk"), Layer("level", "least", "least at infinite width", look=LEAST)
"""The layers of the picture: medians, bands and the least risk."""


def risk_curves(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    log_axes: LogAxes = None,
    reference: Published = (),
) -> Chart:
    """Declare the risk against time; axes that are not selected or drawn are fixed at their middle value."""
    require(ds, "risk")
    split = arranged(outline_of(ds).only("risk"), {"dynamics", "seed", "time"}, where, panel, hue)
    label = "" if isinstance(ds, Outline) else axis_label(ds["risk"])
    return Chart(
        x="time",
        y="risk",
        data=partial(risk_bands, log_axes=log_axes),
        split=split,
        published=reference,
        levels=(Level(LAYERS, label=label, wide=DECADE, range="runs"),),
        more=lambda ds, _, data: data.assign(runs=_risks(ds, log_axes), least=least_risk(ds)),
        log_x=lambda times: is_log("x", log_axes, geometric(times.values)),
        size=(2.4, 4.0, 2.6),
        looks=LOOKS,
        log_axes=log_axes,
    )


def risk_quantiles(ds: xr.Dataset, levels: Sequence[float]) -> xr.DataArray:
    """Return quantiles of the risk over the seeds at `levels`, a dim `quantile`; NaN where too many runs have no value.

    The remaining runs are then not a random sample (`analysis.lost_runs`).
    """
    sample = sample_of(values_of(ds, "risk"), ds, of_means=False)
    has_value = sample.notnull().any("seed")
    # quantiles of nothing but NaN would warn
    return sample.where(has_value, 0.0).quantile(list(levels), "seed").where(has_value)


def _look(name: str, names: list[str], look: dict[str, Any]) -> dict[str, Any]:
    """Return the look of a dynamics, for `Looks`, from the look of its colour; `names` are all that are drawn.

    The first stochastic dynamics is a broad light line; those without noise are thin dark lines on top.
    """
    place, channels = names.index(name), mpl.colors.to_rgb(look["color"])
    line = {"linestyle": DASHES[place % len(DASHES)], "gid": f"{look.get('gid', '')} dynamics-{name}".strip()}
    if not is_stochastic(name):
        return line | {"color": tuple(DARKER * channel for channel in channels), "linewidth": 1.0, "zorder": 4}
    if place > 0:
        return line | {"color": look["color"], "linewidth": 1.6, "zorder": 3}
    tint = tuple(1.0 - LIGHTER * (1.0 - channel) for channel in channels)
    return line | {"color": tint, "linewidth": 2.8, "zorder": 2}


LOOKS = Looks(_look, hue={"linestyle": "solid"})


def _risks(ds: xr.Dataset, log_axes: Sequence[str] | None) -> xr.DataArray:
    """Return the risks of the runs, NaN where they have no place on the vertical axis if that is logarithmic."""
    return above_error(ds["risk"], ds, DECADE, log_axes)


def risk_bands(ds: xr.Dataset, _: Mapping[str, xr.Dataset], log_axes: Sequence[str] | None = None) -> xr.Dataset:
    """Return quantiles BAND of the risk over the seeds until too many runs stopped, and the number of stopped runs.

    `risk` is the median, `risk_low` and `risk_high` are the ends of the band.
    """
    lost = without_value(values_of(ds, "risk"), has_run(ds)).sum("seed")
    quantiles = risk_quantiles(ds.assign(risk=_risks(ds, log_axes)), BAND)
    names = {"risk_low": "10 % quantile of the", "risk": "median", "risk_high": "90 % quantile of the"}
    return xr.Dataset(
        {
            name: quantiles.isel(quantile=place, drop=True).assign_attrs(
                ds["risk"].attrs | {"long_name": f"{word} {ds['risk'].attrs['long_name']}"}
            )
            for place, (name, word) in enumerate(names.items())
        }
        | {"seeds_lost": labelled(lost, "runs without a value")}
    ).assign_attrs(interval="10 % to 90 % of the seeds")


def least_risk(ds: xr.Dataset) -> xr.DataArray:
    """Return the least risk of two Gaussians that a student of any width can reach; NaN for other data and students.

    Students are plain, with a frozen second layer of ones and without offsets: on a sphere all norms are one, and a
    second layer makes measures of any sign and weight.
    """
    holds = (
        (field(ds, "data", "") == "two_gaussians")
        & ~field(ds, "spherical", False).astype(bool)
        & ones(field(ds, "a", 1.0))
        & (field(ds, "second_layer_rate", 0.0) == 0.0)
        & with_plain_steps(ds)
    )
    names = "activation", "contrast", "d"
    if not bool(holds.any()):
        return xr.full_like(holds, float("nan"), dtype=float)
    risks: xr.DataArray = xr.apply_ufunc(
        least_network_risk, *(field(ds, name) for name in names), vectorize=True, output_dtypes=[float]
    )
    return risks.where(holds)


FIGURES.add(chart_figure("risk_curves", risk_curves, CAPTION))
