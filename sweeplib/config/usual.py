"""The figures of a sweep whose config has no `figures`: of each kind the first that fits."""

from typing import TYPE_CHECKING

from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep
    from sweeplib.storage.outline import Outline

EXITS, CURVES, SCANS = ("learning_rate_scan", "exit_time_scan"), ("risk_curves",), ("observable_scan",)


def usual_figures(sweep: "Sweep") -> list[str]:
    """Return the names of the figures: exit times, risks over time, and the last records against an axis.

    A sweep that stops its runs at the exits has no risks to draw. A sweep with no axis, or one that fits no figure, has
    no figure.
    """
    from sweeplib.storage.outline import planned_outline

    ds = {overlaps: planned_outline(sweep, overlaps=overlaps) for overlaps in (False, True)}
    kinds = (EXITS,) if sweep.recording.stop == "exit" else (EXITS, CURVES, SCANS)
    fitting = (next((name for name in kind if _fits(sweep, ds, name)), None) for kind in kinds)
    return [name for name in fitting if name is not None]


def _fits(sweep: "Sweep", ds: "dict[bool, Outline]", name: str) -> bool:
    """Return whether a figure fits a sweep whose dataset has these outlines, without and with overlaps."""
    from sweeplib.analysis import ANALYSES
    from sweeplib.figures import FIGURES

    figure = FIGURES[name]
    try:
        made = {
            need: ANALYSES[need].outlined(ds[ANALYSES[need].overlaps], sweep.analyses.get(need, {}))
            for need in figure.needs
        }
        figure.check_fit(ds[False], made, {})
    except InputError:
        return False
    return True
