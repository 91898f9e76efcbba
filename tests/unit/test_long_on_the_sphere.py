"""Spherical students whose gradients shrink their rows for long: errors of a norm grow like e^{−∫Φ_ii dt}, if they may.

Teachers with small outputs, so that 2E[c_i λ_i] < 0 throughout.
"""

import dataclasses

import numpy as np
import pytest

from sweeplib import simulate
from sweeplib.networks.problem import Problem
from tests.tiers import slow_but

SHRINKS = Problem(gamma=0.2, p=1, k=1, d=20, Delta=0.1, activation="erf", a_star=0.2, spherical=True)
SHOWN = ("risk", "overlap_Q", "overlap_M")


TWO = {"p": 2, "k": 2, "a": (1.0, 0.6)}


@pytest.mark.parametrize("fields", slow_but([{}, {"d": 1, "gamma": 0.5}, TWO], TWO), ids=str)
def test_sgd_stays_on_the_sphere_however_seldom_it_is_recorded(fields):
    """Its weights are those of a run recorded often, which divides rows by their norms at every record."""
    problem = dataclasses.replace(SHRINKS, **fields)
    often, seldom = (
        simulate(problem, "sgd", times=times, seeds=range(3), thresholds=[0.05], observables=SHOWN).isel(time=-1)
        for times in (np.linspace(0, 300, 601), [0, 300])
    )
    diagonal = seldom.overlap_Q.values.reshape(3, problem.p, problem.p).diagonal(axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal, 1.0, rtol=1e-10)
    np.testing.assert_allclose(seldom.overlap_M, often.overlap_M, atol=1e-8)
    np.testing.assert_array_equal(seldom.exit_steps, often.exit_steps)


def test_the_ode_of_blocks_stays_on_the_sphere():
    """Two blocks of the same eigenvalue have the overlaps of inputs without blocks."""
    blocks = dataclasses.replace(SHRINKS, data="spectrum", eigenvalues=(1.0, 1.0), fractions=(1.0, 2.0))
    one, two = (simulate(problem, "ode", times=[0, 300], observables=SHOWN) for problem in (SHRINKS, blocks))
    np.testing.assert_allclose(two.risk, one.risk, rtol=1e-6)
    np.testing.assert_allclose(two.overlap_M, one.overlap_M, atol=1e-6)
