"""Counter-based random numbers: functions of (key, replica, step, index), independent of what else runs.

Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011) turns a 128-bit counter into 128 random bits. The counter holds
the index of the draw within a step, the step and the replica's seed; the key names the stream. The bits make four
normals at once, a vector in four dimensions: 64 are its length R, R² = −2 log u u' ~ χ²(4), 24 the part v of R² that
the first two have, uniform as two of four coordinates' is, and 20 each the angles in the two planes (Box-Muller takes a
logarithm for two normals). Tails reach 9.5 standard deviations; the regular lattices of angles leave all moments of
order below 2^20 exact. Everything is free of branches, so that loops over draws or over replicas compile to vector
instructions.
"""

import hashlib
import json
import math
from functools import partial
from typing import Any

import numba
import numpy as np

from sweeplib.networks.numerics.bits import bits_of_float, float_of_bits
from sweeplib.networks.numerics.cache import cached

_compiled = numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")
"""For functions of one draw: compiled into the loops over draws or replicas that call them."""

# Philox's multipliers; below them the steps of its keys, 2^32 times the golden ratio and √3, less whole numbers
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)

_ATTEMPTS = np.uint64(1 << 31)
"""Draw indices from here on are the uniform numbers of a step, one per attempt of the rejection sampler."""

_PROPOSALS = np.uint64(1 << 30)
"""Offset of the indices of the normals that further attempts propose."""


