"""Conversion of a validated config to a Design, with its names checked against the grid and the registries.

The subject is the part of a config that is about networks, or about a function of one's own. A spec is a list of values
or a spacing such as `{linspace: [0, 12, 61]}`.

ds : the outlines of the sweep's dataset, by whether variables of overlaps are in them.
replicas : the expression of the number of seeds, None if the config has their number or a list.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sweeplib.config.answers import with_questions
from sweeplib.config.function_models import FunctionConfig
from sweeplib.config.models import SweepConfig
from sweeplib.config.options import check_fit, cluster_settings, show_options
from sweeplib.config.points import table_axis
from sweeplib.config.runs import expression_at, refuse_never, refuse_unknown
from sweeplib.config.subject import FigureEntry, Subject
from sweeplib.config.values import count, seeds_in, values
from sweeplib.engine.base.budget import CASES, NAMES, NODES, VALUES, refuse_more
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.code.user_code import located, named, with_files
from sweeplib.engine.design.axis import Axis, TableAxis
from sweeplib.engine.design.design import Design, replica_counts
from sweeplib.engine.design.grid import Grid
from sweeplib.engine.files.strict_yaml import SHORTER, size, written
from sweeplib.engine.language import Expression, FormulaWithNames
from sweeplib.engine.parameters import Parameters
from sweeplib.engine.simulator import Simulator, networks
from sweeplib.engine.storage.dataset.outline import Outline, planned_outline
from sweeplib.engine.storage.records.publish import checked_address
from sweeplib.errors import InputError, errors_under


def sweep_of(config: SweepConfig | FunctionConfig, folder: Path) -> Design:
    """Return the sweep that a config describes; InputError, with the key in the config, if there is none.

    Paths in the config are relative to `folder`.
    """
    # plugins come first, as the config may use what they define
    with _path_errors_at("plugins"):
        plugins = located(config.plugins, folder)
        load_plugins(plugins)
    with _path_errors_at("points"):
        points = located([config.points], folder)[0] if isinstance(config.points, str) else config.points
    replicas = expression_at(config.seeds, "seeds") if isinstance(config.seeds, str) else None
    subject, rows = _subject(config, folder, points)
    grid = _grid(config, subject, replicas, rows)
    seeds = seeds_in(config.seeds if replicas is None else _most_replicas(replicas, grid))
    with _path_errors_at("figures"):
        analyses, figures = show_options(config.analyses, config.figures)
        figures = with_files({"figures": figures}, partial(located, folder=folder))["figures"]
    with _path_errors_at("cluster"):
        cluster = cluster_settings(config.cluster).located(folder)
    sweep = Design(
        name=config.name,
        grid=grid,
        seeds=seeds,
        runs=subject.runs(grid, seeds),
        recording=subject.recording,
        clock=subject.clock,
        replicas=replicas,
        root_seed=config.root_seed,
        pair_by=_pair_by(config.pair_by, subject.simulator.parameters),
        analyses=analyses,
        figures=figures,
        cluster=cluster,
        timeout=config.timeout,
        checkpoint=subject.checkpoint,
        publish=checked_address(config.publish) if config.publish is not None else None,
        authors=tuple(config.authors),
        licence=config.license,
        table=points if isinstance(points, str) else None,
        plugins=plugins if subject.function is None else (*plugins, subject.plugin),
        function=subject.function,
    )
    # what only the whole design shows: its size, conditions that are never true, points that do not apply
    cases = sum(sweep.most_cases_of(name) for name in sweep.runs)
    refuse_more("cases", cases, CASES, key="grid", instead="fewer values, seeds or dynamics, or several sweeps")
    for name, runs in sweep.laws.items():
        if not any(len(sweep.probed(run)) for run in runs) and (when := sweep.runs[runs[0]].when) is not None:
            refuse_never(when, f"dynamics.{name}.when", sweep.points_in(runs[0]))
    subject.check(sweep)
    # questions and figures are checked against the outlines of the datasets that the sweep will have
    ds = {overlaps: planned_outline(sweep, groups=overlaps) for overlaps in (False, True)}
    sweep = with_questions(sweep, config, ds)
    if "figures" not in config.model_fields_set:
        analyses, figures = show_options(sweep.analyses, default_figures(sweep, ds, subject.figures(sweep)))
        sweep = replace(sweep, figures=figures, analyses=analyses)
    check_fit(sweep, ds, listed=(*config.analyses, *(question.of for question in sweep.questions.values())))
    return _with_source(sweep, config, subject)


def _subject(config: SweepConfig | FunctionConfig, folder: Path, points: Any) -> tuple[Subject, list[TableAxis]]:
    """Return what a config is about, a function if it names one, else networks; and the axis of its table, or none.

    points : its table of points, or the path of one.
    """

    def rows(simulator: Simulator) -> list[TableAxis]:
        """Return the axis of the table, whose names are parameters of the simulator; an empty list without a table."""
        return [] if points is None else [table_axis(points, simulator, config.root_seed)]

    if isinstance(config, FunctionConfig):
        from sweeplib.config.functions import function_subject

        with _path_errors_at("simulator"):
            subject = function_subject(config, folder)
        return subject, rows(subject.simulator)
    from sweeplib.config.networks import network_subject

    table, linked = rows(networks()), config.grid.get("zip", [])
    names = {*config.grid, *config.derive, *config.problem, *(name for axis in table for name in axis.names)}
    for axes in linked if isinstance(linked, list) else ():
        names |= {name for name in axes if isinstance(name, str)} if isinstance(axes, dict) else set()
    return network_subject(config, names), table


def parameters_of(keys: Mapping[str, Any], folder: Path) -> Parameters:
    """Return the parameters of what a config is about, by its keys, of which others may be wrong.

    InputError if it names a function that cannot be imported.
    """
    if "simulator" not in keys:
        from sweeplib.networks.parameters import NetworkParameters

        return NetworkParameters()
    from sweeplib.config.functions import called
    from sweeplib.functions.simulator import FunctionParameters

    with _path_errors_at("simulator"):
        return FunctionParameters(called(keys["simulator"], folder)[0])


@contextmanager
def _path_errors_at(key: str) -> Iterator[None]:
    """Turn errors about a text that the system does not accept as a path into an InputError with this key."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: `~` for a user without a home directory
        raise InputError(f"not a path: {error}", key=key) from None


