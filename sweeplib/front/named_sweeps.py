"""Sweeps that a user names by their YAML file or by their folder of results, and their reports."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.errors import InputError
from sweeplib.front.listing import MARKS
from sweeplib.process.environment import caches_in

if TYPE_CHECKING:
    from sweeplib.design.design import Design
    from sweeplib.report.comparison import ComparisonPage

COMPLETE = "config.yaml"
"""The complete config of the dataset in a sweep's folder."""
LONGEST_NAME = 200
"""Bytes of the name of a page that is named after its sweeps."""


def named(path: Path, overrides: Sequence[str], results: Path) -> "tuple[Design, Path]":
    """Return the sweep of a YAML file or of a folder of results, and its folder.

    InputError if the folder is that of no sweep, or holds the results of another file's sweep.
    """
    from sweeplib.front.sweep import loaded

    if not path.is_dir():
        return loaded(path, overrides, results)
    if overrides:
        raise InputError("a folder of results has its own config", key="--set", value=list(overrides), expected="none")
    if not any((path / mark).exists() for mark in MARKS):
        expected = "a sweep's folder, such as results/quickstart, or its YAML file"
        raise InputError("no sweep in this folder", file=path, expected=expected)
    _refuse_without(path / COMPLETE, path)
    return _of_folder(path), path


def _of_folder(directory: Path) -> "Design":
    """Return the sweep of the complete config in a folder; a line on standard error says whose code is executed for it.

    InputError for plugins that the sweep's own YAML file does not name: the folder may have been edited, or be a copy.
    """
    from sweeplib.config import load
    from sweeplib.storage.records.config_files import origin_of
    from sweeplib.storage.records.rounds import with_rounds

    plugins = _plugins(directory / COMPLETE)
    origin = origin_of(directory) if plugins else None
    allowed = _plugins(origin) if origin is not None else ()
    for plugin in plugins:
        if plugin not in allowed:
            where = origin.resolve() if origin else "which is not there"
            problem = f"not executed: the sweep's own file, {where}, does not name this plugin"
            expected = f"that file, or `{directory / COMPLETE} --results {directory.parent}`: its plugins are executed"
            raise InputError(problem, file=directory, key="plugins", value=plugin, expected=expected)
    if plugins:
        sys.stderr.write(f"{directory}: executing its plugins, {', '.join(plugins)}\n")
    return with_rounds(load(directory / COMPLETE), directory)


def _plugins(config: Path) -> tuple[str, ...]:
    """Return the plugins that a config names, with the absolute paths of files, without executing them."""
    from sweeplib.code.user_code import located
    from sweeplib.config import content

    names = content(config).get("plugins")
    return located(map(str, names), config.parent) if isinstance(names, list) else ()


def compared(paths: Sequence[Path], results: Path, output: Path | None) -> "tuple[ComparisonPage, Path]":
    """Write the page that compares finished sweeps, named by files or folders; return it and its path.

    The sweeps are those of the datasets in their folders, whatever their files say now. By default the page lies beside
    the folder of the first sweep. InputError for a sweep that is given twice or has not finished.
    """
    from sweeplib.report.comparison import write_comparison

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
    from sweeplib.storage.records.artefacts import refuse_outdated
    from sweeplib.storage.records.jobs import counts_when_done, jobs

    for name in (COMPLETE, "dataset.done.json"):
        _refuse_without(directory / name, directory)
    if running := [job.name for job in jobs(directory).values() if job.running]:
        raise InputError(f"the sweep still runs ({', '.join(running)})", file=directory, expected="one that has ended")
    sweep = _of_folder(directory)
    for name, cases in counts_when_done(directory, sweep.runs).items():
        if missing := cases.get("missing", 0):
            raise InputError(f"the sweep is not finished: {name} lacks {missing:,} cases", file=directory)
    for name in sweep.analyses:
        _refuse_without(directory / "analysis" / f"{name}.done.json", directory)
    refuse_outdated(directory, sweep.analyses, sweep.figures)
    return sweep


def _refuse_without(path: Path, directory: Path) -> None:
    if not path.is_file():
        problem = f"the sweep is not finished: it has no {path.relative_to(directory)}"
        raise InputError(problem, file=directory, expected="one whose `sweeplib sweep` has ended")


def _page(directories: Sequence[Path]) -> Path:
    names = [directory.resolve().name for directory in directories]
    name = "_vs_".join(names)
    if len(name.encode()) > LONGEST_NAME:
        raise InputError("the names are too long for that of a file", value=name, expected="--output FILE.html")
    return directories[0].resolve().parent / f"{name}.html"
