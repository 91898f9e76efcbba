"""Environment variables and limits with which no sweep can run: each is refused in one line."""

import os
import re
import resource
import subprocess
import threading
from contextlib import suppress

from sweeplib.errors import InputError

_OF_NUMBA = {
    "NUMBA_DISABLE_JIT": (r"[+-]?0*[1-9]\d*", "the kernels of sweeplib must be compiled", "0, or no such variable"),
    "NUMBA_NUM_THREADS": (r"-\d+|\+?0+", "not a number of threads", "1 or more, or no such variable"),
}
"""By variable: the values with which numba cannot compile or be imported, what is wrong with them, what is expected."""

PROCESSES = 60
"""The fewest processes and threads with which a sweep runs: its stages, Snakemake, two workers, and their threads."""


def refuse_environment() -> None:
    """Raise InputError for a variable with which numba, which is imported later, would not work."""
    for name, (refused, problem, expected) in _OF_NUMBA.items():
        if re.fullmatch(refused, os.environ.get(name, "").strip()):
            raise _refusal(name, problem, expected)


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
    """Raise InputError if this user or container may not start the processes of a sweep; as many threads are tried."""
    done = threading.Event()
    threads = [threading.Thread(target=done.wait, daemon=True) for _ in range(PROCESSES)]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        given, expected = resource.getrlimit(resource.RLIMIT_NPROC)[0], f"{PROCESSES} processes more than already run"
        raise InputError("too few processes may run", key="ulimit -u", value=given, expected=expected) from None
    finally:
        done.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _refusal(name: str, problem: str, expected: str) -> InputError:
    return InputError(problem, key=f"environment variable {name}", value=os.environ[name], expected=expected)
