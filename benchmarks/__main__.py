"""Run the benchmarks: python -m benchmarks [WORDS IN THEIR NAMES ...] [--turns N] [--json FILE] [--checkout FOLDER]."""

import importlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import benchmarks
from benchmarks.report import table, written
from benchmarks.timing import Benchmark, measured

PARTS = ("draws", "chain", "weights", "odes", "mean_fields", "sdes", "breath", "driver", "dispatch", "scaling")


def main(
    words: Annotated[list[str] | None, typer.Argument(help="only benchmarks with one of these words")] = None,
    turns: Annotated[int, typer.Option(help="how often each is timed, if that takes no longer than a minute")] = 15,
    json: Annotated[Path, typer.Option(help="where the measurements go")] = Path("benchmarks.json"),
    checkout: Annotated[str, typer.Option(help="folder of another checkout, whose sweeps are timed too")] = "",
) -> None:
    """Time sweeplib against plain code that does the same work, in the same run."""
    os.environ["SWEEPLIB_CHECKOUT"] = checkout
    rows = []
    console = Console(width=200)
    for benchmark in chosen(words or []):
        console.print(benchmark.name, style="dim")
        rows.append(measured(benchmark, turns))
        written(rows, json)
    console.print(table(rows))


def chosen(words: list[str]) -> Iterator[Benchmark]:
    """Return all benchmarks, or those whose name contains one of the words."""
    known = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    for part in PARTS:
        if part in known:
            for benchmark in importlib.import_module(f"benchmarks.{part}").BENCHMARKS:
                if not words or any(word in benchmark.name for word in words):
                    yield benchmark


if __name__ == "__main__":
    typer.run(main)
