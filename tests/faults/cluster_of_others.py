"""A cluster that somebody else started, and that a sweep finds by a file."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.faults.sweeps import wait_until

PROJECT = Path(__file__).parents[2]


class Cluster:
    """A scheduler and workers that somebody started, as processes that find each other by a file.

    What they say is in `scheduler.log` and `worker.log` beside that file.
    """

    def __init__(self, folder: Path, processes: ExitStack) -> None:
        self.file, self._processes = folder / "scheduler.json", processes
        self.file.unlink(missing_ok=True)
        own = ("--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", self.file)
        self.scheduler = self._start("scheduler", *own)
        wait_until(self.file.exists)

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker."""
        own = ("--scheduler-file", self.file, "--no-nanny", "--nthreads", "1", "--no-dashboard")
        return self._start("worker", *own, *options)

    def _start(self, kind: str, *arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", kind, *map(str, arguments)]
        with self.file.with_name(f"{kind}.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=PROJECT, stderr=log)
        self._processes.callback(process.wait)
        self._processes.callback(process.kill)
        return process
