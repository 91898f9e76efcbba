"""Probability that the sign of the output is not that of the label, P(y f < 0), for labels with noise."""

from sweeplib.observables.observable import OBSERVABLES, Observable
from sweeplib.observables.test_loss import READS_OF_LABELS
from sweeplib.views import Estimate, OverlapView


def classification_error(now: OverlapView) -> Estimate:
    """P(y f < 0) (n,)."""
    return now.of_labels.classification_error(now.fields)


OBSERVABLES.register(
    "classification_error",
    Observable(
        "classification_error",
        classification_error,
        (),
        "classification error",
        r"\mathbb{P}(y f < 0)",
        reads=READS_OF_LABELS,
        needs_teacher=True,
        least=0.0,
        estimated=lambda problem: True,
    ),
)
