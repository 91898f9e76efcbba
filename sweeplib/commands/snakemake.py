"""Snakemake as a child process that is quiet: its messages go to a file, and it ends with this process.

`words` are the program and the arguments of a command.
"""

import errno
import importlib.util
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

import yaml

from sweeplib.engine.files.regular_files import file_text, open_to_append
from sweeplib.engine.process import job
from sweeplib.engine.process.children import descendants, end
from sweeplib.engine.process.command import command, end_without_collection
from sweeplib.engine.process.granted import granted_processors
from sweeplib.engine.process.interrupts import exit_now, exit_status
from sweeplib.errors import InputError, SweeplibError

PACKAGE = Path(__file__).parents[1]
"""The folder of the package `sweeplib`."""
SECONDS_BETWEEN_LOOKS = 0.2
PATIENCE = 1.4
"""Seconds that Snakemake has to end its jobs after an interrupt."""
MOST_PRINTED = 2**28
"""Bytes that Snakemake and its jobs may print: a plugin that prints without end would fill the disk."""


def workflow_folder() -> Path:
    """Return the folder that has the Snakefile and `workflow/`: in the installed package, or the clone's."""
    installed = PACKAGE / "workflow_files"
    return installed if installed.is_dir() else PACKAGE.parent


def profile_folder(profile: str) -> Path:
    """Return the folder of a profile, the name of one of sweeplib's or a path, `~` expanded; InputError for another."""
    profiles = workflow_folder() / "workflow" / "profiles"
    for folder in (profiles / profile, Path(profile).expanduser()):
        if (file := folder / "config.yaml").is_file():
            _refuse_no_processors(file)
            return folder
    names = sorted(path.name for path in profiles.iterdir() if path.is_dir())
    expected = "the folder of a Snakemake profile, or " + ", ".join(names)
    raise InputError("no such profile", key="--profile", value=profile, expected=expected)


def _refuse_no_processors(profile: Path) -> None:
    """Raise InputError for a profile that gives Snakemake no processors: it would wait for ever."""
    for key, value in _content(profile).items():
        if key in ("cores", "jobs") and re.fullmatch("0+|-.*", str(value)):
            raise InputError("no processors for jobs", file=profile, key=key, value=value, expected="1 or more")


def _content(profile: Path) -> dict[Any, Any]:
    """Return the settings in the file of a profile; none of a file of which Snakemake says what is wrong."""
    with suppress(yaml.YAMLError, UnicodeDecodeError):
        content = yaml.safe_load(file_text(profile))
        return content if isinstance(content, dict) else {}
    return {}


def snakemake_command(config: Path, results: Path, profile: str, workers: int | None = None) -> list[str]:
    """Return the command that runs the workflow for a sweep's file; InputError for a profile or path it cannot take.

    Snakemake's settings are those of the profile alone: none are taken from the working folder, from the folder of the
    Snakefile, or from the environment.

    workers : the number of workers that are to run on this machine, None if they run elsewhere.
    """
    files, folder = workflow_folder(), profile_folder(profile)
    cores = _content(folder / "config.yaml").get("cores")
    words = [*job.command(f"{__name__}:start"), "--snakefile", str(files / "Snakefile")]
    words += ["--profile", str(folder), "--workflow-profile", "none", "--no-hooks", "--directory", "."]
    if workers is not None and workers > granted_processors() and cores == "all":
        # Snakemake would start as many workers as there are processors; cases may wait for something else
        words += ["--cores", str(workers)]
    return [*words, "--config", f"sweep={_setting(config)}", f"results={_setting(checked_results(results))}"]


def checked_results(results: Path) -> Path:
    """Return the folder of results, `~` expanded; InputError for braces, which Snakemake takes for wildcards."""
    if "{" in str(results) or "}" in str(results):
        raise InputError("braces in the folder of results", value=str(results), expected="a path without { and }")
    return results.expanduser()


def refuse_without_snakemake() -> None:
    """Raise InputError if Snakemake is not installed, as where a package that it needs has no wheel for this Python."""
    if importlib.util.find_spec("snakemake") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        expected = "`python -m pip install snakemake` (on 3.14 with a C compiler); or sweeplib.Sweep, without it"
        raise InputError(f"Snakemake, which runs the stages, is not installed for Python {version}", expected=expected)


