"""A time limit for code that may never return to Python: when it expires, the process ends.

`faulthandler` keeps the time in a thread of its own, which does not need the interpreter lock. The clock stands still
while numba compiles.
"""

import faulthandler
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

ENDED = "Timeout ("
"""The first characters of the description that a process leaves when its time has expired."""

COMPILATION = "numba:compiler_lock"
"""numba's event that begins and ends with a compilation."""
SOONEST = 0.001
"""Seconds from now to which the timer is set at least, for a deadline that has passed."""


class _Clock:
    """The only timer of this process, set to the earliest of the deadlines of its threads.

    It listens to the events of numba (`notify`, `on_start`, `on_end`), if that has been imported: a function need not
    import it, which takes a while.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._deadlines: dict[object, float] = {}  # by token, as times of `time.monotonic`
        self._compiling, self._since = 0, 0.0  # compilations that are under way, and when the first of them began
        self._report: IO[Any] | None = None  # where the stack is written when a deadline has passed
        self._events: Any = None  # numba's module of events

    def notify(self, event: Any) -> None:
        """Stop or restart the clock at an event of numba."""
        if event.is_start:
            self.on_start(event)
        elif event.is_end:
            self.on_end(event)

    def begin(self, seconds: float, report: IO[Any]) -> object:
        """Set a deadline after some seconds; return the token with which it is removed."""
        with self._lock:
            if not self._deadlines:
                self._events = sys.modules.get("numba.core.event")
                if self._events is not None:
                    # numba asks for a Listener; this class is none, as it may be used without numba
                    self._events.Listener.register(_Clock)
                    self._events.register(COMPILATION, self)
            token = object()
            self._deadlines[token] = time.monotonic() + seconds
            self._report = report
            self._set()
            return token

    def end(self, token: object) -> None:
        """Remove a deadline."""
        with self._lock:
            del self._deadlines[token]
            if not self._deadlines:
                if self._events is not None:
                    self._events.unregister(COMPILATION, self)
                self._compiling = 0  # the ends of compilations are not heard any more
            self._set()

    def on_start(self, event: Any) -> None:
        """Stop the clock as a compilation begins."""
        with self._lock:
            self._compiling += 1
            if self._compiling == 1:
                self._since = time.monotonic()
                self._set()

    def on_end(self, event: Any) -> None:
        """Restart the clock as the last compilation ends: all deadlines are later by the time it took."""
        with self._lock:
            self._compiling = max(0, self._compiling - 1)
            if self._compiling == 0:
                compilation = time.monotonic() - self._since
                self._deadlines = {token: deadline + compilation for token, deadline in self._deadlines.items()}
                self._set()

    def _set(self) -> None:
        """Set the timer of this process to the earliest deadline; stop it if there is none, or numba compiles."""
        faulthandler.cancel_dump_traceback_later()
        if self._deadlines and not self._compiling and self._report is not None:
            seconds = max(SOONEST, min(self._deadlines.values()) - time.monotonic())
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._report)


_clock = _Clock()


@contextmanager
def time_limit(seconds: float | None, report: IO[Any]) -> Iterator[None]:
    """A context that ends this process after `seconds` (None: never) and writes the stack to `report`.

    report : a file of the system, which C code writes to by its descriptor.
    """
    if seconds is None:
        yield
        return
    token = _clock.begin(seconds, report)
    try:
        yield
    finally:
        _clock.end(token)
