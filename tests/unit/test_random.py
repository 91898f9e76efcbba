"""Philox compared to its published test vectors, and the distributions of the numbers made from it."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sweeplib.engine.seeds import checked_seed
from sweeplib.errors import InputError
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.numerics.random import (
    chi_square,
    fill_normals,
    make_fours,
    normals,
    random_words,
    stream_key,
    two_philox,
)

# Kolmogorov-Smirnov at 1e-4 over the forty tests below: one false alarm in some 250 changes of the numbers.
LEVEL = 1e-4
FULL = 0xFFFFFFFF


@specialised
def philox_words(counter, key):
    return two_philox(counter[0], counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@specialised
def words_of_draws(out):
    for j in range(out.shape[1]):
        out[0, j], out[1, j], out[2, j], out[3, j] = random_words(
            np.uint64(j), np.uint64(7), np.uint64(8), np.uint64(9)
        )


@specialised
def chi_squares(degrees, count):
    out = np.empty(count)
    z = np.empty(4)
    for i in range(count):
        fill_normals(np.uint64(9), np.uint64(1), np.uint64(i), z)
        out[i] = chi_square(degrees, z[3], np.uint64(i), np.uint64(1), np.uint64(9), np.empty((4, 1)))
    return out


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((FULL,) * 4, (FULL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_words(counter, key, expected):
    """The known-answer vectors of Random123 for philox4x32, ten rounds."""
    assert philox_words(np.array(counter, np.uint64), np.array(key, np.uint64)) == expected + expected


ENDS = (0, 1, 2**20 - 1, 2**20, 2**31, 2**32 - 1)


@pytest.mark.rest
@pytest.mark.parametrize("seed", range(3))
def test_normals_are_made_of_their_bits(seed):
    """64 bits give the length of four normals, 24 the share of the first two, 20 each angle; also all zeros or ones."""
    drawn = np.random.default_rng(seed).integers(0, 2**32, (4, 4000), dtype=np.uint64)
    ends = np.array(list(itertools.product(ENDS, repeat=4)), np.uint64).T
    w = np.concatenate([ends, drawn], axis=1)
    x = w.view(np.float64).copy()
    make_fours(*x)
    logarithms = np.log1p((w[::2] + 0.5 - 2.0**32) / 2.0**32)
    part = (w[1] // 2**20 * 2**12 + w[3] // 2**20 + 0.5) / 2.0**24
    for pair, expected, word in ((x[:2], part, w[1]), (x[2:], 1 - part, w[3])):
        np.testing.assert_allclose(np.hypot(*pair), np.sqrt(-2 * logarithms.sum(axis=0) * expected), rtol=1e-10)
        places = (np.arctan2(*pair) + np.pi) / (2 * np.pi) * 2**20 - 0.5
        assert np.abs(places - np.rint(places)).max() < 1e-4
        assert len(np.unique(np.rint(places))) == len(np.unique(word % 2**20))


@pytest.mark.rest
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 33])
def test_draws_made_two_at_a_time_are_those_made_singly(columns):
    single, several = np.empty((4, columns), np.uint64), np.empty(4 * columns)
    words_of_draws(single)
    expected = single.view(np.float64)
    make_fours(*expected)
    fill_normals(np.uint64(9), np.uint64(8), np.uint64(7), several)
    np.testing.assert_array_equal(several, expected.ravel())


@pytest.mark.rest
def test_normals_are_normal():
    sample = np.concatenate([normals(3, 4, step, 5000) for step in range(400)])
    assert stats.kstest(sample, "norm").pvalue > LEVEL
    for order, moment in ((2, 1), (4, 3), (6, 15), (8, 105)):
        power = sample**order
        assert abs(power.mean() - moment) < 4 * power.std() / np.sqrt(sample.size)
    beyond = stats.binomtest(int((abs(sample) > 4).sum()), sample.size, 2 * stats.norm.sf(4))
    assert beyond.pvalue > LEVEL


@pytest.mark.parametrize("changed", ["key", "seed", "step"])
def test_neighbouring_streams_are_independent(changed):
    first = {"key": 10, "seed": 20, "step": 30}
    x = normals(**first, count=100_000)
    y = normals(**{**first, changed: first[changed] + 1}, count=100_000)
    assert abs(np.corrcoef(x, y)[0, 1]) * np.sqrt(x.size) < 4
    assert abs(np.corrcoef(x**2, y**2)[0, 1]) * np.sqrt(x.size) < 4


@pytest.mark.rest
def test_the_four_of_a_block_are_independent():
    x = normals(1, 2, 3, 400_000).reshape(4, -1)
    for i, j in itertools.combinations(range(4), 2):
        assert stats.kstest(x[i] ** 2 + x[j] ** 2, "chi2", args=(2,)).pvalue > LEVEL
        assert stats.kstest(np.arctan2(x[i], x[j]), "uniform", args=(-np.pi, 2 * np.pi)).pvalue > LEVEL
    for i, j, k in itertools.combinations(range(4), 3):
        assert stats.kstest((x[[i, j, k]] ** 2).sum(axis=0), "chi2", args=(3,)).pvalue > LEVEL
    assert stats.kstest((x**2).sum(axis=0), "chi2", args=(4,)).pvalue > LEVEL
    patterns = np.bincount(((x > 0) * [[1], [2], [4], [8]]).sum(axis=0), minlength=16)
    assert stats.chisquare(patterns).pvalue > LEVEL


@pytest.mark.rest
@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.0, 10.0, 298.0, 1e6])
def test_chi_squares_have_their_law(degrees):
    assert stats.kstest(chi_squares(degrees, 100_000), "chi2", args=(degrees,)).pvalue > LEVEL


@pytest.mark.rest
def test_chi_square_of_no_degrees_is_zero():
    assert (chi_squares(0.0, 10) == 0).all()


def test_stream_keys_tell_identities_apart():
    keys = {stream_key(root, *name) for root in range(50) for name in (("a",), ("b",), ("a", 1), ("a", 1.5), ("a1",))}
    assert len(keys) == 250


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, "1"])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InputError, match="seed"):
        checked_seed(seed)
