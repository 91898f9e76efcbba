"""Blocks of cases that are handed out and never computed."""

from typing import Any

import numpy as np

from sweeplib.engine.execution.blocks import Block
from sweeplib.engine.execution.queue import LayoutCases, Queue
from sweeplib.functions.cases import FunctionCases


def block_of(count: int, dynamics: str = "ode", layout: str = "p1", number: int = 0, **fields: Any) -> Block:
    """Return a block of so many cases."""
    places, cases = np.arange(count), FunctionCases({}, count)
    return Block("", dynamics, layout, count, number, places=places, sent=cases, **fields)


def part_of(
    count: int, layout: str = "p1", *, seconds: float = 1.0, measured: bool = True, suspect: bool = False, **fields: Any
) -> LayoutCases:
    """Return a layout of so many cases, which take so many seconds each."""
    whole = block_of(count, layout=layout, seconds_a_case=seconds, measured=measured, suspect=suspect)
    return LayoutCases(whole, np.arange(count).astype("S16"), **fields)


def queue_of(count: int, **fields: Any) -> Queue:
    """Return the cases of one layout."""
    return Queue([part_of(count, **fields)])
