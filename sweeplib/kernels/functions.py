"""What kernels call of the activations, the target and their expectations, each through its address."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from sweeplib.kernels.lanes import Array, Functions
from sweeplib.maths.activations import activation
from sweeplib.maths.expectations.addresses import lane_drifts_address, risk_address
from sweeplib.maths.expectations.system import Drifts, System
from sweeplib.numerics.compiled import called, over_arrays, pointer
from sweeplib.problem import TARGETS

_FIELDS = types.Array(types.float64, 2, "C")
_LABELS = types.void(_FIELDS, _FIELDS, types.Array(types.float64, 1, "C"))


def no_drifts(filled: int, system: System, out: Drifts) -> None:
    """Leave the drifts alone."""


def _labels_address(target: str, teacher: str) -> Any:
    return pointer(TARGETS[target].labels(teacher), _LABELS)


def labels(target: str, teacher: str, lam_star: Array, a_star: Array) -> Array:
    """f* (n,) of the fields λ* (k, n) and one second layer a* (k,)."""
    out = np.empty(lam_star.shape[1])
    layers = np.repeat(a_star[:, None], len(out), axis=1)
    called(_labels_address(target, teacher), np.ascontiguousarray(lam_star), layers, out)
    return out


@cache
def functions(student: str, target: str, teacher: str, lane_drifts: Callable[..., None] = no_drifts) -> Functions:
    """The functions of a student's activation and of a target, with the teacher's activation."""
    one = activation(student)
    pair = TARGETS[target].expectations(student, teacher)
    return Functions(
        over_arrays(one.value),
        over_arrays(one.derivative),
        _labels_address(target, teacher),
        risk_address(pair.risk),
        lane_drifts_address(lane_drifts),
        pair.lipschitz,
    )
