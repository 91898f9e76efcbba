"""Runtime type checks of everything but the compiled kernels, for all tests, and the order of the tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
import runtime_types

CHECKED = [
    "analysis",
    "config",
    "figures",
    "observables",
    "problem.problem",
    "problem.starts",
    "problem.weights",
    "report",
    "simulation",
    "storage",
    "design",
    "execution",
    "theory",
    "views",
]

TESTS = Path(__file__).parent
LONGEST_FIRST = ("workflow", "faults", "contracts", "laws", "unit", "browser")

os.environ["SWEEPLIB_COMPUTE_ALL"] = "1"  # folders of one test are computed, not copied from each other

jaxtyping.jaxtyped = runtime_types.jaxtyped
jaxtyping.install_import_hook([f"sweeplib.{floor}" for floor in CHECKED], "runtime_types.checked")


@pytest.fixture(scope="session", autouse=True)
def heard_ctrl_c() -> Iterator[None]:
    """Let commands that tests start hear SIGINT: background jobs of a shell ignore it, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest folders first, so that no file is left to one process at the end."""
    places = {folder: place for place, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(TESTS).parts[0], len(places)))
