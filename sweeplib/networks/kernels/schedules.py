"""The learning rate γ ξ(t) and the label noise Δ χ(t) at the steps of a run, for kernels.

A step takes both at the middle of its time, as does a round of steps with one batch. Sums over steps are then those
of the time integral to second order in the step, and ξ and χ are never needed at t = 0. `rates` are the `Rates` of the
run; `clock` is the `Clock` of a group or, for a single replica, a work array.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.language import schedule
from sweeplib.networks.numerics.compiled import over_arrays
from sweeplib.networks.numerics.inner_functions import FOR_KERNELS

_OPTIONS: dict[str, Any] = {"error_model": "numpy", **FOR_KERNELS}
_kernel = numba.njit(fastmath={"contract"}, _nrt=False, **_OPTIONS)
_inlined = numba.njit(fastmath={"contract"}, _nrt=False, forceinline=True, **_OPTIONS)
_allocating = numba.njit(fastmath={"contract"}, **_OPTIONS)

CONSTANT = "1"
LEAST = 1e-300
"""The least χ in √χ, below every rounding: labels that are signs have either one where f* = 0."""


class Rates(NamedTuple):
    """The schedules of a run.

    varying, anneals : whether there is a schedule of the rate, and one of the label noise.
    rates, noise : addresses of ξ and χ, functions (t (n,), out (n,)).
    stride : number of SGD steps of a step of the dynamics.
    """

    varying: bool
    rates: Any
    stride: float
    anneals: bool
    noise: Any


class Clock(NamedTuple):
    """The numbers of a group that change with the time, and what they are at ξ = χ = 1, all (lanes,).

    T, noise, deviation, Delta : T, γ/(p n_b), √Δ and Δ of the present step, as the kernels of steps read them.
    base_T, base_noise, base_deviation, base_Delta : those at ξ = χ = 1.
    times, factors : the middle of the step, and ξ or χ there.
    """

    T: Array
    noise: Array
    deviation: Array
    Delta: Array
    base_T: Array
    base_noise: Array
    base_deviation: Array
    base_Delta: Array
    times: Array
    factors: Array


def rates(text: str | None, stride: float = 1.0, noise: str | None = None) -> Rates:
    """The `Rates` of formulas ξ(t) of the rate, `text`, and χ(t) of the label noise; None is constant.

    stride : number of SGD steps of a step of the dynamics.
    """
    rate, factor = (over_arrays(schedule(formula or CONSTANT).function) for formula in (text, noise))
    return Rates(text is not None, rate, stride, noise is not None, factor)


@_kernel
def step_time(step, T, rates, clock):  # type: ignore[no-untyped-def]
    """The ODE time of step number `step`: `T` times ξ in the middle of the step; clock (2, 1)."""
    if not rates.varying:
        return T
    clock[0, 0] = (step + 0.5) * rates.stride * T
    rates.rates(clock[0], clock[1])
    return T * clock[1, 0]


@_kernel
def label_deviation(step, numbers, rates, clock):  # type: ignore[no-untyped-def]
    """√Δ in the middle of step number `step`, whose time is `numbers.T` at ξ = 1.

    numbers : the `Numbers` of the run. clock (2, 1) : a work array.
    """
    clock[0, 0] = (step + 0.5) * rates.stride * numbers.T
    rates.noise(clock[0], clock[1])
    return numbers.deviation * math.sqrt(max(clock[1, 0], LEAST))


@_allocating
def clock_of(numbers):  # type: ignore[no-untyped-def]
    """The `Clock` of a group, which shares the arrays of T, γ/(p n_b), √Δ and Δ with its `Numbers`, `numbers`."""
    T, noise, deviation, Delta = numbers.T, numbers.noise, numbers.deviation, numbers.Delta
    base = T.copy(), noise.copy(), deviation.copy(), Delta.copy()
    return Clock(T, noise, deviation, Delta, base[0], base[1], base[2], base[3], np.empty_like(T), np.empty_like(T))


@_inlined
def fill_times(rates, step, clock):  # type: ignore[no-untyped-def]
    """Fill clock.times with the middle of the step of each lane; step (lanes,) has their numbers."""
    for lane in range(clock.T.shape[0]):
        clock.times[lane] = (np.float64(step[lane]) + 0.5) * rates.stride * clock.base_T[lane]


@_inlined
def set_rates(rates, step, clock):  # type: ignore[no-untyped-def]
    """Set T and γ/(p n_b) of each lane to those in the middle of its step; step (lanes,) has their numbers."""
    fill_times(rates, step, clock)
    rates.rates(clock.times, clock.factors)
    for lane in range(clock.T.shape[0]):
        clock.T[lane] = clock.factors[lane] * clock.base_T[lane]
        clock.noise[lane] = clock.factors[lane] * clock.base_noise[lane]


@_inlined
def set_noise(rates, step, clock):  # type: ignore[no-untyped-def]
    """Set √Δ and Δ of each lane to those in the middle of its step; step (lanes,) has their numbers."""
    fill_times(rates, step, clock)
    rates.noise(clock.times, clock.factors)
    for lane in range(clock.T.shape[0]):
        clock.deviation[lane] = math.sqrt(max(clock.factors[lane], LEAST)) * clock.base_deviation[lane]
        clock.Delta[lane] = clock.factors[lane] * clock.base_Delta[lane]
