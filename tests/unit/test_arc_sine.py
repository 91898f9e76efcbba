"""The arc sine against NumPy's, and weighted sums of it."""

import numpy as np
import pytest

from sweeplib.maths.arc_sine import arc_sine, arc_sines_sum

POINTS = np.concatenate([np.linspace(-1, 1, 40_001), 1 - np.logspace(-16, -1, 60), np.logspace(-300, -1, 60)])


def test_it_is_the_arc_sine_to_rounding():
    ours, exact = np.array([arc_sine(x) for x in POINTS]), np.arcsin(POINTS)
    assert np.abs(ours - exact).max() < 5e-16
    np.testing.assert_allclose(ours, exact, rtol=1e-15)


@pytest.mark.parametrize(("x", "expected"), [(1 + 1e-9, np.pi / 2), (-7.0, -np.pi / 2), (np.inf, np.pi / 2)])
def test_beyond_one_it_is_that_of_one(x, expected):
    assert arc_sine(x) == expected


def test_of_no_number_it_is_none():
    assert np.isnan(arc_sine(np.nan))
    assert np.isnan(arc_sines_sum(np.array([0.1, np.nan]), np.ones(2)))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_a_weighted_sum_of_them(n):
    stream = np.random.default_rng(n)
    cosines, weights = stream.uniform(-1, 1, n), stream.normal(size=n)
    assert arc_sines_sum(cosines, weights) == pytest.approx(np.arcsin(cosines) @ weights, rel=1e-12, abs=1e-14)
