"""Figures of a statistic of exits, optima or risks against a parameter, beside its theory; each is a few settings.

Functions (dataset, analyses, result) add to the result of an analysis what the picture alone needs. A series is the
part of the data of one colour in a panel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sweeplib.analysis.kit.headlines import interval_text
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.phase_retrieval import escape_theory_holds, exit_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.seed_values import samples_of_a_step
from sweeplib.analysis.kit.variables import is_stochastic, need_axis
from sweeplib.analysis.overparametrisation_gain import gain_of
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.networks import theory
from sweeplib.pictures.figures.figure import FIGURES, Hue, Panel, Published, Theories, Where, chart_figure
from sweeplib.pictures.figures.kit.against import against, figure_against, theory_along
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import dynamics_where
from sweeplib.pictures.figures.kit.labels import MINUS, dynamics_order
from sweeplib.pictures.figures.kit.style import INK, THEORY_DASHES
from sweeplib.statistics.growth_laws import growth
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import STOPPED, with_status

EXIT_TIMES, OPTIMA = ("exit_times",), ("optimal_learning_rate",)
"""The analyses that figures need."""
TICK: dict[str, Any] = {"color": INK, "markersize": 8, "markeredgewidth": 1.8, "linestyle": "none", "gid": "end"}
"""The look of the tick of a limit on an edge of the axes."""
UNIT = r"$\gamma$/$\gamma_{\mathrm{opt}}$"
"""The label of learning rates in units of the optimal one."""

RISK_FLOOR = (
    "Mean population risk over the last part of the runs against the learning rate, with standard errors over the "
    "seeds; ∅ on the axis: no value. Solid: the floor γΔ/(1 − 6γ) of theory. Below: the ratio to theory."
)
FLOOR = Layer(
    "law",
    theory_along(theory.asymptotic_risk, "gamma", "risk_floor_theory"),
    r"theory, $\gamma\Delta/(1-6\gamma)$",
    "theory",
    once="risk_floor_theory",
)
WITHOUT = Layer("note", "without_floor", "no floor in theory")
"""The layers of the floor of theory, and of the note where it has none."""


FIGURES.add(
    figure_against(
        "risk_floor",
        RISK_FLOOR,
        ("risk_floor",),
        x="gamma",
        y="risk_floor",
        hover=("risk_drift",),
        theory="risk_floor_theory",
        levels=(
            Level((Layer("points", "risk_floor"), FLOOR), log=True),
            Level(
                (Layer("points", "risk_floor"), Layer("across", 1.0), WITHOUT),
                over="risk_floor_theory",
                label="over theory",
                height=1 / 2.2,
            ),
        ),
        more=lambda _, __, result: result.assign(without_floor=~(result["risk_floor_theory"] > 0.0)),
    )
)

OPTIMAL_LEARNING_RATE = (
    "The learning rate of least mean exit steps against the student width, with intervals; an "
    "arrow to both sides where the optimum may lie beyond the scanned learning rates. Dashed: theory for d → ∞; "
    "solid: theory with the noise of SGD at this d, up to the last width with an optimum. Below: the ratio to the "
    "dashed line. ∅: no optimum, as fewer than 5 learning rates have a mean over three runs or more. Points of several "
    "colours are shifted sideways."
)
INFINITE, CORRECTED, DASHED = r"theory, $d\to\infty$", "noise-corrected theory", THEORY_DASHES["quenched"]
"""The names of theory in legends, for d → ∞ and with the noise of SGD, and the dashes of the first."""
OPTIMUM = theory_along(theory.optimal_learning_rate, "p", "gamma_opt_theory")
SHIFTED = theory_along(theory.noise_corrected_optimal_learning_rate, "p", "gamma_opt_theory")
"""The optimal learning rates of both theories at widths p."""
SHIFT = Layer("law", lambda data, p: SHIFTED(data, p) / OPTIMUM(data, p), CORRECTED, "corrected")
OPTIMA_OF_THEORY = Layer("law", OPTIMUM, INFINITE, "limit", DASHED), Layer("law", SHIFTED, CORRECTED, "corrected")
"""The layers of their ratio, and of both."""
RATIO = "over theory, $d\\to\\infty$\n$\\hat\\gamma_{\\mathrm{opt}}$/$\\gamma_{\\mathrm{opt}}$"
"""The label of a measured optimum over that of theory."""

FIGURES.add(
    figure_against(
        "optimal_learning_rate",
        OPTIMAL_LEARNING_RATE,
        OPTIMA,
        x="p",
        y="gamma_opt",
        panels="d",
        hues="Delta",
        hover=("gamma_opt_theory", "exit_steps_min", "at_edge"),
        theory="gamma_opt_expected",
        levels=(
            Level((Layer("points", "gamma_opt"), *OPTIMA_OF_THEORY), log=True),
            Level(
                (Layer("points", "gamma_opt"), SHIFT, Layer("across", 1.0)),
                over="gamma_opt_theory",
                label=RATIO,
                log=False,
            ),
        ),
        aside=True,
        unknown="no optimum",
    )
)

OVERPARAMETRISATION_GAIN = (
    "The least mean exit steps of one student unit over those of p units, each at its own optimal learning rate, with "
    "intervals; an arrow to both sides where an optimum may lie beyond the scanned learning rates; ∅ on the axis: no "
    "value. Dashed: theory for d → ∞, with the limit (12 + Δ)/(2 + Δ), the tick on the right; solid: theory with the "
    "noise of SGD at this d. Points of several colours are shifted sideways."
)
GAIN = theory_along(theory.overparametrisation_gain, "p", "gain_limit")
SHIFTED_GAIN = theory_along(partial(gain_of, "noise_corrected"), "p", "gain_limit")
"""The gains of both theories at widths p."""


def _gains(_: xr.Dataset, __: Mapping[str, xr.Dataset], result: xr.Dataset) -> xr.Dataset:
    """Return the gains of stochastic dynamics, of all if none of these has any, with their limit p → ∞ as `widest`."""
    names = dynamics_where(result["gain"].notnull())
    widest = theory.overparametrisation_gain(np.inf, field(result, "Delta")).where(
        result["gain_limit"].notnull().all("p")
    )
    return result.sel(dynamics=[name for name in names if is_stochastic(name)] or names).assign(widest=widest)


FIGURES.add(
    figure_against(
        "overparametrisation_gain",
        OVERPARAMETRISATION_GAIN,
        ("overparametrisation_gain",),
        x="p",
        y="gain",
        panels="d",
        hues="Delta",
        hover=("gain_limit", "gain_quenched", "at_edge"),
        theory="gain_noise_corrected",
        layers=(
            Layer("law", GAIN, INFINITE, "limit", DASHED),
            Layer("law", SHIFTED_GAIN, CORRECTED, "corrected"),
            Layer("right", "widest", r"$p\to\infty$: $(12+\Delta)/(2+\Delta)$", look=TICK | {"marker": "_"}),
        ),
        log=True,
        more=_gains,
        aside=True,
    )
)

EXIT_TIME_SCALING = (
    "Mean exit time, in ODE time, against the input dimension, with the intervals of the means; points at which runs "
    "did not exit are left out, and marked by ∅ on the axis. Curves: the selected theories, by default quenched "
    "(dashed) and noise-corrected (solid); they are linear in the overlaps, and exact for small T at large T d."
)


def exit_time_scaling(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    theories: Theories = ("quenched", "noise-corrected"),
    reference: Published = (),
) -> Chart:
    """Declare the mean exit time against d with these theories."""
    need_axis(outline_of(ds), "d")
    formulas = [getattr(theory, f"{kind.replace('-', '_')}_exit_time") for kind in theories]
    laws = [
        Layer("law", theory_along(formula, "d", "holds"), f"{kind} theory", kind, THEORY_DASHES[kind])
        for kind, formula in zip(theories, formulas, strict=True)
    ]
    return against(
        ds,
        analyses,
        EXIT_TIMES,
        {"where": where, "panel": panel, "hue": hue},
        x="d",
        y="exit_time_mean",
        data=_unrestricted,
        hover=("exit_time_median", "exited_fraction"),
        theory="exit_time_theory",
        levels=(Level((Layer("points", "exit_time_mean"), *laws), log=False, from_zero=True),),
        more=lambda ds, _, data: data.assign(holds=exit_theory_holds(ds)),
        published=reference,
    )


def _unrestricted(_: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the analysis `exit_times` in which restricted means, which are bounds, are NaN."""
    exits = analyses["exit_times"]
    mean = exits["exit_time_mean"]
    return exits.assign(exit_time_mean=mean.where(~exits["restricted"]).assign_attrs(mean.attrs))


