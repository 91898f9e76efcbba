"""Processes for cases are forks, as in the command `sweep`; otherwise each would import the library for a second."""

from collections.abc import Iterator

import pytest

from sweeplib.process.job import ADDRESS


@pytest.fixture(scope="module", autouse=True)
def forked(forks: str) -> Iterator[None]:
    """Set the address of the process that forks; before other fixtures of the module, which run sweeps too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, forks)
        yield


@pytest.fixture(scope="module")
def unforked(forked: None) -> Iterator[None]:
    """Let processes import the library, or be forks of those that the tests of a module start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(ADDRESS, raising=False)
        yield
