"""Properties that every registered rule for steps must have."""

import pytest

from sweeplib.contracts.updates import CHECKS
from sweeplib.problem import UPDATES


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", UPDATES)
def test_step(name, check):
    check(name)