FIGURES.add(chart_figure("exit_time_scaling", exit_time_scaling, EXIT_TIME_SCALING, EXIT_TIMES))

EXITED_FRACTION = (
    "Fraction of the runs that exited at the threshold T before the horizon, against the learning rate, with the "
    "intervals where some runs exited and some did not. Ticks on top: the largest learning rate at which linear "
    "theory learns, the smaller of twice the optimum and, for p > 1, p²/8; without a tick it lies beyond the axis. "
    "Points of several colours at one learning rate are shifted sideways. Arrows: lower bounds, where all runs "
    "that did not exit were ended by their time limit, before the horizon. ∅ on the axis: no value."
)


def _fractions(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the analysis `exit_times` with intervals of fractions inside (0, 1) alone, and with lower bounds.

    cut_short : fractions that are lower bounds, as all runs without an exit were ended by their time limit.
    """
    result = analyses["exit_times"]
    fraction, ends = result["exited_fraction"], ("exited_fraction_low", "exited_fraction_high")
    bars = {end: result[end].where((fraction > 0.0) & (fraction < 1.0)) for end in ends}
    censored = passages(ds, "steps").censored()
    stopped = censored & with_status(ds, *STOPPED)
    cut_short = stopped.any("seed") & ~(censored & ~stopped).any("seed") & (fraction < 1.0)
    bound = labelled(cut_short, "bound").assign_attrs(reason="lower bound: runs were out of time")
    fraction = fraction.assign_attrs(bound="cut_short", bound_side="above")
    return result.assign(bars | {"cut_short": bound, "exited_fraction": fraction})


def _theories(ds: xr.Dataset, _: Mapping[str, xr.Dataset], result: xr.Dataset) -> xr.Dataset:
    """Return fractions with the unit and the end of theory.

    unit : the optimal learning rate of theory. end : the largest learning rate at which theory learns, in that unit.
    """
    p, Delta = field(ds, "p"), field(ds, "Delta")
    unit = theory.optimal_learning_rate(p, Delta).where(escape_theory_holds(ds))
    return result.assign(unit=unit, end=theory.learnable_range(p, Delta) / unit)


FIGURES.add(
    figure_against(
        "exited_fraction",
        EXITED_FRACTION,
        EXIT_TIMES,
        x="gamma",
        y="exited_fraction",
        panels="threshold",
        hover=("exit_steps_median",),
        levels=(
            Level(
                (
                    Layer("steps", "exited_fraction"),
                    Layer("top", "end", "end of linear theory", look=TICK | {"marker": "|"}),
                ),
                log=False,
                limits=(-0.05, 1.05),
            ),
        ),
        data=_fractions,
        more=_theories,
        x_over="unit",
        x_label=UNIT,
        aside=True,
    )
)

SAMPLE_COMPLEXITY = (
    "Mean number of steps to the exit over the input dimension, with standard errors over the seeds; ∅ on the axis: "
    "no value. Curves: the law that the information exponent κ of student and teacher predicts, fitted to the first "
    "dynamics with three dimensions; drawn only where starts and learning rates scale as the law requires."
)
DASHES: dict[int, Any] = {1: (0, (1, 1.2)), 2: (0, (5, 2)), 3: "solid"}
HIGHER: Any = (0, (6, 1.5, 1, 1.5))
"""The dashes of laws by their information exponents, and of those with higher ones."""
STEPS = r"\langle\nu_{\mathrm{ext}}\rangle/d"
FORMULAS = {1: "a", 2: r"a+b\,\log d", 3: r"a+b\,d"}
"""The symbol of n/d, and its laws by their information exponents."""


def sample_complexity(
    ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None, reference: Published = ()
) -> Chart:
    """Declare n/d against d, with a curve for each law."""
    laws = tuple(map(_law, range(1, 1 + max(map(int, outline_of(analyses["sample_complexity"]).axes["law"])))))
    return against(
        ds,
        analyses,
        ("sample_complexity",),
        {"where": where, "panel": panel, "hue": hue},
        x="d",
        y="steps_over_d",
        drawn_axes=("law",),
        hover=("exponent", "information_exponent", "expected_law"),
        levels=(Level((Layer("points", "steps_over_d"), *laws), from_zero=True),),
        published=reference,
    )


def _law(exponent: int) -> Layer:
    """Return the layer of the fitted law of an information exponent."""

    def heights(series: xr.Dataset, d: np.ndarray) -> np.ndarray:
        """Return n/d at dimensions d (n,) by the fit of the first dynamics with one; NaN if theory has another law."""
        if series["expected_law"].item() != exponent:
            return np.full(d.shape, np.nan)
        fits = series.sel(law=exponent, dynamics=dynamics_order(series["dynamics"].values))
        fit = fits.isel(dynamics=int(np.argmax(fits["law_offset"].notnull().values)))
        curve = fit["law_offset"].item() + fit["law_amplitude"].item() * growth(exponent, d)
        return np.where(curve > 0.0, curve, np.nan)

    text = FORMULAS.get(exponent, rf"a+b\,d^{exponent - 2}")
    label = rf"fit for $\kappa={exponent}$: ${STEPS}={text}$"
    return Layer("law", heights, label, f"law-{exponent}", DASHES.get(exponent, HIGHER))


FIGURES.add(chart_figure("sample_complexity", sample_complexity, SAMPLE_COMPLEXITY, ("sample_complexity",)))

BATCH_TRADEOFF = (
    "Mean numbers of steps and of samples drawn to the exit against the batch size, with standard errors over the "
    "seeds. Lines: powers of the batch size fitted to the steps of the first dynamics, with their slope and interval, "
    "over the batch sizes of the fit. Points with too many runs without an exit are left out, and marked by ∅."
)
NARROW = 0.05
"""The width of an interval below which a slope is written with three digits."""


def _fitted(series: xr.Dataset) -> xr.Dataset | None:
    """Return the data of the first dynamics with steps; None if its fitted power has no interval, as of two points."""
    names = dynamics_where(series["steps"].notnull())
    first = series.sel(dynamics=names[0]) if names else None
    return first if first is not None and np.isfinite(first["exponent_low"].item()) else None


def _power(series: xr.Dataset, sizes: np.ndarray, name: str) -> np.ndarray:
    """Return the fitted power at batch sizes (n,), of `steps` or of `samples`; NaN beyond the sizes of the fit."""
    first = _fitted(series)
    if first is None:
        return np.full(sizes.shape, np.nan)
    used = first["batch_size"].where(first["steps"].notnull() & (first["batch_size"] <= series.attrs["largest_batch"]))
    steps = first["prefactor"].item() * sizes ** first["exponent"].item()
    of_a_step = samples_of_a_step(first.drop_dims("batch_size").assign_coords(batch_size=sizes)).values
    heights = steps if name == "steps" else steps * of_a_step
    return np.where((sizes >= float(used.min())) & (sizes <= float(used.max())), heights, np.nan)


def _slope(series: xr.Dataset) -> str:
    """Return in words the exponent of the fitted power with its interval; "" without a fit."""
    first = _fitted(series)
    if first is None:
        return ""
    exponent, low, high = (first[name].item() for name in ("exponent", "exponent_low", "exponent_high"))
    digits = 2 if high - low > NARROW else 3
    return f"slope {exponent:.{digits}f} {interval_text(f'{low:.{digits}f}', f'{high:.{digits}f}')}".replace("-", MINUS)


FIGURES.add(
    figure_against(
        "batch_tradeoff",
        BATCH_TRADEOFF,
        ("batch_tradeoff",),
        x="batch_size",
        y="steps",
        hover=("exponent",),
        levels=tuple(
            Level((Layer("points", name), Layer("law", partial(_power, name=name), name="fit")), log=True)
            for name in ("steps", "samples")
        ),
        hue_text=_slope,
    )
)
