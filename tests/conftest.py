"""Runtime type checks of everything but the compiled kernels, for all tests, and the order of the tests."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numba
import numpy as np
import pytest
import runtime_types

from tests.tiers import QUICKER

CHECKED = [
    "analysis.kit",
    "config",
    "pictures.figures",
    "networks.observables",
    "networks.problem.problem",
    "networks.problem.starts",
    "networks.problem.weights",
    "pictures.report",
    "networks.simulation",
    "engine.storage",
    "engine.design",
    "engine.execution",
    "networks.theory",
    "networks.views",
    "statistics",
    *(f"analysis.{file.stem}" for file in Path(__file__).parents[1].glob("sweeplib/analysis/[a-z]*.py")),
]

TESTS = Path(__file__).parent
LONGEST_FIRST = (
    "contracts/test_dynamics.py",
    "workflow/test_workflow.py",
    "unit/test_ode_accuracy.py",
    "laws/test_chain_is_sgd.py",
    *("workflow", "faults", "contracts", "laws", "unit", "browser", ""),
)
"""Starts of paths. Files that compile the same kernels do not come first: one process would wait for the other."""

gc.set_threshold(50_000)  # before thousands of tests are collected
os.environ["SWEEPLIB_COMPUTE_ALL"] = "1"  # folders of one test are computed, not copied from each other

jaxtyping.jaxtyped = runtime_types.jaxtyped
jaxtyping.install_import_hook([f"sweeplib.{floor}" for floor in CHECKED], "runtime_types.checked")

from sweeplib.engine.process.forks import fork_server  # noqa: E402 - after the hook
from sweeplib.engine.process.job import ADDRESS  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def heard_ctrl_c() -> Iterator[None]:
    """Let commands that tests start hear SIGINT: background jobs of a shell ignore it, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def forks() -> Iterator[str]:
    """Return the address of a process like that from which the command `sweep` forks; it ends with the session."""
    imports = (
        "sweeplib.config.build",
        "sweeplib.commands.sweep",
        "sweeplib.engine.execution.run",
        "sweeplib.networks.pilots",
    )
    with fork_server((*imports, "sweeplib.networks.numerics.compiled:prepare")):
        yield os.environ.pop(ADDRESS)


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Let files be on the disk when the system likes: no test cuts the power. `test_power_cut` counts the calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def collected_tests_left_alone() -> None:
    """Keep the objects of thousands of collected tests out of collections of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def same_types_in_all_calls() -> Iterator[None]:
    """Check the types of the arguments at every call of a `OneSignature`, which itself checks them at the first one.

    numba's `typeof` takes ten times as long as a call, so arguments that look as before are not given to it again.
    """
    from sweeplib.networks.numerics.compiled import OneSignature

    unchecked, first, seen = OneSignature.__call__, dict[int, tuple[Any, ...]](), set[tuple[int, Any]]()

    def checked(kernel: OneSignature, *arguments: Any) -> Any:
        look = (id(kernel), looks(arguments))
        if look not in seen:
            types = tuple(map(numba.typeof, arguments))
            assert first.setdefault(id(kernel), types) == types, kernel.compiled
            seen.add(look)
        return unchecked(kernel, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneSignature, "__call__", checked)
        yield


def looks(value: Any) -> Any:
    """Return what determines the numba type of an argument: of an array its layout, of a number its class."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    if isinstance(value, tuple):
        return type(value), *map(looks, value)
    return type(value) if isinstance(value, int | float | np.generic) else value


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Return True for a file of which `make test` or `make test-rest` runs nothing: its import takes time."""
    path, marks = collection_path.relative_to(TESTS).as_posix(), config.getoption("markexpr")
    if marks.startswith("not rest "):
        return path in QUICKER or None
    if marks.startswith("rest ") and collection_path.suffix == ".py":
        return not (path in QUICKER or "@pytest.mark.rest" in collection_path.read_text(encoding="utf-8")) or None
    return None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the files that have quicker ones; run the slowest first, so that no long one is left at the end."""
    for item in items:
        if item.path.relative_to(TESTS).as_posix() in QUICKER:
            item.add_marker(pytest.mark.rest)

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(TESTS).as_posix()
        return next(place for place, start in enumerate(LONGEST_FIRST) if path.startswith(start))

    items.sort(key=place)


@pytest.fixture
def forgotten_functions() -> Iterator[None]:
    """Functions and programs that a test declares are not there for the next one."""
    from sweeplib.functions.function import FUNCTIONS

    before = {name: list(functions) for name, functions in FUNCTIONS.items()}
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)
