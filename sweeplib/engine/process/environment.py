"""The environment of a command: variables and limits with which no sweep can run, and folders for caches.

What no sweep can run with is refused in one line. Other packages keep their caches in a folder of temporary files where
the user's own folders cannot be written, as in containers and batch jobs.
"""

import _thread
import importlib.util
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from sweeplib.engine.files.owners import others_in, private_folder
from sweeplib.errors import InputError

_OF_NUMBA = {
    "NUMBA_DISABLE_JIT": (r"[+-]?0*[1-9]\d*", "the kernels of sweeplib must be compiled", "0, or no such variable"),
    "NUMBA_NUM_THREADS": (r"-\d+|\+?0+", "not a number of threads", "1 or more, or no such variable"),
}
"""By variable: the values with which numba cannot compile or be imported, what is wrong with them, what is expected."""

_PACKAGES = (
    *("click", "dask", "distributed", "matplotlib", "numba", "numpy", "pandas"),
    *("pydantic", "rich", "scipy", "snakemake", "xarray", "yaml", "zarr"),
)
"""What a file of this name in a folder of PYTHONPATH would be imported in the place of."""

ROOM = 2**18
"""Bytes of temporary files that a sweep needs at least."""
PROCESSES = 60
"""The fewest processes and threads with which a sweep runs: its stages, Snakemake, two workers, and their threads."""


def refuse_environment() -> None:
    """Raise InputError for a variable with which numba, or another package that is imported later, would not work."""
    for name, (refused, problem, expected) in _OF_NUMBA.items():
        if re.fullmatch(refused, os.environ.get(name, "").strip()):
            raise _refusal(name, problem, expected)
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        for name in _PACKAGES:
            if (file := Path(folder, f"{name}.py")).is_file():
                problem = f"{file} would be imported in the place of the package {name}"
                raise _refusal("PYTHONPATH", problem, "a path to folders without such a file, or no such variable")


def refuse_shell() -> None:
    """Raise InputError if the file in BASH_ENV ends every bash before its command, as that of each stage."""
    if "BASH_ENV" not in os.environ:
        return
    with suppress(FileNotFoundError):  # without bash, the stages are started by another shell
        done = subprocess.run(["bash", "-c", "exit 0"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            problem = f"a shell that reads this file ends with exit status {done.returncode} before it starts a stage"
            raise _refusal("BASH_ENV", problem, "a file that ends no shell, or no such variable")


def refuse_few_processes() -> None:
    """Raise InputError if this user or container may not start the processes of a sweep; it starts as many threads."""
    done = threading.Event()
    try:
        for _ in range(PROCESSES):
            _thread.start_new_thread(done.wait, ())  # a Thread waits until it runs, .3 s in all on a busy machine
    except RuntimeError:
        limit, expected = resource.getrlimit(resource.RLIMIT_NPROC)[0], f"{PROCESSES} processes more than already run"
        raise InputError("too few processes may run", key="ulimit -u", value=limit, expected=expected) from None
    finally:
        done.set()


def refuse_full_folder() -> None:
    """Raise OSError, which names it, if the folder of temporary files has no room: Snakemake writes its rules there."""
    with suppress(FileNotFoundError):  # no folder: others are looked for later
        folder = tempfile.gettempdir()
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(ROOM))
                file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, folder) from None


def _refusal(name: str, problem: str, expected: str) -> InputError:
    """Return the error for an environment variable with which no sweep can run."""
    return InputError(problem, key=f"environment variable {name}", value=os.environ[name], expected=expected)


CACHES = ".cache"
"""The folder in that of the results that has temporary files where no other folder can be written."""


def caches_in(results: Path) -> None:
    """Let this process and its children keep caches in a private folder if they cannot keep them in the user's.

    These are numba's, if sweeplib's folder cannot be written either, Snakemake's and matplotlib's. The folder is one of
    temporary files, not of results: machine code is executed as it is read, and results may be those of others.
    Temporary files are in the folder of results if no other can be written. A line on standard error says so.
    Commands call it before they import numba.
    """
    is_of_system = _ensure_temporary_folder(results)
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home, and a user that this system does not know
        cache = None
    if cache is not None and _can_be_written(cache):
        _keep_bytecode(cache / "sweeplib")
        return
    # a folder of the system is found again by later commands; otherwise each has one of its own
    folder = private_folder(Path(tempfile.gettempdir())) if is_of_system else None
    folder = folder or Path(tempfile.mkdtemp(prefix="sweeplib-"))
    # a folder with this name was made for sweeplib; a temporary folder that is private itself gets a subfolder
    instead = folder if folder.name.startswith("sweeplib-") else folder / "sweeplib-caches"
    home = {"HOME": instead} if cache is None else {}
    _set_folders(instead, XDG_CACHE_HOME=instead, MPLCONFIGDIR=instead / "matplotlib", **home)
    _keep_bytecode(instead)
    problem = f"{cache} cannot be written" if cache else "this user has no home"
    sys.stderr.write(f"caches are kept in {instead}: {problem}\n")


def _keep_bytecode(folder: Path) -> None:
    """Let this process and its children keep bytecode in a folder if there can be none beside the sources.

    Else each of the processes of a sweep compiles all that it imports. No other user may write there.
    """
    has_bytecode = Path(importlib.util.cache_from_source(__file__)).exists()
    if sys.dont_write_bytecode and sys.pycache_prefix is None and not has_bytecode:
        _set_folders(folder / "bytecode", PYTHONPYCACHEPREFIX=folder / "bytecode")
        sys.pycache_prefix, sys.dont_write_bytecode = str(folder / "bytecode"), False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _ensure_temporary_folder(results: Path) -> bool:
    """Set a folder of temporary files, in that of the results, if there is none; return whether it is the system's."""
    try:
        # the last folder that Python tries is the working one
        return Path(tempfile.gettempdir()) != Path.cwd()
    except FileNotFoundError:
        instead = results.absolute() / CACHES / "tmp"
        _set_folders(instead, TMPDIR=instead)
        sys.stderr.write(f"temporary files are kept in {results / CACHES / 'tmp'}: no other folder can be written\n")
        return False


def _set_folders(folder: Path, **variables: Path) -> None:
    """Make a folder, and set environment variables to it or to folders in it; InputError if others may write there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (why := others_in(folder)) is not None:
        raise InputError(f"caches and temporary files cannot be here: {why}", file=folder, expected="a folder of yours")
    os.environ.update({name: str(path) for name, path in variables.items()})


def _can_be_written(folder: Path) -> bool:
    """Return whether a folder, or the one in which it would be made, can be written."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return existing.is_dir()
    except OSError:
        return False
