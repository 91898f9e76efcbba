"""The inputs of a data law, called by address, one sample after another."""

from typing import Any

from numba import types

from sweeplib.numerics.compiled import pointer
from sweeplib.numerics.random import random_words
from sweeplib.problem import DATA

_NUMBERS = types.Array(types.float64, 1, "C")
_INPUTS = types.float64(_NUMBERS, types.uint64, types.uint64, types.uint64, _NUMBERS)


def inputs_address(data: str) -> Any:
    """The address of a law's function (numbers, key, seed, number, x (d,)), which returns a part of the label."""
    law = DATA[data].inputs
    draws = {"random_words": random_words} if "random_words" in law.__code__.co_names else {}
    return pointer(law, _INPUTS, **draws)
