"""Properties that every registered loss must have."""

import pytest

from sweeplib.contracts.losses import CHECKS, its_closed_forms_are_sums_over_nodes
from sweeplib.problem import LOSSES
from tests.tiers import slow_among

CASES = [(name, check) for name in LOSSES for check in CHECKS]


@pytest.mark.parametrize(("name", "check"), slow_among(CASES, ("correlation", its_closed_forms_are_sums_over_nodes)))
def test_loss(name, check):
    check(name)
