"""Generalisation gap: the test error on noisy labels, R + Δ/2, minus the training risk."""

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.observables.test_error import test_error
from sweeplib.networks.observables.training_risk import NEEDS
from sweeplib.networks.problem import Problem
from sweeplib.networks.views import TrainingView, TwoTimeView


def generalisation_gap(now: TrainingView | TwoTimeView) -> Array:
    """The expected loss on a fresh noisy sample minus the mean loss on the training set (n,)."""
    return test_error(now) - now.training_risk


def check(problem: Problem) -> None:
    """InputError for labels that are signs, as those of a training set then are: R + Δ/2 is of real ones."""
    if problem.criterion.signs:
        expected = "`real` labels; or `training_risk`, of signs, and `test_loss`"
        raise InputError("no test error of signs", key="labels", value=problem.labels, expected=expected)


OBSERVABLES.add(
    Observable(
        "generalisation_gap",
        {TrainingView: generalisation_gap, TwoTimeView: generalisation_gap},
        (),
        "generalisation gap",
        r"\mathcal{R} + \Delta/2 - \hat{\mathcal{R}}_n",
        needs=NEEDS,
        check=check,
    ),
)
