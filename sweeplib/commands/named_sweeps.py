"""Sweeps that a user names by their YAML file or by their folder of results, and their reports.

`overrides` are texts KEY=VALUE, `results` is the folder with a folder for each sweep, `directory` that of one sweep.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.commands.listing import MARKS
from sweeplib.engine.process.environment import caches_in
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.commands.status import SweepStatus
    from sweeplib.engine.design.design import Design

COMPLETE = "config.yaml"
"""The complete config of the dataset in a sweep's folder."""
LONGEST_NAME = 200
"""Bytes of the name of a page that is named after its sweeps."""


def named(path: Path, overrides: Sequence[str], results: Path) -> "tuple[Design, Path]":
    """Return the sweep of a YAML file or of a folder of results, and its folder.

    InputError if the folder is that of no sweep, or holds the results of another file's sweep.
    """
    from sweeplib.commands.sweep import loaded

    if not path.is_dir():
        return loaded(path, overrides, results)
    directory = folder_of(path, overrides, results)
    _refuse_without(directory / COMPLETE, directory)
    return _of_folder(directory), directory


def _of_folder(directory: Path) -> "Design":
    """Return the sweep of the complete config in a folder; a line on standard error says whose code is executed for it.

    InputError for plugins that may not be executed (`_refuse_plugins`).
    """
    from sweeplib.config import load
    from sweeplib.engine.storage.records.rounds import with_rounds

    if plugins := _refuse_plugins(directory):
        sys.stderr.write(f"{directory}: executing its plugins, {', '.join(plugins)}\n")
    return with_rounds(load(directory / COMPLETE), directory)


def _refuse_plugins(directory: Path) -> tuple[str, ...]:
    """Return the plugins of the sweep in a folder; InputError unless each may be executed because of the folder alone.

    A folder may have been edited, be a copy, or be somebody else's: the sweep's own YAML file must name the plugin, and
    nobody but this user and root may write that file, the folder's config, or what the plugin executes.
    """
    from sweeplib.engine.code.plugins import others_in_plugin
    from sweeplib.engine.code.user_code import installed_plugins
    from sweeplib.engine.files.owners import others_in
    from sweeplib.engine.storage.records.config_files import origin_of

    plugins = _plugins(directory / COMPLETE)
    chosen = [plugin for plugin in plugins if plugin not in installed_plugins()]
    origin = origin_of(directory) if chosen else None
    allowed = _plugins(origin) if origin is not None else ()
    for plugin in chosen:
        if origin is None or plugin not in allowed:
            where = origin.resolve() if origin else "which is not there"
            problem = f"the sweep's own file, {where}, does not name this plugin"
        else:
            configs = (directory / COMPLETE, origin.resolve())
            writable = [f"{file}: {why}" for file in configs if (why := others_in(file)) is not None]
            problem = writable[0] if writable else others_in_plugin(plugin) or ""
        if problem:
            expected = f"that file, or `{directory / COMPLETE} --results {directory.parent}`: its plugins are executed"
            raise InputError(f"not executed: {problem}", file=directory, key="plugins", value=plugin, expected=expected)
    return plugins


def _plugins(config: Path) -> tuple[str, ...]:
    """Return the plugins that a config names, and its function's file or its command, with absolute paths.

    None is executed.
    """
    from sweeplib.config import content
    from sweeplib.engine.code.user_code import file_and_name, located, located_command

    keys = content(config)
    names, function = keys.get("plugins"), keys.get("simulator")
    plugins = located(map(str, names if isinstance(names, list) else ()), config.parent)
    if isinstance(function, dict):
        return (*plugins, located_command(function.get("command", ""), config.parent))
    return (*plugins, *([] if function is None else located([file_and_name(str(function))[0]], config.parent)))


def recorded(path: Path, overrides: Sequence[str], results: Path) -> Path | None:
    """Return the folder of a sweep of which only records are to be read, as its plugins may not be executed.

    None if it has no plugins, or if they may be executed. A line on standard error says why they may not. It is asked
    by commands that can do without the sweep's code.
    """
    from sweeplib.engine.storage.records.config_files import is_lasting

    # a file that can be read once, or plugins that the caller names
    if not path.is_dir() and (
        not is_lasting(path) or any(text.startswith(("plugins=", "simulator=", "simulator.")) for text in overrides)
    ):
        return None
    directory = folder_of(path, overrides, results)
    try:
        if path.is_dir():
            _refuse_without(directory / COMPLETE, directory)
            _refuse_plugins(directory)
        else:
            _refuse_others(path)
    except InputError as error:
        if error.key != "plugins":
            raise
        sys.stderr.write(f"{directory}: by its records alone; {error.key} {error.value}: {error.problem}\n")
        return directory
    return None


