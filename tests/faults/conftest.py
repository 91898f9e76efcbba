"""The undisturbed run, to which every other run must be equal; finished sweeps, to be damaged."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.cluster import CLUSTERS
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from tests.faults.finished import CONFIG, Done, RegisteredInProcess
from tests.faults.sweeps import PLUGIN, files, troubled_sweep
from tests.in_process import InProcess
from tests.plugged import nothing_left


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of the dataset of an undisturbed run, in one block."""
    directory: Path = tmp_path_factory.mktemp("undisturbed")
    sweep = replace(troubled_sweep(), cluster=InProcess(block_size=128))
    run_sweep(sweep, directory, progress=False)
    return files(finalise(sweep, directory))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Yield a finished sweep."""
    load_plugins([PLUGIN])
    with nothing_left():
        CLUSTERS.register("in_process", RegisteredInProcess)
        config = tmp_path_factory.mktemp("finished") / "verified.yaml"
        config.write_text(CONFIG)
        done = Done(config)
        for command in ("run", "finalise", "analyse"):
            status, said = done.told(command)
            assert status == int(command == "run"), said  # two cases fail
        yield done


@pytest.fixture
def done(finished: Done, tmp_path: Path) -> Done:
    """Return a copy of the finished sweep."""
    copytree(finished.config.parent, tmp_path / "copy", symlinks=True)
    return Done(tmp_path / "copy" / "verified.yaml")


@pytest.fixture
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that takes operations away from a process."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    made = tmp_path_factory.mktemp("lacking") / "lacking.so"
    source = Path(__file__).with_name("lacking.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made
