"""Properties of every activation and every pair with Gaussian expectations, checked by independent routes.

Monte Carlo of risk, Ψ^M, Ψ^GF, Ψ^Var and Ψ^a, about 20 different entries per pair and covariance. Half of the samples
are drawn with twice the width and all are weighted by the ratio of densities, because high polynomials are dominated by
the tails. Seeds are fixed; with a new seed:

- short: 2·10⁵ samples, |z| < 5, every activation with itself and with the next: a false alarm with 6·10⁻⁷ per entry,
  about 10⁻³ for the file;
- long: 10⁷ samples, |z| < 4, every pair. One entry in 16 000 is beyond by chance, and there are some 10⁴; such entries
  are tested with another 10⁷ samples: both beyond with 4·10⁻⁹ per entry, about 4·10⁻⁵ for the file.
"""

import functools
import itertools
import sys

import numba
import numpy as np
import pytest

from sweeplib.contracts import activations as contract
from sweeplib.contracts.check import checks_of
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.networks.maths.activations import ACTIVATIONS
from sweeplib.networks.maths.expectations import expectations
from tests import plain

FORMED = [
    "hermite(0, 0, 0.3, -1)",
    "piecewise(0.5, -2.5, 1.5, 7.5)",
    "piecewise(0, -2.5, 0.5, -4, 1.5, 7.5)",
    "piecewise(-0.5, 0, 0, 1, 0.5, 0)",
]
"""Activations of each form with numbers in its name."""
KINDS = ["random", "nearly singular", "rank deficient"]
CHUNK = 100_000
WIDE = 2.0
A, A_STAR, DELTA = np.array([1.0, -0.7, 1.3]), np.array([0.8, 1.5]), 0.3


def every_pair():
    return [f"{student}|{teacher}" for student, teacher in itertools.product(ACTIVATIONS, repeat=2)]


def neighbours():
    """Return every activation paired with itself, and as a student of the next activation."""
    names = list(ACTIVATIONS)
    return sorted({f"{names[i]}|{names[(i + step) % len(names)]}" for i in range(len(names)) for step in (0, 1)})


@pytest.fixture
def softplus(tmp_path):
    """Register a temporary activation, defined in one file by its value and derivative only."""
    plugin = tmp_path / "softplus.py"
    plugin.write_text(
        """
import math
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation

def value(field):
    return max(field, 0.0) + math.log1p(math.exp(-abs(field)))

def derivative(field):
    return 1.0 / (1.0 + math.exp(-field))

ACTIVATIONS.register("softplus", Activation("softplus", r"\\\\log(1 + e^\\\\lambda)", value, derivative, 1))
"""
    )
    load_plugins([str(plugin)])
    yield "softplus"
    del ACTIVATIONS._things["softplus"], sys.modules["softplus"]


@pytest.mark.parametrize("check", checks_of(contract))
@pytest.mark.parametrize("name", [*ACTIVATIONS, *FORMED])
def test_activation(name, check):
    check(name)


def factors(p, k):
    """Return factors F of Ω = F Fᵀ: random, nearly singular (two units 10⁻⁵ apart, one tiny), rank deficient, p > d."""
    rng = np.random.default_rng(17)
    full = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k)
    near = full.copy()
    near[1] = near[0] + 1e-5 * near[1]
    near[p - 1] *= 1e-5
    return {"random": full, "nearly singular": near, "rank deficient": full[:, :2]}


@numba.njit(error_model="numpy")
def add_moments(value, slope, target, fields, weight, a, a_star, Delta, sums, squares):
    """Add the weighted risk, Ψ^M, Ψ^GF, Ψ^Var, Ψ^a of samples, and their squares; the label noise is averaged."""
    p, k = value.shape[1], target.shape[1]
    entries = np.empty(len(sums))
    for sample in range(len(weight)):
        error = 0.0
        for r in range(k):
            error += a_star[r] * target[sample, r] / k
        for i in range(p):
            error -= a[i] * value[sample, i] / p
        entries[0] = 0.5 * error * error
        at = 1
        for i in range(p):
            for r in range(k):
                entries[at] = a[i] * slope[sample, i] * fields[sample, p + r] * error
                at += 1
        for i in range(p):
            for j in range(p):
                pull = a[i] * slope[sample, i]
                push = a[j] * slope[sample, j]
                entries[at] = (pull * fields[sample, j] + push * fields[sample, i]) * error
                entries[at + p * p] = pull * push * (error * error + Delta)
                at += 1
        for i in range(p):
            entries[at + p * p + i] = value[sample, i] * error
        for entry in range(len(sums)):
            weighed = weight[sample] * entries[entry]
            sums[entry] += weighed
            squares[entry] += weighed * weighed


