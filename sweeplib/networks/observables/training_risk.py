"""Training risk: half the mean squared error on the training set, with its noisy labels, or their signs."""

from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import TrainingView, TwoTimeView

NEEDS = frozenset({"samples"})
"""The parameters that a problem must set for observables of a training set."""

OBSERVABLES.add(
    Observable(
        "training_risk",
        {TrainingView: lambda now: now.training_risk, TwoTimeView: lambda now: now.training_risk},
        (),
        "training risk",
        r"\hat{\mathcal{R}}_n",
        needs=NEEDS,
    ),
)
