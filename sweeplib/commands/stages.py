"""The jobs of the workflow: each reads the sweep's complete config and writes one result under the sweep's `directory`.

An error is reported in one line; the workflow itself reports interrupts. The rules of the workflow call these
functions, some of them by the shell command of `call`, whose arguments are texts.
"""

import atexit
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.process import job
from sweeplib.engine.process.command import command, whole_process
from sweeplib.engine.process.stage_log import log_path, output_copy
from sweeplib.engine.process.terminal import echo
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design


QUICKSTART = Path("config/quickstart.yaml")
"""The sweep of a clone where none is named."""
IMAGE = "docker-daemon://sweeplib:latest"
"""What `docker build --tag sweeplib .` makes, in which stages run if Snakemake deploys software by Apptainer."""
PYTHON = "SWEEPLIB_PYTHON"
"""The environment variable that names the Python of stages, if it is another one than Snakemake's."""


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the workflow: the `sweep`'s file, the folder `results`, and further keys of a user.

    config : that of Snakemake. InputError for keys without a sweep's file, for keys of such a file, which have no
    effect here, where no sweep is named outside of a clone, and for what is no path.
    """
    from sweeplib.config.models import SweepConfig

    expected = "--config sweep=FILE, in a module `config: {'sweep': FILE}`; a sweep's own keys are in its file"
    misplaced = [key for key in config if key in SweepConfig.model_fields or "sweep" not in config]
    if misplaced:
        raise InputError("not a key of the workflow", value=misplaced[0], expected=expected)
    if not config and not QUICKSTART.exists():
        raise InputError("no sweep is named", expected=expected)
    chosen = {"sweep": str(QUICKSTART), "results": "results", **config}
    for key in ("sweep", "results"):
        if not isinstance(chosen[key], str | Path):
            raise InputError("not a path", key=key, value=chosen[key], expected="text; `./2024` for a number")
    return chosen


def loaded(config: str, results: str) -> tuple["Design", str]:
    """Return the sweep of a file, and its directory; InputError if that holds the results of another file's sweep."""
    from sweeplib.commands.snakemake import checked_results
    from sweeplib.commands.sweep import loaded as of_file

    sweep, directory = of_file(Path(config), (), checked_results(Path(results)))
    if not directory.is_absolute():
        relative = Path(os.path.relpath(directory))
        # `./stages` is another file than `stages` for Snakemake
        directory = relative if relative.name else Path.cwd()
    return sweep, str(directory)


def caption(sweep: "Design", name: str) -> str:
    """Return the caption of a figure of the sweep, for Snakemake's report."""
    # takes a quarter of a second, which a dry run without figures does not spend
    from sweeplib.pictures.figures.figure import requested

    return requested(name, sweep.figures[name])[0].caption


def analysis_outputs(sweep: "Design", directory: str, figure: str) -> list[str]:
    """Return the paths of the markers by which the workflow tracks the analyses that a figure of the sweep draws."""
    from sweeplib.config.options import needed_analyses

    return [f"{directory}/stages/analyse.{name}.done" for name in needed_analyses(figure, sweep.figures[figure])]


def begin(config: str, sweep: "Design", directory: str) -> None:
    """Write the complete config of a sweep, which all stages read: an edit of its file waits for the next run.

    This process keeps the lock of the sweep as long as it runs; if another command works there, it ends with a line and
    status 1. A command `sweep` that has started it has the lock, and has written the config.
    """
    from sweeplib.engine.storage.records.config_files import READ, record_origin, write_complete_config
    from sweeplib.engine.storage.records.locks import at_work, is_locked_above, sweep_lock
    from sweeplib.errors import SweeplibError

    if is_locked_above(Path(directory)):
        return
    locks = ExitStack()
    try:
        locks.enter_context(sweep_lock(Path(directory)))
        locks.enter_context(at_work(Path(directory), "runs all stages"))
    except SweeplibError as error:
        echo(error, errors=True)
        raise SystemExit(1) from None
    atexit.register(locks.close)
    record_origin(Path(config), Path(directory))
    write_complete_config(sweep, Path(directory), READ)


def call(stage: str) -> str:
    """Return the shell command that runs the function `stage` of this module, but for its arguments.

    Braces are doubled, as Snakemake formats the text.
    """
    python, *words = map(shlex.quote, job.command(f"{__name__}:{stage}"))
    command = " ".join(["exec", f"${{{PYTHON}:-{python}}}", *words])
    return command.replace("{", "{{").replace("}", "}}")


def plan(directory: str) -> None:
    """Write the sweep's plan and show it."""
    with _stage(directory, "plan") as sweep:
        from sweeplib.engine.execution.plan import check_places, write_plan

        check_places(sweep, Path(directory))
        write_plan(sweep, Path(directory)).show()


def simulate(directory: str, threads: str) -> None:
    """Compute the cases that are not in the run store; with `threads` workers, if they run on this machine."""
    with _stage(directory, "simulate") as sweep:
        from sweeplib.commands.sweep import simulate as simulated
        from sweeplib.engine.execution.clusters import cluster_of

        workers = int(threads) if cluster_of(sweep).workers_here() is not None else None
        simulated(sweep, Path(directory), workers=workers)


def finalise(directory: str) -> None:
    """Write the labelled dataset of a finished sweep."""
    with _stage(directory, "finalise") as sweep:
        from sweeplib.engine.storage.dataset.finalise import finalise as written
        from sweeplib.engine.storage.records.publish import publish_dataset

        publish_dataset(sweep, written(sweep, Path(directory)))


def analyse(directory: str, name: str) -> None:
    """Write one analysis of the dataset."""
    with _stage(directory, f"analyse.{name}") as sweep:
        from sweeplib.analysis import write_analysis

        write_analysis(sweep, name, Path(directory))


def figure(directory: str, name: str) -> None:
    """Draw one figure of the dataset and its analyses."""
    with _stage(directory, f"figure.{name}") as sweep:
        from sweeplib.pictures.figures import write_figure

        write_figure(sweep, name, Path(directory))


def report(directory: str) -> None:
    """Write the report, one page about the config, the runs and the results."""
    with _stage(directory, "report") as sweep:
        from sweeplib.pictures.report import write_report

        write_report(sweep, Path(directory))
        if job.ADDRESS in os.environ:  # a command runs all stages, of which this is the last
            from sweeplib.commands.sweep import at_the_end
            from sweeplib.engine.storage.records.stage_records import tell

            tell(at_the_end=at_the_end(sweep, Path(directory)))


def ended(sweep: "Design", directory: str) -> None:
    """Write the summary of a sweep at the end of a workflow, unless `sweeplib sweep` does; SystemExit for a failure.

    Where a command has started the workflow, the environment has an address (`job.ADDRESS`).
    """
    if job.ADDRESS in os.environ:
        return
    from sweeplib.pictures.report import summary

    outcome = summary(sweep, directory)
    echo(outcome.text)
    if outcome.failed:
        raise SystemExit(1)


@contextmanager
def _stage(directory: str, name: str) -> Iterator["Design"]:
    """Return a context with the sweep of a directory, in which this process does the job `name`.

    Exceptions raised within are reported as those of a command. What is printed is in the log of the stage too.
    """
    log = log_path(Path(directory), name)
    with whole_process(), output_copy(log), command(Path(directory), interrupted=None):
        from sweeplib.config import load
        from sweeplib.engine.storage.records.config_files import READ
        from sweeplib.engine.storage.records.rounds import with_rounds
        from sweeplib.engine.storage.records.stage_records import recorded_stage

        with recorded_stage(Path(directory), name):
            yield with_rounds(load(Path(directory, READ)), Path(directory))