@functools.cache
def elementwise(function):
    return numba.vectorize(["float64(float64)"])(function)


def moments(pairs, samples, a, a_star, Delta):
    """The mean of the weighted entries of each pair over all chunks (fields, weight), and its standard error."""
    names = {name for pair in pairs for name in pair.split("|")}
    functions = {
        name: [elementwise(f) for f in (ACTIVATIONS[name].value, ACTIVATIONS[name].derivative)] for name in names
    }
    p, k, count = len(a), len(a_star), 0
    totals = {pair: np.zeros((2, 1 + p * k + 2 * p * p + p)) for pair in pairs}
    for fields, weight in samples:
        lam, lam_star = np.ascontiguousarray(fields[:, :p]), np.ascontiguousarray(fields[:, p:])
        known = {name: (value(lam), slope(lam), value(lam_star)) for name, (value, slope) in functions.items()}
        for pair in pairs:
            student, teacher = (known[name] for name in pair.split("|"))
            add_moments(student[0], student[1], teacher[2], fields, weight, a, a_star, Delta, *totals[pair])
        count += len(weight)
    means = {pair: total[0] / count for pair, total in totals.items()}
    return {pair: (mean, np.sqrt((totals[pair][1] / count - mean**2) / count)) for pair, mean in means.items()}


def drawn(factor, chunks, seed):
    """Yield chunks of fields F g with weights; half of the g have twice their true width."""
    dimension = factor.shape[1]
    for chunk in range(chunks):
        g = np.random.default_rng([seed, chunk]).normal(size=(CHUNK, dimension))
        g[CHUNK // 2 :] *= WIDE
        ratio = WIDE**-dimension * np.exp(0.5 * (1.0 - WIDE**-2) * (g**2).sum(axis=1))
        yield g @ factor.T, 2.0 / (1.0 + ratio)


def computed(pair, omega, p, a, a_star, Delta):
    """Return risk and drifts by the rules in plain Python, uncompiled."""
    needed, system = expectations(*pair.split("|")), (*plain.blocks(omega, p), a, a_star)
    found = plain.drifts(needed, *system, Delta)
    return np.concatenate([[plain.risk(needed, *system)], *map(np.ravel, found)])


def scores(pairs, kind, samples, seed=1):
    """Return the largest |z| of each pair."""
    factor = factors(3, 2)[kind]
    found = moments(pairs, drawn(factor, samples // CHUNK, seed), A, A_STAR, DELTA)
    results = {}
    for pair, (mean, error) in found.items():
        assert (error > 0.0).all()
        results[pair] = np.abs((computed(pair, factor @ factor.T, 3, A, A_STAR, DELTA) - mean) / error).max()
    return results


def beyond(bound, scored):
    return {pair: score for pair, score in scored.items() if not score < bound}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_expectations_equal_monte_carlo(kind):
    assert not beyond(5.0, scores(neighbours(), kind, 200_000))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_expectations_of_every_pair_equal_monte_carlo(kind):
    suspects = beyond(4.0, scores(every_pair(), kind, 10_000_000))
    assert not beyond(4.0, scores(list(suspects), kind, 10_000_000, seed=2))


def by_panels(pairs):
    """Gauss-Legendre quadrature for p = k = 1, in each quadrant of (λ, λ*), so that kinks at zero do not matter."""
    factor = np.array([[0.8, 0.0], [0.3, 0.9]])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    half, share = 6.5 * (1.0 + nodes), 6.5 * weights
    g, shift = (part.ravel() for part in np.meshgrid(np.r_[-half, half], np.r_[-half, half], indexing="ij"))
    points = np.stack([g, shift - g / 3.0], axis=1)
    weight = np.outer(np.tile(share, 2), np.tile(share, 2)).ravel() * np.exp(-0.5 * (points**2).sum(axis=1))
    samples = [(points @ factor.T, weight / (2.0 * np.pi) * len(points))]
    a, a_star = np.array([1.2]), np.array([0.7])
    found = moments(pairs, samples, a, a_star, DELTA)
    return {pair: (computed(pair, factor @ factor.T, 1, a, a_star, DELTA), found[pair][0]) for pair in pairs}


@pytest.mark.slow
def test_expectations_equal_another_quadrature():
    for pair, (result, expected) in by_panels(neighbours()).items():
        np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-9, err_msg=pair)


@pytest.mark.slow
def test_an_activation_from_one_file_keeps_every_promise(softplus):
    """An activation defined by value and derivative only: alone, and as the teacher of another."""
    for check in checks_of(contract):
        check(softplus)
    pairs = ["softplus|softplus", "relu|softplus"]
    for kind in KINDS:
        assert not beyond(5.0, scores(pairs, kind, 200_000))
    for pair, (result, expected) in by_panels(pairs).items():
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-9, err_msg=pair)
