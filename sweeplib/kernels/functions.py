"""What kernels call of the activations, the target and their expectations, each through its address."""

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types

from sweeplib.kernels.lanes import Array, Functions
from sweeplib.maths.activations import activation
from sweeplib.maths.expectations import Expectations
from sweeplib.maths.expectations.addresses import lane_drifts_address, risk_address
from sweeplib.maths.expectations.system import Drifts, System
from sweeplib.numerics.compiled import in_loops, over_arrays, pointer

_FIELDS = types.Array(types.float64, 2, "C")
_LABELS = types.void(_FIELDS, _FIELDS, types.Array(types.float64, 1, "C"))


def _unbound(field: float) -> float:
    raise NotImplementedError("bound by `committee`")


teacher_value = _unbound


def committee_labels(lam_star: Array, a_star: Array, out: Array) -> None:
    """Fill f* = (1/k) Σ a*_r σ*(λ*_r) (n,) from λ*, a* (k, n)."""
    k, count = lam_star.shape
    share = 1.0 / k
    out[:] = 0.0
    for r in range(k):
        for n in range(count):
            out[n] += share * a_star[r, n] * teacher_value(lam_star[r, n])


def no_drifts(filled: int, system: System, out: Drifts) -> None:
    """Leave the drifts alone."""


@cache
def functions(
    student: str, teacher: str, pair: Expectations, lane_drifts: Callable[..., None] = no_drifts
) -> Functions:
    """The functions of a student's and a teacher's activation with these expectations."""
    one, other = activation(student), activation(teacher)
    labels: Any = pointer(committee_labels, _LABELS, teacher_value=in_loops(other.value))
    addresses = risk_address(pair.risk), lane_drifts_address(lane_drifts)
    return Functions(over_arrays(one.value), over_arrays(one.derivative), labels, *addresses, pair.lipschitz)
