"""The undisturbed run, to which every other run must be equal."""

from dataclasses import replace
from pathlib import Path

import pytest

from sweeplib.execution.run import run_sweep
from sweeplib.storage.finalise import finalise
from tests.faults.sweeps import files, troubled_sweep
from tests.in_process import InProcess


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of the dataset of an undisturbed run, in one block."""
    directory: Path = tmp_path_factory.mktemp("undisturbed")
    sweep = replace(troubled_sweep(), cluster=InProcess(block_size=128))
    run_sweep(sweep, directory, progress=False)
    return files(finalise(sweep, directory))
