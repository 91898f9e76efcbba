"""Blocks of cases that are handed out and never computed."""

from typing import Any

import numpy as np

from sweeplib.engine.execution.blocks import Block
from sweeplib.functions.cases import FunctionCases


def block_of(count: int, dynamics: str = "ode", layout: str = "p1", number: int = 0, **fields: Any) -> Block:
    """Return a block of so many cases."""
    ids = np.array([f"{number}/{case}" for case in range(count)], "S16")
    return Block("", dynamics, layout, number, np.arange(count), ids, FunctionCases({}, count), **fields)
