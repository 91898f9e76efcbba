"""Properties that every registered rule for steps must have."""

import pytest

from sweeplib.contracts import updates as contract
from sweeplib.contracts.check import checks_of
from sweeplib.networks.problem import UPDATES


@pytest.mark.parametrize("check", checks_of(contract))
@pytest.mark.parametrize("name", UPDATES)
def test_step(name, check):
    check(name)
