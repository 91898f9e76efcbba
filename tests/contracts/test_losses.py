"""Properties that every registered loss must have."""

import pytest

from sweeplib.contracts import losses as contract
from sweeplib.contracts.check import checks_of
from sweeplib.networks.problem import LOSSES
from tests.tiers import slow_among

CASES = [(name, check) for name in LOSSES for check in checks_of(contract)]


@pytest.mark.parametrize(
    ("name", "check"), slow_among(CASES, ("correlation", contract.its_closed_forms_are_sums_over_nodes))
)
def test_loss(name, check):
    check(name)
