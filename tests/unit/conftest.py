"""Processes for cases are forks, as in the command `sweep`; otherwise each would import the library for a second."""

from collections.abc import Iterator

import pytest

from sweeplib.process.job import ADDRESS


@pytest.fixture(scope="package", autouse=True)
def forked(forks: str) -> Iterator[None]:
    """Set the address of the process that forks; before all fixtures of modules, which run sweeps too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, forks)
        yield


@pytest.fixture(scope="module")
def unforked() -> Iterator[None]:
    """Let processes import the library, or be forks of those that the tests of a module start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(ADDRESS)
        yield