def stream_key(root_seed: int, *identity: Any) -> int:
    """The 64-bit key of the stream of random numbers called `identity`, values that JSON can write."""
    text = json.dumps([root_seed, *identity], sort_keys=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


_21, _20, _11, _8, _7, _1 = (np.uint64(n) for n in (21, 20, 11, 8, 7, 1))
_LOW_18, _SIGN = np.uint64((1 << 18) - 1), np.uint64(1 << 63)
_FIRST_12, _SECOND_12 = np.uint64(0xFFF << 40), np.uint64(0xFFF << 28)
_FIRST_SIGN, _SECOND_SIGN = np.uint64(63 - 18), np.uint64(63 - 19)
_ONE, _TO_7, _TO_52, _TO_54 = (np.uint64(1023 + n << 52) for n in (0, 7, 52, 54))
_EXPONENT = np.uint64(0xFFF << 52)
_LEAST_MANTISSA = np.float64(math.sqrt(0.5)).view(np.uint64)
"""The bits of √½: mantissas are taken in [√½, √2), about one."""


@_compiled
def _exact_float(integer):  # type: ignore[no-untyped-def]
    """An integer below 2^52 as a float64, without the conversion that vector units lack."""
    return float_of_bits(integer | _TO_52) - 4503599627370496.0


@numba.njit(error_model="numpy", inline="always")
def two_philox(c0, d0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """The words of two counters under one key: four random 32-bit words each, as uint64.

    c0, c1, c2, c3 : the first counter; the second has d0 in place of c0. k0, k1 : the two halves of the key.
    Their rounds alternate: in a single one, most instructions wait for the previous one.
    """
    d1, d2, d3 = c1, c2, c3
    for _ in range(10):
        low, high = _M0 * (c0 & _LOW), _M1 * (c2 & _LOW)
        low_too, high_too = _M0 * (d0 & _LOW), _M1 * (d2 & _LOW)
        c0, c2 = (high >> _32) ^ c1 ^ k0, (low >> _32) ^ c3 ^ k1
        d0, d2 = (high_too >> _32) ^ d1 ^ k0, (low_too >> _32) ^ d3 ^ k1
        c1, c3, d1, d3 = high, low, high_too, low_too
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0 & _LOW, c1 & _LOW, c2 & _LOW, c3 & _LOW, d0 & _LOW, d1 & _LOW, d2 & _LOW, d3 & _LOW


@numba.njit(error_model="numpy", inline="always")
def two_draws(index, other, step, seed, key):  # type: ignore[no-untyped-def]
    """The `random_words` of the draws `index` and `other`, in less time than one after the other."""
    return two_philox(index, other, step & _LOW, step >> _32, seed, key & _LOW, key >> _32)


@numba.njit(error_model="numpy", inline="always")
def random_words(index, step, seed, key):  # type: ignore[no-untyped-def]
    """Four random 32-bit words: draw `index` of `step` for replica `seed` in the stream `key` (all uint64)."""
    w0, w1, w2, w3, _, _, _, _ = two_draws(index, index, step, seed, key)
    return w0, w1, w2, w3


@_compiled
def _logarithm(w):  # type: ignore[no-untyped-def]
    """log(1 + w) for 1 + w in [√½, √2], to 3e-12 of itself: the Chebyshev interpolant of degree 13 of log(1 + w)/w."""
    w2 = w * w
    w4 = w2 * w2
    low = (0.9999999999980863 - 0.4999999999296926 * w) + w2 * (0.33333333479594524 - 0.2500000204873301 * w)
    middle = (0.19999982957623236 - 0.16666490107153437 * w) + w2 * (0.1428636612257736 - 0.1250664162217291 * w)
    high = (0.11102988928189421 - 0.09878959460323965 * w) + w2 * (0.09054488483064455 - 0.09342918729234945 * w)
    return w * ((low + w4 * middle) + w4 * w4 * (high + w4 * (0.09089857423055406 - 0.04717815865677374 * w)))


@_compiled
def _product(first, second):  # type: ignore[no-untyped-def]
    """The number 2^66 u u' of two words, u = (first + ½)/2^32 and u' = (second + ½)/2^32, both in (0, 1)."""
    # u u' is at least 2^−66: the exponent of the product is never negative, and is read off without a sign
    return (float_of_bits(first | _TO_54) - (18014398509481984.0 - 2.0)) * (
        float_of_bits(second | _TO_52) - (4503599627370496.0 - 0.5)
    )


@_compiled
def _squared_length(product):  # type: ignore[no-untyped-def]
    """The half −log u u' of R² = −2 log u u', from the `_product` of two words."""
    # the product is 2^n m with m in [√½, √2), and u u' = 2^(n − 66) m
    pattern = bits_of_float(product)
    exponent = (pattern - _LEAST_MANTISSA) & _EXPONENT
    # 194 is 2^7 + 66
    doublings = float_of_bits((exponent >> _7) | _TO_7) - 194.0
    w = float_of_bits(pattern - exponent) - 1.0
    return -(doublings * 0.6931471805599453 + _logarithm(w))


@_compiled
def _share_of_plane(first, second):  # type: ignore[no-untyped-def]
    """The part v of R², in (0, 1), that the first two coordinates have, made of the upper 12 bits of two words."""
    bits = ((first << _20) & _FIRST_12) | ((second << _8) & _SECOND_12)
    # the middle of one of 2^24 cells: neither v nor 1 − v is ever zero
    return float_of_bits(bits | _ONE) - (1.0 - 0.5**25)


_STEP = math.pi / 524288.0
"""2π/2^20, between two angles of the lattice."""

_SINES = (0.9999999999956726, -0.16666666631589003, 0.00833332878229936, -0.00019839202172159784, 2.717345361627713e-06)
_COSINES = (
    0.9999999999999435,
    -0.4999999999934735,
    0.04166666654358041,
    -0.0013888880382498289,
    2.4798927129567507e-05,
    -2.717334712576943e-07,
)
# polynomials in the number of the angle's step, odd for the sine and even for the cosine
_S0, _S1, _S2, _S3, _S4 = (c * _STEP ** (2 * n + 1) for n, c in enumerate(_SINES))
_C0, _C1, _C2, _C3, _C4, _C5 = (c * _STEP ** (2 * n) for n, c in enumerate(_COSINES))


@_compiled
def _direction(bits):  # type: ignore[no-untyped-def]
    """The vector √2 (cos, sin) of an angle, from the low 20 bits: (±(cos φ − sin φ), ±(cos φ + sin φ)), |φ| < π/4.

    18 bits are φ in steps of the lattice, symmetric about zero, and two are the signs: all of a lattice of 2^20 angles.
    Chebyshev interpolants in φ², to 4e-12.
    """
    # 131071.5 is the middle of 0, ..., 2^18 − 1
    phi = _exact_float(bits & _LOW_18) - 131071.5
    z = phi * phi
    sine = phi * (_S0 + z * (_S1 + z * (_S2 + z * (_S3 + z * _S4))))
    cosine = _C0 + z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * _C5))))
    x, y = bits_of_float(cosine - sine), bits_of_float(cosine + sine)
    return float_of_bits(x ^ ((bits << _FIRST_SIGN) & _SIGN)), float_of_bits(y ^ ((bits << _SECOND_SIGN) & _SIGN))