def present_status(path: Path, overrides: Sequence[str], results: Path) -> "SweepStatus":
    """Return the status of the sweep of a YAML file or of a folder of results, at the least cost.

    The last complete run has recorded it as JSON, which counts if nothing has changed since. Where plugins may not be
    executed, it follows from records alone.
    """
    from sweeplib.commands.status import SweepStatus, status, status_by_records
    from sweeplib.commands.up_to_date import undisturbed_run

    if text := undisturbed_run(path, overrides, results).get("status"):
        return SweepStatus(**json.loads(text))
    directory = recorded(path, overrides, results)
    return status(*named(path, overrides, results)) if directory is None else status_by_records(directory)


def _refuse_others(config: Path) -> None:
    """Raise InputError if others than this user and root may have written what a config's plugins execute."""
    from sweeplib.engine.code.plugins import others_in_plugin

    for plugin in _plugins(config):
        if (why := others_in_plugin(plugin)) is not None:
            raise InputError(f"not executed: {why}", key="plugins", value=plugin)


def folder_of(path: Path, overrides: Sequence[str], results: Path) -> Path:
    """Return the folder of the sweep of a YAML file or of a folder of results; nothing of the sweep is executed.

    InputError for the folder of no sweep, and for one that holds the results of another file's sweep.
    """
    from sweeplib.commands.sweep import folder_of_file
    from sweeplib.config import name_of

    if not path.is_dir():
        return folder_of_file(path, name_of(path, overrides), results)
    if overrides:
        raise InputError("a folder of results has its own config", key="--set", value=list(overrides), expected="none")
    if not any((path / mark).exists() for mark in MARKS):
        expected = "a sweep's folder, such as results/quickstart, or its YAML file"
        raise InputError("no sweep in this folder", file=path, expected=expected)
    # `.` has no name, which is that of the sweep
    return path if path.name not in ("", "..") else path.resolve()


def compared(paths: Sequence[Path], results: Path, output: Path | None) -> tuple[list[str], Path]:
    """Write the page that compares finished sweeps, named by files or folders; return what failed, and its path.

    The sweeps are those of the datasets in their folders, whatever their files say now. By default the page lies beside
    the folder of the first sweep. InputError for a sweep that is given twice or has not finished.
    """
    from sweeplib.pictures.report.comparison import write_comparison

    sweeps: list[tuple[Design, Path]] = []
    for path in paths:
        directory = named(path, (), results)[1]
        if directory.resolve() in [other.resolve() for _, other in sweeps]:
            raise InputError("the same sweep twice", value=str(path), expected="another one to compare it with")
        sweeps.append((_finished(directory), directory))
    target = output or _page([directory for _, directory in sweeps])
    if target.is_dir():
        raise InputError("a folder, where the page should be written", key="--output", value=str(target))
    caches_in(target.parent)
    return write_comparison(sweeps, target), target


def _finished(directory: Path) -> "Design":
    """Return the sweep of the dataset in a folder; InputError unless all of its stages have ended."""
    from sweeplib.engine.storage.records.artefacts import refuse_outdated
    from sweeplib.engine.storage.records.stage_records import counts_when_done, record_path, stage_records

    records = stage_records(directory)
    _refuse_without(directory / COMPLETE, directory)
    if running := [record.name for record in records.values() if record.running]:
        raise InputError(f"the sweep still runs ({', '.join(running)})", file=directory, expected="one that has ended")
    sweep = _of_folder(directory)
    for name, cases in counts_when_done(directory, sweep.runs).items():
        if missing := cases.get("missing", 0):
            raise InputError(f"the sweep is not finished: {name} lacks {missing:,} cases", file=directory)
    for name in ("finalise", *(f"analyse.{name}" for name in sweep.analyses)):
        if name not in records or not records[name].made_from:
            raise _unfinished(f"no record {record_path(directory, name).relative_to(directory)}", directory)
    refuse_outdated(directory, sweep.analyses, sweep.figures)
    return sweep


def _refuse_without(path: Path, directory: Path) -> None:
    """Raise InputError if a sweep's directory lacks a file, as before its first run has ended."""
    if not path.is_file():
        raise _unfinished(f"no {path.relative_to(directory)}", directory)


def _unfinished(lacks: str, directory: Path) -> InputError:
    """Return the error of a sweep that is not finished: it has "no FILE"."""
    problem = f"the sweep is not finished: it has {lacks}"
    return InputError(problem, file=directory, expected="one whose `sweeplib sweep` has ended")


def _page(directories: Sequence[Path]) -> Path:
    """Return the path of the page that compares sweeps, beside the first, named after all: A_vs_B.html."""
    names = [directory.resolve().name for directory in directories]
    name = "_vs_".join(names)
    if len(name.encode()) > LONGEST_NAME:
        raise InputError("the names are too long for that of a file", value=name, expected="--output FILE.html")
    return directories[0].resolve().parent / f"{name}.html"
