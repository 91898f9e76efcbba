"""The learning rate γ ξ(t) at the steps of a run, for kernels.

A step takes the rate at the middle of its time, as does a round of steps with one batch. Sums over steps are then those
of the time integral to second order in the step, and t = 0 itself is never asked for.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.language import schedule
from sweeplib.numerics.compiled import over_arrays
from sweeplib.numerics.inner_functions import FOR_KERNELS

Array = NDArray[np.float64]

_OPTIONS: dict[str, Any] = {"error_model": "numpy", **FOR_KERNELS}
_kernel = numba.njit(fastmath={"contract"}, _nrt=False, **_OPTIONS)
_inlined = numba.njit(fastmath={"contract"}, _nrt=False, forceinline=True, **_OPTIONS)
_allocating = numba.njit(fastmath={"contract"}, **_OPTIONS)

CONSTANT = "1"


class Rates(NamedTuple):
    """The schedule of a run.

    given : whether there is one.
    rates : address of ξ, (t (n,), out (n,)).
    stride : number of SGD steps of a step of the dynamics.
    """

    given: bool
    rates: Any
    stride: float


class Clock(NamedTuple):
    """The rates of a group: T and γ/(p n_b) of the present step, among its numbers, and those of ξ = 1 (lanes,).

    times, factors (lanes,) : the middle of the step, and ξ there.
    """

    T: Array
    noise: Array
    base_T: Array
    base_noise: Array
    times: Array
    factors: Array


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


@_allocating
def clock_of(numbers):  # type: ignore[no-untyped-def]
    """The rates of a group; it changes T and γ/(p n_b) of its numbers."""
    T, noise = numbers.T, numbers.noise
    return Clock(T, noise, T.copy(), noise.copy(), np.empty_like(T), np.empty_like(T))


@_inlined
def set_rates(rates, step, clock):  # type: ignore[no-untyped-def]
    """Set T and γ/(p n_b) to those in the middle of the step of each lane."""
    for lane in range(clock.T.shape[0]):
        clock.times[lane] = (np.float64(step[lane]) + 0.5) * rates.stride * clock.base_T[lane]
    rates.rates(clock.times, clock.factors)
    for lane in range(clock.T.shape[0]):
        clock.T[lane] = clock.factors[lane] * clock.base_T[lane]
        clock.noise[lane] = clock.factors[lane] * clock.base_noise[lane]
