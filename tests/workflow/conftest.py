"""Projects to run Snakemake in."""

import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeplib import Problem, simulate
from tests.workflow.forks import Forks
from tests.workflow.project import Project, copied, project_in


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """The process from which Snakemake is forked."""
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile the kernels of the sweeps in this tree, by one process: copies of the tree have them then."""
    problem = Problem(gamma=0.05, p=1, k=1, d=40, Delta=0.0, activation="square", spherical=True)
    with (tmp_path_factory.getbasetemp().parent / "compiled").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        simulate(problem, "sgd_chain", times=[0.0, 2.0], thresholds=[0.01], stop="exit")


@pytest.fixture
def project(tmp_path: Path, forks: Forks) -> Project:
    """A new copy in which nothing has run."""
    return project_in(tmp_path, forks)


@pytest.fixture(scope="session")
def _finished(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """A copy whose sweep was run as a user runs it."""
    finished = project_in(tmp_path_factory.mktemp("finished"), forks)
    finished.sweeplib("sweep", "tiny.yaml")
    return finished.root


@pytest.fixture
def finished(_finished: Path, tmp_path: Path, forks: Forks) -> Project:
    """A copy in which the complete workflow has run once."""
    shutil.copytree(_finished, tmp_path, copy_function=copied, dirs_exist_ok=True)
    return Project(tmp_path, forks)
