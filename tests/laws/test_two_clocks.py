"""A second layer that learns faster: Hermite degrees are learned in turn (arXiv 2303.00055; docs/theory.md).

The checks are an independent integration of the moments and closed forms of times and plateaus.
"""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from sweeplib import Problem, simulate
from sweeplib.config import load
from sweeplib.engine.files.published import reference

SERIES, TARGET = np.array([1.0, 1.0, 0.5]), np.array([0.7, 0.6, 0.4])
DEGREES = np.arange(3)[:, None]
PLATEAUS = [0.5 * (TARGET[n:] ** 2).sum() for n in range(4)]
"""½ Σ φ_j² over the degrees j ≥ n that are still to be learned."""
HALVED = [level + 0.125 * coefficient**2 for level, coefficient in zip(PLATEAUS[1:], TARGET, strict=True)]
"""The risk where half of the coefficient of a degree is learned."""


def problem(epsilon, p, d, **more):
    return Problem(
        gamma=p * d * min(1e-4, 0.05 / epsilon),
        p=p,
        k=1,
        d=d,
        Delta=0.0,
        activation="hermite(1, 1, 0.5)",
        target="0.7 + 0.6*lam1 + 0.4*he2(lam1)",
        spherical=True,
        a=0.0,
        second_layer_rate=epsilon,
        **more,
    )


def learned(ds):
    """Return σ_n mean(a m^n)/φ_n, the part of each degree that is learned, (3, time)."""
    m, a = ds.overlap_M.isel(teacher=0).values[0], ds.second_layer.values[0]
    return np.array([SERIES[n] / TARGET[n] * (a * m**n).mean(1) for n in range(3)])


def integrated(m, epsilon, times):
    """Return the risk of the flow of a and m for p, d → ∞ with the terms of each unit with itself, by scipy."""
    p = len(m)

    def slopes(_, state):
        a, m = state[:p], state[p:]
        left = SERIES * (TARGET - SERIES * (a * m**DEGREES).mean(1))
        own_a = a / p * (SERIES[:, None] ** 2 * (1.0 - m ** (2 * DEGREES))).sum(0)
        own_m = a**2 / p * (SERIES[1:, None] ** 2 * DEGREES[1:] * m ** (2 * DEGREES[1:] - 1)).sum(0)
        pull = a * (left[1:, None] * DEGREES[1:] * m ** (DEGREES[1:] - 1)).sum(0) + own_m
        return np.concatenate([epsilon * (left @ m**DEGREES - own_a), (1.0 - m**2) * pull])

    start = np.append(np.zeros(p), m)
    found = solve_ivp(slopes, (0.0, times[-1]), start, "LSODA", t_eval=times, rtol=1e-9, atol=1e-12)
    a, m = found.y[:p].T, found.y[p:].T
    means = np.array([(a * m**n).mean(1) for n in range(3)])
    own = sum(SERIES[n] ** 2 * (a**2 * (1.0 - m ** (2 * n))).sum(1) for n in range(3)) / p**2
    return 0.5 * (((TARGET[:, None] - SERIES[:, None] * means) ** 2).sum(0) + own)


def first_degree_time(epsilon, d):
    """Return the time at which half of degree one is learned, for p → ∞: m = m0 cosh θ, a = √ε m0 sinh θ."""
    b = math.sqrt(epsilon) * SERIES[1] / (2.0 * d * TARGET[1])
    end = 0.5 * math.asinh(0.5 / b)
    angle, _ = quad(lambda theta: 1.0 / (1.0 - b * math.sinh(2.0 * theta)), 0.0, end)
    return angle / (math.sqrt(epsilon) * SERIES[1] * TARGET[1])


@pytest.mark.slow
def test_the_mean_field_of_both_layers_is_that_of_the_moments():
    """The start of the dynamics is taken, the equations are integrated by scipy."""
    times = np.geomspace(1e-4, 2.0, 15)
    ds = simulate(
        problem(1e3, 40, 50), "mean_field_hd", times=[0.0, *times], observables=["risk", "overlap_M", "second_layer"]
    )
    start = ds.overlap_M.isel(time=0, teacher=0).values[0]
    np.testing.assert_allclose(ds.risk.values[0, 1:], integrated(start, 1e3, times), rtol=1e-5, atol=1e-8)


