"""Blocks of cases that are handed out and never computed."""

from typing import Any

from sweeplib.engine.execution.blocks import Block
from sweeplib.functions.cases import FunctionCases


def block_of(count: int, dynamics: str = "ode", layout: str = "p1", number: int = 0, **fields: Any) -> Block:
    """Return a block of so many cases."""
    return Block("", dynamics, layout, number, f"{number:032x}", count, sent=FunctionCases({}, count), **fields)
