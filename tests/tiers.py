"""Which parameters of a test `make test` runs, and which `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest

ALONE = ("dmft", "nonlinear_dynamics", "overlap_map")
"""Dynamics that are slow or whose kernels no other one needs, with tests of their own: their contract is slow."""


def slow_among(values: Iterable[Any], *slow: Any) -> list[Any]:
    """Return the values as parameters of a test; `slow`, which are among them, are slow."""
    values = list(values)
    assert all(value in values for value in slow)
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*parts, marks=pytest.mark.slow) if value in slow else value
        for value, parts in zip(values, several, strict=True)
    ]


def slow_but(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Return the values as parameters of a test; all are slow but `quick`, which are among them."""
    values = list(values)
    assert all(value in values for value in quick)
    return slow_among(values, *(value for value in values if value not in quick))
