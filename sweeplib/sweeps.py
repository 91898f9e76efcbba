"""Sweep: a sweep as Python code describes, runs and reads it; what a YAML file and `make sweep` do, from a notebook.

    sweep = sweeplib.Sweep(
        name="scan",
        problem={"k": 1, "activation": "erf", "Delta": 0},
        grid={"gamma": np.geomspace(0.1, 10, 9), "p": [2, 8], "d": [100]},
        seeds=32,
        dynamics=["sgd_chain", "ode"],
        times=[0, 1, 2, 4],
    )
    sweep.plan()
    ds = sweep.run()
    sweep.figure("risk_curves")

A sweep of a function of one's own is one call:

    @sweeplib.simulator(magnetisation="1", energy="J")
    def ising(rng, T: float = 2.27, L: int = 16): ...

    ds = sweeplib.sweep(ising, T=[2.0, 2.3], L=[16, 32], seeds=64)

The keys are those of the YAML file (config/README.md). Results, and the identities of cases, are those of a file with
the same content: a sweep that was begun here can go on there, and the reverse.
"""

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from distributed import Client
    from matplotlib.figure import Figure as Drawing

    from sweeplib.analysis.answers import Answer
    from sweeplib.engine.design.design import Design
    from sweeplib.engine.execution.estimates import Plan
    from sweeplib.functions.function import Function

IN_MEMORY = 2**26
"""The bytes up to which a run returns its dataset loaded."""


