"""Population risk R = ½ E[(y − f)²] of labels without noise, that is without the floor Δ/2; y = f* with a teacher."""

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.views import ExitLevel, NetworkView, OverlapView


def risk(now: OverlapView | NetworkView) -> Array:
    """The population risk (n,).

    Its error may make it negative, as may fluctuations in a member of an ensemble (the ODE at finite d).
    """
    if isinstance(now, NetworkView):
        return now.risk
    now = now.fields
    return now.expectations.risks(now.Q, now.M, now.P, now.a, now.a_star)


READS = frozenset({"activation", "teacher_activation", "a_star", "target", "data"})
"""The parameters on which a risk at given overlaps and second layer depends."""

OBSERVABLES.add(
    Observable(
        "risk",
        {OverlapView: risk, NetworkView: risk},
        (),
        "population risk",
        r"\mathcal{R}",
        reads=READS,
        least=0.0,
        level=lambda problem: ExitLevel(),
    ),
)
