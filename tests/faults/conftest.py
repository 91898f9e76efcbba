"""The undisturbed run that every other must equal."""

from pathlib import Path

import pytest

from sweeplib.storage.finalise import finalise
from sweeplib.sweep.run import run_sweep
from tests.faults.sweeps import files, troubled_sweep


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the dataset of a run that nothing happened to: one worker, blocks of 16."""
    directory: Path = tmp_path_factory.mktemp("undisturbed")
    sweep = troubled_sweep()
    run_sweep(sweep, directory, progress=False)
    return files(finalise(sweep, directory))
