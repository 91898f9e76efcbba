"""A time limit for code that may never return to Python: when it expires, the process ends.

`faulthandler` keeps the time in a thread of its own, which does not need the interpreter lock. The clock stands still
while numba compiles, in whichever thread.
"""

import faulthandler
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from sweeplib.engine.process.work_time import COMPILATION

ENDED = "Timeout ("
"""The first characters of the description that a process leaves when its time has expired."""

SOONEST = 0.001
"""Seconds from now to which the timer is set at least, for a deadline that has passed."""
LATEST = 1e9
"""Seconds from now to which the timer is set at most, as systems have no later times."""


@dataclass(eq=False)
class _Deadline:
    """When the time of a thread is up, as the times of `time.monotonic` are, and where its stack is written then.

    begun : when it was set.
    """

    begun: float
    at: float
    report: IO[Any]


class _Clock:
    """The only timer of this process, set to the earliest of the deadlines of its threads.

    It listens to the events of numba (`notify`), if that has been imported: a function need not import it, which takes
    a while.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._deadlines = set[_Deadline]()
        # by thread, the compilations that are under way, one within the other; and when the first of them began
        self._compiling, self._since = Counter[int](), 0.0
        self._events: Any = None  # numba's module of events

    def notify(self, event: Any) -> None:
        """Stop the clock as a compilation of this thread begins, and restart it as the last one ends: numba calls this.

        All deadlines are later by the time between.
        """
        with self._lock:
            thread, now = threading.get_ident(), time.monotonic()
            if event.is_start:
                self._since = self._since if self._compiling else now
                self._compiling[thread] += 1
            # of a compilation that was under way when the first deadline was set only the end is heard
            elif event.is_end and thread in self._compiling:
                self._compiling[thread] -= 1
                if not self._compiling[thread]:
                    del self._compiling[thread]
                for deadline in [] if self._compiling else self._deadlines:
                    deadline.at += now - max(self._since, deadline.begun)
            self._set()

    def begin(self, seconds: float, report: IO[Any]) -> _Deadline:
        """Set a deadline after some seconds, and return it."""
        with self._lock:
            if not self._deadlines:
                self._events = sys.modules.get("numba.core.event")
                if self._events is not None:
                    # numba asks for a Listener; this class is none, as it may be used without numba
                    self._events.Listener.register(_Clock)
                    self._events.register(COMPILATION, self)
            begun = time.monotonic()
            deadline = _Deadline(begun, begun + seconds, report)
            self._deadlines.add(deadline)
            self._set()
            return deadline

    def end(self, deadline: _Deadline) -> None:
        """Remove a deadline."""
        with self._lock:
            self._deadlines.remove(deadline)
            if not self._deadlines:
                if self._events is not None:
                    self._events.unregister(COMPILATION, self)
                self._compiling.clear()  # the ends of compilations are not heard any more
            self._set()

    def _set(self) -> None:
        """Set the timer of this process to the earliest deadline; stop it if there is none, or numba compiles."""
        faulthandler.cancel_dump_traceback_later()
        if self._deadlines and not self._compiling:
            first = min(self._deadlines, key=lambda deadline: deadline.at)
            seconds = min(max(SOONEST, first.at - time.monotonic()), LATEST)
            faulthandler.dump_traceback_later(seconds, exit=True, file=first.report)


_clock = _Clock()


@contextmanager
def time_limit(seconds: float | None, report: IO[Any]) -> Iterator[None]:
    """A context that ends this process after `seconds` (None: never) and writes the stack to `report`.

    report : a file of the system, which C code writes to by its descriptor.
    """
    if seconds is None:
        yield
        return
    deadline = _clock.begin(seconds, report)
    try:
        yield
    finally:
        _clock.end(deadline)
