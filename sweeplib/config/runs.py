"""The runs of a config: which dynamics run, with which options, where, and of one law the cheapest.

A law is the distribution of results: simulators of one law, such as sgd and sgd_chain, differ in cost alone. The config
names the law, with `kind: cheapest`; a run of it is called SIMULATOR-LAW. The sections of `dynamics` are by name.
"""

import graphlib
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from sweeplib.config.models import DynamicsSection
from sweeplib.config.options import run_options
from sweeplib.config.values import seeds_in, values
from sweeplib.engine.base.budget import ASKED, WHERE, refuse_more
from sweeplib.engine.design.choices import COST
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.fields import options_of
from sweeplib.engine.design.grid import Grid
from sweeplib.engine.language import Expression, is_symbol
from sweeplib.engine.run_names import kind_of
from sweeplib.errors import InputError, errors_at, errors_under

CHEAPEST = "cheapest"
"""The `kind` of a section that names simulators of one law."""
WORD = r"[A-Za-z0-9_]+"
"""The pattern of the name of a law."""
Sections = Mapping[str, DynamicsSection]


def runs_of(sections: Sections, grid: Grid, seeds: tuple[int, ...]) -> dict[str, Run]:
    """Return the runs of all sections, by name: one of a section, or one for each simulator of a law."""
    runs: dict[str, Run] = {}
    for name, section in sections.items():
        options = _options(name, section, grid)
        for run, keys in options.items():
            if run in runs or (run != name and run in sections):
                raise InputError("a run of this name is there too", key=f"dynamics.{name}", value=run)
            runs[run] = _run(run, name, section, keys, grid, seeds)
    _check_conditions(sections, grid)
    return runs


def written_runs(sweep: Design) -> dict[str, Any]:
    """Return the section `dynamics` of the complete config: with all options, also those that are defaults."""
    sections = {}
    for name, runs in sweep.laws.items():
        first = sweep.runs[runs[0]]
        of = {run.partition("-")[0]: dict(sweep.runs[run].options) for run in runs}
        law = {"kind": CHEAPEST, "of": of} if first.law else {}
        sections[name] = law | _places(first) | ({} if law else dict(first.options))
    return sections


def _places(run: Run) -> dict[str, Any]:
    """Return the keys that say where a run is made, `where` and `when`, if there are conditions."""
    where = {axis: list(wanted) for axis, wanted in run.where.items()}
    when = run.when.text if run.when is not None else None
    return {**({"where": where} if where else {}), **({"when": when} if when else {})}


def _options(name: str, section: DynamicsSection, grid: Grid) -> dict[str, dict[str, Any]]:
    """Return the numerical options of the runs of a section, by the name of the run; of one, unless it is a law.

    Options that are axes of the grid are left out; InputError for one that the section has too.
    """
    from sweeplib.networks.dynamics import DYNAMICS

    keys = {key: value for key in ("kind", "of") if (value := getattr(section, key)) is not None}
    if keys.get("kind") == CHEAPEST:
        simulators = _simulators(name, section)
        return {f"{kind}-{name}": _options_in_law(name, kind, chosen) for kind, chosen in simulators.items()}
    if section.kind is not None and name not in DYNAMICS and section.kind not in DYNAMICS:
        raise InputError("no such kind", key=f"dynamics.{name}.kind", value=section.kind, choices=[CHEAPEST])
    if "-" in name and (other := name.replace("-", "_")) in DYNAMICS:
        problem = f"a run of {kind_of(name)} would have this name, not {other}"
        raise InputError(problem, key=f"dynamics.{name}", value=name, expected=f"`{other}`, or another word")
    extra = (section.model_extra or {}) | keys
    options = run_options(name, extra)
    for option in options_of(name, grid.names):
        default = options.pop(option)
        if option in extra:
            problem, expected = f"given twice, in {grid.origin(f'{name}.{option}')} too", "one of the two"
            raise InputError(problem, key=f"dynamics.{name}.{option}", value=default, expected=expected)
    return {name: options}


