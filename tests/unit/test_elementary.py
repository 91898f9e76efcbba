"""Elementary functions compared to those of SciPy and NumPy."""

import math
import re
from math import exp

import numba
import numpy as np
import pytest
import scipy.special

from sweeplib.networks.numerics.elementary import error_function, exponential, hyperbolic_tangent, vectorised

SMALL = np.logspace(-300, 0, 400)
OF_ALL_SIZES = np.concatenate([np.linspace(-7, 7, 40_001), SMALL, -SMALL, [0.0, 30.0, -30.0, 1e300, np.inf, -np.inf]])
EXPONENTS = np.concatenate([np.linspace(-707, 707, 40_001), SMALL, -SMALL, [0.0]])


@pytest.mark.rest
@pytest.mark.parametrize(
    ("ours", "exact", "points"),
    [
        (error_function, scipy.special.erf, OF_ALL_SIZES),
        (hyperbolic_tangent, np.tanh, OF_ALL_SIZES),
        (exponential, np.exp, EXPONENTS),
    ],
    ids=lambda thing: getattr(thing, "__name__", ""),
)
def test_they_are_exact_to_rounding(ours, exact, points):
    np.testing.assert_allclose([ours(x) for x in points], exact(points), rtol=6e-16)


@pytest.mark.parametrize("function", [error_function, hyperbolic_tangent])
def test_odd_functions_are_odd_and_at_most_one(function):
    values = np.array([function(x) for x in OF_ALL_SIZES])
    assert (values == [-function(-x) for x in OF_ALL_SIZES]).all()
    assert (np.abs(values) <= 1.0).all()
    assert function(np.inf) == 1.0 and function(-0.0) == 0.0 and np.signbit(function(-0.0))


@pytest.mark.parametrize("function", [error_function, hyperbolic_tangent, exponential])
def test_of_no_number_they_are_none(function):
    assert np.isnan(function(np.nan))


def test_far_down_the_exponential_is_negligible_and_far_up_it_overflows_whatever_it_meets():
    assert 0.0 <= exponential(-1e300) < 1e-307
    assert exponential(1e300) > 1e307


@pytest.mark.rest
@pytest.mark.parametrize("function", [error_function, hyperbolic_tangent, exponential])
def test_loops_over_them_are_vector_instructions(function):
    @numba.njit(error_model="numpy", fastmath={"contract"})
    def fill(x, out):
        for lane in range(64):
            out[lane] = function(x[lane])

    fill(np.linspace(-3, 3, 64), np.empty(64))
    (code,) = fill.inspect_llvm().values()
    assert re.search(r"<\d+ x double>", code)


def with_libm(x):
    return math.erf(0.3 * x) + exp(-x * x) * math.sqrt(abs(x)) + math.tanh(x)


def test_plain_functions_are_rid_of_the_libm_and_else_what_they_were():
    ours = numba.njit(vectorised(with_libm))
    points = np.linspace(-3, 3, 101)
    np.testing.assert_allclose([ours(x) for x in points], [with_libm(x) for x in points], rtol=1e-14, atol=1e-15)
    (code,) = ours.inspect_llvm().values()
    assert not re.search(r"call double @(erf|exp|tanh|llvm\.exp)", code)
