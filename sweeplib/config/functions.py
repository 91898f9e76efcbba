"""The part of a config that is about a function of one's own: in a Python file, or a command with declared results."""

import hashlib
import json
import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pydantic

from sweeplib.config.function_models import CommandSection, FunctionConfig, ParameterSection, ResultSection
from sweeplib.config.section import Section
from sweeplib.config.subject import FigureEntry, Subject
from sweeplib.config.values import ascending, values
from sweeplib.engine.base.validation import Location, refusal
from sweeplib.engine.code.plugins import load_plugins, module_of
from sweeplib.engine.code.user_code import file_and_name, files_in, located, located_command, words_of
from sweeplib.engine.design.design import Design, Run
from sweeplib.errors import InputError, errors_at
from sweeplib.functions.cases import WholeRun
from sweeplib.functions.function import FUNCTIONS, Function, make_last
from sweeplib.functions.program import Program, declared
from sweeplib.functions.simulator import FunctionSimulator

CHECKPOINT = "5 min"
"""How often a state is kept if a config does not say it."""
INTERPRETER = r"(.*/)?(python|pypy|Rscript|julia|perl|ruby|node|octave|java|bash|sh)[\d.]*"
"""Programs that run another one, after which a command is called."""
LONG = 7
"""The number of values from which an axis is too long for colours: two such axes are drawn as a map."""


def function_subject(config: FunctionConfig, folder: Path) -> Subject:
    """Return what a config says of its function; the file of the function is imported.

    InputError for a file without a simulator (a function with that decorator), or with several of which none is named.
    """
    function, named, plugin = called(config.simulator, folder)
    return Subject(
        simulator=FunctionSimulator(function),
        fixed=config.parameters,
        recording=WholeRun(_times(function, config.times), config.keep == "ends"),
        runs=lambda grid, seeds: {function.name: Run(function.name)},
        check=partial(_check, function),
        written=lambda sweep: {"checkpoint": sweep.checkpoint},
        figures=partial(_figures, function),
        function=named,
        plugin=plugin,
        checkpoint=_checkpoint(function, config),
    )


def called(simulator: Any, folder: Path) -> tuple[Function, str | dict[str, Any], str]:
    """Return the function of a key `simulator`, what a design calls it, and what other processes import for it.

    InputError as for `function_subject`.
    """
    if isinstance(simulator, str):
        path, name = file_and_name(simulator)
        [plugin] = located([path], folder)
        with errors_at("simulator"):
            load_plugins([plugin])
            function = _function(plugin, name)
            _ = function.code  # refuses a name that nothing defines
        make_last(function)
        return function, f"{plugin}:{function.name}", plugin
    named = _command(simulator, folder)
    with errors_at("simulator"):
        function = declared(declaration := json.dumps(named))  # with the files as they are now
        load_plugins([plugin := f"{declared.__module__}:{declaration}"])  # by which other processes get it
    return function, named, plugin


def file_of(function: Function, directory: Path) -> Path:
    """Return the file that other processes import: the function's own, or one in the folder of a sweep for it.

    InputError if the function depends on what cannot be written into a file, such as a value of another sweep, and if
    its own file gives another function than this one.
    """
    from sweeplib.engine.storage.records.files import write_bytes, write_text
    from sweeplib.functions.source import is_importable, refuse_edits, refuse_other_module, refuse_other_values
    from sweeplib.functions.stored import sealed_content

    if is_python := not isinstance(function, Program):
        refuse_edits(function)
    if function.file is not None and is_importable(function):
        if is_python:
            refuse_other_module(function)
        return function.file
    source = function.source()
    digest = hashlib.blake2b(source.text.encode(), digest_size=12).hexdigest()
    path = directory.resolve() / "functions" / f"{function.name}_{digest}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem, expected = f"no folder can be made there: {error.strerror}", "a place for folders that may be written"
        raise InputError(problem, key="results", value=str(directory.parent), expected=expected) from None
    for name, content in source.files.items():  # before the text that needs them
        if sealed_content(file := path.with_name(name)) is None:
            write_bytes(file, content)
    if not path.exists():
        write_text(path, source.text)
    words, sys.argv = sys.argv, [str(path)]
    try:  # as in other processes, so that what depends on the command line here is another value
        imported, _, _ = called(f"{path}:{function.name}", directory)
    finally:
        sys.argv = words
    if is_python:
        refuse_other_values(function, imported, source.compared)
    return path


