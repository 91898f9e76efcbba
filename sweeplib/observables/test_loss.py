"""Mean loss E L(f, y) of fresh labels, with the loss and the kind of labels of the problem."""

from sweeplib.observables.observable import OBSERVABLES, Observable, by_quadrature
from sweeplib.observables.risk import READS
from sweeplib.views import Estimate, OverlapView

READS_OF_LABELS = READS | {"Delta"}


def test_loss(now: OverlapView) -> Estimate:
    """The mean loss (n,)."""
    return now.of_labels.test_loss(now.fields)


OBSERVABLES.register(
    "test_loss",
    Observable(
        "test_loss",
        test_loss,
        (),
        "mean loss of fresh labels",
        r"\mathbb{E}\,\ell(f, y)",
        reads=READS_OF_LABELS | {"loss", "labels"},
        needs_teacher=True,
        estimated=lambda problem: not problem.criterion.is_closed or by_quadrature(problem),
    ),
)
