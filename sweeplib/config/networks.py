"""The part of a config that is about networks: problems, dynamics, and what is recorded of them."""

from functools import partial

from sweeplib.config.models import SweepConfig
from sweeplib.config.runs import expression_at, runs_of, written_runs
from sweeplib.config.subject import FigureEntry, Subject
from sweeplib.config.times import recording_times
from sweeplib.config.values import ascending
from sweeplib.engine.base.budget import CASE_BYTES, PAIRS, refuse_more
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.estimates import case_bytes
from sweeplib.engine.language import FormulaWithNames
from sweeplib.engine.storage.records.provenance import ATTRIBUTES
from sweeplib.errors import InputError, errors_at, errors_under
from sweeplib.networks.clock import TOTALS
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import DEFAULTS, FORMULA_FIELDS, Problem
from sweeplib.networks.simulation import Case, Recording, recorded_variables
from sweeplib.networks.simulation.labels import OF_RUNS
from sweeplib.networks.simulation.variables import observable_of
from sweeplib.networks.simulator import SIMULATOR

# The default figures of each kind, of which the first that fits the sweep is drawn.
EXITS: tuple[FigureEntry, ...] = (("learning_rate_scan", {}), ("exit_steps", {"kind": "line", "y": "exit_steps"}))
EXIT_MAP: tuple[FigureEntry, ...] = (("exit_steps_map", {"kind": "map", "z": "exit_steps"}),)
RUNS: tuple[FigureEntry, ...] = (("risk_curves", {}), ("trajectories", {}))
STOPPED_RUNS: tuple[FigureEntry, ...] = (("exit_time_distributions", {}), ("trajectories", {}))
LAST_RECORDS: tuple[FigureEntry, ...] = (("last_records", {"kind": "line"}), ("distribution", {}))
LONG = 7
"""The number of values from which an axis is too long for colours: two such axes are drawn as a map."""


def network_subject(config: SweepConfig, symbols: set[str]) -> Subject:
    """Return what a config says of networks.

    symbols : the names of its grid, which formulas in `problem` may use.
    """
    times, clock = recording_times(config.times, config.horizon)
    _refuse_equal_rows(config)
    texts = {name: config.problem[name] for name in FORMULA_FIELDS if name in config.problem}
    formulas = {name: read for name in texts if (read := FormulaWithNames.of(texts[name], symbols)) is not None}
    whens = {f"dynamics.{name}.when": section.when for name, section in config.dynamics.items()}
    used = {name for name in symbols if name.rpartition(".")[0] in config.dynamics}  # options that are axes: `sde.step`
    for key, when in whens.items():
        used |= expression_at(when, key).names if when is not None else frozenset()
    return Subject(
        simulator=SIMULATOR,
        # null is the value of a field that is not given, whose meaning may depend on other fields
        fixed={
            name: value
            for name, value in config.problem.items()
            if name not in formulas and not (value is None is DEFAULTS.get(name, ...))
        },
        formulas=formulas,
        used=frozenset(used),
        expressions={} if clock is None or clock.scale is None else {clock.key: clock.scale},
        recording=_recording(config, times),
        clock=clock,
        runs=partial(runs_of, config.dynamics),
        check=_check,
        written=lambda sweep: {"dynamics": written_runs(sweep)},
        figures=_figures,
    )


def _refuse_equal_rows(config: SweepConfig) -> None:
    """Raise InputError for a derived `a_star` with several teacher rows: it would be one second-layer weight of all."""
    if "a_star" in config.derive and config.problem.get("k") != 1:
        expected = "in `problem` a power law in the rows, `a_star: power(beta)`, also power(0); or a list"
        text = config.derive["a_star"]
        raise InputError("one number for all rows of the teacher", key="derive.a_star", value=text, expected=expected)


def _recording(config: SweepConfig, times: tuple[float, ...]) -> Recording:
    """Return what a config records: checked times, thresholds in ascending order, and observables."""
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


def _check(sweep: Design) -> None:
    """Raise InputError for an observable, a unit of times or a point to which a dynamics does not apply."""
    _check_observables(sweep)
    _refuse_no_steps(sweep)
    for run in sweep.runs:
        _check_points(sweep, run)


def _check_observables(sweep: Design) -> None:
    """Raise InputError for an observable that a dynamics does not have, or that has other dims in two of them."""
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
    clock = sweep.clock
    # those of ODE time count nothing
    if clock is None or clock.count is None:
        return
    for name in sweep.runs:
        if not DYNAMICS[name].counts_steps:
            problem = f"no {clock.count} in {name}, a limit of steps that take no time"
            expected = "ODE time, t = steps·gamma/(p d): `values`, with a `scale` such as `gamma/p`"
            raise InputError(problem, key=f"times.{clock.count}", expected=expected)


def _check_points(sweep: Design, name: str) -> None:
    """Raise InputError for points to which the run `name` does not apply, and grid names that are names of results."""
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
    for word in (*recorded, *sorted(dims), *ATTRIBUTES, *OF_RUNS, *totals):
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
    """Return the error with the run as its key, and with the main fields of the problem in its text."""
    fields = ("gamma", "p", "k", "d", "Delta", "activation")
    error.problem += " at " + ", ".join(f"{field}={getattr(problem, field)}" for field in fields)
    error.key = f"dynamics.{name}"
    return error


def _figures(sweep: Design) -> list[tuple[FigureEntry, ...]]:
    """Return the default figures, by kinds: exits, observables over time, and the last records against an axis.

    Runs that stop at their exits have few records: the distributions of their exit times are drawn, not their risks.
    """
    long_axes = [axis for axis in sweep.grid.axes if len(axis.values) >= LONG]
    kinds = [EXITS, EXIT_MAP] if len(long_axes) > 1 else [EXITS]
    return kinds + ([STOPPED_RUNS] if sweep.recording.stop == "exit" else [RUNS, LAST_RECORDS])
