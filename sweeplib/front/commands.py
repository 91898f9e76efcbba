"""The commands that write files to start from, and that check plugins."""

from pathlib import Path
from typing import Annotated

import typer

from sweeplib.process.terminal import echo

KINDS = ["sweep", "activation", "analysis", "cluster", "data", "dynamics", "figure", "observable", "start", "target"]
"""The kinds of files in `front.starter`, which is not imported for the sake of speed."""
KIND_HELP = f"{', '.join(KINDS)}; without a KIND, FILE is a sweep."


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KIND_HELP, autocompletion=lambda: KINDS)],
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="NAME.yaml; of a plugin NAME.py.")] = None,
) -> None:
    """Write a commented sweep, or a plugin of a KIND with a sweep that uses it, to start from."""
    from sweeplib.front.starter import write_new

    for path in write_new(kind, file):
        echo(path)


def test_plugin(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="NAME.py, or an installed plugin's name.")],
) -> None:
    """Check all that plugins register: a line for each check.

    The exit status is 1 if a check fails.
    """
    from sweeplib.contracts.outcomes import all_outcomes, summary

    statuses = []
    for outcome in all_outcomes(files):
        echo(outcome)
        statuses.append(outcome.status)
    echo(summary(statuses))
    raise typer.Exit(1 if "failed" in statuses else 0)
