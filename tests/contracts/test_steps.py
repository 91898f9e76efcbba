"""Properties that every registered rule for steps must have."""

import pytest

from sweeplib.contracts.steps import CHECKS
from sweeplib.problem import STEPS


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", STEPS)
def test_step(name, check):
    check(name)
