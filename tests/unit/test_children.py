"""The environment of child processes is set within a context alone."""

import os
from contextlib import ExitStack

import pytest

from sweeplib.engine.process.children import nothing_imported_from_here

NAME = "PYTHONSAFEPATH"


@pytest.mark.parametrize("before", [None, "", "0"])
def test_contexts_that_overlap_restore_the_environment(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when two threads run a sweep each, and the sweep that began first ends first."""
    if before is None:
        monkeypatch.delenv(NAME, raising=False)
    else:
        monkeypatch.setenv(NAME, before)
    first, second = ExitStack(), ExitStack()
    for context in (first, second):
        context.enter_context(nothing_imported_from_here())
    first.close()
    assert os.environ[NAME] == "1"
    second.close()
    assert os.environ.get(NAME) == before
