"""Properties that every registered loss must have."""

import pytest

from sweeplib.contracts import losses as contract
from sweeplib.contracts.check import checks_of
from sweeplib.problem import LOSSES


@pytest.mark.parametrize("check", checks_of(contract))
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, check):
    check(name)
