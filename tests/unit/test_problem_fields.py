"""Where theory of SGD's plain steps applies: masks over the points of a dataset."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis.kit.problem_fields import KNOWN, with_plain_steps
from sweeplib.networks.problem.base_parameters import CORE
from sweeplib.networks.problem.parameters import PARAMETERS


@pytest.mark.rest
@pytest.mark.parametrize("name", sorted(set(CORE) - KNOWN))
def test_a_parameter_of_which_no_theory_knows_has_its_default_where_one_applies(name):
    """As an axis or as an attribute; also of parameters to come."""
    default, other = PARAMETERS[name].default, PARAMETERS[name].example
    assert with_plain_steps(xr.Dataset(attrs={name: default}))
    assert not with_plain_steps(xr.Dataset(attrs={name: other}))
    axis = with_plain_steps(xr.Dataset(coords={name: [default, other]}))
    np.testing.assert_array_equal(axis, [True, False])


def test_theory_knows_parameters_of_a_problem_alone():
    assert set(CORE) > KNOWN
