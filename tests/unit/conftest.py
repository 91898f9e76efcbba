"""Processes for cases and what commands ask for are forks of one process; otherwise each would import the library."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from sweeplib.commands import sweep
from sweeplib.engine.process.forks import fork_server
from sweeplib.engine.process.job import ADDRESS


@pytest.fixture(scope="module", autouse=True)
def forked(forks: str) -> Iterator[None]:
    """Set the address of the process that forks; before other fixtures of the module, which run sweeps too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, forks)
        patch.setattr(sweep, "fork_server", lambda _: nullcontext())
        yield


@pytest.fixture(scope="module")
def unforked(forked: None) -> Iterator[None]:
    """Let processes import the library, or be forks of those that the tests of a module start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(ADDRESS, raising=False)
        patch.setattr(sweep, "fork_server", fork_server)
        yield
