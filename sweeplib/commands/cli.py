"""The command line: each command reads a sweep's config and calls one stage.

The docstring of a command is its help. What it needs is imported in it: a command that imports little answers at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sweeplib.commands import cli_options as options
from sweeplib.commands.cli_options import Commands, loaded, show, stage_of, to_work_on, work_in
from sweeplib.commands.cli_start import explain, new, schema, test_plugin
from sweeplib.commands.cli_upkeep import commands
from sweeplib.commands.named_sweeps import compared, folder_of, named, present_status, recorded
from sweeplib.commands.up_to_date import record_plan, undisturbed_run
from sweeplib.config.kinds import EVERY_KIND, KEYS, PLUGINS
from sweeplib.engine.process.command import command
from sweeplib.engine.process.terminal import counted, echo, table
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.engine.design.design import Design
    from sweeplib.engine.execution.progress import Steps
    from sweeplib.engine.storage.records.attempts import Attempt


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@options.version
@options.completion
def app() -> None:
    """Random experiments over a grid, each run once: two-layer networks trained by SGD, or a function of your own."""


@app.command()
@options.config
@options.overrides
@options.results
@click.option(
    "--profile",
    metavar="NAME",
    default="local",
    show_default=True,
    help="local, slurm, or the folder of a Snakemake profile.",
)
def sweep(config: Path, overrides: Sequence[str], results: Path, profile: str) -> None:
    """Run a sweep from its file to its report.

    After an interrupt the same command continues; if values or seeds are added, it computes the new cases only.
    """
    from sweeplib.commands.snakemake import PATIENCE
    from sweeplib.commands.sweep import run_stages

    # Snakemake's process is ended after PATIENCE, and this one must outlive it to say how the run ended
    with command(passing=options.PASSING, patience=PATIENCE + 0.2):
        raise SystemExit(run_stages(config, overrides, results=results, profile=profile))


@app.command(short_help="Show the cases to compute and their cost on this machine.")
@options.config
@options.overrides
@options.settings
@options.workers
@options.json
def plan(
    config: Path, overrides: Sequence[str], set_: Sequence[str], results: Path, workers: int | None, json: bool
) -> None:
    """Show the cases to compute and their cost on this machine; with --json also each case."""
    settings = [*set_, *overrides]
    # a table of other workers, and JSON of all cases, are not recorded
    is_as_recorded = workers is None and not json and not config.is_dir()
    record = undisturbed_run(config, settings, results) if is_as_recorded else {}
    # a plan was made since the run, and nothing has changed
    if record.get("plan"):
        _show_plan(table(**record["plan"]), record["answers"])
        return
    from sweeplib.engine.execution.child import prepare_child
    from sweeplib.engine.simulator import HOMES, NETWORKS

    # most sweeps are of networks, and their imports take longest
    prepare_child(HOMES[NETWORKS])
    sweep, directory = loaded(config, settings, results)
    from sweeplib.engine.execution.plan import plan_as_json, write_plan
    from sweeplib.pictures.report.summary import answers

    with stage_of(config, directory, "plan", does="plans"):
        new_plan = write_plan(sweep, directory, workers=workers, to_run=False)
    if json:
        echo(plan_as_json(new_plan, sweep, directory))
        return
    lines = answers(sweep, directory)
    if record and not new_plan.todo:
        record_plan(record, new_plan.cells(), lines)
    _show_plan(new_plan.table(), lines)


def _show_plan(table: "Table", answers: Iterable[str]) -> None:
    """Write the table of a plan, and a line for each answer."""
    show(table)
    for line in answers:
        echo(line)


@app.command()
@options.file_or_folder
@options.names
@options.settings
@options.workers
@click.option("--progress/--no-progress", default=True, help="Show the progress.")
def run(
    config: Path, names: Sequence[str], set_: Sequence[str], results: Path, workers: int | None, progress: bool
) -> None:
    """Simulate missing cases.

    After an interrupt the same command continues. Failed cases are recorded and do not stop the run; the exit status is
    1 if there are any.
    """
    sweep, directory = to_work_on(config, set_, results)
    chosen = _chosen(names, sweep.runs, "dynamics of this sweep")
    from sweeplib.commands.sweep import simulate

    with stage_of(config, directory, "simulate", does="simulates"):
        summaries = simulate(sweep, directory, chosen, workers=workers, progress=progress)
    from sweeplib.engine.process.terminal import counts_table
    from sweeplib.engine.status import failed, outcomes

    show(counts_table({name: summary.cases for name, summary in summaries.items()}, sweep.name))
    computed = sum(summary.computed for summary in summaries.values())
    counts = sum((Counter(summary.cases) for summary in summaries.values()), Counter[str]())
    table = f": see {directory}/outcomes" if counts.total() > counts["ok"] + counts["missing"] else ""
    echo(f"{counted(computed)} computed now; in all {outcomes(counts)}, of {counted(counts.total())}{table}")
    raise SystemExit(1 if failed(counts) else 0)


@app.command()
@options.file_or_folder
@options.overrides
@options.settings
@options.json
def status(config: Path, overrides: Sequence[str], set_: Sequence[str], results: Path, json: bool) -> None:
    """Show whether a sweep runs, and how far it is.

    Also its dashboard, its last error, and how many cases have each status. With --json, the exit status is 0 for
    "finished" (all cases have a result), 1 for "failed" (a stage or cases), 3 for "unfinished", 4 for "running".
    """
    from sweeplib.engine.process.terminal import counts_table

    now = present_status(config, [*set_, *overrides], results)
    if json:
        options.echo_json(now.record())
        raise SystemExit(now.exit_status)
    echo("\n".join(now.lines()))
    if now.cases:
        show(counts_table(now.cases))


@app.command()
@options.file_or_folder
@options.overrides
@options.results
def watch(config: Path, overrides: Sequence[str], results: Path) -> None:
    """Show a sweep that runs in another terminal, until it ends.

    Ctrl-C ends the view, not the sweep. The status is 1 if a stage failed. Without a run it shows the first
    lines of `status`.
    """
    sweep, directory = named(config, overrides, results)
    from sweeplib.commands.watch import watch as watched

    raise SystemExit(watched(sweep, directory))


@app.command("list")
@options.argument(
    "kind",
    required=False,
    metavar="[KIND]",
    shell_complete=options.beginnings(EVERY_KIND),
    help=f"{', '.join(EVERY_KIND[:-1])} or {EVERY_KIND[-1]}.",
)
@options.names
@options.results
@options.json
def list_(kind: str | None, names: Sequence[str], results: Path, json: bool) -> None:
    """List sweeps, or the keys and names for a config.

    Without KIND, the sweeps in the folder of results; with it, all of this kind, or those named with their options.
    """
    from sweeplib.commands import listing
    from sweeplib.engine.process.terminal import LINE, console

    if kind is None:
        if json:
            options.echo_json(listing.sweep_records(results))
        elif (sweeps := listing.sweeps(results)) is None:
            echo(f"no sweeps in {results}")
        else:
            show(sweeps)
        return
    from sweeplib.config.catalogue import catalogue

    out, entries = console(), catalogue(kind, names)
    if json:
        options.echo_json(listing.name_records(entries))
        return
    if not entries:
        echo(f"no {kind}")
    for line in listing.names(entries, out.width if out.is_terminal else LINE, options=bool(names)):
        echo(line)
    if kind != PLUGINS and not names:
        echo(f"Options and an example: sweeplib explain {'KEY' if kind == KEYS else f'{kind}.NAME'}")


for start in (explain, new, schema, test_plugin):
    app.add_command(start)


@app.command("open")
@options.file_or_folder
@options.settings
def open_(config: Path, set_: Sequence[str], results: Path) -> None:
    """Open the report in the browser; show its path."""
    directory = folder_of(config, set_, results)
    page = directory / "report" / "index.html"
    if not page.exists():
        command = "report" if config.is_dir() else "sweep"
        raise InputError("no report yet", file=page, expected=f"`sweeplib {command} {config}` before")
    echo(page)
    import webbrowser

    webbrowser.open(page.resolve().as_uri())


@app.command()
@options.file_or_folder
@options.settings
def finalise(config: Path, set_: Sequence[str], results: Path) -> None:
    """Write the labelled dataset; publish it if the config says so."""
    sweep, directory = to_work_on(config, set_, results)
    work_in(directory, "writes the dataset")
    from sweeplib.engine.storage.dataset.finalise import finalise as written
    from sweeplib.engine.storage.records.publish import publish_dataset

    steps = _steps(sweep)
    with steps.step("writing the dataset"):
        path = written(sweep, directory)
    echo(path)
    if sweep.publish is not None:
        with steps.step("publishing the dataset"):
            publish_dataset(sweep, path)
        echo(sweep.publish)


@app.command()
@options.file_or_folder
@options.names
@options.settings
def analyse(config: Path, names: Sequence[str], set_: Sequence[str], results: Path) -> None:
    """Write the analyses of the dataset: all, or those named."""
    sweep, directory = to_work_on(config, set_, results)
    chosen = _chosen(names, sweep.analyses, "analysis of this sweep")
    work_in(directory, "analyses")
    from sweeplib.analysis import write_analysis
    from sweeplib.engine.storage.records.artefacts import refuse_other_dataset

    refuse_other_dataset(sweep, directory)
    _report_attempts(sweep, chosen, lambda name: write_analysis(sweep, name, directory))


@app.command()
@options.file_or_folder
@options.names
@options.settings
def figures(config: Path, names: Sequence[str], set_: Sequence[str], results: Path) -> None:
    """Draw the figures: all, or those named."""
    sweep, directory = to_work_on(config, set_, results)
    chosen = _chosen(names, sweep.figures, "figure of this sweep")
    work_in(directory, "draws figures")
    from sweeplib.engine.storage.records.artefacts import refuse_other_dataset
    from sweeplib.pictures.figures import write_figure

    refuse_other_dataset(sweep, directory)
    _report_attempts(sweep, chosen, lambda name: write_figure(sweep, name, directory))


@app.command()
@options.sweeps
@options.settings
@options.output
def report(sweeps: Sequence[Path], set_: Sequence[str], results: Path, output: Path | None) -> None:
    """Write the report, or a page that compares several sweeps.

    Sweeps are named by their YAML files or their folders of results. The exit status is 1 if a part was not made.
    """
    if len(sweeps) > 1:
        if set_:
            raise InputError("not for several sweeps", key="--set", value=set_, expected="the folders of their results")
        failed, path = compared(sweeps, results, output)
    else:
        if output is not None:
            raise InputError("only for several sweeps", key="--output", value=str(output), expected="a second sweep")
        sweep, directory = to_work_on(sweeps[0], set_, results)
        from sweeplib.engine.storage.records.artefacts import refuse_other_dataset, refuse_outdated
        from sweeplib.pictures.report import write_report
        from sweeplib.pictures.report.overview import report_cards

        work_in(directory, "writes the report")
        refuse_other_dataset(sweep, directory)
        refuse_outdated(directory, sweep.analyses, sweep.figures)
        with _steps(sweep).step("writing the report"):
            path = write_report(sweep, directory)
        failed = [f"{card['kind']} {card['name']}: {card['exception']}" for card in report_cards(directory)]
    echo(path)
    for problem in failed:
        echo(f"failed: {problem}", errors=True)
    raise SystemExit(1 if failed else 0)


@app.command()
@options.file_or_folder
@options.settings
@options.json
def summary(config: Path, set_: Sequence[str], results: Path, json: bool) -> None:
    """Show the outcome of a sweep and where its results are.

    The exit status is 1 if a case, an analysis, a figure or a part of the report failed.
    """
    done = undisturbed_run(config, set_, results)
    if done and not json:
        echo(done["summary"])
        return
    from sweeplib.pictures.report import summary as summarised
    from sweeplib.pictures.report import summary_by_records

    directory = recorded(config, set_, results)
    # plugins that may not be executed leave the records alone
    result = summarised(*named(config, set_, results)) if directory is None else summary_by_records(directory)
    options.echo_json(result.record()) if json else echo(result.text)
    raise SystemExit(1 if result.failed else 0)


for upkeep in commands:
    app.add_command(upkeep)


def _chosen(names: Sequence[str], choices: Iterable[str], kind: str) -> list[str]:
    """Return the names, all choices without any; InputError for one that is no choice, a `kind` in words."""
    choices = list(choices)
    for name in names:
        if name not in choices:
            raise InputError(f"no {kind}", value=name, choices=choices)
    return list(names) or choices


def _steps(sweep: "Design") -> "Steps":
    """Return the steps of a command, shown on standard error."""
    from sweeplib.engine.execution.progress import Steps

    return Steps(sweep.name)


def _report_attempts(sweep: "Design", names: Iterable[str], make: Callable[[str], "Attempt"]) -> None:
    """Make what is named, print what was written or why it failed, and exit: with status 1 if one failed."""
    failed, steps = 0, _steps(sweep)
    for name in names:
        with steps.step(name):
            attempt = make(name)
        if attempt.problem is None:
            echo("\n".join(map(str, attempt.paths)))
        else:
            failed += 1
            echo(f"failed: {attempt}", errors=True)
    raise SystemExit(1 if failed else 0)
