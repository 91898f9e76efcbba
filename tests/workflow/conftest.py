"""Projects to run Snakemake in."""

import shutil
from pathlib import Path

import pytest

from tests.workflow.project import Project, copied, project_in


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh copy, nothing run yet."""
    return project_in(tmp_path)


@pytest.fixture(scope="session")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    finished = project_in(tmp_path_factory.mktemp("finished"))
    done = finished.snakemake("--config", "sweep=tiny.yaml")
    assert done.returncode == 0, done.stderr
    return finished.root


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Project:
    """A copy in which the whole workflow has run once."""
    shutil.copytree(_finished, tmp_path, copy_function=copied, dirs_exist_ok=True)
    return Project(tmp_path)
