"""Population risk R = ½ E[(f* − f)²], without the noise floor Δ/2."""

from sweeplib.observables.observable import OBSERVABLES, Array, Observable, Snapshot


def risk(now: Snapshot) -> Array:
    """The population risk (n,)."""
    return now.expectations.risks(now.Q, now.M, now.P, now.a, now.a_star)


READS = frozenset({"activation", "teacher_activation", "a_star"})

OBSERVABLES.register("risk", Observable("risk", risk, (), "population risk", r"\mathcal{R}", reads=READS))
