"""Conversion of a validated config to a Design, with its names checked against the grid and the registries."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sweeplib.budget import CASE_BYTES, CASES, NAMES, NODES, PAIRS, VALUES, refuse_more
from sweeplib.code.plugins import load_plugins
from sweeplib.code.user_code import located, named, with_files
from sweeplib.config.answers import with_questions
from sweeplib.config.models import SweepConfig
from sweeplib.config.options import (
    check_fit,
    cluster_settings,
    show_options,
)
from sweeplib.config.points import table_axis
from sweeplib.config.runs import (
    expression_at,
    refuse_never,
    refuse_unknown,
    runs_of,
    written_runs,
)
from sweeplib.config.times import recording_times
from sweeplib.config.values import ascending, count, seeds_in, values
from sweeplib.design.axis import Axis, TableAxis
from sweeplib.design.design import Design, replica_counts
from sweeplib.design.grid import Grid
from sweeplib.errors import InputError, errors_at, errors_under
from sweeplib.execution.block_size import case_bytes
from sweeplib.language import Expression, FormulaWithNames
from sweeplib.networks.clock import TOTALS, Clock
from sweeplib.problem import FORMULA_FIELDS, PARAMETERS, Problem
from sweeplib.simulation import Case, Recording, recorded_variables
from sweeplib.simulation.labels import ATTRIBUTES
from sweeplib.simulation.variables import observable_of
from sweeplib.storage.dataset.outline import Outline, planned_outline
from sweeplib.storage.records.provenance import CREDITS
from sweeplib.storage.records.publish import checked_address
from sweeplib.strict_yaml import SHORTER, size, written


def sweep_of(config: SweepConfig, folder: Path) -> Design:
    """Return the sweep that a config describes; InputError, with the key in the config, if there is none.

    Paths in the config are relative to `folder`.
    """
    with _path_errors_at("plugins"):
        plugins = _loaded_plugins(config.plugins, folder)
    times, clock = recording_times(config.times, config.horizon)
    with _path_errors_at("points"):
        points = located([config.points], folder)[0] if isinstance(config.points, str) else config.points
    replicas = expression_at(config.seeds, "seeds") if isinstance(config.seeds, str) else None
    grid = _grid(config, clock, replicas, [] if points is None else [table_axis(points)])
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
        runs=runs_of(config.dynamics, grid, seeds),
        recording=_recording(config, times),
        clock=clock,
        replicas=replicas,
        root_seed=config.root_seed,
        pair_by=_pair_by(config.pair_by),
        analyses=analyses,
        figures=figures,
        cluster=cluster,
        timeout=config.timeout,
        publish=checked_address(config.publish) if config.publish is not None else None,
        authors=tuple(config.authors),
        licence=config.license,
        table=points if isinstance(points, str) else None,
        plugins=plugins,
    )
    cases = sum(sweep.most_cases_of(name) for name in sweep.runs)
    refuse_more("cases", cases, CASES, key="grid", instead="fewer values, seeds or dynamics, or several sweeps")
    _check_observables(sweep)
    _refuse_no_steps(sweep)
    for name, runs in sweep.simulators.items():
        if not any(len(sweep.probed(run)) for run in runs) and (when := sweep.runs[runs[0]].when) is not None:
            refuse_never(when, f"dynamics.{name}.when", sweep.points_in(runs[0]))
        for run in runs:
            _check_points(sweep, run)
    ds = {overlaps: planned_outline(sweep, overlaps=overlaps) for overlaps in (False, True)}
    sweep = with_questions(sweep, config, ds)
    if "figures" not in config.model_fields_set:
        analyses, figures = show_options(sweep.analyses, default_figures(sweep, ds))
        sweep = replace(sweep, figures=figures, analyses=analyses)
    check_fit(sweep, ds, listed=(*config.analyses, *(question.of for question in sweep.questions.values())))
    return _with_source(sweep, config)


@contextmanager
def _path_errors_at(key: str) -> Iterator[None]:
    """Raise InputError, with this key, for a text that the system does not accept as a path."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: `~` for a user without a home directory
        raise InputError(f"not a path: {error}", key=key) from None


def _most_replicas(replicas: Expression, grid: Grid) -> int:
    """Return the largest number of replicas of a point."""
    refuse_unknown(replicas, grid, "seeds")
    return max(int(replica_counts(replicas, points).max()) for points in grid.evaluated(replicas.names))


