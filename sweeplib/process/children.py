"""Processes that this one starts: what they may import, and how they end with it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker

import psutil


@contextmanager
def nothing_imported_from_here() -> Iterator[None]:
    """A context within which a Python that is started does not look for modules in the working directory."""
    with _environment("PYTHONSAFEPATH", "1"):
        yield


@contextmanager
def no_interrupts_beyond_here() -> Iterator[None]:
    """A context: threads that begin within it, and the processes that they start, never see a Ctrl-C.

    It reaches all processes of a terminal at once, and each would show where it was; what to do about it is for the
    main thread of the first to decide. Multiprocessing's account of what is to be cleaned up is begun before, since
    that lets signals through again, and does its work without a word.
    """
    with _environment("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning"):
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """A context within which a variable of the environment has this value."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def descendants() -> list[psutil.Process]:
    """The processes that this one started, and those that these started.

    Without those in which multiprocessing keeps an account of what is to be cleaned up: they end by themselves.
    """
    return [process for process in psutil.Process().children(recursive=True) if not _tracks_resources(process)]


def _tracks_resources(process: psutil.Process) -> bool:
    try:
        return any("multiprocessing.resource_tracker" in word for word in process.cmdline())
    except psutil.Error:
        return False


def end(processes: list[psutil.Process], grace: float = 0.0) -> None:
    """End processes: with a `grace` of some seconds they are asked to first. They are gone at the return."""
    if grace:
        for process in processes:
            with suppress(psutil.Error):
                process.terminate()
        _, processes = psutil.wait_procs(processes, grace)
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, 1.0)