class Sweep:
    """A sweep and the folder of its results, `results`/name.

    config : the keys of a sweep's YAML file, with their values; `name` is needed. NumPy arrays and ranges are lists;
        their numbers are those of a YAML file with the same spacing, without rounding errors (`config.values.plain`).
    folder : the folder to which paths in the config are relative.
    InputError for anything wrong with them, and if the folder has the results of a YAML file with the same name.
    """

    def __init__(self, *, results: str | Path = "results", folder: str | Path = ".", **config: Any) -> None:
        from sweeplib.config import from_mapping
        from sweeplib.config.values import plain

        self._start(from_mapping(plain(config), folder), Path(results), Path(folder), None)

    @classmethod
    def from_yaml(cls, path: str | Path, *overrides: str, results: str | Path = "results") -> "Sweep":
        """Return the sweep of a YAML file, with overrides such as "grid.d=[300]".

        InputError for anything wrong with the file.
        """
        from sweeplib.config import load

        sweep = cls.__new__(cls)
        sweep._start(load(path, overrides), Path(results), Path(path).parent, Path(path))
        return sweep

    def _start(self, design: "Design", results: Path, folder: Path, file: Path | None) -> None:
        """Set the attributes; InputError if the folder in `results` has those of another sweep.

        folder : to which paths in the config are relative. file : the YAML file; None for a sweep made in Python.
        """
        from sweeplib.engine.storage.records.config_files import check_origin, refuse_other_origin
        from sweeplib.engine.storage.records.rounds import with_rounds

        self.directory, self._folder, self._file = results / design.name, folder, file
        if file is None:
            refuse_other_origin(self.directory)
        else:
            check_origin(file, self.directory)
        self.design = with_rounds(design, self.directory)

    def plan(self) -> "Plan":
        """Return what is left to compute and its cost on this machine, measured on a few cases; shown as a table."""
        from sweeplib.engine.execution.plan import write_plan
        from sweeplib.engine.storage.records.locks import part_lock

        with part_lock(self.directory, "plans"):
            self._record()
            return write_plan(self.design, self.directory, progress=False, to_run=False)

    def run(self, client: "Client | None" = None, *, workers: int | None = None, progress: bool = True) -> "xr.Dataset":
        """Compute the cases that are missing, with the rounds of its questions; write the dataset and return it.

        Up to `IN_MEMORY` bytes are loaded, so that they stay as they are when the folder has a later one.

        client : a Dask client; it stays open. Its workers must see the folder of results. By default the sweep's
            `cluster` is used, with as many `workers` if given, and ends with the run.

        Failed cases are recorded and raise no error: a UserWarning says how many there are, and why the first one
        failed (`status`). After an interrupt the same call continues.
        """
        from sweeplib.commands.sweep import simulate
        from sweeplib.engine.process.children import script_not_imported
        from sweeplib.engine.storage.dataset.finalise import finalise
        from sweeplib.engine.storage.records.locks import part_lock
        from sweeplib.engine.storage.records.publish import publish_dataset
        from sweeplib.engine.storage.records.rounds import with_rounds
        from sweeplib.engine.storage.records.stage_records import recorded_stage

        if client is not None and getattr(client, "asynchronous", True):
            problem = "not a client of Dask that waits for its results"
            expected = "distributed.Client(..., asynchronous=False)"
            raise InputError(problem, key="client", value=client, expected=expected)
        if workers is not None and (type(workers) is not int or workers < 1):
            expected = "a whole number from 1 on"
            raise InputError("not a number of workers", key="workers", value=workers, expected=expected)
        with part_lock(self.directory, "simulates"):
            self._record()
            with recorded_stage(self.directory, "simulate"), script_not_imported():
                options: dict[str, Any] = {"workers": workers, "progress": progress, "client": client}
                summaries = simulate(self.design, self.directory, **options)
            self.design = with_rounds(self.design, self.directory)
            with recorded_stage(self.directory, "finalise"):
                publish_dataset(self.design, finalise(self.design, self.directory))
        for name, summary in summaries.items():
            _warn_of_failures(self.directory, name, summary.cases)
        ds = self.dataset
        return ds.load() if ds.nbytes <= IN_MEMORY else ds

    @property
    def status(self) -> dict[str, dict[str, int]]:
        """The number of cases with each status, by dynamics."""
        from sweeplib.engine.storage.store.inventory import counts_of_cases

        return counts_of_cases(self.design, self.directory)

    @property
    def answers(self) -> "list[Answer]":
        """The answers after the last complete round, each with its interval and, if it is not given, the reason."""
        from sweeplib.analysis.answers.answer import answers_of

        return answers_of(self.design, self.directory)

    @property
    def dataset(self) -> "xr.Dataset":
        """The dataset that the last run wrote, opened lazily: once two later ones were written it cannot be read.

        InputError if there is none.
        """
        return self._opened(overlaps=False)

    def _opened(self, *, overlaps: bool) -> "xr.Dataset":
        """Return the dataset, opened lazily or, with its overlap matrices, in memory; InputError if there is none."""
        from sweeplib.engine.storage.dataset.folder import open_dataset

        path = self.directory / "dataset.zarr"
        if not path.exists():
            raise InputError("no dataset yet", value=str(path), expected="a sweep that has run: `run()` writes it")
        if not overlaps:
            return open_dataset(path)
        from sweeplib.analysis.kit.overlaps import open_with_overlaps

        return open_with_overlaps(path)

    def analyse(self, name: str, **options: Any) -> "xr.Dataset":
        """Return an analysis of the dataset; options that are not given are those of the config, or defaults.

        InputError for an unknown name or option, and for a sweep that does not fit.
        """
        from sweeplib.analysis import ANALYSES
        from sweeplib.config.values import plain

        analysis = ANALYSES[name]
        chosen = {**self.design.analyses.get(name, {}), **plain(options)}
        return analysis(self._opened(overlaps=analysis.overlaps), **chosen)

    def figure(self, name: str, **options: Any) -> "Drawing":
        """Return a matplotlib figure of the dataset; options that are not given are those of the config, or defaults.

        `name` is that of a figure or of an entry of `figures` in the config. InputError for an unknown name or option,
        and for a sweep that does not fit.
        """
        from sweeplib.config.values import plain
        from sweeplib.engine.code.user_code import located, with_files
        from sweeplib.pictures.figures.figure import requested
        from sweeplib.pictures.figures.notebook import shown_in_notebooks

        resolved = with_files({"figures": {name: plain(options)}}, partial(located, folder=self._folder))["figures"]
        figure, chosen = requested(name, {**self.design.figures.get(name, {}), **resolved[name]})
        analyses = {need: self.analyse(need) for need in figure.needed(chosen)}
        return shown_in_notebooks(figure(self.dataset, analyses, **chosen))

    def report(self) -> Path:
        """Write the analyses, the figures and the report of the sweep; return the path of the report, an HTML page."""
        from sweeplib.analysis import write_analysis
        from sweeplib.engine.storage.records.locks import part_lock
        from sweeplib.pictures.figures import write_figure
        from sweeplib.pictures.report import write_report

        with part_lock(self.directory, "writes the report"):
            for name in self.design.analyses:
                write_analysis(self.design, name, self.directory)
            for name in self.design.figures:
                write_figure(self.design, name, self.directory)
            return write_report(self.design, self.directory)

    def _record(self) -> None:
        """Record the YAML file, if there is one, as that of the folder's results."""
        from sweeplib.engine.storage.records.config_files import record_origin

        if self._file is not None:
            record_origin(self._file, self.directory)

    @property
    def _unit(self) -> str:
        """Return what stands behind recording times that are not in ODE time."""
        if (clock := self.design.clock) is None:
            return ""
        return f" × {clock.text}" if clock.count is None else f" ({clock.attributes()['long_name']})"

    def __repr__(self) -> str:
        """Return the name, the axes, the number of seeds, the dynamics and the times, a line each."""
        from sweeplib.engine.design.axis import values_in_words

        axes, seeds, times = self.design.grid.axes, self.design.seeds, self.design.recording.times
        lines = [
            f"Sweep {self.design.name}: {self.design.size:,} cases in {self.directory}",
            *(f"  {', '.join([axis.name, *axis.linked])} = {values_in_words(axis.values)}" for axis in axes),
            f"  seeds: {len(seeds)}" + (f" at most, {self.design.replicas}" if self.design.replicas else ""),
            f"  dynamics: {', '.join(self.design.runs)}",
            f"  times: {values_in_words(times)}{self._unit}",
        ]
        return "\n".join(lines)


