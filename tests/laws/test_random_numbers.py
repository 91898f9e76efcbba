"""The normals on 10^8 draws: their law, their moments, their tails, and independence between all that tells them apart.

About thirty tests at 1e-4: one false alarm in three hundred changes of the random numbers.
"""

import numpy as np
import pytest
from scipy import special, stats

from sweeplib.networks.numerics.random import fill_normals

pytestmark = pytest.mark.long

LEVEL = 1e-4
STEPS, DRAWS = 1000, 100_000


def drawn(key, seed, steps, draws):
    out = np.empty((steps, draws))
    for step in range(steps):
        fill_normals(np.uint64(key), np.uint64(seed), np.uint64(step), out[step])
    return out


@pytest.fixture(scope="module")
def sample():
    return drawn(12_345, 6, STEPS, DRAWS).ravel()


def test_their_law_is_normal(sample):
    """Kolmogorov-Smirnov test of all 10^8 numbers."""
    below = special.ndtr(np.sort(sample))
    rank = np.arange(sample.size + 1) / sample.size
    distance = max((rank[1:] - below).max(), (below - rank[:-1]).max())
    assert special.kolmogorov(np.sqrt(sample.size) * distance) > LEVEL


def test_their_moments_are_right_to_the_eighth(sample):
    power, square = sample.copy(), sample * sample
    for order in range(1, 9):
        expected = 0.0 if order % 2 else special.factorial2(order - 1)
        error = np.sqrt((special.factorial2(2 * order - 1) - expected**2) / sample.size)
        assert abs(power.mean() - expected) < stats.norm.isf(LEVEL / 2) * error, order
        power *= sample
    assert square.max() > 5.2**2


@pytest.mark.parametrize("beyond", [3.0, 4.0, 5.0, 5.5])
def test_their_tails_hold_what_they_should(sample, beyond):
    for tail in (sample > beyond, sample < -beyond):
        assert stats.binomtest(int(tail.sum()), sample.size, stats.norm.sf(beyond)).pvalue > LEVEL


NEIGHBOURS = {
    "keys": ((1, 2, 0), (2, 2, 0)),
    "keys by a high bit": ((1, 2, 0), (1 + 2**63, 2, 0)),
    "seeds": ((1, 2, 0), (1, 3, 0)),
    "steps": ((1, 2, 0), (1, 2, 1)),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("power", [1, 2, 3])
def test_neighbours_do_not_know_of_each_other(name, power):
    """Return correlations of x^power between 10^7 pairs at the same index in two streams, seeds or steps."""
    sides = []
    for key, seed, shift in NEIGHBOURS[name]:
        side = np.empty((100, DRAWS))
        for step in range(100):
            fill_normals(np.uint64(key), np.uint64(seed), np.uint64(2 * step + shift), side[step])
        sides.append(side.ravel() ** power)
    z = np.corrcoef(*sides)[0, 1] * np.sqrt(sides[0].size)
    assert abs(z) < stats.norm.isf(LEVEL / 2)


@pytest.mark.parametrize("lag", [1, 2, DRAWS // 4, DRAWS // 2])
def test_neighbours_within_a_step_do_not_know_of_each_other(sample, lag):
    """Correlations at lags within a block of four numbers: of the numbers and of their squares."""
    rows = sample[: 100 * DRAWS].reshape(100, DRAWS)
    for part in (rows, rows**2):
        z = np.corrcoef(part[:, lag:].ravel(), part[:, :-lag].ravel())[0, 1] * np.sqrt(part[:, lag:].size)
        assert abs(z) < stats.norm.isf(LEVEL / 2)
