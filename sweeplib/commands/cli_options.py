"""The arguments and options that several commands have, and what all commands do with them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sweeplib.commands.named_sweeps import named
from sweeplib.engine.process.command import command
from sweeplib.engine.process.environment import caches_in
from sweeplib.engine.process.terminal import echo
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.engine.design.design import Design


class _Path(click.Path):
    """The type of an argument that is a path, with `~` expanded as in a shell: some leave it in --results=~/runs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; `click.BadParameter` for an unknown user's home."""
        try:
            return Path(value).expanduser()
        except RuntimeError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


PATH = _Path()


class Argument(click.Argument):
    """An argument with a line of help, which only the newest click has."""

    def __init__(self, *names: Any, help: str, **settings: Any) -> None:  # noqa: A002
        super().__init__(*names, **settings)
        self.line = help


class Command(click.Command):
    """A command whose help describes its arguments above its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both sections."""
        lines = [(str(item.metavar), item.line) for item in self.get_params(ctx) if isinstance(item, Argument)]
        if lines:
            with formatter.section("Positional arguments"):
                formatter.write_dl(lines)
        super().format_options(ctx, formatter)


argument = partial(click.argument, cls=Argument)


def beginnings(words: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the function by which click completes the beginning of one of some words."""
    return lambda _context, _parameter, begun: [word for word in words if word.startswith(begun)]


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Write the version and end, if the option --version is there; click calls it."""
    if wanted:
        from sweeplib.engine.storage.records import provenance

        echo(f"sweeplib {provenance.version()}")
        ctx.exit()


def _completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    """Write the script of a shell and end, if the option --completion is there; click calls it."""
    if shell is not None:
        from click.shell_completion import get_completion_class

        complete = get_completion_class(shell)
        assert complete is not None  # click knows these shells
        echo(complete(ctx.command, {}, "sweeplib", "_SWEEPLIB_COMPLETE").source())
        ctx.exit()


version = click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
completion = click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_completion,
    help="Show the script by which a shell completes commands.",
)
config = argument("config", metavar="CONFIG", type=PATH, help="The sweep's YAML file.")
file_or_folder = argument("config", metavar="SWEEP", type=PATH, help="The sweep's YAML file, or its folder of results.")
sweeps = argument(
    "sweeps", metavar="SWEEP...", type=PATH, nargs=-1, required=True, help="A YAML file or a folder of results."
)
output = click.option("--output", metavar="PATH", type=PATH, help="The file of a page that compares sweeps.")
set_ = click.option("--set", "set_", metavar="KEY=VALUE", multiple=True, help="Give a key another value: grid.d=[300].")
results = click.option(
    "--results",
    metavar="PATH",
    type=PATH,
    default="results",
    show_default=True,
    help="The folder that holds a folder for each sweep.",
)
workers = click.option(
    "--workers", metavar="N", type=click.IntRange(min=1), help="Number of workers, instead of the config's."
)
names = argument("names", metavar="[NAME]...", nargs=-1, help="Only these; all by default.")
overrides = argument("overrides", metavar="[KEY=VALUE]...", nargs=-1, help="Other values for keys: grid.d=300,1000.")


def settings(command: Any) -> Any:
    """Return a command with the options --set and --results, which stand together."""
    return set_(results(command))


json = click.option("--json", is_flag=True, help="Write JSON, for programs.")


def echo_json(values: Any) -> None:
    """Write plain values to standard output as JSON."""
    from json import dumps

    echo(dumps(values, indent=1, ensure_ascii=False))


def loaded(config: Path, overrides: Sequence[str], results: Path) -> "tuple[Design, Path]":
    """Return the sweep of a file and its folder; InputError if that holds the results of another file's sweep."""
    caches_in(results)
    from sweeplib.commands.sweep import loaded as of_file

    return of_file(config, overrides, results)


def work_in(directory: Path, does: str) -> None:
    """Hold the lock of a part of a sweep until the end of the command; BusyError if another one runs all stages.

    does : what this command does, in the third person, for the messages of others: "draws figures". A directory that
    does not exist is not made: the command says what is missing.
    """
    if not directory.is_dir():
        return
    from sweeplib.engine.storage.records.locks import part_lock

    click.get_current_context().with_resource(part_lock(directory, does))


@contextmanager
def stage_of(config: Path, directory: Path, stage: str, *, does: str) -> Iterator[None]:
    """Return a context in which the command is a stage of the sweep of a file, in the folder of its results.

    does : what it does there, in words.
    """
    from sweeplib.engine.storage.records.config_files import record_origin
    from sweeplib.engine.storage.records.file_system import examine
    from sweeplib.engine.storage.records.stage_records import recorded_stage

    directory.mkdir(parents=True, exist_ok=True)
    work_in(directory, does)
    examine(directory)
    with recorded_stage(directory, stage):
        record_origin(config, directory)
        yield


def to_work_on(path: Path, overrides: Sequence[str], results: Path) -> "tuple[Design, Path]":
    """Return what `named` does, for a command that may need caches."""
    caches_in(path.parent if path.is_dir() else results)
    return named(path, overrides, results)


def named_although_damaged(path: Path, overrides: Sequence[str], results: Path) -> "tuple[Design, Path]":
    """Return what `named` does, even if the record of the config of a file's folder is damaged."""
    from sweeplib.config import load
    from sweeplib.engine.storage.records.files import DamageError

    try:
        return named(path, overrides, results)
    except DamageError:
        if path.is_dir():
            raise
        sweep = load(path, overrides)
        return sweep, results / sweep.name


def show(table: "Table") -> None:
    """Write a table to standard output."""
    from sweeplib.engine.process import terminal

    terminal.show(table, terminal.console())


PASSING = (click.exceptions.Exit, click.Abort, click.UsageError, BrokenPipeError)
"""Exceptions that click handles itself."""


class Commands(click.Group):
    """The commands; an error is reported in one line, with exit status 2 for refused input."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order in which they were added, that of a sweep's life."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Return the result of the command."""
        with command(passing=PASSING):
            _refuse_without_folder()
            try:
                return super().invoke(ctx)
            except click.NoSuchOption as error:
                raise _with_override(error) from None


def _with_override(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return the error of an unknown option; of a command that takes KEY=VALUE it says how a key is written."""
    parameters = error.ctx.command.params if error.ctx else ()
    if not error.option_name.startswith("--") or all(parameter.name != "overrides" for parameter in parameters):
        return error
    key = error.option_name.strip("-").replace("-", "_")
    message = f"{error.message} Write {key}=VALUE, without dashes, for a key of the config."
    return click.NoSuchOption(error.option_name, message, error.possibilities, error.ctx)


def _refuse_without_folder() -> None:
    """Raise InputError if the working folder was deleted."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the working folder was deleted", expected="one that exists: `cd` to it") from None
