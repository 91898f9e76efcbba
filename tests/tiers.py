"""Which parameters of a test `make test` runs, and which `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Return the values as parameters of a test, all of them slow but `quick`, which are among them."""
    values = list(values)
    assert all(value in values for value in quick)
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        value if value in quick else pytest.param(*parts, marks=pytest.mark.slow)
        for value, parts in zip(values, several, strict=True)
    ]