def _grid(config: SweepConfig, clock: Clock | None, replicas: Expression | None, rows: list[TableAxis]) -> Grid:
    """Return the grid of a config, whose expressions, as those of the `clock` and the `replicas`, know its names."""
    number_of_names = len(config.grid) + len(config.derive) + len(config.problem)
    refuse_more("names", number_of_names, NAMES, key="grid", instead="fewer axes and symbols")
    _refuse_many_values(config.grid)
    axes = [_axis(name, spec) for name, spec in config.grid.items() if name != "zip"]
    axes += [*_linked_axes(config.grid.get("zip", [])), *rows]
    symbols = {*(name for axis in axes for name in axis.names), *config.derive, *config.problem}
    texts = {name: config.problem[name] for name in FORMULA_FIELDS if name in config.problem}
    formulas = {name: read for name in texts if (read := FormulaWithNames.of(texts[name], symbols)) is not None}
    fixed = {name: value for name, value in config.problem.items() if name not in formulas}
    derived: dict[str, Expression | FormulaWithNames] = dict(formulas)
    derived |= {name: expression_at(text, f"derive.{name}") for name, text in config.derive.items()}
    scale = None if clock is None else clock.scale
    used = frozenset(name for text in (scale, replicas) if text is not None for name in text.names)
    used |= {name for name in symbols if name.rpartition(".")[0] in config.dynamics}
    for name, section in config.dynamics.items():
        used |= expression_at(section.when, f"dynamics.{name}.when").names if section.when is not None else frozenset()
    grid = Grid(tuple(axes), fixed, derived, used)
    if clock is not None and clock.scale is not None:
        refuse_unknown(clock.scale, grid, clock.key)
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
                    values(spec, name)
    refuse_more("values of all axes", number, VALUES, key="grid", instead="coarser axes, or several sweeps")


def _axis(name: str, spec: Any) -> Axis:
    with errors_under("grid"):
        return Axis(name, tuple(values(spec, name)))


def _linked_axes(zips: Any) -> list[Axis]:
    """Return the axes under `zip`, each named by the first of the names that vary jointly."""
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
            axes.append(Axis(first, columns.pop(first), columns))
    return axes


def _recording(config: SweepConfig, times: tuple[float, ...]) -> Recording:
    """Return what a config records: checked times, thresholds in ascending order, and observables."""
    from sweeplib.observables import OBSERVABLES

    for place, name in enumerate(config.observables):
        with errors_under(f"observables[{place}]"):
            OBSERVABLES[name]
        if config.observables.index(name) < place:
            raise InputError("observable given twice", key=f"observables[{place}]", value=name)
    if config.stop == "exit" and not config.thresholds:
        expected = "`thresholds` to stop at, or `stop: end`"
        raise InputError("no threshold to stop at", key="stop", value=config.stop, expected=expected)
    return Recording(
        times=times,
        thresholds=ascending(config.thresholds, "thresholds", 1.0, sort=True),
        observables=tuple(config.observables),
        stop=config.stop,
        exit_on=config.exit_on,
        keep_ends=config.keep == "ends" or (config.keep is None and config.stop == "exit"),
    )


