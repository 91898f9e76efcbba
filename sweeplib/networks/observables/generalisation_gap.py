"""Generalisation gap: the test error on noisy labels, R + Δ/2, minus the training risk."""

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.observables.test_error import test_error
from sweeplib.networks.observables.training_risk import NEEDS
from sweeplib.networks.problem import Limit
from sweeplib.networks.views import TrainingView, TwoTimeView


def generalisation_gap(now: TrainingView | TwoTimeView) -> Array:
    """The expected loss on a fresh noisy sample minus the mean loss on the training set (n,)."""
    return test_error(now) - now.training_risk


OBSERVABLES.add(
    Observable(
        "generalisation_gap",
        {TrainingView: generalisation_gap, TwoTimeView: generalisation_gap},
        (),
        "generalisation gap",
        r"\mathcal{R} + \Delta/2 - \hat{\mathcal{R}}_n",
        needs=NEEDS,
        limits=(
            Limit("labels", "no test error of signs", "`real` labels; or `training_risk`, of signs, and `test_loss`"),
        ),
    ),
)
