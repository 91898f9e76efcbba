"""The commands for results that exist: answer, explore, verify, reproduce, retry, export, prune."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from sweeplib.cli_options import (
    RESULTS,
    Config,
    FileOrFolder,
    Json,
    Overrides,
    Results,
    Set,
    Workers,
    loaded,
    named,
    named_although_damaged,
    show,
)
from sweeplib.errors import InputError
from sweeplib.process.terminal import counted, echo, table

commands = typer.Typer()
HERE = Path()

CaseName = Annotated[
    str,
    typer.Argument(
        metavar="CASE",
        help="The first digits of an identity, or coordinates: p=4,gamma=.1,seed=3,dynamics=sgd.",
        show_default=False,
    ),
]


@commands.command()
def answer(config: Config, overrides: Overrides = None, results: Results = RESULTS, workers: Workers = None) -> None:
    """Add rounds of rows until the questions of a sweep are answered; show the answers.

    After an interrupt the same command continues. The exit status is 1 if an answer is missing: the table says why.
    """
    sweep, directory = loaded(config, overrides, results)
    if not sweep.questions:
        raise InputError(
            "the config asks nothing", file=config, key="answers", expected="questions: see `explain answers`"
        )
    from sweeplib.answers import State, run_rounds
    from sweeplib.answers.shown import answers_of, cells
    from sweeplib.storage.records.config_files import record_origin
    from sweeplib.storage.records.file_system import examine
    from sweeplib.storage.records.jobs import job

    examine(directory)
    with job(directory, "simulate"):
        record_origin(config, directory)
        run_rounds(sweep, directory, workers=workers, say=lambda line: echo(f"{sweep.name}: {line}", errors=True))
    answers = answers_of(sweep, directory)
    show(table(**cells(answers)))
    raise typer.Exit(0 if all(each.state is State.given for each in answers) else 1)


@commands.command()
def verify(
    config: FileOrFolder,
    sample: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Compute N random cases again and compare bits; by default up to 16.",
        ),
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Compute damaged cases again, write files again.")] = False,
    set_: Set = None,
    results: Results = RESULTS,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Check all results of a sweep, and repair them.

    Reads every chunk and every file with a checksum, and computes a sample of cases again. The exit status is 0 if all
    is as it was written, 1 if there was damage, repaired or not.
    """
    sweep, directory = named_although_damaged(config, set_, results)
    from sweeplib.upkeep.verify import verify

    done = verify(sweep, config, directory, sample=sample, repaired=repair, workers=workers, progress=not json)
    if json:
        echo(dumps(done.record(), indent=1))
    else:
        for line in done.lines():
            echo(line)
        show(done.table())
    raise typer.Exit(done.exit_status)


@commands.command()
def reproduce(
    config: FileOrFolder,
    case: CaseName,
    debug: Annotated[bool, typer.Option("--debug", help="Run it in Python's debugger.")] = False,
    set_: Set = None,
    results: Results = RESULTS,
) -> None:
    """Compute one case here, and compare it with the stored bits.

    The exit status is 0 if the case ends as in the store, to the bit, and 1 if not.
    """
    sweep, directory = named(config, set_, results)
    from sweeplib.upkeep.reproduce import reproduces

    outcome = reproduces(sweep, directory, case, debug=debug, say=echo)
    raise typer.Exit(0 if outcome else 1)


@commands.command()
def retry(
    config: FileOrFolder,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STATUS|CASE",
            help="failed, killed, timeout, diverged, inaccurate, all of these; damaged; or one case, by identity or "
            "coordinates.",
            show_default=False,
        ),
    ] = None,
    set_: Set = None,
    results: Results = RESULTS,
) -> None:
    """Let the next run compute failed cases again, or one case."""
    sweep, directory = named(config, set_, results)
    from sweeplib.upkeep.retry import retry

    for name, count in retry(sweep, directory, what or ()).items():
        echo(f"{name}: {counted(count)} to run again")


@commands.command()
def explore(
    config: FileOrFolder,
    display: Annotated[bool, typer.Option("--show/--no-show", help="Open the page in the browser.")] = True,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="By default 5006, or a free one.", show_default=False)
    ] = None,
    set_: Set = None,
    results: Results = RESULTS,
) -> None:
    """Show an interactive plot of the dataset, of any size, in the browser, until Ctrl-C.

    SWEEP may also be a folder dataset.zarr. The page is on this machine only; its address is printed.
    """
    is_dataset = (config / "zarr.json").exists()
    path = config if is_dataset else named(config, set_, results)[1] / "dataset.zarr"
    if not path.exists():
        raise InputError("no dataset yet", file=path, expected=f"`sweeplib finalise {config}` before")
    import sweeplib
    from sweeplib.report.explore import Explored

    name = path.resolve().parent.name
    page = Explored(sweeplib.open(path), name, port)
    echo(page.address)
    if display:
        page.show()
    page.wait()


@commands.command()
def export(
    config: FileOrFolder,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="netcdf, csv or parquet.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", metavar="FOLDER", help="Where to write the files.")] = HERE,
    set_: Set = None,
    results: Results = RESULTS,
) -> None:
    """Write the dataset as NetCDF, or as tables: a row a case, and one a value along further axes such as the time."""
    _, directory = named(config, set_, results)
    from sweeplib.upkeep.export import export

    for path in export(directory, to, output):
        echo(path)


@commands.command()
def prune(
    config: FileOrFolder,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what is listed.")] = False,
    set_: Set = None,
    results: Results = RESULTS,
) -> None:
    """List the results that this config does not use: what they are, their size, since when they are there.

    Nothing is deleted without --delete.
    """
    sweep, directory = named(config, set_, results)
    from sweeplib.upkeep.prune import delete_stale, stale, table

    found = stale(sweep, directory)
    if not found:
        echo("nothing is stale")
        return
    show(table(found))
    if delete:
        echo(f"{len(delete_stale(sweep, directory))} deleted")
