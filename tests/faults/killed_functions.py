"""Sweeps of a function that are killed some times on their way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import sweeplib

Process = subprocess.Popen[bytes]


def run_with_kills(
    config: str, results: str, folder: Path, kills: int, wait: Callable[[Process], None], **variables: str
) -> int:
    """Run `sweeplib sweep` in a folder until it ends, and return how often it was killed, at most so many times.

    `wait(process)` returns when the group of processes is to be killed, or when the command has ended.
    """
    environment: Mapping[str, str] = {
        **os.environ, "PYTHONPATH": str(Path(sweeplib.__file__).parents[1]), **variables
    }  # fmt: skip
    killed = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-m", "sweeplib", "sweep", config, "--results", results],
            cwd=folder, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if killed < kills:
            wait(process)
        if killed == kills or process.poll() is not None:
            assert process.wait() == 0
            return killed
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        killed += 1


def sleep_until(condition: Callable[[], bool], process: Process) -> None:
    """Wait until a condition holds, or the process has ended."""
    while process.poll() is None and not condition():
        time.sleep(0.01)
