"""The arguments and options that several commands have, and what all commands do with them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from sweeplib.errors import InputError
from sweeplib.process.command import command

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.design.design import Design


def _path(text: str) -> Path:
    """Return the path, with `~` expanded as in a shell: some shells leave it in --results=~/runs."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from None


Config = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The sweep's YAML file.", show_default=False, parser=_path)
]
FileOrFolder = Annotated[
    Path,
    typer.Argument(
        metavar="SWEEP", help="The sweep's YAML file, or its folder of results.", show_default=False, parser=_path
    ),
]
Sweeps = Annotated[
    list[Path],
    typer.Argument(metavar="SWEEP", help="A YAML file or a folder of results.", show_default=False, parser=_path),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="PATH", help="The file of a page that compares sweeps.", parser=_path),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Give a key another value: grid.d=[300].")
]
Results = Annotated[
    Path,
    typer.Option("--results", metavar="PATH", help="The folder that holds a folder for each sweep.", parser=_path),
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Number of workers, instead of the config's.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Only these; all by default.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Other values for keys: grid.d=300,1000.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
RESULTS = Path("results")


def loaded(config: Path, overrides: Iterable[str] | None, results: Path) -> "tuple[Design, Path]":
    """Return the sweep of a file and its folder; InputError if that holds the results of another file's sweep."""
    from sweeplib.process.environment import caches_in

    caches_in(results)
    from sweeplib.front.sweep import loaded as of_file

    return of_file(config, list(overrides or ()), results)


def named(path: Path, overrides: Iterable[str] | None, results: Path) -> "tuple[Design, Path]":
    """Return the sweep of a YAML file or of a folder of results, and its folder; InputError as `loaded` raises it."""
    from sweeplib.front.named_sweeps import named as of_either

    return of_either(path, list(overrides or ()), results)


def named_although_damaged(path: Path, overrides: Iterable[str] | None, results: Path) -> "tuple[Design, Path]":
    """Return what `named` does, even if the record of the config of a file's folder is damaged."""
    from sweeplib.config import load
    from sweeplib.storage.records.files import DamageError

    settings = list(overrides or ())
    try:
        return named(path, settings, results)
    except DamageError:
        if path.is_dir():
            raise
        sweep = load(path, settings)
        return sweep, results / sweep.name


def show(table: "Table") -> None:
    """Write a table to standard output."""
    from sweeplib.process import terminal

    terminal.show(table, terminal.console())


KINDS = [
    "keys",
    "dynamics",
    "activations",
    "analyses",
    "figures",
    "observables",
    "targets",
    "starts",
    "data",
    "losses",
    "updates",
    "tasks",
    "clusters",
    "proposers",
    "plugins",
]
"""The kinds of names in `config.catalogue`, which is not imported for the sake of speed."""


_USAGE: Any = typer.BadParameter.__base__ or typer.BadParameter
PASSING = (typer.Exit, typer.Abort, _USAGE, BrokenPipeError)
"""Exceptions that typer handles itself."""


class Commands(TyperGroup):
    """The commands; an error is reported in one line, with exit status 2 for refused input."""

    def invoke(self, ctx: Any) -> Any:
        """Return the result of the command."""
        with command(passing=PASSING):
            _refuse_without_folder()
            try:
                return super().invoke(ctx)
            except _USAGE as error:
                _suggest_override(error)
                raise


def _suggest_override(error: Any) -> None:
    """Let the message for an unknown option, of a command that takes values for keys, say how these are written."""
    is_unknown = hasattr(error, "possibilities") and error.option_name.startswith("--")
    if is_unknown and any(parameter.name == "overrides" for parameter in error.ctx.command.params):
        key = error.option_name.strip("-").replace("-", "_")
        error.possibilities = [*(error.possibilities or ()), f"{key}=VALUE, without dashes, for a key of the config"]


def _refuse_without_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the working folder was deleted", expected="one that exists: `cd` to it") from None