def _simulators(name: str, section: DynamicsSection) -> dict[str, dict[str, Any]]:
    """Return the simulators of a law, with their options; InputError unless there are several, all of one law.

    name : the name of the law. section : that of the law, whose `of` has the simulators with their options.
    """
    from sweeplib.networks.dynamics import DYNAMICS

    key, simulators = f"dynamics.{name}", section.of or {}
    if name in DYNAMICS or not re.fullmatch(WORD, name):
        expected = "a word of yours that is no dynamics: letters, digits and `_`"
        raise InputError("not a name for the cheapest of several", key=key, value=name, expected=expected)
    for option in section.model_extra or {}:
        expected = "the options of a simulator beside its name, `of: {sgd: {weights: float32}, sgd_chain: {}}`"
        raise InputError("not an option of the cheapest", key=f"{key}.{option}", value=option, expected=expected)
    for simulator in simulators:
        # `ode-word` is in DYNAMICS too, as a run of ode
        if simulator not in DYNAMICS or "-" in simulator:
            raise InputError("no such dynamics", key=f"{key}.of", value=simulator, choices=DYNAMICS)
    # a dynamics that names no other one has a law of its own
    laws = {simulator: DYNAMICS[simulator].law_of or simulator for simulator in simulators}
    for simulator, law in laws.items():
        if law != (first := next(iter(laws.values()))):
            same = ", ".join(other for other in DYNAMICS if (DYNAMICS[other].law_of or other) == first)
            problem = f"its results have another law than those of {next(iter(laws))}"
            raise InputError(problem, key=f"{key}.of", value=simulator, expected=f"simulators of one law: {same}")
    if len(simulators) < 2:
        expected = "two simulators of one law or more, such as `[sgd, sgd_chain]`"
        raise InputError("nothing to choose from", key=f"{key}.of", value=list(simulators), expected=expected)
    return dict(simulators)


def _options_in_law(name: str, simulator: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a simulator of the law `name`, with defaults; errors have keys in the law's section."""
    try:
        return run_options(simulator, options)
    except InputError as error:
        error.key = f"dynamics.{name}.of{(error.key or '').removeprefix('dynamics')}"
        raise


def _run(
    run: str, name: str, section: DynamicsSection, options: dict[str, Any], grid: Grid, seeds: tuple[int, ...]
) -> Run:
    """Return the run of this name, which the section `name` describes; InputError for where it cannot run."""
    with errors_under(f"dynamics.{name}.where"):
        where = {axis: _where_values(axis, wanted, seeds) for axis, wanted in section.where.items()}
        grid.positions({axis: wanted for axis, wanted in where.items() if axis != "seed"})
    when = expression_at(section.when, f"dynamics.{name}.when") if section.when is not None else None
    return Run(run, where, options, when, None if run == name else name)


def _check_conditions(sections: Sections, grid: Grid) -> None:
    """Raise InputError for a `when` with an unknown name, and for runs whose conditions depend on each other."""
    uses: dict[str, set[str]] = {}
    for name, section in sections.items():
        if section.when is not None:
            key, others = f"dynamics.{name}.when", {other for other in sections if is_symbol(other)} - {name}
            when = expression_at(section.when, key)
            refuse_unknown(when, grid, key, (COST, *others))
            uses[name] = others.intersection(when.names).difference(grid.names)
    try:
        graphlib.TopologicalSorter(uses).prepare()
    except graphlib.CycleError as error:
        name = error.args[1][0]
        problem = f"runs where others do that run where it does ({' -> '.join(reversed(error.args[1]))})"
        raise InputError(problem, key=f"dynamics.{name}.when", value=sections[name].when) from None


def _where_values(axis: str, wanted: Any, seeds: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the values of an axis, or of `seed`, at which a run is made; InputError for seeds that are not in `seeds`.

    wanted : what the config says: a value, a list or a spacing.
    """
    if axis == "seed":
        chosen = seeds_in(wanted if isinstance(wanted, dict | list) else [wanted], WHERE)
        missing = sorted(set(chosen).difference(seeds))
        if missing:
            expected = f"some of the {len(seeds)} seeds of the sweep"
            raise InputError("not a seed of the sweep", key="seed", value=missing[0], expected=expected)
        return chosen
    chosen = tuple(values(wanted if isinstance(wanted, dict | list) else [wanted], axis, WHERE))
    refuse_more("values", len(chosen), WHERE, key=axis, instead="`when`, which takes an expression")
    return chosen


def refuse_never(when: Expression, key: str, points: int) -> NoReturn:
    """Raise InputError, at `key`, for a `when` that is true nowhere on a grid of this number of points."""
    if points <= ASKED:
        raise InputError("true at no point of the grid", key=key, value=when.text)
    problem = f"true at none of {ASKED} points, evenly spread, of the {points} of the grid"
    expected = "a condition that is true at some points; to select points, use `where` or other axes"
    raise InputError(problem, key=key, value=when.text, expected=expected)


def expression_at(text: str, key: str) -> Expression:
    """Return an expression; InputError, at its key, unless it is one."""
    with errors_at(key):
        return Expression(text)


def refuse_unknown(expression: Expression, grid: Grid, key: str, others: tuple[str, ...] = ()) -> None:
    """Raise InputError for a name that is neither one of a grid nor one of the `others`."""
    for name in sorted(expression.names.difference(grid.names, others)):
        raise InputError(f"unknown name in {expression!s}", key=key, value=name, choices=(*grid.names, *others))
