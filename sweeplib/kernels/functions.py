"""The functions of activations, target and expectations that kernels call through their addresses."""

from collections.abc import Callable
from functools import cache

from sweeplib.kernels.labels import labels_address
from sweeplib.kernels.lanes import Functions
from sweeplib.maths.activations import activation
from sweeplib.maths.expectations.addresses import lane_drifts_address, risk_address
from sweeplib.maths.expectations.system import Drifts, System
from sweeplib.numerics.compiled import over_arrays
from sweeplib.problem import target as target_of


def no_drifts(filled: int, system: System, out: Drifts) -> None:
    """Do nothing, in place of drifts."""


@cache
def functions(student: str, target: str, teacher: str, lane_drifts: Callable[..., None] = no_drifts) -> Functions:
    """The addresses of the functions of a student's activation and of a target with the teacher's activation."""
    one = activation(student)
    needed = target_of(target).expectations(student, teacher)
    return Functions(
        over_arrays(one.value),
        over_arrays(one.derivative),
        labels_address(target, teacher),
        needed.pair,
        risk_address(needed.risk),
        lane_drifts_address(lane_drifts),
        needed.lipschitz,
    )
