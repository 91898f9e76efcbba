"""`sweeplib sweep`: all stages of a sweep, from its file to its report.

Snakemake runs the stages as processes, which are forked from one that has imported what they need (`fork_server`).
`results` is the folder with a folder for each sweep, `directory` that of this sweep, `profile` one of Snakemake's.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.commands.snakemake import (
    check_working_folder,
    profile_folder,
    refuse_read_only_folder,
    refuse_without_snakemake,
    run_snakemake,
    snakemake_command,
)
from sweeplib.commands.up_to_date import complete_run, is_changed, made_from, record_complete_run
from sweeplib.engine.files.regular_files import open_bytes
from sweeplib.engine.process.command import command, whole_process
from sweeplib.engine.process.environment import caches_in, refuse_few_processes, refuse_full_folder, refuse_shell
from sweeplib.engine.process.forks import MEANWHILE, WAIT, fork_server
from sweeplib.engine.process.job import ran
from sweeplib.engine.process.terminal import console, echo
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.commands.state import RunState
    from sweeplib.engine.design.design import Design
    from sweeplib.engine.execution.run import DynamicsSummary

CHANGED = "was changed during the run, which kept to the config as it was read; the same command takes the change"
LOG = Path("journal", "snakemake.log")
"""The file of Snakemake's messages in the folder of a sweep."""
LAST_LINES = 5
"""The lines of it that are shown if no stage says why it failed."""
CONFIG_IMPORTS = (
    "sweeplib.config.build",
    "sweeplib.config.networks",
    "sweeplib.config.inherited",
    "sweeplib.config.error_places",
    "sweeplib.pictures.figures",
    "sweeplib.engine.execution.clusters",
    "sweeplib.commands.stages",
    "sweeplib.commands.sweep",
    "sweeplib.commands.state",
    "sweeplib.engine.storage.records.config_files",
    "sweeplib.engine.storage.records.rounds",
)
"""What reading a config imports."""
IMPORTS = (
    "-snakemake",
    "snakemake.cli:get_argument_parser",
    *CONFIG_IMPORTS,
    "sweeplib.engine.code.sources:prepare",
    MEANWHILE,
    *CONFIG_IMPORTS,
    WAIT,
    "sweeplib.engine.code.sources:prepare",
    "rich.console",
    "rich.table",
    "sweeplib.engine.execution.plan",
    "sweeplib.engine.execution.child",
    "sweeplib.networks.pilots",
    "numba.typed",
    "sweeplib.networks.numerics.compiled:prepare",
    "sweeplib.engine.execution.run",
    "pydantic.type_adapter",
    "pandas",
    "sweeplib.engine.base.late_modules:prepare_xarray",
    "scipy.special",
    "sweeplib.engine.storage.dataset.finalise",
    "dask",
    "-figures",
    "matplotlib.axes",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "fontTools.subset",
    "sweeplib.pictures.figures.kit.style:prepare",
    MEANWHILE,
    "sweeplib.pictures.report.write:prepare",
    "sweeplib.pictures.report.plots",
    "sweeplib.pictures.report.summary",
    "latex2mathml.converter",
)
"""What the stages import that takes a while, in their order, after what reads the config.

Snakemake, which reads the config too, and figures, which alone need matplotlib, have processes of their own, which
import at the same time. That of Snakemake starts first, on a processor that would be idle while the config is read.
"""


def run_stages(
    config: Path, overrides: Sequence[str] = (), *, results: Path = Path("results"), profile: str = "local"
) -> int:
    """Run all stages of a sweep that are not up to date, show them on standard error, and its summary at the end.

    The config is read once, with overrides such as `grid.d=300,1000`: all stages read the complete config, which is
    written into the sweep's folder as `command.yaml` and can be run again by itself. If the file was changed since, a
    last line says so. Returns the exit status: 1 if a stage, a case or an attempt of a stage failed. InputError, before
    any work, for a config, an override or a profile that is refused; BusyError, before anything is written, if another
    command works in the sweep's folder, on any host.
    """
    refuse_shell()
    refuse_few_processes()
    refuse_full_folder()
    done = complete_run(config, overrides, results)
    if done is not None:
        profile_folder(profile)
        sys.stderr.write("nothing to compute: all is up to date\n")
        echo(done["summary"])
        return 0
    refuse_without_snakemake()
    refuse_read_only_folder()
    caches_in(results)
    with fork_server(IMPORTS):
        return _run_stages(config, overrides, results, profile)


