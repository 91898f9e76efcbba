"""Compiled expectations equal those of the plain Python, for one pair of activations per family."""

import numpy as np
import pytest

from sweeplib.maths.expectations import expectations
from tests import plain

FAMILIES = {
    "erf|erf": 1e-12,
    "he3|he3": 1e-12,
    "relu|relu": 1e-11,
    "relu|erf": 1e-9,
    "square|square": 1e-12,
}
"""A pair of each family: what rounding may do, over the largest entry."""
SHAPES = {"relu|erf": (1, 1)}
"""p and k, unless 3 and 2: quadrature in Python takes long."""


def systems(p, k):
    """Return Ω, a, a* of p students and k teachers: regular, of rank two, and with a unit of zeros."""
    rng = np.random.default_rng(23)
    for kind in range(3):
        factor = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k + 2)
        if kind == 1:
            factor[:, 2:] = 0.0
        if kind == 2:
            factor[0] = 0.0
        yield factor @ factor.T, rng.normal(size=p), rng.normal(size=k)


@pytest.mark.parametrize("pair", FAMILIES)
def test_compiled_is_plain(pair):
    needed = expectations(*pair.split("|"))
    for omega, a, a_star in systems(*SHAPES.get(pair, (3, 2))):
        system = *plain.blocks(omega, len(a)), a, a_star
        compiled, python = (plain.drifts(needed.drifts, *system, 0.3, compiled=how) for how in (True, False))
        for one, other in zip(compiled, python, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=FAMILIES[pair] * max(np.abs(other).max(), 1e-3))
        risk = needed.risks(*(part[None] for part in system))[0]
        assert risk == pytest.approx(plain.risk(needed, *system), rel=FAMILIES[pair], abs=1e-15)


def test_arrays_may_be_read_only():
    """For one unit a transposed array is no copy: a read-only array must not reach the compiled function unchanged."""
    one, layer = np.ones((1, 1, 1)), np.ones((1, 1))
    for part in (one, layer):
        part.flags.writeable = False
    needed = expectations("square")
    assert needed.risks(one, one, one, layer, layer) == pytest.approx([0.0])
    assert needed.drift_errors(one, one, one, layer, layer, np.ones(1)) == [0.0]
