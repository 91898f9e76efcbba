"""What every figure keeps, on the datasets on which analyses are checked.

Public functions of `name`, the registered name of a figure, that return nothing are checks: each raises BrokenError
with what is wrong, and its own name is the sentence that it checks. A `dataset` is the name of one of
`analyses.DATASETS`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.contracts import analyses
from sweeplib.contracts.analyses import described, example, require_options, require_refusals, results_by_dataset
from sweeplib.contracts.check import (
    BrokenError,
    remembered,
    require,
    require_equal,
    require_refusal,
    warnings_as_errors,
)
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.chart import SCALED
from sweeplib.pictures.report.mathematics import plain_label
from sweeplib.pictures.report.plots import Plot, interactive_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

Point: TypeAlias = tuple[float, float]
"""The coordinates x and y of a point in a figure, rounded."""


@remembered
def drawings(name: str, dataset: str) -> "Drawing | Exception":
    """Return the figure of a dataset, or the exception that it, its `arrange` or an analysis that it needs, raises."""
    if (refused := foreseen(name, dataset)) is not None:
        return refused
    try:
        return FIGURES[name](example(dataset), analysed_as_needed(FIGURES[name].needed({}), dataset))
    except Exception as error:
        return error


@remembered
def interactive(name: str, dataset: str) -> tuple[Any, Plot]:
    """Return what the figure of a dataset declares, and its interactive plot."""
    ds, result = example(dataset), analysed_as_needed(FIGURES[name].needed({}), dataset)
    chart = FIGURES[name].declared(ds, result)
    return chart, interactive_plot(name, chart, ds, result, {})


@remembered
def foreseen(name: str, dataset: str) -> Exception | None:
    """Return the exception with which the outlines of a dataset and its analyses are refused; None if they are not."""
    result = {need: analyses.foreseen(need, dataset) for need in FIGURES[name].needed({})}
    outlines = {need: outline for need, outline in result.items() if not isinstance(outline, Exception)}
    try:
        FIGURES[name].check_fit(outline_of(with_constants(example(dataset))), outlines, {})
    except Exception as error:
        return error
    return next((item for item in result.values() if isinstance(item, Exception)), None)


def analysed_as_needed(needs: tuple[str, ...], dataset: str) -> "dict[str, xr.Dataset]":
    """Return analyses of a dataset; the exception of the first that fails is raised."""
    values = {}
    for need in needs:
        result = analyses.analysed(need, dataset)
        if isinstance(result, Exception):
            raise result
        values[need] = result
    return values


def it_draws_a_dataset(name: str) -> None:
    """Check that it draws at least one of the kinds of sweeps, as a figure of matplotlib with axes."""
    names = ", ".join(ANALYSES)
    for need in FIGURES[name].needed({}):
        require(need in ANALYSES, f"it needs the analysis {need!r}, which is not registered; there are {names}")
    for dataset, drawing in results_by_dataset(drawings, name).items():
        require(bool(drawing.axes), f"of {dataset} it has no axes")


def what_it_does_not_draw_is_refused_before_anything_runs(name: str) -> None:
    """Check that `arrange` refuses it; without one, that an InputError does.

    A single value of each axis, in one panel, is drawn or refused.
    """
    declares = None if FIGURES[name].arrange is None else "arrange"
    require_refusals(drawings, foreseen, name, declares)


def its_axes_have_labels_for_readers(name: str) -> None:
    """Check that labels are long names or symbols, not names of variables such as `exit_steps`."""
    for dataset, drawing in results_by_dataset(drawings, name).items():
        written = [label for axes in drawing.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
        require(bool(written), f"of {dataset} no axis has a label")
        parts = (example(dataset), *analysed_as_needed(FIGURES[name].needed({}), dataset).values())
        named = {str(key) for array in parts for key, item in array.variables.items() if item.attrs["long_name"] != key}
        for label in written:
            raw = sorted(named.intersection(label.split()) & {key for key in named if "_" in key})
            require(not raw, f"of {dataset} an axis is labelled with the name of a variable, {label!r}")


def it_can_be_saved(name: str) -> None:
    """Check that it can be saved as PNG: the layout fits, and labels are valid mathematics."""
    import io

    dataset, drawing = next(iter(results_by_dataset(drawings, name).items()))
    try:
        drawing.savefig(io.BytesIO(), format="png", dpi=30)
    except Exception as error:
        raise BrokenError(f"of {dataset} it cannot be saved: {described(error)}") from error


def it_takes_dask_arrays(name: str) -> None:
    """Check that a dataset opened with `xr.open_zarr` gives the same lines, and no warning."""
    dataset, drawing = next(iter(results_by_dataset(drawings, name).items()))
    with warnings_as_errors():
        result = FIGURES[name](example(dataset).chunk(seed=2), analysed_as_needed(FIGURES[name].needed({}), dataset))
    for number, (first, other) in enumerate(zip(_lines(result), _lines(drawing), strict=True)):
        require_equal(first, other, f"of {dataset} in Dask arrays, line {number}")


def _lines(drawing: "Drawing") -> list[Any]:
    """Return the points (n, 2) of each line of a drawing."""
    return [line.get_xydata() for axes in drawing.axes for line in axes.lines]


def its_options_have_types_and_defaults(name: str) -> None:
    """Check that each parameter after the dataset and the analyses has an annotation and a default."""
    require_options(FIGURES[name].function, arguments=2)
    require_refusal(lambda: FIGURES[name].check({"optoin": 1}), "it takes unknown options")


def its_interactive_plot_has_the_points(name: str) -> None:
    """Check that the plot that it returns for the report, if any, draws the same datasets."""
    figure = FIGURES[name]
    if figure.interactive is None:
        return
    for dataset in results_by_dataset(drawings, name):
        _, plot = interactive(name, dataset)
        require(bool(plot.table.rows), f"of {dataset} its interactive plot has no points")


def its_interactive_plot_is_its_picture(name: str) -> None:
    """Check that the plot of the page has the scales, symbols and units of the axes of the picture, and its points.

    A picture may have fewer words beside an axis, and has some above its panels. Where x has a single value, the plot
    is along another axis. Figures that are not made of one chart are not checked.
    """
    figure = FIGURES[name]
    if figure.interactive is None or figure.interactive is not figure.arrange:
        return
    for dataset, drawing in results_by_dataset(drawings, name).items():
        chart, plot = interactive(name, dataset)
        if plot.spec["x"].removeprefix(SCALED) != chart.x:
            continue
        axes = drawing.axes[chart.place * (len(drawing.axes) // len(chart.levels)) :]
        for axis in "xy":
            title = plot.spec["labels"][axis].lower()
            scale = getattr(axes[0], f"get_{axis}scale")()
            require(
                (scale == "log") == plot.spec["log"][axis],
                f"of {dataset} the axis {axis} is {scale} in the picture alone",
            )
            labels = " ".join(next(filter(None, (getattr(panel, f"get_{axis}label")() for panel in axes))).split())
            title, label = (text.replace("_", " ") for text in (title, plain_label(labels).lower()))
            words = set(title.split()), set(label.split())
            require(
                min(words, key=len) <= max(words, key=len),
                f"of {dataset} the axis {axis} is {label!r} in the picture, {title!r} in the plot",
            )
        require(
            chart.aside or _points_of_picture(axes[0]) <= _points_of_plot(plot),
            f"of {dataset} some points are in the picture alone",
        )


def _points_of_picture(axes: "Axes") -> set[Point]:
    """Return the points with marks in a panel, rounded."""
    from matplotlib.container import ErrorbarContainer

    lines = [box.lines[0] for box in axes.containers if isinstance(box, ErrorbarContainer)]
    return {_rounded(point) for line in lines for point in np.asarray(line.get_xydata()) if np.isfinite(point).all()}


def _points_of_plot(plot: Plot) -> set[Point]:
    """Return the points in the table of an interactive plot, rounded."""
    columns = {column.name: column for column in plot.table.columns}
    x, y = (columns[plot.spec[axis]] for axis in "xy")
    at = [x.levels[place] for place in x.values] if x.levels else x.values
    return {_rounded(point) for point in zip(at, y.values, strict=True) if None not in point}


def _rounded(point: Iterable[float]) -> Point:
    """Return a point to six digits, which the page has too."""
    x, y = (float(f"{number:.6g}") for number in point)
    return x, y


def it_has_a_caption(name: str) -> None:
    """Check that its caption is a sentence, and its own name the registered one."""
    figure = FIGURES[name]
    require(figure.name == name, f"its name is {figure.name!r}")
    require(figure.caption.endswith("."), "its caption does not end as a sentence")
