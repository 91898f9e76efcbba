"""The correlation loss −y f, whose force is the label: as if the student had no output.

It has no minimum, norms grow. On the sphere half of the works on sample complexity take it (as arXiv 2406.02157).
E = y − f is the displacement; the loss has no parameters, so `numbers` is empty.
"""

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.problem.losses.loss import LOSSES, Loss

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations

SHARE = 2.0**-120
"""The factor s of the second layer at which the drifts of the square loss are taken."""


def force(numbers: Any, E: float, y: float) -> float:
    """Return the force, which is the label."""
    return y


def value(numbers: Any, E: float, y: float) -> float:
    """Return the loss −y f, f = y − E."""
    return y * (E - y)


def mean(risks: Any, a: Any, Delta: Any) -> Any:
    """The mean loss −E[f* f] (n,): the part of the risk ½ E[(f* − f)²] that is odd in a.

    risks : function of second layers a (n, p) that returns the risks (n,).
    """
    return 0.5 * (risks(a) - risks(-a))


rule = System = unbound
"""Bound by `drifts`."""


@cache
def drifts(needed: "Expectations") -> "Expectations":
    """The expectations with the label y in place of y − f in all drifts, by the rules of the square loss.

    In units of s, those of a second layer s a have y − s f in place of y − f, where s f is less than a rounding error.
    All factors s are powers of two: nothing is rounded.
    """
    from sweeplib.networks.maths.expectations import system
    from sweeplib.networks.numerics.compiled import inlined

    of_labels = bound(_drifts, rule=inlined(needed.drifts), System=system.System)
    return replace(needed, drifts=of_labels, in_lanes=None, finer=drifts(needed.finer) if needed.finer else None)


def _drifts(system, out):  # type: ignore[no-untyped-def]
    """Fill the `Drifts` `out` of a `System` with those of labels in place of displacements.

    They are the drifts of the square loss at the second layer s a, where f is nothing beside the label, over s, or over
    s² of Ψ^Var; Ψ^a has no a in front.
    """
    Q, M, P, a, a_star, Delta, stretch, pair, others = system
    p, k = M.shape
    small = np.empty(p)
    for i in range(p):
        small[i] = SHARE * a[i]
    rule(System(Q, M, P, small, a_star, Delta, stretch, pair, others), out)
    for i in range(p):
        for r in range(k):
            out.M[i, r] /= SHARE
        for j in range(p):
            out.GF[i, j] /= SHARE
            out.Var[i, j] /= SHARE * SHARE


LOSSES.add(Loss("correlation", "-y f", force, value, drifts=drifts, mean=mean))
