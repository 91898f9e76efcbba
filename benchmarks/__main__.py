"""Run the benchmarks: python -m benchmarks [WORDS IN THEIR NAMES ...] [--turns N] [--json FILE] [--checkout FOLDER]."""

import importlib
import os
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console

import benchmarks
from benchmarks.report import table, written
from benchmarks.timing import Benchmark, measured
from sweeplib.commands.cli_options import Command, argument

PARTS = ("draws", "chain", "weights", "odes", "mean_fields", "sdes", "breath", "driver", "dispatch", "scaling")


@click.command(cls=Command)
@argument("words", metavar="[WORD]...", nargs=-1, help="Only benchmarks with one of these words.")
@click.option("--turns", default=15, show_default=True, help="How often each is timed, if that takes at most a minute.")
@click.option(
    "--json",
    type=click.Path(path_type=Path),
    default="benchmarks.json",
    show_default=True,
    help="Where the measurements go.",
)
@click.option("--checkout", default="", help="Folder of another checkout, whose sweeps are timed too.")
def main(words: Sequence[str], turns: int, json: Path, checkout: str) -> None:
    """Time sweeplib against plain code that does the same work, in the same run."""
    os.environ["SWEEPLIB_CHECKOUT"] = checkout
    rows = []
    console = Console(width=200)
    for benchmark in chosen(words):
        console.print(benchmark.name, style="dim")
        rows.append(measured(benchmark, turns))
        written(rows, json)
    console.print(table(rows))


def chosen(words: Sequence[str]) -> Iterator[Benchmark]:
    """Return all benchmarks, or those whose name contains one of the words."""
    known = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    for part in PARTS:
        if part in known:
            for benchmark in importlib.import_module(f"benchmarks.{part}").BENCHMARKS:
                if not words or any(word in benchmark.name for word in words):
                    yield benchmark


if __name__ == "__main__":
    main()
