"""Training risk: the mean of E²/2 over the data set, with the noise of its labels."""

from sweeplib.observables.observable import OBSERVABLES, Observable
from sweeplib.views import TwoTimeView

OBSERVABLES.register(
    "training_risk",
    Observable(
        "training_risk",
        {TwoTimeView: lambda now: now.training_risk},
        (),
        "training risk",
        r"\hat{\mathcal{R}}",
        reads=frozenset(),
    ),
)