def _run_stages(config: Path, overrides: Sequence[str], results: Path, profile: str) -> int:
    """Run all stages by Snakemake; return the exit status. What commands may show again is recorded at the end."""
    with _waiting(f"reading {config}"):
        from sweeplib.engine.storage.records.config_files import READ, is_beside_results, is_lasting, record_origin
        from sweeplib.engine.storage.records.file_system import examine
        from sweeplib.engine.storage.records.files import write_text
        from sweeplib.engine.storage.records.locks import sweep_lock
        from sweeplib.engine.storage.records.stage_records import WHOLE, recorded_stage

        lasting = is_lasting(config)
        run = _prepared(config, overrides, results, profile)
        directory, files = Path(run["directory"]), list(map(Path, run["files"]))
        begun = made_from(config, overrides, files) if lasting else ""
    with sweep_lock(directory), recorded_stage(directory, WHOLE):
        examine(directory)
        record_origin(config, directory)
        write_text(directory / READ, run["config"])
        status, ending = _followed(run, directory)
        if lasting and is_changed(config, overrides, files, begun):
            if not is_beside_results(config, directory):  # which the run itself writes
                echo(f"{config}, or a file that it names, {CHANGED}", errors=True)
        elif lasting and not status and not ending["failed"]:
            record_complete_run(directory, config, overrides, files, begun, ending)
        if status:
            return status
    echo(ending["summary"])
    return int(ending["failed"])


def _prepared(config: Path, overrides: Sequence[str], results: Path, profile: str) -> dict[str, Any]:
    """Return what `prepared` does, if possible from a fork that has the imports.

    If the fork fails, `prepared` is called here, which raises its error. A file that can be read once is read here.
    """
    from sweeplib.engine.storage.records.config_files import is_lasting

    if is_lasting(config):
        with (
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as warned,
            tempfile.NamedTemporaryFile() as file,
        ):
            words = f"{__name__}:write_prepared", file.name, str(config), str(results), profile, *overrides
            if ran(*words, output=output.fileno(), errors=warned.fileno()) == 0:
                for stream, text in ((sys.stdout, output), (sys.stderr, warned)):
                    text.seek(0)
                    stream.write(text.read().decode("utf-8", "replace"))
                return json.loads(file.read())
    return prepared(config, overrides, results, profile)


def write_prepared(file: str, config: str, results: str, profile: str, *overrides: str) -> None:
    """Write what `prepared` returns into a file, as JSON; `_prepared` calls it by name in a fork."""
    with whole_process(), command(interrupted=None):
        content = prepared(Path(config), overrides, Path(results), profile)
        Path(file).write_text(json.dumps(content), encoding="utf-8")


def prepared(config: Path, overrides: Sequence[str], results: Path, profile: str) -> dict[str, Any]:
    """Return what a run of all stages needs to know of a sweep; InputError if it cannot be run.

    That is its `name`, its `directory`, the `command` of Snakemake, the text of the complete `config`, which all stages
    read, the user's `files`, and its `stages`.
    """
    from sweeplib.commands.state import stages
    from sweeplib.engine.execution.clusters import cluster_of
    from sweeplib.engine.storage.dataset.folded_names import refuse_folded_names
    from sweeplib.engine.storage.records.config_files import READ, complete_config
    from sweeplib.engine.storage.records.publish import check_publishing

    sweep, directory = loaded(config, overrides, results)
    check_publishing(sweep, directory)
    refuse_folded_names(sweep, directory)
    run = snakemake_command(directory / READ, results, profile, cluster_of(sweep).workers_here())
    check_working_folder()
    return {
        "name": sweep.name,
        "directory": str(directory),
        "command": run,
        "config": complete_config(sweep, directory),
        "files": list(map(str, sweep.files())),
        "stages": [vars(stage) for stage in stages(sweep)],
    }


