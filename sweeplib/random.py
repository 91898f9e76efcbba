"""Counter-based random numbers: a function of (key, replica, step, index), the same whatever runs beside them.

Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011) turns a 128-bit counter into 128 random bits. The counter holds
the index of the draw within a step, the step and the replica's seed; the key names the stream. Two normals come from 64
bits by the Box-Muller transform: 40 bits for the radius (tails reach 7.4 standard deviations) and 24 for the angle,
whose regular lattice leaves all moments of order below 2^24 exact. Everything is free of branches, so that loops over
draws or over replicas compile to vector instructions.
"""

import hashlib
import json
import math
from typing import Any

import numba
import numpy as np

from sweeplib.bits import bits_of_float, float_of_bits
from sweeplib.errors import InputError

_compiled = numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)

_ATTEMPTS = np.uint64(1 << 31)
"""Draw indices from here on are the uniform numbers of a step, one index an attempt of the rejection sampler."""


def stream_key(root_seed: int, *identity: Any) -> int:
    """The 64-bit key of the stream of random numbers called `identity` (anything that JSON can write)."""
    text = json.dumps([root_seed, *identity], sort_keys=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def checked_seed(seed: int) -> int:
    """The seed, a whole number in [0, 2^32), else InputError."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError("not a seed", key="seed", value=seed, expected="a whole number in [0, 2^32)")
    return int(seed)


_52, _40, _41, _24, _8, _1 = (np.uint64(n) for n in (52, 40, 41, 24, 8, 1))
_LOW_22, _SIGN = np.uint64((1 << 22) - 1), np.uint64(1 << 63)
_TO_52, _EXPONENT = np.uint64(1075 << 52), np.uint64(0xFFF << 52)
_LEAST_MANTISSA = np.float64(math.sqrt(0.5)).view(np.uint64)
"""The bits of √½: mantissas are taken in [√½, √2), about one."""


@_compiled
def _exact_float(integer):  # type: ignore[no-untyped-def]
    """An integer below 2^52 as a float64, without the conversion that vector units lack."""
    return float_of_bits(integer | _TO_52) - 4503599627370496.0


@numba.njit(error_model="numpy", inline="always")
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Four random 32-bit words, as uint64, of the counter (c0..c3) under the key (k0, k1)."""
    for _ in range(10):
        low, high = _M0 * c0, _M1 * c2
        c0, c2 = (high >> _32) ^ c1 ^ k0, (low >> _32) ^ c3 ^ k1
        c1, c3 = high & _LOW, low & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@numba.njit(error_model="numpy", inline="always")
def words(index, step, seed, key):  # type: ignore[no-untyped-def]
    """Four random 32-bit words: draw `index` of `step` for replica `seed` in the stream `key` (all uint64)."""
    return philox(index, step & _LOW, step >> _32, seed, key & _LOW, key >> _32)


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
def _radius(bits):  # type: ignore[no-untyped-def]
    """√(−log u), u = (bits + ½)/2^40."""
    u = float_of_bits(bits | _TO_52) - (4503599627370496.0 - 0.5)
    pattern = bits_of_float(u)
    beyond = pattern - _LEAST_MANTISSA
    exponent = float_of_bits((beyond >> _52) | _TO_52) - (4503599627370496.0 + 40.0)
    mantissa = float_of_bits(pattern - (beyond & _EXPONENT))
    return math.sqrt(-(exponent * 0.6931471805599453 + _logarithm(mantissa - 1.0)))


_ANGLE = math.pi / 8388608.0
"""2π/2^24."""


@_compiled
def _direction(bits):  # type: ignore[no-untyped-def]
    """√2 (cos, sin) of an angle from the low 24 of the bits: (±(cos φ − sin φ), ±(cos φ + sin φ)) with |φ| < π/4.

    22 bits are φ, symmetric about zero, and two are the signs: all of a lattice of 2^24 angles. Chebyshev interpolants
    in φ², to 4e-12.
    """
    phi = _exact_float(bits & _LOW_22) * _ANGLE - 2097151.5 * _ANGLE
    z = phi * phi
    z2 = z * z
    sine = (0.9999999999956726 - 0.16666666631589003 * z) + z2 * (0.00833332878229936 - 0.00019839202172159784 * z)
    sine = phi * (sine + z2 * z2 * 2.717345361627713e-06)
    cosine = (0.9999999999999435 - 0.4999999999934735 * z) + z2 * (0.04166666654358041 - 0.0013888880382498289 * z)
    cosine = cosine + z2 * z2 * (2.4798927129567507e-05 - 2.717334712576943e-07 * z)
    x, y = bits_of_float(cosine - sine), bits_of_float(cosine + sine)
    return float_of_bits(x ^ ((bits << _40) & _SIGN)), float_of_bits(y ^ ((bits << _41) & _SIGN))


@_compiled
def normal_pair(first, second):  # type: ignore[no-untyped-def]
    """Two independent N(0, 1) numbers made of two 32-bit words."""
    radius = _radius((first << _8) | (second >> _24))
    x, y = _direction(second)
    return radius * x, radius * y


@_compiled
def uniform(word):  # type: ignore[no-untyped-def]
    """A number uniform on (0, 1), never an end, made of a 32-bit word."""
    return (_exact_float(word) + 0.5) / 4294967296.0


@numba.njit(error_model="numpy", fastmath={"contract"}, nogil=True, cache=True)
def fill_normals(key, seed, step, out):  # type: ignore[no-untyped-def]
    """Fill `out`, whose length is a multiple of 4, with the N(0, 1) numbers of one step of one replica.

    Two loops, as integer and floating-point work in one loop would want more registers than there are.
    """
    quarter = out.shape[0] // 4
    drawn = np.empty((4, quarter), np.uint64)
    w0, w1, w2, w3 = drawn[0], drawn[1], drawn[2], drawn[3]
    for j in range(quarter):
        w0[j], w1[j], w2[j], w3[j] = words(np.uint64(j), step, seed, key)
    first, second = out[:quarter], out[quarter : 2 * quarter]
    third, fourth = out[2 * quarter : 3 * quarter], out[3 * quarter :]
    for j in range(quarter):
        first[j], second[j] = normal_pair(w0[j], w1[j])
        third[j], fourth[j] = normal_pair(w2[j], w3[j])


def normals(key: int, seed: int, step: int, count: int) -> np.ndarray:
    """`count` independent N(0, 1) numbers: the draws of `step` for replica `seed` in the stream `key`."""
    out = np.empty(-(-count // 4) * 4)
    fill_normals(np.uint64(key), np.uint64(seed), np.uint64(step), out)
    return out[:count]


@_compiled
def gamma_constants(degrees):  # type: ignore[no-untyped-def]
    """(scale, width) of the sampler of Marsaglia and Tsang (2000): α − ⅓ and 1/√(9(α − ⅓)), α = degrees/2 ≥ 1."""
    scale = 0.5 * max(degrees, 2.0) - 1.0 / 3.0
    return scale, 1.0 / math.sqrt(9.0 * scale)


@_compiled
def chi_square_proposal(scale, width, normal, word):  # type: ignore[no-untyped-def]
    """(χ², sure): the proposed χ² number, and whether it is accepted for sure; else ask `chi_square`.

    With y = width·x the logarithm of the acceptance probability is −(width²x⁴/12)(1 − 4y/5 + 4y²/6 − ...), which for
    |y| ≤ ½ is above −width²x⁴/6: a squeeze that leaves the exact test to a fraction 1/(18 α) of the draws.
    """
    y = width * normal
    base = 1.0 + y
    square = normal * y
    sure = (abs(y) <= 0.5) & (uniform(word) < 1.0 - square * square / 6.0)
    return 2.0 * scale * base * base * base, sure


@numba.njit(error_model="numpy", fastmath={"contract"})
def chi_square(degrees, normal, step, seed, key):  # type: ignore[no-untyped-def]
    """A χ² number of `degrees` ≥ 0, exact in law; `normal` is the first proposal, further ones are drawn as needed.

    Below two degrees, the draw is one of two degrees more times a power of a uniform: the gamma law of shape α is that
    of α+1 times U^(1/α) (Marsaglia and Tsang 2000, section 6).
    """
    if degrees < 1.0:
        return 0.0
    scale, width = gamma_constants(degrees if degrees >= 2.0 else degrees + 2.0)
    attempt = _ATTEMPTS
    w0, w1, w2, w3 = words(attempt, step, seed, key)
    boost = 1.0 if degrees >= 2.0 else uniform(w1) ** 2
    while True:
        base = 1.0 + width * normal
        cube = base * base * base
        if cube > 0.0 and math.log(uniform(w0)) < 0.5 * normal * normal + scale * (1.0 - cube + math.log(cube)):
            return 2.0 * scale * cube * boost
        attempt += _1
        w0, w1, w2, w3 = words(attempt, step, seed, key)
        normal, _ = normal_pair(w2, w3)


@numba.njit(error_model="numpy", inline="always")
def attempt_words(step, seed, key):  # type: ignore[no-untyped-def]
    """The words from which `chi_square` takes its first decision."""
    return words(_ATTEMPTS, step, seed, key)
