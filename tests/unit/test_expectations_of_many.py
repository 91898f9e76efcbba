"""The drifts of many systems at once: those of each alone, whatever stands beside it, and Ψ^Var at Ω times a factor."""

import numpy as np
import pytest

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import Activation
from sweeplib.networks.maths.expectations import FAMILIES, expectations
from sweeplib.networks.maths.expectations.addresses import no_drifts
from sweeplib.networks.maths.expectations.error_functions import FULL
from sweeplib.networks.maths.expectations.expectations import drifts_in_turn
from tests import plain
from tests.tiers import slow_among, slow_but

TWO_TERMS = 0.3, ((0.8, 0.7), (-0.5, 1.9))
"""An offset, and weights and slopes of error functions."""


def of(pair):
    if pair == "two terms":
        mixture = Activation("two_terms", "", abs, abs, 1, error_functions=TWO_TERMS)
        return FAMILIES["error functions"].pair_expectations(mixture, mixture)
    return expectations(*pair.split("|"))


PAIRS = ["square|square", "erf|erf", "two terms", "he3|he3", "linear|hermite(0.3, -1, 0.5)", "relu|relu", "relu|erf"]
ROUNDING = dict.fromkeys(PAIRS, 1e-12) | {"relu|relu": 1e-9}
"""Over the largest entry of a drift; relu's are as good as that at singular correlations, whose rounding differs."""


COMPILED = ["square|square", "erf|erf", "two terms", "he3|he3", "relu|relu"]
"""Pairs whose compiled code for many systems is tested, and not what it is written in: all rules that there are."""


def factor(kind, p, k, rng):
    """F (p + k, n) of Ω = F Fᵀ."""
    F = rng.normal(size=(p + k, p + k + 3)) / np.sqrt(p + k + 3)
    if kind == "twins":
        F[: p - 1] = F[p - 1]
    elif kind == "rank 2":
        F[:, 2:] = 0.0
    elif kind == "a unit of zeros":
        F[0] = 0.0
    elif kind == "aligned":
        F[:p] = F[p]
    return F


KINDS = ["regular", "twins", "rank 2", "a unit of zeros", "aligned"]


def systems(p, k, count):
    """Q, M, P, a, a*, Δ and the factors of `count` systems, the last axis, of all kinds in turn."""
    rng = np.random.default_rng(p + k)
    omega = np.stack([F @ F.T for F in (factor(KINDS[n % 5], p, k, rng) for n in range(count))], axis=-1)
    layers = rng.normal(size=(p, count)), rng.normal(size=(k, count))
    parts = omega[:p, :p], omega[:p, p:], omega[p:, p:], *layers, rng.uniform(size=count), rng.uniform(1, 1.2, count)
    return [np.ascontiguousarray(part) for part in parts]


def of_many(pair, parts, compiled=True):
    """Ψ^M, Ψ^GF, Ψ^Var and Ψ^a, the last axis the system."""
    return plain.many_drifts(of(pair), *parts, compiled=compiled)


def of_one(pair, parts, n, factor):
    """The same of system number n alone, with Ω times a factor, by `drifts`."""
    overlaps = (factor * part[..., n] for part in parts[:3])
    return plain.drifts(of(pair), *overlaps, parts[3][:, n], parts[4][:, n], parts[5][n])


SHAPES = [(1, 1), (3, 2), (9, 1)]
BY_QUADRATURE = "relu|erf"
"""Of one shape only: each of its drifts takes a millisecond."""


EACH = [(pair, *shape) for pair in PAIRS for shape in SHAPES if pair != BY_QUADRATURE or shape == SHAPES[0]]


@pytest.mark.parametrize(
    ("pair", "p", "k"), slow_but(EACH, *(case for case in EACH if case[1] == 3 and case[0] != "two terms"))
)
def test_drifts_are_those_of_each_alone(pair, p, k):
    """Of regular, singular and rank-deficient Ω; of 9 students error functions are taken in turn, not side by side."""
    count = 10 if p == 9 else 33
    parts = systems(p, k, count)
    together = of_many(pair, parts, pair in COMPILED and p < FULL)
    for n in range(count):
        flow, stretched = (of_one(pair, parts, n, factor) for factor in (1.0, parts[-1][n]))
        for ours, alone in zip(together, (flow[0], flow[1], stretched[2], flow[3]), strict=True):
            scale = max(np.abs(alone).max(), 1e-3)
            np.testing.assert_allclose(ours[..., n], alone, rtol=0, atol=ROUNDING[pair] * scale)


def test_students_of_few_terms_stand_side_by_side_and_others_take_turns():
    erf, two = of("erf|erf"), of("two terms")
    assert erf.of_many(FULL - 1) == (erf.in_lanes, no_drifts)
    assert erf.of_many(FULL) == (drifts_in_turn, erf.drifts)
    assert two.of_many(FULL // 2 - 1) == (two.in_lanes, no_drifts)
    assert two.of_many(FULL // 2) == (drifts_in_turn, two.drifts)


@pytest.mark.parametrize("pair", slow_among(["square|square", "erf|erf", "two terms", "he3|he3"], "two terms"))
def test_no_bit_depends_on_the_systems_beside(pair):
    """Groups of 16, 48 and 128: vector instructions, what is left over by them, and tiles of several pairs."""
    p, k = 2, 1
    parts = systems(p, k, 128)
    whole = of_many(pair, parts)
    for width in (16, 48):
        some = of_many(pair, [np.ascontiguousarray(part[..., 32 : 32 + width]) for part in parts])
        for one, other in zip(whole, some, strict=True):
            np.testing.assert_array_equal(one[..., 32 : 32 + width], other)


@pytest.mark.parametrize("pair", ["square|square", "erf|erf", "he3|he3", "linear|hermite(0.3, -1, 0.5)"])
def test_the_length_of_a_sample_and_its_fields(pair):
    """E[‖x‖² c c'] is Ψ^Var at Ω (1 + 2/d) to order 1/d²: twice its derivative there is E[c c' (|u|² − p − k)].

    u are the coordinates of a sample in the span of the weights. By 100 x 100 Gauss-Hermite nodes, p = k = 1.
    """
    F, a, a_star, Delta = np.array([[0.9, 0.0], [0.5, 0.8]]), 1.3, 0.8, 0.4
    student, teacher = (np.vectorize(activation(name).value) for name in pair.split("|"))
    slope = np.vectorize(activation(pair.split("|")[0]).derivative)
    x, weights = np.polynomial.hermite_e.hermegauss(100)
    u = np.stack([part.ravel() for part in np.meshgrid(x, x)])
    weight = np.outer(weights, weights).ravel() / (2.0 * np.pi)
    fields = F @ u
    error = a_star * teacher(fields[1]) - a * student(fields[0])
    expected = weight @ ((a * slope(fields[0])) ** 2 * (error**2 + Delta) * ((u**2).sum(axis=0) - 2.0))
    omega, step = F @ F.T, 1e-4
    parts = [np.repeat(part, 2, axis=-1) for part in (*omega[:, :, None, None][[0, 0, 1], [0, 1, 1]],)]
    layers = [np.full((1, 2), a), np.full((1, 2), a_star), np.full(2, Delta), np.array([1.0 - step, 1.0 + step])]
    variance = of_many(pair, [part.reshape(1, 1, 2) for part in parts] + layers, plain.plain)[2].ravel()
    assert np.diff(variance)[0] / step == pytest.approx(expected, rel=1e-6)
