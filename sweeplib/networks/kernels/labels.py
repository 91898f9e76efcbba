"""The labels f*(λ*) of a target, and the inputs of a data law one sample after another, called by address."""

from typing import Any

import numpy as np
from numba import types

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import call_by_address, pointer
from sweeplib.networks.numerics.random import random_words
from sweeplib.networks.problem import DATA
from sweeplib.networks.problem import target as target_of

_FIELDS = types.Array(types.float64, 2, "C")
_LABELS = types.void(_FIELDS, _FIELDS, types.Array(types.float64, 1, "C"))
"""The signature of a target's function."""


def labels_address(target: str, teacher: str) -> Any:
    """The address of a target's function (λ* (k, n), a* (k, n), out (n,)), which fills `out` with f* of n samples.

    target, teacher : names of the target and of the teacher's activation.
    """
    return pointer(target_of(target).labels(teacher), _LABELS)


def labels(target: str, teacher: str, lam_star: Array, a_star: Array) -> Array:
    """The labels f* (n,) of n samples with the fields λ* (k, n), for one second layer a* (k,) of the teacher."""
    out = np.empty(lam_star.shape[1])
    layers = np.repeat(a_star[:, None], len(out), axis=1)
    call_by_address(labels_address(target, teacher), np.ascontiguousarray(lam_star), layers, out)
    return out


_NUMBERS = types.Array(types.float64, 1, "C")
_INPUTS = types.float64(_NUMBERS, types.uint64, types.uint64, types.uint64, _NUMBERS)
"""The signature of a data law's function."""


def inputs_address(data: str) -> Any:
    """The address of a function (numbers, key, seed, number, x (d,)) of the law of inputs `data`, called once a sample.

    It replaces the N(0, 1) numbers x by the input times √d of sample `number`, and returns the part of the label that
    comes with this input. `numbers` are the law's parameters, and `key` names a stream of random numbers of its own.
    """
    law = DATA[data].inputs
    # only a law that draws more than the normals of x is compiled with a generator
    draws = {"random_words": random_words} if "random_words" in law.__code__.co_names else {}
    return pointer(law, _INPUTS, **draws)