@numba.njit(error_model="numpy", fastmath={"contract"})
def make_fours(f0, f1, f2, f3):  # type: ignore[no-untyped-def]
    """Replace the four words, as the bits of floats, in each column of four rows (n,) by four N(0, 1) numbers.

    A loop for each part of the work: the constants of each find room in the processor's registers, and its chain of
    results that wait for each other is so short that several columns are on their way at a time.
    """
    count = f0.shape[0]
    # f0 and f2 make R²/2; f1 and f3 have the part v of it in their upper bits, and an angle each in the low ones
    for j in range(count):
        f0[j] = _product(bits_of_float(f0[j]), bits_of_float(f2[j]))
    for j in range(count):
        f0[j] = _squared_length(f0[j])
    for j in range(count):
        square, scale = f0[j], _share_of_plane(bits_of_float(f1[j]), bits_of_float(f3[j]))
        f0[j], f2[j] = square * scale, square * (1.0 - scale)
    for j in range(count):
        length = math.sqrt(f0[j])
        x, y = _direction(bits_of_float(f1[j]))
        f0[j], f1[j] = length * x, length * y
    for j in range(count):
        length = math.sqrt(f2[j])
        x, y = _direction(bits_of_float(f3[j]))
        f2[j], f3[j] = length * x, length * y


@_compiled
def uniform(word):  # type: ignore[no-untyped-def]
    """A number uniform on (0, 1), end points excluded, from a 32-bit word."""
    return (_exact_float(word) + 0.5) / 4294967296.0


@_compiled
def whole_number(end, high, low):  # type: ignore[no-untyped-def]
    """A whole number uniform on [0, end), end < 2^53, from two 32-bit words `high` and `low`, to 2^-53 of its range."""
    fraction = np.float64(((high & _LOW) << _21) | (low >> _11)) * 0.5**53
    # the product may be rounded up to `end`
    return min(np.int64(fraction * end), end - 1)


@partial(cached, partial(numba.njit, error_model="numpy", fastmath={"contract"}, nogil=True))
def fill_normals(key, seed, step, out):  # type: ignore[no-untyped-def]
    """Fill out (n,), n a multiple of 4, with the N(0, 1) numbers of one step of replica `seed` in the stream `key`.

    A draw makes four numbers: each quarter of `out` holds one number of each draw. Draws are taken in pairs
    (`two_draws`).
    """
    quarter = out.shape[0] // 4
    half, last = quarter // 2, quarter - 1
    f0, f1, f2, f3 = out[:quarter], out[quarter : 2 * quarter], out[2 * quarter : 3 * quarter], out[3 * quarter :]
    b0, b1, b2, b3 = f0.view(np.uint64), f1.view(np.uint64), f2.view(np.uint64), f3.view(np.uint64)
    # bits are written in place, and a loop of their own makes numbers of them
    for j in range(half):
        w0, w1, w2, w3, v0, v1, v2, v3 = two_draws(np.uint64(j), np.uint64(half + j), step, seed, key)
        b0[j], b1[j], b2[j], b3[j] = w0, w1, w2, w3
        b0[half + j], b1[half + j], b2[half + j], b3[half + j] = v0, v1, v2, v3
    if quarter % 2:
        b0[last], b1[last], b2[last], b3[last] = random_words(np.uint64(last), step, seed, key)
    make_fours(f0, f1, f2, f3)


