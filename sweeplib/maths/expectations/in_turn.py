"""The drifts of many systems one after another, for families without a rule in lanes.

The rule for one system is called by its address, so the loop over systems is compiled once for all families.
"""

import numpy as np

from sweeplib.maths.expectations.system import Drifts, System, drifts_room


def drifts_in_turn(filled: int, system: System, out: Drifts) -> None:
    """Ψ^M, Ψ^GF and Ψ^a of the first `filled` systems, and Ψ^Var of the same at Ω times `stretch`."""
    p, k, _ = system.M.shape
    Q, M, P = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    a, a_star, found = np.empty(p), np.empty(k), drifts_room(p, k)
    for lane in range(filled):
        for i in range(p):
            a[i] = system.a[i, lane]
            for j in range(p):
                Q[i, j] = system.Q[i, j, lane]
            for r in range(k):
                M[i, r] = system.M[i, r, lane]
        for r in range(k):
            a_star[r] = system.a_star[r, lane]
            for s in range(k):
                P[r, s] = system.P[r, s, lane]
        one = System(Q, M, P, a, a_star, system.Delta[lane], system.stretch[lane], system.pair, None)
        system.drifts(one, found)
        for i in range(p):
            out.a[i, lane] = found.a[i]
            for j in range(p):
                out.GF[i, j, lane] = found.GF[i, j]
                out.Var[i, j, lane] = found.Var[i, j]
            for r in range(k):
                out.M[i, r, lane] = found.M[i, r]
