"""The messages of the workflow on the terminal: one line per job, one for an early end. All messages are in its log."""

import atexit
import logging
import re
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

from sweeplib.engine.process.children import descendants, end
from sweeplib.engine.process.command import GOES_ON, INTERRUPTED
from sweeplib.engine.process.interrupts import ending, silence, watch
from sweeplib.engine.process.terminal import echo

CHATTER = (
    "Assuming unrestricted",
    "Building DAG",
    "Exiting because a job execution failed",
    "Execute ",
    "Select jobs to execute",
    "Shutting down",
    "Terminating processes on user request",
    "Using shell",
    "Will exit after finishing",
    "WorkflowError:\nAt least one job did not complete",
    "host: ",
)
"""The beginnings of Snakemake's messages that are not shown."""
JOB_ERRORS = ("job_error", "group_error")
"""The events of messages about a job that failed, whose script has told why."""
TOLD = (1, 2)
"""The exit statuses of a script that has already reported its error."""
_DIED = re.compile(r"CalledProcessError .*/(\w+)\.smk.*(?:exit status (\d+)|died with <Signals.\w+: (\d+)>)", re.DOTALL)
"""Snakemake's message that a script failed: the rule, and the exit status or the signal's number."""


class Messages(logging.Filter):
    """A filter for Snakemake's messages that keeps those that are useful to a reader."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is shown. The message that a script was killed is replaced by a one-line message."""
        text, event = str(record.msg), getattr(record, "event", None)
        if text.startswith(CHATTER) or getattr(event, "value", None) in JOB_ERRORS:
            return False
        died = _DIED.search(text)
        if died is None:
            return True
        rule, status, number = died.groups()
        if number or int(status) not in TOLD:
            sys.stderr.write(f"{rule}: its process {_end_by(int(number or 0) or int(status) - 128)}; {GOES_ON}\n")
        return False


def _end_by(number: int) -> str:
    """Return how a script ended: by the signal `number`, if there is one, else with an exit status of 128 more."""
    if number not in set(signal.Signals):
        return f"ended with exit status {number + 128}"
    why = ", as the system does when it is out of memory" if number == signal.SIGKILL else ""
    return f"was ended by {signal.Signals(number).name}{why}"


def install(logger: logging.Logger) -> None:
    """Filter the messages of Snakemake's `logger`, unless it is verbose, and handle interrupts.

    On an interrupt this process ends with all its children; this requires a call from the main thread.
    """
    if logger.level > logging.DEBUG:
        for handler in logger.handlers:
            if not isinstance(handler, logging.FileHandler):
                handler.addFilter(Messages())
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _on_signal)
        watch(_end)


def _on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    """Raise KeyboardInterrupt, after which nothing is printed: the handler of Ctrl-C."""
    silence()
    raise KeyboardInterrupt


def _end(number: int) -> NoReturn:
    """End the child processes, then this process; its main thread gets a moment to clean up."""
    silence()
    finish = ending(lambda: echo(INTERRUPTED, errors=True))
    # Python's own end and this thread both call it
    atexit.register(finish, number)
    end(descendants(), grace=1.0)
    time.sleep(0.5)
    finish(number)
