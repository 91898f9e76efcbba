"""The optimal learning rate against the student width, with its intervals, compared to theory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sweeplib import theory
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.figures.figure import FIGURES, Hue, Panel, Published, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.expected import optima_expected
from sweeplib.figures.kit.facets import over_width
from sweeplib.figures.kit.labels import symbol
from sweeplib.figures.kit.points import Curve, Level, Points
from sweeplib.figures.kit.style import THEORY_DASHES
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import Outline

CAPTION = (
    "The learning rate of least mean exit steps against the student width, with bootstrap intervals over the seeds; an "
    "open triangle at the end of an interval that extends beyond the scanned learning rates. Dashed: theory for d → ∞; "
    "solid: theory with the noise of SGD at this d, up to the last width with an optimum. Below: the ratio to the "
    "dashed line. ∅: no optimum, as fewer than 5 learning rates have a mean over three runs or more. Points of several "
    "colours are shifted sideways."
)


def optimal_learning_rate(
    ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None, reference: Published = ()
) -> Points:
    """Declare γ_opt against p, and below, where theory applies, its ratio to theory.

    By default there is a panel for each d and a colour for each Δ; other axes are fixed at `where` or their middle.
    """
    found = analyses["optimal_learning_rate"]
    split = over_width(found, where, panel, hue)
    levels = [Level("gamma_opt", log=True, bound="high")]
    if not isinstance(found, Outline) and bool(split.selected(found["gamma_opt_theory"]).notnull().all()):
        limit = Curve("limit", r"theory, $d\to\infty$", _limit, THEORY_DASHES["quenched"])
        corrected = Curve("corrected", "noise-corrected theory", _corrected)
        ratio = Curve("corrected", "noise-corrected theory", lambda one, p: _corrected(one, p) / _limit(one, p))
        label = f"over theory, $d\\to\\infty$\n{symbol(found['gamma_opt'])}/{symbol(found['gamma_opt_theory'])}"
        levels = [
            Level("gamma_opt", (limit, corrected), log=True, bound="high"),
            Level("gamma_opt", (ratio,), over="gamma_opt_theory", label=label, log=False, at=1.0, bound="high"),
        ]
    return Points(
        x="p",
        y="gamma_opt",
        needs=("optimal_learning_rate",),
        data=optima,
        hover=("gamma_opt_theory", "exit_steps_min", "at_edge"),
        theory="gamma_opt_expected",
        split=split,
        levels=tuple(levels),
        log_x=lambda _: True,
        aside=True,
        unknown="no optimum",
        published=reference,
    )


def _limit(one: xr.Dataset, p: np.ndarray) -> np.ndarray:
    return theory.optimal_learning_rate(p, float(field(one, "Delta")))


def _corrected(one: xr.Dataset, p: np.ndarray) -> np.ndarray:
    d, Delta, T = (float(field(one, name)) for name in ("d", "Delta", "threshold"))
    return theory.noise_corrected_optimal_learning_rate(p, d, Delta, T)


def optima(_: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the optimal learning rates, measured and of theory for each dynamics."""
    found = analyses["optimal_learning_rate"]
    attrs = found["gamma_opt_theory"].attrs | {"long_name": "optimal learning rate of theory"}
    return found.assign(gamma_opt_expected=optima_expected(found).assign_attrs(attrs))


FIGURES.add(
    chart_figure("optimal_learning_rate", optimal_learning_rate, CAPTION, ("optimal_learning_rate",)),
)