def _warn_of_failures(directory: Path, dynamics: str, counts: Mapping[str, int]) -> None:
    """Warn if cases of a dynamics have no values, as they failed or were stopped at their time limit.

    counts : the numbers of cases by status.
    """
    from sweeplib.engine.status import Status, failed, outcomes
    from sweeplib.engine.storage.store.outcomes import first_outcomes, outcomes_path, reason_in_words

    if not failed(counts) and not counts.get(Status.timeout.name):
        return
    problem = f"{dynamics}: of {sum(counts.values()):,} cases {outcomes(counts)}"
    reasons = [reason_in_words(line) for line in first_outcomes(directory, dynamics, 1)]
    why = f"; the first: {reasons[0]}" if reasons and reasons[0] else ""
    # the line of the caller, which called `Sweep.run` or `sweep` or `answer`
    here = takewhile(lambda entry: entry.filename == __file__, inspect.stack(0))
    warnings.warn(f"{problem}{why}; see {outcomes_path(directory, dynamics)}", stacklevel=1 + len(list(here)))


def sweep(
    function: "Function",
    *,
    seeds: Any = 1,
    name: str | None = None,
    results: str | Path = "results",
    workers: int | None = None,
    progress: bool = False,
    config: dict[str, Any] | None = None,
    **parameters: Any,
) -> "xr.Dataset":
    """Return the dataset of a function at all combinations of some values of its parameters, with so many replicas.

    parameters : a value, or a list, an array or a spacing (`{"linspace": [2, 3, 11]}`) of values, which is an axis;
        of a function with the argument `times`, the recording times, too.
    seeds : the number of replicas of each point, or what else the key `seeds` of a YAML file may be.
    name : of the sweep and its folder in `results`; by default that of the function.
    workers, progress : as in `Sweep.run`.
    config : other keys of a YAML file: `points`, `derive`, `root_seed`, `pair_by`, `cluster`, ...
        `grid` and `parameters` in it have what no argument of the call says, such as a design or `zip`.

    What was computed before is not computed again: with more seeds or values the dataset grows. With others it takes
    the place of the one in the folder, unless the call has another `name`. What an earlier call returned stays as it
    is up to 64 MiB; a larger one is read from the folder, which keeps the last two. The file of a function of a script
    or a notebook is written into the folder. InputError for anything wrong, before any call.
    """
    _refuse_names_of(sweep, function)
    whole = sweep_of(function, seeds=seeds, name=name, results=results, config=config, **parameters)
    return whole.run(workers=workers, progress=progress)


