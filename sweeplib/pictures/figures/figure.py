"""Figure: a named function from a dataset and its analyses to a matplotlib Figure.

An outline is the structure of a dataset without its numbers, which is known before anything runs: a figure that cannot
be drawn is refused by it. A chart is the declaration of a figure in layers, of which its picture and its interactive
plot are made (`kit.chart`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Annotated, Any, Literal

from pydantic import Field

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.options import Confidence, checked_options
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError, errors_at
from sweeplib.pictures.figures.kit.chart import Chart
from sweeplib.pictures.figures.kit.distances import Distance
from sweeplib.pictures.figures.kit.facets import asked_columns, by_columns
from sweeplib.pictures.figures.kit.late_matplotlib import mpl


@dataclass(frozen=True)
class Figure:
    """A figure. Called with a dataset and its options, it returns a matplotlib Figure.

    function : function (ds, analyses, **options). Every option has a default and an annotation, which gives its type.
        Fields that are the same at all points of the datasets are coordinates.
    caption : text that describes the figure.
    needs : names of the analyses that it draws, or a function of the options that returns them. They are computed with
        default options if the config omits them.
    arrange : function (ds, analyses, **options), called with outlines of datasets, that raises InputError if the figure
        cannot be drawn. It is called before anything runs. None: no check.
    interactive : function (ds, analyses, **options) that returns the figure's interactive plot for the report, or None.
    """

    name: str
    function: Callable[..., mpl.figure.Figure]
    caption: str
    needs: tuple[str, ...] | Callable[..., tuple[str, ...]] = ()
    arrange: Callable[..., Any] | None = None
    interactive: Callable[..., Chart] | None = None

    def __call__(
        self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset] | None = None, **options: Any
    ) -> mpl.figure.Figure:
        """Return the drawing; InputError for a wrong option, an axis that cannot be drawn, or an unknown analysis."""
        from sweeplib.pictures.figures.kit.fit import fitted
        from sweeplib.pictures.figures.kit.style import styled

        self.check(options)
        inputs = dict(analyses or {})
        if unknown := [name for name in inputs if name not in ANALYSES]:
            problem = "analyses are a mapping of their names to their datasets"
            raise InputError(problem, value=unknown[0], expected='as `{"exit_times": exits}`')
        needed = {name: inputs[name] if name in inputs else ANALYSES[name](ds) for name in self.needed(options)}
        with styled():
            drawing: Any = self.function(*_prepared(ds, needed, options), **options)
            if not hasattr(drawing, "savefig"):
                problem = f"figure {self.name}: it returns {type(drawing).__name__}"
                raise TypeError(f"{problem}; expected a matplotlib.figure.Figure")
            return fitted(drawing)

    def declared(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], **options: Any) -> Chart:
        """Return the interactive plot of a figure that has one (`interactive`), with these options."""
        assert self.interactive is not None
        plot = self.interactive(*_prepared(ds, analyses, options), **self.check(options))
        return replace(plot, columns=asked_columns(ds, options))

    def distances(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], **options: Any) -> Sequence[Distance]:
        """Return how far each dynamics is from the published values (`reference`) that the figure draws."""
        if self.interactive is None or not options.get("reference"):
            return []
        prepared = _prepared(ds, analyses, options)
        return self.interactive(*prepared, **self.check(options)).distances(*prepared)

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, defaults included; InputError, naming the key, for an unknown name or a wrong type."""
        complete = checked_options(self.function, f"option of the figure {self.name!r}", options, arguments=2)
        self._needed(complete)
        return complete

    def needed(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the analyses that the figure draws with these options; InputError for a wrong option."""
        return self._needed(self.check(options))

    def _needed(self, complete: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the analyses that the figure draws, from options that are complete and checked."""
        return self.needs(**complete) if callable(self.needs) else self.needs

    def check_fit(self, ds: Outline, analyses: Mapping[str, Outline | None], options: Mapping[str, Any]) -> None:
        """Raise InputError if the figure cannot be drawn from a dataset and analyses with these outlines.

        Does nothing if the outline of an analysis that it draws is unknown.
        """
        complete = self.check(options)
        if self.arrange is not None and all(analyses.get(name) is not None for name in self._needed(complete)):
            # columns of a table of points become axes here, as they do for datasets (`_prepared`)
            columns = asked_columns(ds, complete)
            outlines = {name: by_columns(analyses[name], columns) for name in self._needed(complete)}
            others = {name: outline for name, outline in analyses.items() if outline is not None}
            self.arrange(by_columns(ds, columns), others | outlines, **complete)


def chart_figure(
    name: str,
    declare: Callable[..., Chart],
    caption: str,
    needs: tuple[str, ...] | Callable[..., tuple[str, ...]] = (),
) -> Figure:
    """Return the figure of a function (ds, analyses, **options) that returns a chart.

    The function is called with outlines before anything runs, to refuse what cannot be drawn, and then with datasets.
    """

    @wraps(declare)
    def declared(ds: Any, analyses: Mapping[str, Any], **options: Any) -> Chart:
        """Return the chart, with its published values checked."""
        return declare(ds, analyses, **options).check(ds, analyses)

    @wraps(declare)
    def picture(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], **options: Any) -> mpl.figure.Figure:
        """Return the picture of the chart."""
        return declared(ds, analyses, **options).picture(ds, analyses)

    return Figure(name, picture, caption, needs, arrange=declared, interactive=declared)


