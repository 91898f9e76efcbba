"""Child processes: what they may import, and how they end with this process."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker

import psutil


@contextmanager
def nothing_imported_from_here() -> Iterator[None]:
    """A context in which a new Python process does not look for modules in the working directory."""
    with environment("PYTHONSAFEPATH", "1"):
        yield


@contextmanager
def script_not_imported() -> Iterator[None]:
    """A context in which processes that multiprocessing spawns do not import the script that runs here.

    Otherwise a script without `if __name__ == "__main__":` would run again in each worker.
    """
    main = sys.modules["__main__"]
    before = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
    # decisions: The script of a spawning process is hidden from its children
    main.__spec__ = None
    main.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(main, name, value)


@contextmanager
def no_interrupts_beyond_here() -> Iterator[None]:
    """A context in which new threads, and the processes that they start, never receive Ctrl-C.

    A terminal sends Ctrl-C to all processes at once, and each would print a traceback; only the main thread of the
    first process shall react. Multiprocessing's resource tracker is started beforehand, because starting it unblocks
    signals, and its warnings are silenced.
    """
    with environment("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning"):
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """A context in which an environment variable has a value; the last of several threads' contexts restores it."""
    with _changing:
        before, count = _changed.get(name, (os.environ.get(name), 0))
        _changed[name] = before, count + 1
        os.environ[name] = value
    try:
        yield
    finally:
        with _changing:
            before, count = _changed.pop(name)
            if count > 1:
                _changed[name] = before, count - 1
            elif before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before


_changed: dict[str, tuple[str | None, int]] = {}
"""The former value of each environment variable that is set at present, and in how many contexts."""
_changing = threading.Lock()


def descendants() -> list[psutil.Process]:
    """Return the direct and indirect child processes of this process.

    Multiprocessing's resource trackers are left out: they end by themselves.
    """
    return [process for process in psutil.Process().children(recursive=True) if not _tracks_resources(process)]


def with_descendants(pid: int) -> list[psutil.Process]:
    """Return a process and its direct and indirect child processes; none if it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _tracks_resources(process: psutil.Process) -> bool:
    """Return whether a process is multiprocessing's resource tracker."""
    try:
        return any("multiprocessing.resource_tracker" in word for word in process.cmdline())
    except psutil.Error:
        return False


def end(processes: list[psutil.Process], grace: float = 0.0) -> None:
    """End processes and wait until they are gone; with a `grace` in seconds they are first asked to terminate."""
    if grace:
        for process in processes:
            with suppress(psutil.Error):
                process.terminate()
        processes = _still_running(processes, grace)
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    _still_running(processes, 1.0)


def _still_running(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return the processes that still run after some seconds at most; a zombie, awaited by its parent, does not."""
    until = time.monotonic() + seconds
    while True:
        # takes note of children that have ended
        _, processes = psutil.wait_procs(processes, 0)
        processes = [process for process in processes if _is_running(process)]
        if not processes or time.monotonic() >= until:
            return processes
        time.sleep(0.01)


def _is_running(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
