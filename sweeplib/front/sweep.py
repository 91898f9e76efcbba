"""`sweeplib sweep`: all stages of a sweep, from its file to its report."""

import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.front.snakemake import run_snakemake, snakemake_command
from sweeplib.process.terminal import console

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep
    from sweeplib.front.state import State

OVERRIDDEN = "overridden.yaml"
"""The file in a sweep's folder with the complete config of a run with overrides."""
LOG = Path("journal", "snakemake.log")
LAST_LINES = 5


def run_stages(
    config: Path, overrides: Sequence[str] = (), *, results: Path = Path("results"), profile: str = "local"
) -> int:
    """Run all stages of a sweep that are not up to date, show them on standard error, and its summary at the end.

    With overrides, such as `grid.d=300,1000`, all stages read the complete config, which is written into the sweep's
    folder as `overridden.yaml`; it can be run again by itself. Returns the exit status: 1 if a stage, a case or an
    attempt of a stage failed. InputError, before any work, for a config, an override or a profile that is refused, and
    if another command runs the sweep.
    """
    with _waiting(f"reading {config}"):
        from sweeplib.storage.publish import check_publishing

        sweep, directory = loaded(config, overrides, results)
        check_publishing(sweep)
        command = snakemake_command(directory / OVERRIDDEN if overrides else config, results, profile)
        from sweeplib.storage.jobs import WHOLE, job, refuse_second
        from sweeplib.storage.origin import record_origin

        refuse_second(directory)
    with job(directory, WHOLE):
        record_origin(config, directory)
        if overrides:
            from sweeplib.execution.complete_config import write_complete_config

            write_complete_config(sweep, directory, OVERRIDDEN)
        status = _followed(sweep, directory, command)
        if status:
            return status
        with _waiting("reading the results"):
            from sweeplib.report import summary

            found = summary(sweep, directory)
    sys.stdout.write(f"{found.text}\n")
    return int(found.failed)


def loaded(config: Path, overrides: Sequence[str], results: Path) -> "tuple[Sweep, Path]":
    """Return the sweep of a file and its folder; InputError if that holds the results of another file's sweep."""
    from sweeplib.config import load
    from sweeplib.process.command import writes_into
    from sweeplib.storage.origin import check_origin

    sweep = load(config, overrides)
    directory = results / sweep.name
    writes_into(directory)
    check_origin(config, directory)
    return sweep, directory


def _followed(sweep: "Sweep", directory: Path, command: list[str]) -> int:
    """Run Snakemake and show its jobs; return the exit status, after saying what failed."""
    from sweeplib.front.screen import view
    from sweeplib.front.state import State, stages
    from sweeplib.storage.jobs import WHOLE, jobs

    titled, since, log = stages(sweep), time.time(), directory / LOG

    def state(over: str = "") -> State:
        found = {name: job for name, job in jobs(directory, since).items() if name != WHOLE}
        return State(titled, found, time.time(), over)

    with view(sweep.name) as shown:
        before = log.stat().st_size if log.exists() else 0
        status = run_snakemake(command, log, lambda: shown.update(state()))
        last = state("failed" if status else "ok")
        shown.update(last)
    if status:
        _say_what_failed(last, log, before)
    return 2 if status == 2 else int(status != 0)


def _say_what_failed(state: "State", log: Path, before: int) -> None:
    """Write the problems of the stages, or if there are none this run's last lines in the log; then the log's path."""
    problems = [f"{stage.title}: {problem}" for stage in state.stages for problem in state.problems(stage)]
    if not problems:
        with log.open("rb") as file:
            file.seek(before)
            lines = file.read().decode("utf-8", "replace").splitlines()
        problems = [line for line in lines if line.strip()][-LAST_LINES:]
    sys.stderr.write("\n".join([*problems, f"the log: {log}"]) + "\n")


def _waiting(what: str) -> AbstractContextManager[Any]:
    """Return a context that shows on a terminal that something takes a while."""
    from rich.text import Text

    target = console(errors=True)
    return target.status(Text(what)) if target.is_terminal else nullcontext()
