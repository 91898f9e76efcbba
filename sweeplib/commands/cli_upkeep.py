"""The commands for results that exist: answer, explore, verify, reproduce, retry, export, prune."""

from collections.abc import Sequence
from pathlib import Path

import click

from sweeplib.commands import cli_options as options
from sweeplib.commands.cli_options import loaded, named_although_damaged, show, stage_of
from sweeplib.commands.named_sweeps import folder_of, named
from sweeplib.engine.process.terminal import counted, echo, table
from sweeplib.errors import InputError


@click.command(cls=options.Command)
@options.config
@options.overrides
@options.results
@options.workers
@options.json
def answer(config: Path, overrides: Sequence[str], results: Path, workers: int | None, json: bool) -> None:
    """Add rows until the questions of a sweep are answered.

    The answers are shown at the end. After an interrupt the same command continues. The exit status is 1 if an
    answer is missing: the table says why.
    """
    sweep, directory = loaded(config, overrides, results)
    if not sweep.questions:
        raise InputError(
            "the config asks nothing", file=config, key="answers", expected="questions: see `explain answers`"
        )
    from sweeplib.analysis.answers import State
    from sweeplib.analysis.answers.answer import answers_of, cells
    from sweeplib.commands.sweep import simulate

    with stage_of(config, directory, "simulate", does="answers questions"):
        simulate(sweep, directory, workers=workers, say=lambda line: echo(f"{sweep.name}: {line}", errors=True))
    answers = answers_of(sweep, directory)
    if json:
        options.echo_json([result.record() for result in answers])
    else:
        show(table(**cells(answers)))
    raise SystemExit(0 if all(result.state is State.given for result in answers) else 1)


@click.command(cls=options.Command)
@options.file_or_folder
@click.option(
    "--sample",
    metavar="N",
    type=click.IntRange(min=0),
    help="Compute N random cases again and compare bits; by default up to 16.",
)
@click.option("--repair", is_flag=True, help="Compute damaged cases again, write files again.")
@options.settings
@options.workers
@options.json
def verify(
    config: Path, sample: int | None, repair: bool, set_: Sequence[str], results: Path, workers: int | None, json: bool
) -> None:
    """Check all results of a sweep, and repair them.

    Reads every chunk and every file with a checksum, and computes a sample of cases again. The exit status is 0 if all
    is as it was written, 1 if there was damage, repaired or not.
    """
    sweep, directory = named_although_damaged(config, set_, results)
    from sweeplib.commands.upkeep.verify import verify

    done = verify(sweep, config, directory, sample=sample, repaired=repair, workers=workers, progress=not json)
    if json:
        options.echo_json(done.record())
    else:
        for line in done.lines():
            echo(line)
        show(done.table())
    raise SystemExit(done.exit_status)


@click.command(cls=options.Command)
@options.file_or_folder
@options.argument(
    "case",
    metavar="CASE",
    help="The first digits of an identity, or coordinates: p=4,gamma=.1,seed=3,dynamics=sgd.",
)
@click.option("--debug", is_flag=True, help="Run it in Python's debugger.")
@options.settings
def reproduce(config: Path, case: str, debug: bool, set_: Sequence[str], results: Path) -> None:
    """Compute one case here, and compare it with the stored bits.

    The exit status is 0 if the case ends as in the store, to the bit, and 1 if not.
    """
    sweep, directory = named(config, set_, results)
    from sweeplib.commands.upkeep.reproduce import reproduces

    outcome = reproduces(sweep, directory, case, debug=debug, say=echo)
    raise SystemExit(0 if outcome else 1)


@click.command(cls=options.Command)
@options.file_or_folder
@options.argument(
    "selection",
    metavar="[STATUS|CASE]...",
    nargs=-1,
    help="failed, killed, timeout, diverged, inaccurate, all of these; damaged; or one case, by identity or "
    "coordinates.",
)
@options.settings
def retry(config: Path, selection: Sequence[str], set_: Sequence[str], results: Path) -> None:
    """Let the next run compute failed cases again, or one case."""
    sweep, directory = named(config, set_, results)
    from sweeplib.commands.upkeep.retry import retry

    for name, count in retry(sweep, directory, selection).items():
        echo(f"{name}: {counted(count)} to run again")


@click.command(cls=options.Command)
@options.file_or_folder
@click.option("--show/--no-show", "display", default=True, help="Open the page in the browser.")
@click.option("--port", type=click.IntRange(1, 65535), help="By default 5006, or a free one.")
@options.settings
def explore(config: Path, display: bool, port: int | None, set_: Sequence[str], results: Path) -> None:
    """Show an interactive plot of the dataset in the browser.

    The dataset may have any size; the plot is there until Ctrl-C. SWEEP may also be a folder dataset.zarr. The page
    is on this machine only; its address is printed.
    """
    is_dataset = (config / "zarr.json").exists()
    path = config if is_dataset else folder_of(config, set_, results) / "dataset.zarr"
    if not path.exists():
        raise InputError("no dataset yet", file=path, expected=f"`sweeplib finalise {config}` before")
    import sweeplib
    from sweeplib.pictures.report.explore import Explored

    name = path.resolve().parent.name
    page = Explored(sweeplib.open(path), name, port)
    echo(page.address)
    if display:
        page.show()
    page.wait()


@click.command(cls=options.Command)
@options.file_or_folder
@click.option(
    "--what",
    "names",
    metavar="NAME",
    multiple=True,
    help="dataset, which is the default, an analysis, `all` analyses, or several with commas between.",
)
@click.option("--to", metavar="FORMAT", default="csv", show_default=True, help="netcdf, csv or parquet.")
@click.option(
    "--output", metavar="FOLDER", type=options.PATH, default=".", show_default=True, help="Where to write the files."
)
@options.settings
def export(config: Path, names: Sequence[str], to: str, output: Path, set_: Sequence[str], results: Path) -> None:
    """Write the dataset or analyses as NetCDF, or as tables.

    The dataset has a row a case, and one a value along further axes such as the time; an analysis a row a point, with
    all parameters, values, intervals and numbers of runs. A file of JSON beside each table says what its columns are.
    """
    from sweeplib.commands.upkeep.export import WHOLE, export

    chosen = [name for entry in names or (WHOLE,) for name in entry.split(",")]
    if chosen == [WHOLE]:
        directory, analyses = folder_of(config, set_, results), list[str]()
    else:
        from sweeplib.engine.storage.records.artefacts import refuse_other_dataset

        sweep, directory = named(config, set_, results)
        refuse_other_dataset(sweep, directory)
        analyses = list(sweep.analyses)
    for path in export(directory, to, output, chosen, analyses):
        echo(path)


@click.command(cls=options.Command)
@options.file_or_folder
@click.option("--delete", is_flag=True, help="Delete what is listed.")
@options.settings
def prune(config: Path, delete: bool, set_: Sequence[str], results: Path) -> None:
    """List the results that this config does not use.

    The list says what they are, their size, and since when they are there. Nothing is deleted without --delete.
    """
    sweep, directory = named(config, set_, results)
    from sweeplib.commands.upkeep.prune import delete_stale, stale
    from sweeplib.commands.upkeep.prune import table as stale_table
    from sweeplib.engine.storage.records.artefacts import refuse_other_config

    items = stale(sweep, directory)
    if not items:
        echo("nothing is stale")
        return
    if delete:
        refuse_other_config(sweep, directory)  # before a list of what would not be deleted
    show(stale_table(items))
    if delete:
        echo(f"{len(delete_stale(sweep, directory))} deleted")


commands = (answer, verify, reproduce, retry, explore, export, prune)
