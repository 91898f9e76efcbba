"""The command `sweeplib` as a user starts it: a process in a session of its own, as in a terminal."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.faults.sweeps import wait_until

SWEEPLIB = str(Path(sys.executable).with_name("sweeplib"))
SWEEP = f"""\
name: slow
problem: {{p: 2, k: 1, d: 50, Delta: 0, activation: square}}
grid: {{gamma: [0.1, 0.2]}}
seeds: 200
dynamics: [troubled]
times: [1, 2]
thresholds: [0.1]
plugins: [{Path(__file__).with_name("troubled.py")}]
cluster: {{kind: local, workers: 1, block_size: 8, dashboard_address: ":0"}}
"""
LONGEST = 5.0
"""Seconds after which a command that was interrupted should long have ended, on a machine that is busy."""


@dataclass(frozen=True)
class Started:
    """A running command; its output is in the file `said`."""

    process: subprocess.Popen[bytes]
    said: Path

    def until_it_says(self, words: str) -> None:
        """Wait until these words, a regular expression, are in the output."""
        wait_until(lambda: re.search(words, self.said.read_text()) or self.process.poll() is not None)
        assert re.search(words, self.said.read_text()), self.said.read_text()

    def interrupted(self, number: int, *, whole_session: bool = False) -> list[str]:
        """Return the lines of output after a signal has ended the command and all its processes."""
        started = time.monotonic()
        if whole_session:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        self.process.wait(60)
        assert time.monotonic() - started < LONGEST
        wait_until(lambda: not self.left(), LONGEST)
        return self.said.read_text().splitlines()

    def left(self) -> list[psutil.Process]:
        """Return the living processes of the session, without zombies."""
        return [process for process in psutil.process_iter() if self._is_of_this(process)]

    def _is_of_this(self, process: psutil.Process) -> bool:
        try:
            return os.getsid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    def killed(self) -> None:
        """End the processes that a failed test may have left."""
        for process in self.left():
            os.kill(process.pid, signal.SIGKILL)
        self.process.wait()


def started(command: list[str], folder: Path) -> Started:
    """Return a command started in a folder."""
    said = folder / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, start_new_session=True)
    return Started(process, said)