def test_the_risk_rests_at_the_sums_of_the_squared_coefficients_that_are_left():
    """Between the times of two degrees the earlier ones are learned and the later ones are not."""
    between = (0.0, 6e-4, 0.055)  # before all degrees, then between two
    wide = problem(1e4, 2000, 1000)
    ds = simulate(wide, "mean_field_hd", times=between, observables=["risk", "overlap_M", "second_layer"])
    parts = learned(ds)
    for n in range(3):
        np.testing.assert_allclose(parts[:n, n], 1.0, atol=0.12)
        np.testing.assert_allclose(parts[n:, n], 0.0, atol=0.12)
        assert ds.risk.values[0, n] == pytest.approx(PLATEAUS[n], abs=0.015)


@pytest.mark.long
def test_the_times_of_the_degrees_scale_as_predicted():
    """At fixed d/√ε and p/√ε: ln 2/ε, the closed form ∝ ε^(−1/2), and ε^(−1/4) with the drift of a Gaussian start."""
    rates, times = np.array([1e3, 1e4]), []
    for epsilon in rates:
        root = math.sqrt(epsilon)
        wide = problem(epsilon, round(50 * root), round(10 * root))
        thresholds = [1.0 - level / PLATEAUS[0] for level in HALVED]
        ds = simulate(wide, "mean_field_hd", times=[0.0, 40.0 / root], thresholds=thresholds, stop="exit")
        times.append(ds.exit_time.values[0])
        assert times[-1][0] == pytest.approx(math.log(2.0) / epsilon, rel=0.05)
        assert times[-1][1] == pytest.approx(first_degree_time(epsilon, round(10 * root)), rel=0.15)
    slopes = np.log(times[1] / times[0]) / math.log(rates[1] / rates[0])
    assert slopes[0] == pytest.approx(-1.0, abs=0.02)
    assert slopes[1] == pytest.approx(-0.5, abs=0.05)
    assert -0.45 < slopes[2] < -0.2


@pytest.mark.long
def test_sgd_follows_the_mean_field():
    """Means of 16 runs from paired starts at 12 times: the difference is of order γ/p, beside terms of order 1/p."""
    times, narrow, seeds = np.geomspace(0.02, 5.0, 12), problem(10.0, 200, 200), range(16)
    limit = simulate(narrow, "mean_field", times=times, seeds=seeds).risk.values
    largest = []
    for step in (1e-3, 2e-4):
        slower = dataclasses.replace(narrow, gamma=step * narrow.p * narrow.d)
        difference = simulate(slower, "sgd", times=times, seeds=seeds).risk.values - limit
        mean, error = difference.mean(0), difference.std(0, ddof=1) / math.sqrt(len(seeds))
        assert np.all(np.abs(mean[:6]) < 4.0 * error[:6])  # degree 0 and the beginning of degree 1
        largest.append(np.abs(mean).max())
    assert largest[0] < 0.03
    assert largest[1] < 0.006


def test_the_config_describes_these_runs():
    sweep = load(Path(__file__).parents[2] / "config" / "two_clocks.yaml")
    levels = np.array(reference("two_clocks_plateaus").columns["risk"])
    np.testing.assert_allclose(np.unique(levels[np.isfinite(levels)]), PLATEAUS[2:0:-1])
    for name in ("sgd", "mean_field_hd"):
        found = [case.problem for _, case in sweep.cases(name)]
        assert {(one.second_layer_rate, one.d) for one in found} == {
            (epsilon, d) for epsilon in (10.0, 1e3, 1e5) for d in (100, 400)
        }
        for one in found:
            expected = problem(one.second_layer_rate, one.p, one.d)
            assert dataclasses.replace(one, gamma=expected.gamma) == expected
            assert one.second_layer_rate * one.gamma / (one.p * one.d) <= 0.05 * (1.0 + 1e-12)