def answer(
    function: "Function",
    variable: str,
    *,
    to: str | float,
    of: str = "averages",
    refine: Any = "seeds",
    budget: Any = None,
    seeds: int = 64,
    options: dict[str, Any] | None = None,
    **others: Any,
) -> "list[Answer]":
    """Return what a function's results are to a precision, by as many calls as that takes: an answer for each point.

    variable, to, of, refine, budget, options : a question, as below `answers` in a YAML file: by default the mean of a
        result, of: "optimum" or "crossing" where along an axis it is least or passes a value (`options`).
    others : the parameters and the keywords of `sweep`.
    """
    from sweeplib.config.section import keys_of

    _refuse_names_of(sweep, function)
    _refuse_names_of(answer, function)
    config = keys_of(others.pop("config", None), "config")
    workers, progress = others.pop("workers", None), others.pop("progress", False)
    question: dict[str, Any] = {"of": of, "to": to, "refine": refine, "budget": budget}
    chosen = dict(options or {})
    if of == "averages":
        question["variable"] = variable
    else:
        chosen["of"] = variable
    if chosen:
        question["options"] = chosen
    questions = keys_of(config.pop("answers", None), "config.answers")
    if variable in questions:
        problem, expected = "a question that the call has as well", "another name"
        raise InputError(problem, key=f"config.answers.{variable}", value=questions[variable], expected=expected)
    config["answers"] = {**questions, variable: question}
    whole = sweep_of(function, seeds=seeds, config=config, **others)
    whole.run(workers=workers, progress=progress)
    return whole.answers


def _refuse_names_of(call: Callable[..., Any], function: Any) -> None:
    """Raise InputError if a parameter of a function has the name of an argument of a `call`, which would take it."""
    arguments = inspect.signature(call).parameters.values()
    names = {argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD}
    for name in names & getattr(function, "arguments", {}).keys():
        problem = f"a parameter of {function.name} has the name of an argument of sweeplib.{call.__name__}"
        expected = "another name, or a YAML file, where parameters are below `grid`"
        raise InputError(problem, key=name, expected=expected)


def sweep_of(
    function: Any,
    *,
    seeds: Any = 1,
    name: str | None = None,
    results: str | Path = "results",
    config: dict[str, Any] | None = None,
    **parameters: Any,
) -> Sweep:
    """Return the sweep of a function, which is not run; the arguments are those of `sweep`."""
    from sweeplib.config.functions import file_of
    from sweeplib.config.models import NAME, SAID_OF_NAMES
    from sweeplib.config.section import keys_of
    from sweeplib.config.values import plain
    from sweeplib.functions.function import TIMES, Function

    if not isinstance(function, Function):
        expected = '`@simulator(RESULT="units")` before its definition'
        raise InputError("not a simulator", value=getattr(function, "__name__", function), expected=expected)
    now = vars(sys.modules.get(function.module, object)).get(function.name)
    if isinstance(now, Function) and now is not function:
        problem, expected = "another function has this name now", "that one, or another name for one of the two"
        raise InputError(problem, key=function.name, expected=expected)
    name = function.name if name is None else name
    if not re.fullmatch(NAME, name):  # before a file is written into its folder
        raise InputError("not a name of a sweep", key="name", value=name, expected=SAID_OF_NAMES)
    values = {key: plain(value) for key, value in parameters.items()}
    times = {TIMES: values.pop(TIMES)} if function.takes_times and TIMES in values else {}
    axes = {key: value for key, value in values.items() if isinstance(value, list | dict)}
    fixed = {key: value for key, value in values.items() if key not in axes}
    others = keys_of(config, "config")
    arguments = {"name": "name", "seeds": "seeds", "simulator": "function", "results": "results", "folder": "results"}
    for key, argument in (arguments | dict.fromkeys(times, TIMES)).items():
        if key in others:
            expected = f"the argument `{argument}` of the call"
            raise InputError("not a key of `config` here", key=f"config.{key}", value=others[key], expected=expected)
    for key, entries in (("grid", axes), ("parameters", fixed)):
        section = keys_of(others.pop(key, None), f"config.{key}")
        if twice := sorted(values.keys() & section.keys()):
            problem, expected = "a parameter that the call has as well", "it in one of the two"
            raise InputError(problem, key=f"config.{key}.{twice[0]}", value=section[twice[0]], expected=expected)
        others[key] = {**section, **entries}
    file = file_of(function, Path(results) / name)
    keys = {"seeds": plain(seeds), "simulator": f"{file}:{function.name}"}
    return Sweep(name=name, results=results, **({"figures": []} | others | times | keys))
