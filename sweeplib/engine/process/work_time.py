"""Seconds that this thread was at work: neither waiting for a processor nor compiling."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

from sweeplib.engine.files.regular_files import file_text

SCHEDULED = Path("/proc/thread-self/schedstat")
"""Nanoseconds that this thread has run, and those that it has waited for a processor."""

COMPILATION = "numba:compiler_lock"
"""numba's event of compilations, of links and callbacks, and of loading; `numba:compile` lacks a third of the time."""
MOST_SLOWDOWN = 30.0
"""The largest slowdown by which limits are extended."""
TRIES = 5
"""How often the time is read at most until the thread has not waited for a processor in between."""


class _Compilation(threading.local):
    """The time in which this thread has compiled by numba since the process was asked for the first time.

    seconds, elapsed : of the processor, and by the clock.
    What another thread compiles is not taken off this one's work.
    """

    listens = False  # of all threads
    # of a thread: how many compilations are under way, one within another, and when the outermost began
    seconds, elapsed, depth, since, begun = 0.0, 0.0, 0, 0.0, 0.0

    def listen(self) -> None:
        """Listen to the events of numba, if that has been imported: a function need not, and the import takes long."""
        events = sys.modules.get("numba.core.event")
        if events is not None and not _Compilation.listens:
            _Compilation.listens = True
            # numba asks for a Listener; this class is none, as it may be used without numba
            events.Listener.register(_Compilation)
            events.register(COMPILATION, self)

    def notify(self, event: Any) -> None:
        """Take account of a compilation that begins or ends, which may be within another one: numba calls this."""
        if event.is_start:
            self.depth += 1
            if self.depth == 1:
                self.since, self.begun = time.thread_time(), time.monotonic()
        # of one that was under way when this began to listen, only the end is heard
        elif event.is_end and self.depth:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.thread_time() - self.since
                self.elapsed += time.monotonic() - self.begun


_compilation = _Compilation()


def seconds_compiled() -> float:
    """Return the processor seconds in which this thread has compiled; a difference of two tells those in between."""
    _compilation.listen()
    return _compilation.seconds


def seconds_but_compilation() -> float:
    """Return a time that stands still while numba compiles, by the clock of `time.monotonic`."""
    _compilation.listen()
    return time.monotonic() - _compilation.elapsed


def seconds_at_work() -> float:
    """Return a time that stands still while numba compiles and, where the system tells, others have the processor."""
    waited = _seconds_scheduled()[1]
    for _ in range(TRIES):
        now, before = time.perf_counter(), waited
        waited = _seconds_scheduled()[1]
        # a thread that has waited in between has another wait than that before `now`
        if waited == before:
            break
    return now - waited - seconds_compiled()


def slowdown() -> float:
    """Return how many times as long as its work this thread has taken so far, since others had the processor."""
    run, waited = _seconds_scheduled()
    return min(1.0 + waited / run, MOST_SLOWDOWN) if run else 1.0


def _seconds_scheduled() -> tuple[float, float]:
    """Return the seconds that this thread has run, and those that it has waited for a processor; 0 if not known."""
    try:
        run, waited = file_text(SCHEDULED).split()[:2]
        return 1e-9 * int(run), 1e-9 * int(waited)
    except (OSError, ValueError):
        return 0.0, 0.0
