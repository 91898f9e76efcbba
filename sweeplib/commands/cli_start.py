"""The commands that explain a config, that write files to start from, and that check plugins."""

from collections.abc import Sequence
from pathlib import Path

import click

from sweeplib.commands import cli_options as options
from sweeplib.commands.cli_options import PATH, beginnings
from sweeplib.config.kinds import FILES
from sweeplib.engine.files.regular_files import file_text
from sweeplib.engine.process.terminal import echo
from sweeplib.errors import InputError

KIND_HELP = f"{', '.join(FILES)}; without a KIND, FILE is a sweep."


@click.command(cls=options.Command)
@options.argument("kind", metavar="KIND", help=KIND_HELP, shell_complete=beginnings(FILES))
@options.argument("file", metavar="[FILE]", required=False, type=PATH, help="NAME.yaml; of a plugin NAME.py.")
def new(kind: str, file: Path | None) -> None:
    """Write a commented sweep, a function or a plugin.

    A function or plugin of a KIND comes with a sweep that uses it.
    """
    from sweeplib.commands.starter import write_new

    for path in write_new(kind, file):
        echo(path)


@click.command("test-plugin", cls=options.Command)
@options.argument("files", metavar="FILE...", nargs=-1, required=True, help="NAME.py, or an installed plugin's name.")
def test_plugin(files: Sequence[str]) -> None:
    """Check all that plugins register: a line for each check.

    The exit status is 1 if a check fails.
    """
    from sweeplib.contracts.outcomes import all_outcomes, summary

    statuses = []
    for outcome in all_outcomes(files):
        echo(outcome)
        statuses.append(outcome.status)
    echo(summary(statuses))
    raise SystemExit(1 if "failed" in statuses else 0)


@click.command(cls=options.Command)
@options.argument("key", metavar="KEY", help="A key, such as `grid`, or `figures.line`.")
def explain(key: str) -> None:
    """Explain a key of a config, or a name of a kind.

    An example in YAML follows, and the options of a name before it.
    """
    from sweeplib.commands.listing import names as described
    from sweeplib.config.catalogue import explanation
    from sweeplib.engine.process.terminal import LINE, console

    (entry, example), out = explanation(key), console()
    for line in described([entry], out.width if out.is_terminal else LINE, options=True):
        echo(line)
    echo(f"\n{example}".removesuffix("\n"))


@click.command(cls=options.Command)
@click.option("--directory", metavar="PATH", type=PATH, help="Where to write; by default here, in a clone in config.")
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 if they are stale.")
def schema(directory: Path | None, check: bool) -> None:
    """Write the JSON schemas of configs, for editors.

    In a clone the table of keys is written too.
    """
    from sweeplib.config.reference import generated, is_generated

    directory = directory or (Path("config") if is_generated(Path("config", "README.md")) else Path())
    texts = {
        name: text for name, text in generated().items() if name.endswith(".json") or is_generated(directory / name)
    }
    for name in texts:
        if (directory / name).exists() and not is_generated(directory / name):
            raise InputError("not a schema of sweeplib", file=directory / name, expected="another folder")
    stale = [name for name, text in texts.items() if not (file := directory / name).exists() or file_text(file) != text]
    if check:
        for name in stale:
            echo(f"{directory / name} is stale: run `sweeplib schema`", errors=True)
        raise SystemExit(1 if stale else 0)
    directory.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (directory / name).write_text(texts[name], encoding="utf-8")
        echo(directory / name)
