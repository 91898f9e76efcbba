"""A queue on this machine with the commands of the batch systems, for tests."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.engine.execution.clusters.job_queue import JobQueue

COMMANDS = ("sbatch", "scancel", "squeue", "qsub", "qdel", "qstat", "bsub", "bkill", "bjobs")
PROJECT = Path(__file__).parents[2]


class Queue:
    """The jobs of a queue in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def submitted(self) -> list[str]:
        """Return the texts of all jobs so far, in their order."""
        paths = sorted(self.folder.glob("*.job"), key=lambda path: int(path.stem))
        return [path.read_text() for path in paths]

    def running(self) -> set[str]:
        """Return the numbers of the jobs that run."""
        return set(re.findall(r"\d+", subprocess.check_output(["squeue"], text=True)))

    def refuse(self, reason: str) -> None:
        """Refuse all further jobs."""
        (self.folder / "refused").write_text(reason)

    def silence(self) -> None:
        """Do not list jobs any longer."""
        (self.folder / "silent").touch()


def job_queue(kind: str = "slurm", **settings: Any) -> JobQueue:
    """Return settings of a kind of job queue whose jobs run on this machine and find the tests."""
    given: dict[str, Any] = {"jobs": 1, "memory": "1GB", "walltime": "01:00:00", "block_size": 2}
    given |= {"interface": "lo", "prologue": [f"export PYTHONPATH={PROJECT}"], "dashboard_address": ":0"}
    return CLUSTERS[kind](**given | settings)


@contextmanager
def queue(folder: Path) -> Iterator[Queue]:
    """Return a queue whose commands this process and its children find; its jobs end with the context."""
    (folder / "bin").mkdir(parents=True)
    text = Path(__file__).with_name("queue.py").read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}")
    for command in COMMANDS:
        (folder / "bin" / command).write_text(text)
        (folder / "bin" / command).chmod(0o755)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", str(folder / "bin"), prepend=":")
        environment.setenv("FAKE_QUEUE", str(folder))
        made = Queue(folder)
        try:
            yield made
        finally:
            (folder / "silent").unlink(missing_ok=True)
            subprocess.run(["scancel", *made.running()], check=True)
