"""The arc sine against NumPy's, and sums of it over pairs against the double sum written out."""

import numpy as np
import pytest

from sweeplib.maths.arc_sine import arc_sine, arc_sines_sum, pair_weights

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


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_sums_over_pairs_are_half_the_double_sum(n):
    stream = np.random.default_rng(n)
    weight, matrix = stream.normal(size=n), stream.uniform(-1, 1, (n, n))
    cosines = matrix + matrix.T - np.diag(np.diag(matrix))
    pairs = pair_weights(weight)
    below = np.zeros(len(pairs))
    below[: n * (n + 1) // 2] = cosines[np.tril_indices(n)]
    exact = 0.5 * weight @ np.arcsin(np.clip(cosines, -1, 1)) @ weight
    assert arc_sines_sum(below, pairs) == pytest.approx(exact, rel=1e-12, abs=1e-14)
