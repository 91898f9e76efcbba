"""Test error on noisy labels, R + Δ/2."""

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.observables.risk import READS, risk
from sweeplib.networks.views import ExitLevel, NetworkView, OverlapView


def test_error(now: OverlapView | NetworkView) -> Array:
    """The expected square loss on a fresh noisy sample (n,)."""
    return risk(now) + now.Delta / 2.0


OBSERVABLES.add(
    Observable(
        "test_error",
        {OverlapView: test_error, NetworkView: test_error},
        (),
        "test error",
        r"\mathcal{R} + \Delta/2",
        reads=READS | {"Delta"},
        least=0.0,
        level=lambda problem: ExitLevel.above(problem.Delta / 2.0),
    ),
)
