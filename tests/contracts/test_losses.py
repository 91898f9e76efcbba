"""Properties that every registered loss must have."""

import pytest

from sweeplib.contracts.losses import CHECKS
from sweeplib.problem import LOSSES


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", LOSSES)
def test_loss(name, check):
    check(name)