def _prepared(
    ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], options: Mapping[str, Any]
) -> tuple[xr.Dataset, dict[str, xr.Dataset]]:
    """Return a dataset and analyses with constants as coordinates, and the columns that are asked for as axes."""
    columns = asked_columns(ds, options)
    whole = {name: by_columns(with_constants(analysis), columns) for name, analysis in analyses.items()}
    return by_columns(with_constants(ds), columns), whole


Where = Annotated[
    Mapping[str, Any] | None,
    Field(
        description="values at which axes are fixed, such as `{Delta: 0}`; a list selects several values.",
        examples=[{"Delta": 0}],
    ),
]
Panel = Annotated[str | None, Field(description="the axis drawn as panels; by default chosen from the axes.")]
Hue = Annotated[str | None, Field(description="the axis drawn as colours; by default chosen from the axes.")]
Dash = Annotated[str | None, Field(description="the axis drawn as dashes.")]
Drawn = Annotated[str | None, Field(description="the quantity that is drawn.", examples=["risk"])]
Horizontal = Annotated[
    str | None,
    Field(
        description="the horizontal axis: an axis or another coordinate of numbers, `time` or `steps`; by default the "
        "longest axis.",
        examples=["gamma"],
    ),
]
Published = Annotated[
    Sequence[str],
    Field(description="published values to draw: names of files of sweeplib, or paths of files of your own."),
]
LogAxes = Annotated[
    Sequence[Literal["x", "y"]] | None,
    Field(
        description="the axes that are logarithmic, `[]` for none; by default those whose values range widely, in "
        "`risk_fans` none.",
        examples=[["y"]],
    ),
]
BandConfidence = Annotated[Confidence, Field(description="the confidence of bands.")]
SingleRuns = Annotated[int, Field(ge=0, description="the number of single runs that are drawn.")]
Theories = Annotated[
    Sequence[Literal["annealed", "quenched", "noise-corrected"]],
    Field(
        description="theories of exit times to draw: from the mean start (annealed), averaged over starts (quenched), "
        "with the noise of SGD."
    ),
]
"""Types of options, with the meaning, that several figures have."""

FIGURES: Registry[Figure] = Registry("figure")
OWN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""The names that a config may give to a figure of a `kind`; they are names of files."""


def requested(name: str, options: Mapping[str, Any]) -> tuple[Figure, dict[str, Any]]:
    """Return the figure of an entry of `figures` in a config, and its options without `kind`.

    The entry has the name of a figure or, with `kind: FIGURE`, a name of its own. InputError for an unknown figure.
    """
    others = dict(options)
    if "kind" not in others:
        return FIGURES[name], others
    kind = others.pop("kind")
    if not OWN_NAME.fullmatch(name):
        raise InputError("not a name of a figure", value=name, expected="letters, digits and _, 64 at most")
    with errors_at("kind"):
        return FIGURES[kind], others