def _pair_by(names: list[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    for place, name in enumerate(names):
        if name not in (*PARAMETERS, "seed"):
            choices = (*PARAMETERS, "seed")
            raise InputError("unknown problem field", key=f"pair_by[{place}]", value=name, choices=choices)
    return tuple(name for name in PARAMETERS if name in names)


def _check_observables(sweep: Design) -> None:
    """Raise InputError for an observable that a dynamics does not have, or that has other dims in two of them."""
    from sweeplib.dynamics import DYNAMICS

    for place, name in enumerate(sweep.recording.observables):
        along = {}
        with errors_at(f"observables[{place}]"):
            for dynamics in sweep.runs:
                along[observable_of(name, dynamics).dims_of(DYNAMICS[dynamics].view)] = dynamics
            if len(along) > 1:
                dimensions = " and ".join(f"({', '.join(dims)}) for {dynamics}" for dims, dynamics in along.items())
                expected = "dynamics in which it has the same dimensions, or one sweep for each"
                raise InputError(f"one variable along {dimensions}", value=name, expected=expected)


def _refuse_no_steps(sweep: Design) -> None:
    """Raise InputError for a dynamics without steps where times are in steps or samples."""
    from sweeplib.dynamics import DYNAMICS

    clock = sweep.clock
    for name in sweep.runs if clock is not None and clock.count is not None else ():
        if clock is not None and not DYNAMICS[name].counts_steps:
            problem = f"no {clock.count} in {name}, a limit of steps that take no time"
            expected = "ODE time, t = steps·gamma/(p d): `values`, with a `scale` such as `gamma/p`"
            raise InputError(problem, key=f"times.{clock.count}", expected=expected)


def _check_points(sweep: Design, name: str) -> None:
    """Raise InputError for points to which a dynamics does not apply, and grid names that are names of results."""
    pairs = set()
    probed = sweep.probed(name)
    if not len(probed):
        return
    for case in probed:
        pairs.add((case.problem.activation, case.problem.teacher, case.problem.target))
        refuse_more("pairs of activations", len(pairs), PAIRS, key="grid", instead="several sweeps")
        try:
            _refuse_bytes(case)
            case.check()
        except InputError as error:
            raise _error_at_point(error, name, case.problem) from None
    recorded = recorded_variables(case)
    dims = {dim for variable in recorded.values() for dim in variable.dims}
    totals = [] if sweep.clock is None or sweep.clock.count is None else [TOTALS[sweep.clock.count]]
    for word in (*recorded, *sorted(dims), *ATTRIBUTES, *CREDITS, *totals):
        if word in sweep.grid.names:
            raise InputError("the name of a result", key=sweep.grid.origin(word), value=word, expected="another name")


def _refuse_bytes(case: Case) -> None:
    """Raise InputError for a case whose results, overlaps or initial weights take too much memory."""
    problem = case.problem
    width = problem.p + problem.k
    instead = "smaller p, k and d, fewer times or observables"
    refuse_more("bytes a case", 8 * width * max(width, problem.d), CASE_BYTES, key="d", instead=instead)
    refuse_more("bytes a case", case_bytes(case), CASE_BYTES, key="times", instead=instead)


def _error_at_point(error: InputError, name: str, problem: Problem) -> InputError:
    fields = ("gamma", "p", "k", "d", "Delta", "activation")
    error.problem += " at " + ", ".join(f"{field}={getattr(problem, field)}" for field in fields)
    error.key = f"dynamics.{name}"
    return error


def _loaded_plugins(plugins: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Import the plugins; return them with absolute paths."""
    paths = located(plugins, folder)
    load_plugins(paths)
    return paths


def _with_source(sweep: Design, config: SweepConfig) -> Design:
    """Return the sweep with its complete config as `source`: every key, with defaults written out."""
    from sweeplib.execution.clusters import cluster_of

    complete = config.model_dump(mode="json")
    complete["dynamics"] = written_runs(sweep)
    complete |= {"analyses": sweep.analyses, **sweep.with_files(named)}
    complete["pair_by"] = None if sweep.pair_by is None else ["seed", *sweep.pair_by]
    complete["cluster"] = cluster_of(sweep).model_dump(mode="json")
    refuse_more("keys and values, with those of all defaults", size(complete), NODES, instead=SHORTER)
    return replace(sweep, source=written(complete))


FigureEntry = tuple[str, dict[str, Any]]
EXITS: tuple[FigureEntry, ...] = (("learning_rate_scan", {}), ("exit_steps", {"kind": "line", "y": "exit_steps"}))
EXIT_MAP: tuple[FigureEntry, ...] = (("exit_steps_map", {"kind": "map", "z": "exit_steps"}),)
RUNS: tuple[FigureEntry, ...] = (("risk_curves", {}), ("trajectories", {}))
STOPPED_RUNS: tuple[FigureEntry, ...] = (("exit_time_distributions", {}), ("trajectories", {}))
LAST_RECORDS: tuple[FigureEntry, ...] = (("last_records", {"kind": "line"}), ("distribution", {}))
LONG = 7
"""The number of values from which an axis is too long for colours: two such axes are drawn as a map."""


def default_figures(sweep: "Design", ds: Mapping[bool, Outline]) -> dict[str, dict[str, Any]]:
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


def _fits(sweep: "Design", ds: Mapping[bool, Outline], entry: FigureEntry) -> bool:
    """Return whether a figure fits a sweep whose dataset has these outlines, without and with overlaps.

    One that shows the optimal learning rate fits if enough learning rates are scanned for an optimum to be found.
    """
    from sweeplib.analysis import ANALYSES
    from sweeplib.analysis.kit.optima import FEWEST
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