def _pair_by(names: list[str] | None, parameters: Parameters) -> tuple[str, ...] | None:
    """Return the parameters by which cases are paired, in the order of all; None, by all of them, for None.

    Cases that agree in these and in the seed share their random numbers.
    names : the key `pair_by` of a config; `seed`, by which cases are always paired, is left out.
    """
    if names is None:
        return None
    for place, name in enumerate(names):
        if name not in (choices := (*parameters.names(), "seed")):
            raise InputError(f"unknown {parameters.kind}", key=f"pair_by[{place}]", value=name, choices=choices)
    return tuple(name for name in parameters.names() if name in names)


def _most_replicas(replicas: Expression, grid: Grid) -> int:
    """Return the largest number of replicas of a point."""
    refuse_unknown(replicas, grid, "seeds")
    return max(int(replica_counts(replicas, points).max()) for points in grid.evaluated(replicas.names))


def _grid(
    config: SweepConfig | FunctionConfig, subject: Subject, replicas: Expression | None, rows: list[TableAxis]
) -> Grid:
    """Return the grid of a config; InputError for too many names or values, and for expressions with unknown names.

    rows : the axis of the table of points, or none.
    """
    fixed = {**subject.fixed, **subject.formulas}
    number_of_names = len(config.grid) + len(config.derive) + len(fixed)
    refuse_more("names", number_of_names, NAMES, key="grid", instead="fewer axes and symbols")
    _refuse_many_values(config.grid)
    axes = [_axis(name, spec, subject.simulator) for name, spec in config.grid.items() if name != "zip"]
    axes += [*_linked_axes(config.grid.get("zip", []), subject.simulator), *rows]
    derived: dict[str, Expression | FormulaWithNames] = dict(subject.formulas)
    derived |= {name: expression_at(text, f"derive.{name}") for name, text in config.derive.items()}
    texts = (*subject.expressions.values(), *([] if replicas is None else [replicas]))
    used = subject.used.union(*(text.names for text in texts))
    grid = Grid(tuple(axes), dict(subject.fixed), derived, used, subject.simulator)
    for key, expression in subject.expressions.items():
        refuse_unknown(expression, grid, key)
    return grid