def _at_the_end(directory: Path) -> dict[str, Any]:
    """Return `at_the_end` of a sweep whose report was up to date, if possible from a fork that has the imports.

    What plugins print there is not shown.
    """
    with tempfile.NamedTemporaryFile() as file, Path(os.devnull).open("wb") as nowhere:
        status = ran(f"{__name__}:write_at_the_end", str(directory), file.name, output=nowhere.fileno())
        return json.loads(file.read()) if status == 0 else at_the_end(_as_read(directory), directory)


def write_at_the_end(directory: str, file: str) -> None:
    """Write `at_the_end` into a file, as JSON; `_at_the_end` calls it by name in a fork."""
    content = at_the_end(_as_read(Path(directory)), Path(directory))
    Path(file).write_text(json.dumps(content), encoding="utf-8")


def _as_read(directory: Path) -> "Design":
    """Return the sweep by the complete config in its folder, which all stages read."""
    from sweeplib.config import load
    from sweeplib.engine.storage.records.config_files import READ
    from sweeplib.engine.storage.records.rounds import with_rounds

    return with_rounds(load(directory / READ), directory)


def at_the_end(sweep: "Design", directory: Path) -> dict[str, Any]:
    """Return what is to be said of a sweep once all stages have ended.

    That is what is `undone`, if something is; otherwise the summary and, if nothing `failed`, what the commands
    `status` and `plan` show.
    """
    from sweeplib.commands.status import status_when_done
    from sweeplib.engine.execution.plan import plan_when_done
    from sweeplib.pictures.report.summary import answers, summary

    if undone := _undone(sweep, directory):
        return {"undone": undone}
    outcome = summary(sweep, directory)
    texts = {"summary": outcome.text, "failed": outcome.failed}
    if outcome.failed:
        return texts
    status = json.dumps(status_when_done(sweep, directory).record())  # text, because the order of names counts
    plan = {"plan": plan_when_done(directory), "answers": answers(sweep, directory)}
    return texts | {"status": status, **plan}


def loaded(config: Path, overrides: Sequence[str], results: Path) -> "tuple[Design, Path]":
    """Return the sweep of a file and its folder; InputError if that holds the results of another file's sweep."""
    from sweeplib.config import load
    from sweeplib.engine.storage.records.rounds import with_rounds

    sweep = load(config, overrides)
    directory = folder_of_file(config, sweep.name, results)
    return with_rounds(sweep, directory), directory


def folder_of_file(config: Path, name: str, results: Path) -> Path:
    """Return the folder of the sweep `name` of a file; InputError if it has the results of another file's sweep."""
    from sweeplib.engine.process.command import writes_into
    from sweeplib.engine.storage.records.config_files import check_origin

    directory = results / name
    for folder in (results, directory):
        _refuse_no_folder(folder)
    writes_into(directory)
    check_origin(config, directory)
    return directory


def _refuse_no_folder(path: Path) -> None:
    """Raise InputError for a path that cannot become a folder of results."""
    problem = f"a link to {path.readlink()}, which does not exist" if path.is_symlink() and not path.exists() else None
    if path.exists() and not path.is_dir():
        problem = "a file"
    if problem:
        raise InputError(problem, file=path, expected="a folder of results, or a name that is free for one")


