"""What every interactive plot keeps, on the datasets on which analyses are checked."""

from functools import cache
from typing import TYPE_CHECKING

from sweeplib.analysis import ANALYSES
from sweeplib.contracts import analyses
from sweeplib.contracts.analyses import made, taken
from sweeplib.contracts.check import require
from sweeplib.figures import FIGURES, INTERACTIVE
from sweeplib.report.plots import Plot, interactive_plot

if TYPE_CHECKING:
    pass


from sweeplib.contracts.figures import analysed_as_needed


@cache
def plotted(name: str, words: str) -> Plot | Exception:
    """Return the interactive plot of a dataset, or the exception that it, or an analysis that it needs, raises."""
    declared = INTERACTIVE[name]
    try:
        return interactive_plot(name, declared, made(words), analysed_as_needed(declared.needs, words), {})
    except Exception as error:
        return error


def forget() -> None:
    """Forget all plots, after plugins were loaded or removed."""
    plotted.cache_clear()


def it_plots_a_dataset(name: str) -> None:
    """At least one of the kinds of sweeps, with points."""
    declared = INTERACTIVE[name]
    for need in declared.needs:
        require(need in ANALYSES, f"it needs the analysis {need!r}, which is not registered")
    require(bool(declared.needs) or declared.data is not None, "it has no data: `needs` an analysis, or `data`")
    plots = {}
    for words in analyses.DATASETS:
        found = plotted(name, words)
        if not isinstance(found, Exception):
            plots[words] = found
    if not plots:
        taken(plotted, name)
    require(any(plot.table.rows for plot in plots.values()), "it has no points")


def it_belongs_to_a_figure(name: str) -> None:
    """`figure` is registered, if it is given."""
    declared = INTERACTIVE[name]
    problem = f"its figure {declared.figure!r} is not registered"
    require(not declared.figure or declared.figure in FIGURES, problem)
