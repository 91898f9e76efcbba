"""What every interactive plot keeps, on the datasets on which analyses are checked."""

from sweeplib.analysis import ANALYSES
from sweeplib.contracts.analyses import example, results_by_dataset
from sweeplib.contracts.check import remembered, require
from sweeplib.contracts.figures import analysed_as_needed
from sweeplib.pictures.figures import FIGURES, INTERACTIVE
from sweeplib.pictures.report.plots import Plot, interactive_plot


@remembered
def plotted(name: str, words: str) -> Plot | Exception:
    """Return the interactive plot of a dataset, or the exception that it, or an analysis that it needs, raises."""
    declared = INTERACTIVE[name]
    try:
        return interactive_plot(name, declared, example(words), analysed_as_needed(declared.needs, words), {})
    except Exception as error:
        return error


def it_plots_a_dataset(name: str) -> None:
    """At least one of the kinds of sweeps, with points."""
    declared = INTERACTIVE[name]
    for need in declared.needs:
        require(need in ANALYSES, f"it needs the analysis {need!r}, which is not registered")
    require(bool(declared.needs) or declared.data is not None, "it has no data: `needs` an analysis, or `data`")
    require(any(plot.table.rows for plot in results_by_dataset(plotted, name).values()), "it has no points")


def it_belongs_to_a_figure(name: str) -> None:
    """`figure` is registered, if it is given."""
    declared = INTERACTIVE[name]
    problem = f"its figure {declared.figure!r} is not registered"
    require(not declared.figure or declared.figure in FIGURES, problem)
