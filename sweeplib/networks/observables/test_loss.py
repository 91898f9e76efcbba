"""Mean loss E L(f, y) of fresh labels, with the loss and the kind of labels of the problem."""

from sweeplib.errors import InputError
from sweeplib.networks.observables.observable import OBSERVABLES, Observable, is_inexact
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.problem import TAILS, Problem
from sweeplib.networks.views import Estimate, ExitLevel, OverlapView

READS_OF_LABELS = READS | {"Delta"}
"""The parameters on which means over noisy labels depend."""


def test_loss(now: OverlapView) -> Estimate:
    """The mean loss (n,), and its error."""
    return now.of_labels.test_loss(now.fields)


def level(problem: Problem) -> ExitLevel:
    """The level of exits on R + Δ/2, the mean of the square loss of real labels; InputError for another loss.

    Kernels have no rule for the mean of another loss, which is a sum over nodes.
    """
    if not problem.criterion.is_plain:
        expected = "risk; or the test_loss of square and real labels"
        refusal = f"no closed form of the test_loss to exit on: {problem.loss} of {problem.labels} labels"
        raise InputError(refusal, key="exit_on", value="test_loss", expected=expected)
    return ExitLevel.above(problem.Delta / 2.0)


OBSERVABLES.add(
    Observable(
        "test_loss",
        test_loss,
        (),
        "mean loss of fresh labels",
        r"\mathbb{E}\,\ell(f, y)",
        reads=READS_OF_LABELS | TAILS | {"loss", "labels"},
        needs_teacher=True,
        estimated=lambda problem: not problem.criterion.is_closed or is_inexact(problem),
        level=level,
    ),
)
