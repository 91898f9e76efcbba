"""The learning rate γ ξ(t) at the steps of a run, for kernels.

A step takes the rate at the middle of its time, as does a round of steps with one batch. Sums over steps are then those
of the time integral to second order in the step, and t = 0 itself is never asked for.
"""

from typing import Any

import numba

from sweeplib.kernels.lanes import Rates
from sweeplib.maths.formulas import schedule
from sweeplib.numerics.compiled import over_arrays

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_kernel = numba.njit(fastmath={"contract"}, _nrt=False, **_OPTIONS)

CONSTANT = "1"


def rates(text: str | None, stride: float = 1.0) -> Rates:
    """The schedule of this formula, or a constant rate."""
    return Rates(text is not None, over_arrays(schedule(text or CONSTANT).function), stride)


@_kernel
def step_time(step, T, rates, clock):  # type: ignore[no-untyped-def]
    """T times ξ in the middle of step number `step`; `clock` (2, 1) is a work array."""
    if not rates.given:
        return T
    clock[0, 0] = (step + 0.5) * rates.stride * T
    rates.rates(clock[0], clock[1])
    return T * clock[1, 0]
