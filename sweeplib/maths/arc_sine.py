"""The arc sine without branches, so that loops over it compile to vector instructions."""

import math

import numba


@numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")
def arc_sine(x):  # type: ignore[no-untyped-def]
    """The arc sine of x, of ±1 beyond [−1, 1]; NaN for NaN. Within 3e-16 of it.

    asin s = s + s³ p(s²) for s ≤ ½, p the Chebyshev interpolant of degree 12; asin x = π/2 − 2 asin √((1 − x)/2) above.
    """
    size = min(abs(x), 1.0)
    near = size <= 0.5
    z = size * size if near else 0.5 - 0.5 * size
    s = size if near else math.sqrt(z)
    z2 = z * z
    z4 = z2 * z2
    low = (0.16666666666666657 + 0.07499999999990194 * z) + z2 * (0.04464285717160332 + 0.03038194198325319 * z)
    middle = (0.0223722608517715 + 0.0173503371202047 * z) + z2 * (0.014001301179724696 + 0.011191033632198822 * z)
    high = (0.012157745878583752 - 0.002246496013813719 * z) + z2 * (0.03788964802370373 - 0.046128659736464496 * z)
    s += s * z * (low + z4 * (middle + z4 * (high + z4 * 0.0496328699277025)))
    return math.copysign(s if near else 0.5 * math.pi - 2.0 * s, x)


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def arc_sines_sum(cosines, weights):  # type: ignore[no-untyped-def]
    """Σ_t weights_t asin(cosines_t) over the length of `weights`."""
    total = 0.0
    for t in range(weights.shape[0]):
        total += weights[t] * arc_sine(cosines[t])
    return total