def _undone(sweep: "Design", directory: Path) -> list[str]:
    """Return a line about what a run that succeeded has not made, as after a dry run that a profile asks for.

    Empty if all is made.
    """
    from sweeplib.engine.storage.records.artefacts import PAGE, stale_outputs
    from sweeplib.engine.storage.records.stage_records import done_path

    stages = (*(f"simulate.{name}" for name in sweep.runs), "finalise")
    outputs = [*(done_path(directory, stage) for stage in stages), directory / PAGE]
    stale = stale_outputs(directory, sweep, remember=False, count_failed=False)
    undone = [*map(str, stale), *(str(path) for path in outputs if not path.exists())]
    problem = "Snakemake was told to do less than all, as by `dry-run` in a profile; not done"
    return [f"{problem}: {', '.join(undone)}"] if undone else []


def _followed(run: Mapping[str, Any], directory: Path) -> tuple[int, dict[str, Any]]:
    """Run Snakemake and show its jobs; return the exit status, after saying what failed, and `at_the_end`.

    run : what `prepared` returns. The last dict is empty if Snakemake failed.
    """
    from sweeplib.commands.screen import view
    from sweeplib.commands.state import RunState, Stage
    from sweeplib.engine.storage.records.stage_records import WHOLE, stage_records

    titled = tuple(Stage(stage["title"], tuple(stage["jobs"])) for stage in run["stages"])
    earlier, log = stage_records(directory), directory / LOG

    def state(over: str = "") -> RunState:
        """Return the present state of the run: the jobs whose records have changed since its start."""
        now = {name: job for name, job in stage_records(directory).items() if name != WHOLE}
        jobs_of_run = {name: job for name, job in now.items() if job != earlier.get(name)}
        return RunState(titled, jobs_of_run, time.time(), over)

    with view(run["name"], f"started; log: {log}") as display:
        # the log has earlier runs before this byte
        before = log.stat().st_size if log.exists() else 0
        status = run_snakemake(run["command"], log, lambda: display.update(state()))
        report = state().jobs.get("report")
        ended = {} if status else (report and report.at_the_end) or _at_the_end(directory)
        undone = ended.get("undone", [])
        last = state("failed" if status or undone else "ok")
        display.update(last)
    if status or undone:
        _say_what_failed(last, undone, log, before)
    return 2 if status == 2 else int(bool(status or undone)), ended


def _say_what_failed(state: "RunState", undone: list[str], log: Path, before: int) -> None:
    """Write the problems of the stages and what is `undone`, or else the last lines in the log; then its path.

    before : the size of the log before this run.
    """
    problems = [f"{stage.title}: {problem}" for stage in state.stages for problem in state.problems(stage)] + undone
    if not problems:
        with open_bytes(log) as file:
            file.seek(before)
            lines = file.read().decode("utf-8", "replace").splitlines()
        problems = [line for line in lines if line.strip()][-LAST_LINES:]
    echo("\n".join([*problems, f"the log: {log}"]), errors=True)


def _waiting(text: str) -> AbstractContextManager[Any]:
    """Return a context that shows on a terminal that something takes a while."""
    from rich.text import Text

    target = console(errors=True)
    return target.status(Text(text)) if target.is_terminal else nullcontext()


def simulate(
    sweep: "Design",
    directory: Path,
    dynamics: Collection[str] | None = None,
    *,
    workers: int | None = None,
    progress: bool = True,
    **options: Any,
) -> "dict[str, DynamicsSummary]":
    """Plan a sweep unless that is done, and run it, with its rounds if all `dynamics` are to run; return the summaries.

    The arguments and `options` are those of `run_sweep`.
    """
    from sweeplib.engine.code.plugins import load_plugins
    from sweeplib.engine.execution.plan import write_missing_plan

    load_plugins(sweep.plugins)  # refuses code that has changed since it was imported
    write_missing_plan(sweep, directory, dynamics, workers=workers, progress=progress)
    options |= {"workers": workers, "progress": progress}
    if sweep.questions and (dynamics is None or set(dynamics) == set(sweep.runs)):
        from sweeplib.analysis.answers import run_rounds

        return run_rounds(sweep, directory, **options)
    from sweeplib.engine.execution.run import run_sweep

    return run_sweep(sweep, directory, dynamics, **options)