def normals(key: int, seed: int, step: int, count: int) -> np.ndarray:
    """An array of `count` independent N(0, 1) numbers: the draws of `step` for replica `seed` in the stream `key`."""
    out = np.empty(-(-count // 4) * 4)
    fill_normals(np.uint64(key), np.uint64(seed), np.uint64(step), out)
    return out[:count]


@_compiled
def gamma_constants(degrees):  # type: ignore[no-untyped-def]
    """The (scale, width) of the sampler of Marsaglia and Tsang (2000): α − ⅓ and 1/√(9(α − ⅓)), α = degrees/2 ≥ 1.

    It draws χ² numbers with these degrees of freedom, twice gamma numbers of shape α: 2 scale (1 + width x)³, x ~ N(0,
    1), is accepted with a certain probability. Degrees below 2 count as 2 here.
    """
    scale = 0.5 * max(degrees, 2.0) - 1.0 / 3.0
    return scale, 1.0 / math.sqrt(9.0 * scale)


@_compiled
def chi_square_proposal(scale, width, normal, word):  # type: ignore[no-untyped-def]
    """The proposed χ² number, and whether it is accepted for sure; otherwise `chi_square` decides.

    scale, width : `gamma_constants`. normal, word : a N(0, 1) number and a random word.
    With y = width·x the logarithm of the acceptance probability is −(width²x⁴/12)(1 − 4y/5 + 4y²/6 − ...), which for
    |y| ≤ ½ is above −width²x⁴/6: a squeeze that leaves the exact test to a fraction 1/(18 α) of the draws.
    """
    y = width * normal
    base = 1.0 + y
    square = normal * y
    sure = (abs(y) <= 0.5) & (uniform(word) < 1.0 - square * square / 6.0)
    return 2.0 * scale * base * base * base, sure


@numba.njit(error_model="numpy", fastmath={"contract"})
def chi_square(degrees, normal, step, seed, key, four):  # type: ignore[no-untyped-def]
    """A χ² number of `degrees` ≥ 0, whole numbers below two, exact in law; `normal` is the first proposal.

    step, seed, key : names of the random numbers of further proposals, which are drawn into the work array `four` (4,
    1). Below two degrees, the draw is one of two degrees more times a power of a uniform: the gamma law of shape α is
    that of α+1 times U^(1/α) (Marsaglia and Tsang 2000, section 6).
    """
    if degrees < 1.0:
        return 0.0
    scale, width = gamma_constants(degrees if degrees >= 2.0 else degrees + 2.0)
    attempt = _ATTEMPTS
    bits = four.view(np.uint64)
    w0, w1, _, _ = random_words(attempt, step, seed, key)
    # of whole numbers only one degree is less: α = ½, and U^(1/α) is U²
    boost = 1.0 if degrees >= 2.0 else uniform(w1) ** 2
    while True:
        base = 1.0 + width * normal
        cube = base * base * base
        if cube > 0.0 and math.log(uniform(w0)) < 0.5 * normal * normal + scale * (1.0 - cube + math.log(cube)):
            return 2.0 * scale * cube * boost
        attempt += _1
        w0, _, _, _ = random_words(attempt, step, seed, key)
        bits[0, 0], bits[1, 0], bits[2, 0], bits[3, 0] = random_words(attempt + _PROPOSALS, step, seed, key)
        make_fours(four[0], four[1], four[2], four[3])
        normal = four[0, 0]


@numba.njit(error_model="numpy", inline="always")
def attempt_words(step, seed, key):  # type: ignore[no-untyped-def]
    """The random words for the first acceptance test of `chi_square`."""
    return random_words(_ATTEMPTS, step, seed, key)