def _command(section: Any, folder: Path) -> dict[str, Any]:
    """Return the declaration of a command: the section `simulator`, with absolute paths and a name.

    The name is by default that of the first file that an interpreter runs, or else of the program.
    """
    try:
        command = CommandSection.model_validate(section)
    except pydantic.ValidationError as error:

        def choices(at: Location) -> Iterable[str]:
            """Return the valid keys of the section in which the location is."""
            inner: dict[str, type[Section]] = {"parameters": ParameterSection, "results": ResultSection}
            return (inner[str(at[0])] if len(at) > 1 else CommandSection).model_fields

        raise refusal(error, choices=choices).within(prefix="simulator") from None
    text = located_command(command.command, folder)
    program, *others = words_of(text) or [""]
    scripts = files_in(others) if re.fullmatch(INTERPRETER, program) else ()
    name = command.name or re.sub(r"\W", "_", Path(next(iter(scripts), program)).stem) or "command"
    return command.model_dump(exclude_unset=True) | {"command": text, "name": name}


def _function(file: str, name: str) -> Function:
    """Return the function of a file: the one of this name, or the only one if `name` is ""."""
    module = module_of(file)
    # the newest of each name: a file that is read again adds one
    here = {entry.name: entry for functions in FUNCTIONS.values() for entry in functions if entry.module == module}
    if not here:
        expected = 'a function with the decorator `@simulator(RESULT="units")` in it'
        raise InputError("no simulator in this file", value=Path(file).name, expected=expected)
    if name or len(here) == 1:
        chosen = name or next(iter(here))
        if chosen not in here:
            raise InputError("no such simulator in this file", value=chosen, choices=here)
        return here[chosen]
    expected = " or ".join(f"{Path(file).name}:{key}" for key in here)
    raise InputError("several simulators in this file", value=Path(file).name, expected=expected)


def _times(function: Function, times: Any) -> tuple[float, ...]:
    """Return the recording times, () without any; InputError unless there are times if the function takes them."""
    if (times is not None) != function.takes_times:
        has = "has" if function.takes_times else "has no"
        problem, expected = f"{function.name} {has} argument `times`", "times" if function.takes_times else "no times"
        raise InputError(problem, key="times", value=times, expected=expected)
    return () if times is None else ascending(values(times, "times"), "times", None)


def _checkpoint(function: Function, config: FunctionConfig) -> float | None:
    """Return the seconds between two states that are kept, None if the function yields no states.

    InputError for `checkpoint` or `keep` in a config whose function cannot go on.
    """
    goes_further = function.goes_on and function.takes_times
    for key, value, can in (("checkpoint", config.checkpoint, function.goes_on), ("keep", config.keep, goes_further)):
        if value is not None and not can:
            wanted = "the argument `state`" if key == "checkpoint" else "the arguments `times` and `state`"
            expected = f"a function with {wanted} that yields its results and a state"
            raise InputError(f"{function.name} cannot go on", key=key, value=value, expected=expected)
    if not function.goes_on:
        return None
    chosen = CHECKPOINT if config.checkpoint is None else config.checkpoint
    time = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(h|min|s|)\s*", str(chosen))
    if time is None:
        raise InputError("not a time", key="checkpoint", value=chosen, expected="such as `5 min`, `2 h` or `30 s`")
    return float(time[1]) * {"h": 3600.0, "min": 60.0}.get(time[2], 1.0)


def _check(function: Function, sweep: Design) -> None:
    """Raise InputError for seeds of a function without random numbers."""
    if function.random is None and len(sweep.seeds) > 1:
        problem = f"{function.name} takes neither rng nor seed: all of its replicas are equal"
        expected = "1, or a function with an argument `rng`"
        raise InputError(problem, key="seeds", value=len(sweep.seeds), expected=expected)


def _figures(function: Function, sweep: Design) -> list[tuple[FigureEntry, ...]]:
    """Return the default figures: results over time, the first number against an axis or on a map, its distribution."""
    numbers = [name for name, result in function.results.items() if not result.dims]
    first = next(iter(numbers or function.results))
    long_axes = [axis for axis in sweep.grid.axes if len(axis.values) >= LONG]
    against: tuple[FigureEntry, ...] = ((first, {"kind": "line", "y": first}),)
    if len(long_axes) > 1:
        against = ((f"{first}_map", {"kind": "map", "z": first}), *against)
    spread: tuple[FigureEntry, ...] = (("distribution", {"y": first}),)
    course: tuple[FigureEntry, ...] = (("trajectories", {}),)
    return [*([course] if function.takes_times else []), against, *([spread] if function.random else [])]
