"""Snakemake in forks of one process that has imported the libraries but nothing of sweeplib: saves half of a dry run.

`python -m tests.workflow.forks` reads a line of JSON per run, [folder, root, arguments, file of output, file of
errors], and answers with its exit status.
"""

import importlib
import json
import os
import runpy
import subprocess
import sys
import traceback
from pathlib import Path
from typing import IO, NoReturn

LIBRARIES = (
    "snakemake.cli",
    "snakemake.report.html_reporter",
    "docutils.parsers.rst",
    "pydantic.main",
    "pydantic.root_model",
    "numba",
    "scipy.special",
    "xarray",
)
ROOT = Path(__file__).parents[2]


class Forks:
    """The process that forks; its children import sweeplib from the tree that they are given."""

    def __init__(self) -> None:
        self._process = _started()

    def snakemake(self, folder: Path, root: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in a folder to its end, with the sweeplib of the tree `root`."""
        files = [root / f".{name}" for name in ("output", "errors")]
        if self._process.poll() is not None:
            self._process = _started()
        try:
            _pipe(self._process.stdin).write(json.dumps([str(folder), str(root), arguments, *map(str, files)]) + "\n")
            code = int(_pipe(self._process.stdout).readline())
        except BaseException:  # a test over its time: the answer would be taken for that to the next question
            self._process.kill()
            self._process.wait()
            raise
        output, errors = (file.read_text() for file in files)
        return subprocess.CompletedProcess(["snakemake", *arguments], code, output, errors)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _started() -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.workflow.forks"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _run(folder: str, root: str, arguments: list[str], output: str, errors: str) -> NoReturn:
    """Run Snakemake as `python -m snakemake` in this folder with PYTHONPATH=root would."""
    os.chdir(folder)
    os.environ["PYTHONPATH"] = root
    sys.path[:] = [folder, root, *(path for path in sys.path if path != str(ROOT))]
    for stream, file in ((1, output), (2, errors)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, stream)
        os.close(opened)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["snakemake", *arguments]
    code = 0
    try:
        runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve() -> None:
    for library in LIBRARIES:
        importlib.import_module(library)
    assert not [name for name in sys.modules if name.startswith("sweeplib")]
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(*json.loads(line))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
