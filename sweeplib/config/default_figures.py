"""The figures of a sweep whose config has no `figures`: of each kind the first that fits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.design.design import Design
    from sweeplib.storage.dataset.outline import Outline

FigureEntry = tuple[str, dict[str, Any]]
EXITS: tuple[FigureEntry, ...] = (("learning_rate_scan", {}), ("exit_steps", {"kind": "line", "y": "exit_steps"}))
EXIT_MAP: tuple[FigureEntry, ...] = (("exit_steps_map", {"kind": "map", "z": "exit_steps"}),)
RUNS: tuple[FigureEntry, ...] = (("risk_curves", {}), ("trajectories", {}))
STOPPED_RUNS: tuple[FigureEntry, ...] = (("exit_time_distributions", {}), ("trajectories", {}))
LAST_RECORDS: tuple[FigureEntry, ...] = (("last_records", {"kind": "line"}), ("distribution", {}))
LONG = 7
"""The number of values from which an axis is too long for colours: two such axes are drawn as a map."""


def default_figures(sweep: "Design", ds: "Mapping[bool, Outline]") -> dict[str, dict[str, Any]]:
    """Return the entries of `figures`: exits, observables over time, and the last records against an axis.

    ds : the outlines of the future dataset, without and with overlaps.

    Runs that stop at their exits have few records: the distributions of their exit times are drawn, not their risks. A
    figure that does not fit the sweep is left out.
    """
    long_axes = [axis for axis in sweep.grid.axes if len(axis.values) >= LONG]
    kinds = [EXITS, EXIT_MAP] if len(long_axes) > 1 else [EXITS]
    kinds += [STOPPED_RUNS] if sweep.recording.stop == "exit" else [RUNS, LAST_RECORDS]
    fitting = (next((entry for entry in kind if _fits(sweep, ds, entry)), None) for kind in kinds)
    return dict(entry for entry in fitting if entry is not None)


def _fits(sweep: "Design", ds: "Mapping[bool, Outline]", entry: FigureEntry) -> bool:
    """Return whether a figure fits a sweep whose dataset has these outlines, without and with overlaps.

    One that shows the optimal learning rate fits if enough learning rates are scanned for an optimum to be found.
    """
    from sweeplib.analysis import ANALYSES
    from sweeplib.analysis.kit.speed_fit import FEWEST
    from sweeplib.figures.figure import requested

    figure, options = requested(*entry)
    try:
        outlines = {
            need: ANALYSES[need].outlined(ds[ANALYSES[need].overlaps], sweep.analyses.get(need, {}))
            for need in figure.needed(options)
        }
        figure.check_fit(ds[False], outlines, options)
    except InputError:
        return False
    scan = outlines.get("optimal_learning_rate")
    return scan is None or ds[False].sizes[scan.attrs["along"]] >= FEWEST
