"""The largest deviation from the ODE against γ/(pd), the ODE time of a step, with the fitted power law.

A subset is the part of the data of one colour in a panel; `step` of the data is γ/(pd), `mean` the mean deviation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field

from sweeplib.analysis.kit.headlines import interval_text
from sweeplib.analysis.kit.problem_fields import step_time
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.pictures.figures.figure import FIGURES, Hue, Panel, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import MOST_HUES, arranged, free_axes
from sweeplib.pictures.figures.kit.labels import MINUS, dynamics_order

CAPTION = (
    "Mean over the seeds of the largest deviation of SGD from its ODE, or another reference, over the recorded times, "
    "paired by seed, with its standard error, against the ODE time of a step; ∅ on the axis: no value. Solid: the "
    "power law fitted to all points, with its exponent and interval (95 % by default). Dashed: slope 1/2 of the "
    "theoretical bound, shifted down."
)
SHIFT = 0.5
"""The factor by which the line of slope 1/2 is below the fitted power, in the middle of the steps."""
DASHES = (0, (5, 2))
MEASURED = "_sup_deviation"
"""The end of the names of measured deviations, behind the name of the observable."""
FIT = ("exponent", "exponent_low", "exponent_high", "prefactor")
"""The numbers of a fit, behind the name of the observable in the names of variables."""

Deviating = Annotated[
    str,
    Field(description="the observable whose deviation is drawn; `overlaps` is that of all overlap matrices."),
]


def deviation(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    observable: Deviating = "risk",
) -> Chart:
    """Declare the mean largest deviation of `observable` (or of all `overlaps`) against γ/(pd).

    All points of the fit are drawn, coloured by `hue`, by default d. Of the remaining axes, two become panels and
    colours, the others are fixed at their middle value.
    """
    measured, fitted = (outline_of(analyses[name]) for name in ("deviation", "deviation_scaling"))
    for key in ("reference", "until", "max_lost"):
        if (value := measured.attrs.get(key)) != (other := fitted.attrs.get(key)):
            expected = "the same in the analyses deviation and deviation_scaling"
            raise InputError(
                "its points and its fit are of other options", key=key, value=[value, other], expected=expected
            )
    observables = [name.removesuffix(MEASURED) for name in measured.variables if name.endswith(MEASURED)]
    if observable not in observables:
        raise InputError("no deviation of it was measured", key="observable", value=observable, choices=observables)
    names = dynamics_order(name for name in map(str, measured.axes["dynamics"]) if is_stochastic(name))
    if not names:
        raise InputError("no stochastic dynamics to draw", value=measured.axes["dynamics"], expected="sgd or sgd_chain")
    along = measured.only(f"{observable}{MEASURED}")
    # axes over which the fit is, of which a short one has the colours
    over = free_axes(along, where).intersection(fitted.attrs["over"].split())
    few = [dim for dim in ("d", "p", *sorted(over)) if dim in over and along.sizes[dim] <= MOST_HUES]
    hue = hue or next((dim for dim in few if dim != panel), None)
    split = arranged(along, {"dynamics", *over} - {hue, panel}, where, panel, hue)

    def more(_: xr.Dataset, analyses: Mapping[str, xr.Dataset], data: xr.Dataset) -> xr.Dataset:
        """Return the data with the fits, and the exponents as texts, of the dynamics that are drawn."""
        result = analyses["deviation_scaling"]
        fits = {end: result[f"{observable}_{end}"].sel(variable="coupling", drop=True) for end in FIT}
        ends = (fits[name] for name in FIT[:3])
        texts = xr.apply_ufunc(_interval, *ends, vectorize=True, output_dtypes=[object])
        return data.assign(fits | {"exponents": texts}).sel(dynamics=names)

    laws = [Layer("law", partial(_power, name=name), "fitted power", "fit", once=True) for name in names]
    guide = Layer("law", partial(_guide, name=names[0]), "slope 1/2", "guide", DASHES, once=True)
    level = Level((Layer("points", "mean"), *laws, guide, Layer("texts", "exponents", "exponent")), log=True)
    return Chart(
        x="step",
        y="mean",
        needs=("deviation",),
        data=lambda ds, analyses: step_deviations(analyses["deviation"], observable),
        hover=("gamma", "p"),
        split=split,
        levels=(level,),
        more=more,
        log_x=lambda _: True,
    )


def _fit(subset: xr.Dataset, name: str) -> xr.Dataset:
    """Return the numbers FIT of the fit of a dynamics, which is the same at all points of a subset."""
    fits = subset[list(FIT)].sel(dynamics=name)
    return fits.isel(dict.fromkeys(fits.dims, 0))


def _power(subset: xr.Dataset, step: np.ndarray, name: str) -> np.ndarray:
    """Return the fitted power of a dynamics at steps γ/(pd) (n,), NaN beyond those that were measured."""
    fit, (low, high) = _fit(subset, name), _range(subset, name)
    power = fit["prefactor"].item() * step ** fit["exponent"].item()
    return np.where((step >= low) & (step <= high), power, np.nan)


def _guide(subset: xr.Dataset, step: np.ndarray, name: str) -> np.ndarray:
    """Return a line of slope 1/2 at steps γ/(pd) (n,), SHIFT times the fitted power in their middle."""
    low, high = _range(subset, name)
    middle = np.sqrt(low * high)
    line = SHIFT * _power(subset, np.array(middle), name) * np.sqrt(step / middle)
    return np.where((step >= low) & (step <= high), line, np.nan)


def _range(subset: xr.Dataset, name: str) -> tuple[float, float]:
    """Return the least and the largest step at which a dynamics has a deviation, with room for rounding."""
    step = subset["step"].where(subset["mean"].sel(dynamics=name) > 0.0)
    return 0.999 * float(step.min()), 1.001 * float(step.max())


def _interval(exponent: float, low: float, high: float) -> str:
    """Return an exponent with its interval; "" for none."""
    text = f"{exponent:.2f} {interval_text(f'{low:.2f}', f'{high:.2f}')}".replace("-", MINUS)
    return text if np.isfinite(exponent) else ""


def step_deviations(result: xr.Dataset, observable: str) -> xr.Dataset:
    """Return the mean largest deviations of an observable, as `mean`, with the ODE time of a step as coordinate `step`.

    result : of the analysis `deviation`.
    """
    name = f"{observable}{MEASURED}"
    step = step_time(result)
    step.attrs = {"long_name": "ODE time of a step", "units": "1", "symbol": r"\gamma/(pd)"}
    variables = {"mean": result[name], "mean_error": result[f"{name}_error"], "seeds_paired": result["seeds_paired"]}
    return xr.Dataset(variables).assign_coords(step=step)


FIGURES.add(chart_figure("deviation", deviation, CAPTION, ("deviation", "deviation_scaling")))
