"""Compiled closed forms are those of the plain Python, one pair of activations a family."""

import numpy as np
import pytest

from sweeplib.networks.maths.expectations import expectations
from tests import plain

FAMILIES = {
    "erf|erf": 1e-12,
    "he3|he3": 1e-12,
    "relu|relu": 1e-11,
    "square|square": 1e-12,
}
"""A pair of each family: what rounding may do, over the largest entry."""


def systems(p, k):
    """Ω, a, a* of p students and k teachers: regular, of rank two, and with a unit of zeros."""
    rng = np.random.default_rng(23)
    for kind in range(3):
        factor = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k + 2)
        if kind == 1:
            factor[:, 2:] = 0.0
        if kind == 2:
            factor[0] = 0.0
        yield factor @ factor.T, rng.normal(size=p), rng.normal(size=k)


@pytest.mark.rest
@pytest.mark.parametrize("pair", FAMILIES)
def test_compiled_is_plain(pair):
    needed = expectations(*pair.split("|"))
    for omega, a, a_star in systems(3, 2):
        system = *plain.blocks(omega, len(a)), a, a_star
        compiled, python = (plain.drifts(needed, *system, 0.3, compiled=how) for how in (True, False))
        for one, other in zip(compiled, python, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=FAMILIES[pair] * max(np.abs(other).max(), 1e-3))
        risk = needed.risks(*(part[None] for part in system))[0]
        assert risk == pytest.approx(plain.risk(needed, *system), rel=FAMILIES[pair], abs=1e-15)


@pytest.mark.rest
def test_arrays_may_be_read_only():
    """Of one unit a transposed array is no copy: what is read-only must not reach the compiled function as it is."""
    one, layer = np.ones((1, 1, 1)), np.ones((1, 1))
    for part in (one, layer):
        part.flags.writeable = False
    needed = expectations("square")
    assert needed.risks(one, one, one, layer, layer) == pytest.approx([0.0])
    assert needed.drift_errors(one, one, one, layer, layer, np.ones(1)) == [0.0]
