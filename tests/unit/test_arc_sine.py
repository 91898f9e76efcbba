"""The arc sine compared to NumPy's, and weighted sums of it."""

import numpy as np
import pytest

from sweeplib.networks.numerics.arc_sine import add_arc_sines, arc_sine, arc_sines_sum, near_arc_sine

POINTS = np.concatenate([np.linspace(-1, 1, 40_001), 1 - np.logspace(-16, -1, 60), np.logspace(-300, -1, 60)])


@pytest.mark.rest
def test_it_is_the_arc_sine_to_rounding():
    ours, exact = np.array([arc_sine(x) for x in POINTS]), np.arcsin(POINTS)
    assert np.abs(ours - exact).max() < 5e-16
    np.testing.assert_allclose(ours, exact, rtol=1e-15)


def test_near_zero_it_is_had_for_less():
    near = POINTS[np.abs(POINTS) <= 0.5]
    np.testing.assert_allclose([near_arc_sine(x) for x in near], np.arcsin(near), rtol=5e-16)


@pytest.mark.parametrize(("x", "expected"), [(1 + 1e-9, np.pi / 2), (-7.0, -np.pi / 2), (np.inf, np.pi / 2)])
def test_beyond_one_it_is_that_of_one(x, expected):
    assert arc_sine(x) == expected


@pytest.mark.rest
def test_of_no_number_it_is_none():
    assert np.isnan(arc_sine(np.nan))
    assert np.isnan(arc_sines_sum(np.array([0.1, np.nan]), np.ones(2)))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_a_weighted_sum_of_them(n):
    stream = np.random.default_rng(n)
    cosines, weights = stream.uniform(-1, 1, n), stream.normal(size=n)
    assert arc_sines_sum(cosines, weights) == pytest.approx(np.arcsin(cosines) @ weights, rel=1e-12, abs=1e-14)


@pytest.mark.rest
def test_added_to_an_array_each_is_as_if_alone():
    """Rows of small arguments use the short polynomial, mixed rows the long one: with the same bits."""
    stream = np.random.default_rng(3)
    near = np.concatenate([stream.uniform(-0.5, 0.5, 9994), [0.5, -0.5, 0.0, 1e-300, np.nextafter(0.5, 0), -1e-9]])
    weights, out = stream.normal(size=(2, near.size)), np.zeros((2, 2 * near.size))
    add_arc_sines(1.3, *weights, near, out[0, : near.size])
    mixed = np.stack([near, 1 - np.abs(near) / 2], axis=1).ravel()
    add_arc_sines(1.3, *np.repeat(weights, 2, axis=1), mixed, out[1])
    assert np.array_equal(out[0, : near.size], out[1, ::2])
    np.testing.assert_allclose(out[1], 1.3 * np.repeat(weights.prod(axis=0), 2) * np.arcsin(mixed), rtol=2e-15)


def test_added_to_an_array_what_is_no_number_stays_so():
    out = np.zeros(3)
    add_arc_sines(1.0, np.ones(3), np.ones(3), np.array([0.1, np.nan, 0.2]), out)
    assert np.isnan(out).tolist() == [False, True, False]
