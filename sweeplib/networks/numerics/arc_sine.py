"""The arc sine without branches, so that loops over it compile to vector instructions.

It is a large part of the closed forms of error functions (`maths/expectations/error_functions`).
"""

import math

import numba


@numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")
def near_arc_sine(x):  # type: ignore[no-untyped-def]
    """The arc sine of x in [−½, ½], in half the time of `arc_sine`: x + x³ p(x²).

    p is the Chebyshev interpolant of degree 12.
    """
    z = x * x
    z2 = z * z
    z4 = z2 * z2
    low = (0.16666666666666657 + 0.07499999999990194 * z) + z2 * (0.04464285717160332 + 0.03038194198325319 * z)
    middle = (0.0223722608517715 + 0.0173503371202047 * z) + z2 * (0.014001301179724696 + 0.011191033632198822 * z)
    high = (0.012157745878583752 - 0.002246496013813719 * z) + z2 * (0.03788964802370373 - 0.046128659736464496 * z)
    return x + x * z * (low + z4 * (middle + z4 * (high + z4 * 0.0496328699277025)))


@numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")
def arc_sine(x):  # type: ignore[no-untyped-def]
    """The arc sine of x, of ±1 beyond [−1, 1]; NaN for NaN. Within 3e-16 of it.

    `near_arc_sine` below ½, and asin x = π/2 − 2 asin √((1 − x)/2) above.
    """
    # rounding takes cosines beyond ±1, where the arc sine is NaN
    size = min(abs(x), 1.0)
    near = size <= 0.5
    s = near_arc_sine(size if near else math.sqrt(0.5 - 0.5 * size))
    return math.copysign(s if near else 0.5 * math.pi - 2.0 * s, x)


@numba.njit(error_model="numpy", fastmath={"contract"})
def add_arc_sines(factor, first, second, x, out):  # type: ignore[no-untyped-def]
    """Add factor · first · second · asin(x) to out; all but the number `factor` are (n,).

    No bit of one element depends on the others.
    """
    near = True
    for n in range(out.shape[0]):
        # all arguments, without a `break`: then the loop is one of vector instructions
        near &= abs(x[n]) <= 0.5
    if near:
        for n in range(out.shape[0]):
            out[n] += factor * first[n] * second[n] * near_arc_sine(x[n])
    else:
        for n in range(out.shape[0]):
            out[n] += factor * first[n] * second[n] * arc_sine(x[n])


# a single sum: taken in any order it has a partial sum in each lane of a vector
@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def arc_sines_sum(cosines, weights):  # type: ignore[no-untyped-def]
    """The sum Σ_t weights_t asin(cosines_t) over weights (n,); `cosines` may be longer."""
    total = 0.0
    for t in range(weights.shape[0]):
        total += weights[t] * arc_sine(cosines[t])
    return total