def check_working_folder() -> None:
    """Raise InputError if Snakemake cannot write its records, `.snakemake` in the working folder."""
    records = Path(".snakemake")
    try:
        records.mkdir(exist_ok=True)
        # decisions: Limits are found by trying
        for folder in (records, *records.glob("*/")):
            tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _unwritable(records, str(error.strerror)) from None


def refuse_read_only_folder() -> None:
    """Raise InputError if the working folder cannot get Snakemake's records, before anything is written elsewhere."""
    if not os.access(".", os.W_OK) and not os.access(".snakemake", os.W_OK):
        raise _unwritable(Path(), os.strerror(errno.EACCES))


def _unwritable(folder: Path, why: str) -> InputError:
    """Return the error of a folder of records that cannot be written."""
    expected = "a working folder that you may write: change to another, and name FILE and --results from there"
    return InputError(f"cannot be written ({why})", file=folder.absolute(), expected=expected)


def run_snakemake(words: list[str], log: Path, look: Callable[[], None]) -> int:
    """Run a `snakemake_command` to its end; return its exit status.

    Its messages are appended to `log`, and `look` is called several times a second. If this call is left by an
    exception, such as an interrupt, Snakemake and its jobs end before. SweeplibError if they print too much.
    """
    with _logged(log, words) as output, _started(words, output) as process:
        largest = os.fstat(output).st_size + MOST_PRINTED
        while process.poll() is None:
            look()
            if os.fstat(output).st_size > largest:
                raise SweeplibError(f"{log}: over {MOST_PRINTED / 1e6:.0f} MB were printed, perhaps by a plugin")
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_BETWEEN_LOOKS)
        return process.returncode


def start(*arguments: str) -> None:
    """Run Snakemake in this process, as `snakemake_command` has it started; it ends with the process that did so.

    An error before Snakemake's start is reported in one line.
    """
    end_without_collection()
    with command():
        end_with_parent()
        sys.argv = ["snakemake", *arguments]
        try:
            runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
        except SystemExit as ended:  # timers of Snakemake would go on for a second
            exit_now(exit_status(ended))


def end_with_parent() -> None:
    """End this process like SIGTERM when its standard input is closed, which the death of its parent does."""

    def wait() -> None:
        """Read the standard input to its end, then send this process SIGTERM."""
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True, name="parent").start()


def _setting(path: Path) -> str:
    """Return a path in a spelling that Snakemake's --config reads as text: `2024` is a number, `./2024` is not."""
    for text in (str(path), f"./{path}"):
        if _is_text(text):
            return text
    expected = "a path without quotes, `: `, ` #` or brackets, which Snakemake reads as YAML"
    raise InputError("not a path that Snakemake can be given", value=str(path), expected=expected)


def _is_text(value: str) -> bool:
    """Return whether Snakemake's --config leaves a value as it is.

    It strips quotes, and takes the first that fits of: a number, True or False, YAML, the text.
    """
    if value in ("True", "False") or value != value.strip("\"'"):
        return False
    with suppress(ValueError):
        float(value)
        return False
    with suppress(yaml.YAMLError):
        return bool(yaml.load(value, Loader=yaml.BaseLoader) == value)
    # what is no YAML stays
    return True


@contextmanager
def _logged(log: Path, words: list[str]) -> Iterator[int]:
    """Return a context with the descriptor of a log, open to append, into which the time and a command were written."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open_to_append(log) as file:
        file.write(f"\n{datetime.now().astimezone().isoformat(timespec='seconds')} {shlex.join(words)}\n")
        file.flush()
        yield file.fileno()


@contextmanager
def _started(words: list[str], output: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Return a context with the process of a command, which an exception in the context ends, with its children.

    It is in a group of its own, which a terminal's Ctrl-C does not reach. Its standard input is a pipe to this process.
    """
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=output, stderr=output, process_group=0)
    try:
        yield process
    except BaseException:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        end(descendants())
        raise
    finally:
        cast("IO[bytes]", process.stdin).close()
