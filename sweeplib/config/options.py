"""The names in a config that refer to registries (dynamics, analyses, figures, clusters), and their options.

A run is a dynamics with its options; its name is that of the dynamics, or `ode-WORD` for one of several.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pydantic

from sweeplib.engine.base.validation import Location, refusal
from sweeplib.engine.run_names import RUN_NAME
from sweeplib.errors import InputError, Refusals, errors_at, errors_under

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design
    from sweeplib.engine.execution.clusters import ClusterSettings
    from sweeplib.engine.storage.dataset.outline import Outline


def run_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numerical options of the run `name` of a dynamics, with defaults for those not given."""
    from sweeplib.networks.dynamics import DYNAMICS

    if not RUN_NAME.fullmatch(name):
        expected = "the name of a dynamics, which may go on with `-` and a word: letters, digits and `_`"
        raise InputError("not the name of a run", key="dynamics", value=name, expected=expected)
    if name not in DYNAMICS and isinstance(kind := options.get("kind"), str) and kind in DYNAMICS:
        expected = f"`{kind}-{name}: {{...}}`: a run has the name of its dynamics and, after a hyphen, a word of yours"
        raise InputError("a dynamics has no `kind`", key=f"dynamics.{name}.kind", value=kind, expected=expected)
    return _model_of(_thing_of(DYNAMICS, name, "dynamics").Options, options, f"dynamics.{name}").model_dump()


Options = dict[str, dict[str, Any]]
"""Options by name, as the sections `analyses` and `figures` have them."""


def show_options(analyses: Mapping[str, Any], figures: Mapping[str, Any]) -> tuple[Options, Options]:
    """Return the options of each analysis, named or needed by a figure, and of each figure, with its `kind` if given.

    InputError with all that is wrong with them.
    """
    if not analyses and not figures:
        return {}, {}
    from sweeplib.analysis import ANALYSES
    from sweeplib.pictures.figures.figure import requested

    refused = Refusals()
    needed: dict[str, Any] = {}
    for name, options in figures.items():
        with refused.of_one(), errors_under(f"figures.{name}"):
            figure, settings = requested(name, options)
            figure.check(settings)
            needed |= {need: {} for need in figure.needed(settings)}
    needed |= analyses
    for name, options in needed.items():
        with refused.of_one():
            if "of" in options and name not in ANALYSES:
                expected = "one that `sweeplib list analyses` shows; names of your own stand in `answers` and `figures`"
                raise InputError("unknown analysis", key=f"analyses.{name}", expected=expected)
            analysis = _thing_of(ANALYSES, name, "analyses")
            with errors_under(f"analyses.{name}"):
                analysis.check(options)
    refused.tell()
    return copied(needed), copied(figures)


def copied(options: Mapping[str, Any]) -> Options:
    """Return a copy of options by name."""
    return {name: dict(section) for name, section in options.items()}


def needed_analyses(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the analyses that an entry of `figures` draws: its name and options."""
    from sweeplib.pictures.figures.figure import requested

    figure, settings = requested(name, options)
    return figure.needed(settings)


def check_fit(sweep: "Design", ds: "Mapping[bool, Outline]", listed: Iterable[str]) -> None:
    """Raise InputError for the analyses and figures that do not fit the future dataset of the sweep.

    ds : the outlines of this dataset, by whether variables of overlaps are in them.
    listed : the analyses that the config names; the error of another one refers to the figure that needs it.
    """
    if not (sweep.analyses or sweep.figures):
        return
    from sweeplib.analysis import ANALYSES
    from sweeplib.pictures.figures.figure import requested

    refused, undrawn = Refusals(), set[str | None]()
    outlines: dict[str, Outline | None] = {}
    for name, options in sweep.analyses.items():
        analysis = ANALYSES[name]
        drawing = [entry for entry, settings in sweep.figures.items() if name in needed_analyses(entry, settings)]
        drawn_by = drawing[0] if drawing and name not in listed else None
        if drawn_by is not None and drawn_by in undrawn:  # one error a figure is enough
            continue
        with refused.of_one(), _errors_at(analysis, f"analyses.{name}", drawn_by=drawn_by):
            outlines[name] = analysis.outlined(ds[analysis.overlaps], options)
        if name not in outlines:
            undrawn.add(drawn_by)
    for name, options in sweep.figures.items():
        figure, options_of_figure = requested(name, options)
        if outlines.keys() >= {*figure.needed(options_of_figure)}:
            with refused.of_one(), _errors_at(figure, f"figures.{name}"):
                figure.check_fit(ds[False], outlines, options_of_figure)
    refused.tell()


@contextmanager
def _errors_at(thing: Any, key: str, drawn_by: str | None = None) -> Iterator[None]:
    """Set the key of errors to the option of an analysis or figure, to its key, or to the key of the figure.

    thing, key : the analysis or the figure, and its dotted key.
    drawn_by : the figure that needs the analysis, which then has the key of errors; None for a thing that is listed.
    """
    try:
        yield
    except InputError as error:
        option = (error.key or "").partition(".")[0].partition("[")[0]
        error.key = error.key if option in thing.check({}) and drawn_by is None else None
        if drawn_by is not None:
            error.problem = f"its analysis {thing.name} does not fit: {error.problem}"
        raise error.within(prefix=key if drawn_by is None else f"figures.{drawn_by}") from None


def cluster_settings(settings: Mapping[str, Any]) -> "ClusterSettings":
    """Return the settings of a cluster of the named `kind`, by default this machine."""
    from sweeplib.engine.execution.clusters import CLUSTERS

    settings = {"kind": "local", **settings}
    return _model_of(_thing_of(CLUSTERS, settings["kind"], "cluster", key="kind"), settings, "cluster")


def _thing_of(registry: Mapping[str, Any], name: Any, prefix: str, key: str | None = None) -> Any:
    """Return what a registry has of this name; InputError, at `prefix.key` or else `prefix.name`, if it has nothing."""
    with errors_at(f"{prefix}.{key or name}"):
        return registry[name]


def _model_of(model: type[pydantic.BaseModel], options: Mapping[str, Any], key: str) -> Any:
    """Return an instance of `model` with these options; InputError for others, with a key below `key`.

    A place is pydantic's location of an error in the options; examples are those of the option at its top.
    """
    try:
        return model.model_validate(options)
    except pydantic.ValidationError as error:
        refused = refusal(
            error,
            unknown="unknown option",
            missing="this option is needed",
            choices=lambda place: _options_beside(model, place),
            example=lambda place: _meaning(model, str(place[0])),
        ).within(prefix=key)
        if not model.model_fields:
            refused.expected = "no options"
        raise refused from None


def _options_beside(model: type[pydantic.BaseModel], place: Location) -> Iterable[str]:
    """Return the names of the options that are valid beside that of a location: those of jobs for ("jobs", "max")."""
    for name in place[:-1]:
        within = model.model_fields[str(name)].annotation if str(name) in model.model_fields else None
        if not (isinstance(within, type) and issubclass(within, pydantic.BaseModel)):
            return ()
        model = within
    return model.model_fields


def _meaning(model: type[pydantic.BaseModel], option: str) -> str:
    """Return what an option is, without further remarks, and its type: 'memory of a job, such as "8GB" (text)'."""
    from sweeplib.config.reference import setting_rows

    row = next(row for row in setting_rows(model, "") if row.key == option)
    meaning = re.split(r"[;.](?:\s|$)", row.meaning)[0]
    return f"{meaning} ({row.type})" if meaning else row.type