def _refuse_many_values(grid: Mapping[str, Any]) -> None:
    """Raise InputError if an axis, or all axes together, have too many values, before any value is computed."""
    zips = grid.get("zip", [])
    linked = {f"grid.zip[{place}]": zipped for place, zipped in enumerate(zips)} if isinstance(zips, list) else {}
    number = 0
    for key, axes in ({"grid": {name: spec for name, spec in grid.items() if name != "zip"}} | linked).items():
        for name, spec in axes.items() if isinstance(axes, dict) else ():
            number += count(spec)
            if count(spec) > VALUES:
                with errors_under(key):
                    values(spec, name)  # raises the error for a spacing, with its key; a list goes on to the sum
    refuse_more("values of all axes", number, VALUES, key="grid", instead="coarser axes, or several sweeps")


def _axis(name: str, spec: Any, simulator: Simulator) -> Axis:
    """Return the axis of this name of `grid`, with the values of its spec."""
    with errors_under("grid"):
        return Axis(name, tuple(values(spec, name)), simulator=simulator)


def _linked_axes(zips: Any, simulator: Simulator) -> list[Axis]:
    """Return the axes under `zip`, each named by the first of the names that vary jointly.

    zips : what the config has there, such as `[{p: [1, 4], d: [100, 400]}]`.
    """
    shape = "a list of mappings such as {p: [1, 4], d: [100, 400]}"
    if not isinstance(zips, list):
        raise InputError("not linked axes", key="grid.zip", value=zips, expected=shape)
    axes = []
    for place, linked in enumerate(zips):
        with errors_under(f"grid.zip[{place}]"):
            if not isinstance(linked, dict) or len(linked) < 2 or not all(isinstance(name, str) for name in linked):
                raise InputError("not linked axes", value=linked, expected="two names or more, with their values")
            columns = {name: tuple(values(spec, name)) for name, spec in linked.items()}
            first = next(iter(columns))
            axes.append(Axis(first, columns.pop(first), columns, simulator))
    return axes


def _with_source(sweep: Design, config: SweepConfig | FunctionConfig, subject: Subject) -> Design:
    """Return the sweep with its complete config as `source`: every key, with defaults written out."""
    from sweeplib.engine.execution.clusters import cluster_of

    complete = config.model_dump(mode="json") | subject.written(sweep)
    complete |= {"analyses": sweep.analyses, **sweep.with_files(named)}
    complete["pair_by"] = None if sweep.pair_by is None else ["seed", *sweep.pair_by]
    complete["cluster"] = cluster_of(sweep).model_dump(mode="json")
    refuse_more("keys and values, with those of all defaults", size(complete), NODES, instead=SHORTER)
    return replace(sweep, source=written(complete))


def default_figures(
    sweep: Design, ds: Mapping[bool, Outline], kinds: Sequence[tuple[FigureEntry, ...]]
) -> dict[str, dict[str, Any]]:
    """Return the entries of `figures` where a config has none: the first of each kind that fits the sweep."""
    fitting = (next((entry for entry in kind if _fits(sweep, ds, entry)), None) for kind in kinds)
    return dict(entry for entry in fitting if entry is not None)


def _fits(sweep: "Design", ds: Mapping[bool, Outline], entry: FigureEntry) -> bool:
    """Return whether a figure fits a sweep.

    One that shows the optimal learning rate fits if enough learning rates are scanned for an optimum to be found.
    """
    from sweeplib.analysis import ANALYSES
    from sweeplib.pictures.figures.figure import requested
    from sweeplib.statistics.optima import FEWEST

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
