"""Exponential, error function and hyperbolic tangent without branches, so that loops over them are vector instructions.

Those of the C library are called one number at a time. All are within 4.5e-16 of the exact value, relatively, wherever
that is a normal number; NaN for NaN. Polynomials are Chebyshev interpolants.
"""

import math
import types
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from sweeplib.networks.numerics.binding import bound
from sweeplib.networks.numerics.bits import bits_of_float, float_of_bits

_compiled = numba.njit(error_model="numpy", fastmath={"contract"}, forceinline=True)
"""For functions of one number: compiled into the loops that call them."""

_TO_INTEGER = 6755399441055744.0
"""3·2^51: a number added to it is rounded to an integer, which the low bits of the sum hold."""
_52, _ONE = np.uint64(52), np.uint64(1023 << 52)
"""Where the exponent of a float64 begins, and the exponent of 1 there."""


@_compiled
def _power_and_rest(x):  # type: ignore[no-untyped-def]
    """The pair 2^n and e^f − 1, of which e^x = 2^n e^f is made: x = n log 2 + f, |f| ≤ ½ log 2."""
    shifted = x * 1.4426950408889634 + _TO_INTEGER
    n = shifted - _TO_INTEGER
    # log 2 in two parts (Cody and Waite): the first has so few bits that n times it is exact
    f = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    f2 = f * f
    f4 = f2 * f2
    low = (0.5000000000000001 + 0.16666666666666669 * f) + f2 * (0.041666666666624164 + 0.008333333333330065 * f)
    middle = (0.001388888891719689 + 0.0001984126986304067 * f) + f2 * (2.480152132210459e-05 + 2.7557268480107e-06 * f)
    high = 2.762007600563138e-07 + 2.5100375929185925e-08 * f
    remainder = f + f2 * (low + f4 * (middle + f4 * high))
    # n, the low bits of the sum, becomes the exponent of 2^n
    return float_of_bits((bits_of_float(shifted) << _52) + _ONE), remainder


@_compiled
def exponential(x):  # type: ignore[no-untyped-def]
    """The exponential e^x; beyond ±708, where it is no normal number, its value at ±708."""
    # beyond, 2^n is no normal number; NaN passes, as all comparisons with it are false
    x = -708.0 if x < -708.0 else x
    power, remainder = _power_and_rest(708.0 if x > 708.0 else x)
    return power + power * remainder


@_compiled
def _one_minus_exponential(v):  # type: ignore[no-untyped-def]
    """The number 1 − e^−v for v ≥ 0, with all its digits for small v."""
    # e^−40 is below the last bit of 1
    power, remainder = _power_and_rest(-40.0 if v > 40.0 else -v)
    # for small v the power is 1, and what is left, −remainder, has all its digits
    return (1.0 - power) - power * remainder


@_compiled
def hyperbolic_tangent(x):  # type: ignore[no-untyped-def]
    """The hyperbolic tangent, (1 − e^−2|x|)/(1 + e^−2|x|) with the sign of x."""
    missing = _one_minus_exponential(2.0 * abs(x))
    return math.copysign(missing / (2.0 - missing), x)


@_compiled
def error_function(x):  # type: ignore[no-untyped-def]
    """The error function, 1 − e^(−y s(y)) with the sign of x.

    y = |x|, and s is a polynomial of degree 23 in (3y − 6)/(y + 6), for y up to 6.
    """
    y = abs(x)
    # 1 − erf 6 is 2e-17: from here on erf is 1 in all bits
    y = 6.0 if y > 6.0 else y
    w = (3.0 * y - 6.0) / (y + 6.0)
    w2 = w * w
    w4 = w2 * w2
    s0 = (2.682470632308319 + 2.314253564914794 * w) + w2 * (0.9701938726808601 + 0.28073565255674693 * w)
    s1 = (0.0979959329854625 + 0.03478654527651287 * w) + w2 * (0.010214983280262116 + 0.003748683536801127 * w)
    s2 = (0.0012837791590263382 + 0.00036267277512472816 * w) + w2 * (0.00014604717835291613 + 4.69860105923091e-05 * w)
    s3 = (1.2509580876924094e-05 + 5.9269856109723255e-06 * w) + w2 * (1.65306420953667e-06 + 4.185197326916659e-07 * w)
    s4 = (2.5520141874463346e-07 + 5.0814084927371e-08 * w) + w2 * (1.44769755967262e-08 + 1.26694572295328e-08 * w)
    s5 = (6.881198052855179e-10 - 4.4836572265455594e-12 * w) + w2 * (7.124885996837901e-10 + 1.658854296860966e-10 * w)
    s = s0 + w4 * (s1 + w4 * (s2 + w4 * (s3 + w4 * (s4 + w4 * s5))))
    return math.copysign(_one_minus_exponential(y * s), x)


_OURS: dict[str, Any] = {"exp": exponential, "erf": error_function, "tanh": hyperbolic_tangent}
_math = types.ModuleType("math", "The module math with the functions above in place of its own.")
_math.__dict__.update({name: thing for name, thing in vars(math).items() if name[0] != "_"} | _OURS)


def vectorised(function: Callable[[float], float]) -> Callable[[float], float]:
    """A copy of a plain function, not yet compiled, with the functions above for functions of the module math."""
    ours: dict[str, Any] = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if value is math:
            ours[name] = _math
        # `from math import erf` has put the function itself among the globals
        for math_name, replacement in _OURS.items():
            if value is getattr(math, math_name):
                ours[name] = replacement
    return bound(function, **ours)
