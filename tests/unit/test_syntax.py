"""Syntax trees are made by one thread at a time."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from sweeplib.engine.code.syntax import expression_tree, syntax_tree


@pytest.fixture
def busy_collections() -> Iterator[None]:
    """Python code in garbage collections, as Dask adds it, and threads that take turns often."""

    def callback(*_: object) -> None:
        sum(range(300))

    before = sys.getswitchinterval()
    gc.callbacks.append(callback)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
    gc.callbacks.remove(callback)


@pytest.mark.rest
@pytest.mark.usefixtures("busy_collections")
def test_threads_may_parse_at_the_same_time() -> None:
    """CPython 3.11.7 raised SystemError for one in ten of these."""
    text = Path(__file__).read_text() * 10
    trees: list[object] = []

    def parse() -> None:
        trees.extend(syntax_tree(text) for _ in range(20))
        trees.extend(expression_tree("lam1*lam2 + he3(lam1)") for _ in range(20))

    threads = [Thread(target=parse) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(trees) == 120
