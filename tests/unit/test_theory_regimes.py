"""Regimes of theory: their boundaries, and exponents that agree at the boundaries."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.engine.files.published import reference
from sweeplib.networks.theory import (
    coupling_exponent,
    deviation_exponent,
    excess_risk_exponent,
    noise_weight_exponent,
    regime,
    steps_exponent,
)
from sweeplib.networks.theory.regimes import REGIMES

S = np.linspace(-1.0, 1.5, 1001)


@pytest.mark.parametrize("row", list(reference("regimes").rows()), ids=str)
def test_published_regimes(row):
    assert REGIMES[int(regime(row["delta"], row["kappa"]))] == row["regime"]
    assert steps_exponent(row["delta"], row["kappa"]) == pytest.approx(row["steps_exponent"])


@pytest.mark.parametrize(("delta", "kappa", "name"), [(-1 / 3, 1 / 3, "plateau"), (-5 / 6, 1 / 3, "no_ode")])
def test_regimes_with_rounding_on_their_boundaries(delta, kappa, name):
    assert REGIMES[int(regime(delta, kappa))] == name


@pytest.mark.parametrize("exponent", [steps_exponent, excess_risk_exponent, deviation_exponent])
def test_exponents_have_no_jump(exponent):
    assert np.abs(np.diff(exponent(S, 0.0))).max() < 2.1 * (S[1] - S[0])


def test_the_spread_is_one_over_the_root_of_the_steps_where_there_is_an_ode():
    """(1 + s)/2 as √(γ/(pd)) = 1/√steps at s ≥ 0, and below, where Q moves by O(1) in all of them, 1/√steps again."""
    np.testing.assert_allclose(deviation_exponent(S, 0.0), steps_exponent(S, 0.0) / 2.0, atol=1e-12)


def test_the_noise_has_a_weight_wherever_there_is_an_ode():
    known = np.isfinite(noise_weight_exponent(S, 0.0))
    np.testing.assert_array_equal(known, regime(S, 0.0) != REGIMES.index("no_ode"))
    np.testing.assert_allclose(noise_weight_exponent(S, 0.0)[known], S[known])


def test_labelled_arrays_stay_so():
    delta, kappa = xr.DataArray([-1.0, 0.0], dims="delta"), xr.DataArray([0.0, 0.5], dims="kappa")
    found = coupling_exponent(delta, kappa)
    assert found.dims == ("delta", "kappa")
    assert found.attrs["symbol"] == r"\kappa+\delta"
