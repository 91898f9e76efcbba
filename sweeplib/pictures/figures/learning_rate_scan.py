"""Mean exit steps against the learning rate, and the optimum of SGD compared to theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import is_stochastic, stochastic
from sweeplib.engine.base.arrays import wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.networks import theory
from sweeplib.pictures.figures.figure import FIGURES, Hue, Panel, Published, Theories, Where, chart_figure
from sweeplib.pictures.figures.kit.against import theory_along
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import Facets, arranged
from sweeplib.pictures.figures.kit.labels import plain_mean, symbol
from sweeplib.pictures.figures.kit.style import FAINT, THEORY_DASHES

CAPTION = (
    "Mean number of steps to the exit against the learning rate, with the intervals of the means; arrows: "
    "lower bounds where some runs did not exit; ∅ on the axis: no value. Curves: the selected theories; the quenched "
    "one stands for dynamics without noise, if their means are as near to it as the legend says. "
    "Below: the learning rate of least steps with its interval (an arrow where the interval reaches the end "
    "of the scan; no mark if fewer than 5 learning rates have a mean over three runs or more), the optimum of annealed "
    "and quenched theory (vertical line) and the noise-corrected optimum (bars)."
)
NEAR = 0.15
"""The relative deviation of dynamics without noise from quenched theory up to which its curve stands for them."""
WIDE = 10.0
"""The factor in learning rate above which its axis is logarithmic."""
SCALES = {"d": "/d", "d log d": r"/(d\,\log d)", "1": ""}
"""What the symbol of the steps is divided by, by the unit of the exit steps."""
MARK: dict[str, Any] = {"marker": "|", "linestyle": "none", "markersize": 9}
OPTIMUM: dict[str, Any] = MARK | {"markeredgewidth": 0.8, "color": FAINT, "gid": "optimum"}
CORRECTED: dict[str, Any] = MARK | {"markersize": 13, "markeredgewidth": 2.4, "alpha": 0.4, "gid": "corrected"}
"""The marks of the optima of theories in the legend."""

OPTIMA = Chart(
    x="d",
    y="gamma_opt",
    needs=("optimal_learning_rate",),
    hover=("exit_steps_min", "at_edge"),
    theory="gamma_opt_expected",
)
"""The plot of the optima on the page, below that of the steps."""

Scale = Annotated[Literal["d", "d log d", "1"], Field(description="the unit of the exit steps.")]


def learning_rate_scan(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    scale: Scale = "d",
    theories: Theories = ("quenched", "noise-corrected"),
    reference: Published = (),
) -> Chart:
    """Declare mean exit steps over `scale` against γ/γ_opt (γ if no theory applies), with the optima below.

    `where` fixes axes at values; of the other axes, one becomes the panels and one the colours. Markers: filled for the
    first stochastic dynamics, open for a second, crosses for deterministic ones.
    """
    exits, optima = analyses["exit_times"], analyses["optimal_learning_rate"]
    along = outline_of(optima).attrs["along"]
    split = arranged(exits, {"dynamics", along}, where, panel, hue, spare=False)
    has_theory, marked, label, x_label, apart = False, True, "", "", None
    if not isinstance(optima, Outline) and not isinstance(exits, Outline):
        has_theory = bool(split.selected(optima["gamma_opt_theory"]).notnull().all())
        marked = has_theory or bool(split.selected(optima["gamma_opt"]).notnull().any())
        steps = plain_mean(exits["exit_steps_mean"]).attrs
        label = f"{steps['long_name']}\n${steps['symbol']}{SCALES[scale]}$"
        unit = optima["gamma_opt_theory"].attrs["symbol"]
        x_label = f"{symbol(field(exits, 'gamma'))}/${unit}$" if has_theory else ""
        if has_theory and "quenched" in theories and not reference:  # else their distances from it would not be told
            apart = _apart(split.selected(exits))

    def more(_: xr.Dataset, analyses: Mapping[str, xr.Dataset], data: xr.Dataset) -> xr.Dataset:
        """Return the data with the optima, the units of both axes, and the optimum of noise-corrected theory."""
        merged = data.merge(analyses["optimal_learning_rate"], compat="override", combine_attrs="override")
        d, theory_optimum = field(merged, "d"), merged["gamma_opt_theory"]
        unit = theory_optimum if has_theory else theory_optimum.copy(data=np.ones(theory_optimum.shape))
        if apart is not None:
            merged = merged.assign(exit_steps_mean=merged["exit_steps_mean"].where(stochastic(merged)))
        steps_unit = {"d log d": d * np.log(d), "d": d, "1": 0.0 * d + 1.0}[scale]
        # the bar of the theory of SGD stands where SGD was run
        used = (merged["seeds_used"].where(stochastic(merged)) > 0).any({"dynamics", along})
        corrected = merged["gamma_opt_noise_corrected"].where(used)
        return merged.assign(corrected=corrected, gamma_unit=unit, step_unit=steps_unit)

    laws = tuple(_steps(kind, apart) for kind in THEORY_DASHES if kind in theories) if has_theory else ()
    optima_at = (Layer("upright", 1.0, "optimum of theory", look={"gid": OPTIMUM["gid"]}, entry=OPTIMUM),) * has_theory
    bar = Layer("bar", "corrected", "noise-corrected optimum", look=CORRECTED, entry=MARK)
    rows = Level(
        (Layer("ticks", "gamma_opt"), bar, *optima_at),
        height=(0.25 + 0.21 * _rows(outline_of(exits), split)) / 2.3,
    )
    means = Layer("points" if has_theory else "joined", "exit_steps_mean")
    return Chart(
        x="gamma",
        y="exit_steps_mean",
        needs=("exit_times", "optimal_learning_rate"),
        hover=("exit_steps_median", "exited_fraction"),
        theory="exit_steps_theory",
        split=split,
        levels=(
            Level((means, *laws, *optima_at), over="step_unit", label=label, log=True),
            *([rows] if marked else []),
        ),
        more=more,
        x_over="gamma_unit",
        x_label=x_label,
        log_x=lambda rates: wide(rates.values, WIDE),
        published=reference,
        share_x=has_theory,
        also={"optimal_learning_rates": OPTIMA},
    )


def _rows(outline: Outline, split: Facets) -> int:
    """Return the number of colours of a figure."""
    if split.hue is None:
        return 1
    places = split.at.get(split.hue, range(outline.sizes[split.hue]))
    return 1 if isinstance(places, int) else len(places)


def _apart(exits: xr.Dataset) -> float | None:
    """Return the largest relative deviation of dynamics without noise from quenched theory, if that is at most NEAR.

    None without such dynamics beside those with noise, or without their means.
    """
    names = [str(name) for name in exits["dynamics"].values]
    quiet = exits.sel(dynamics=[name for name in names if not is_stochastic(name)])
    gamma, p, d, Delta, T = (field(quiet, name) for name in ("gamma", "p", "d", "Delta", "threshold"))
    quenched = xr.apply_ufunc(theory.quenched_exit_time, gamma, p, d, Delta, T) * p * d / gamma
    ratio = (quiet["exit_steps_mean"] / quenched).where(~quiet["restricted"])
    apart = float(abs(ratio - 1.0).max()) if 0 < quiet.sizes["dynamics"] < len(names) else np.nan
    return apart if apart <= NEAR else None


def _steps(kind: str, apart: float | None) -> Layer:
    """Return the law of the exit steps, p d/γ times the exit time of the theory `kind`, over their unit.

    apart : how far dynamics without noise are from quenched theory, if that stands for them.
    NaN at learning rates at which the units of a student align: the exit times do not hold there.
    """
    time = theory_along(getattr(theory, kind.replace("-", "_") + "_exit_time"), "gamma", "gamma_unit")

    def heights(series: xr.Dataset, gamma: np.ndarray) -> np.ndarray:
        """Return the steps over their unit at learning rates gamma (n,), for the data of one colour."""
        p, d = (float(field(series, name)) for name in ("p", "d"))
        has_noise = bool(np.isfinite(series["corrected"]))
        # noise-corrected theory does not hold for the ODE, nor where noise alone exits
        holds = has_noise or kind != "noise-corrected"
        holds &= (p == 1) | (theory.student_alignment_rate(gamma, p) > 0.0)
        return np.where(holds, time(series, gamma) * p * d / gamma / series["step_unit"].item(), np.nan)

    stands = f", {100.0 * apart:.2g} % from runs without noise" if kind == "quenched" and apart is not None else ""
    return Layer("law", heights, f"{kind} theory{stands}", kind, THEORY_DASHES[kind])


FIGURES.add(chart_figure("learning_rate_scan", learning_rate_scan, CAPTION, ("exit_times", "optimal_learning_rate")))
