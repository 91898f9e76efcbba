"""The drifts of many systems one after another, for families that have them of one system only."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by the family, which has a `stretch`")


drifts = _unbound


def drifts_in_turn(
    filled: int,
    Q: Array,
    M: Array,
    P: Array,
    a: Array,
    a_star: Array,
    Delta: Array,
    stretch: Array,
    drift_M: Array,
    drift_GF: Array,
    drift_Var: Array,
    drift_a: Array,
) -> None:
    """Ψ^M, Ψ^GF and Ψ^a of the first `filled` systems, and Ψ^Var of the same at Ω times `stretch`."""
    p, k, _ = M.shape
    own_a, own_a_star, own_drift_a = np.empty(p), np.empty(k), np.empty(p)
    own_Q, own_M, own_P = np.empty((p, p)), np.empty((p, k)), np.empty((k, k))
    own_drift_M, own_drift_GF, own_drift_Var = np.empty((p, k)), np.empty((p, p)), np.empty((p, p))
    out = own_drift_M, own_drift_GF, own_drift_Var, own_drift_a
    for lane in range(filled):
        for i in range(p):
            own_a[i] = a[i, lane]
            for j in range(p):
                own_Q[i, j] = Q[i, j, lane]
            for r in range(k):
                own_M[i, r] = M[i, r, lane]
        for r in range(k):
            own_a_star[r] = a_star[r, lane]
            for s in range(k):
                own_P[r, s] = P[r, s, lane]
        drifts(own_Q, own_M, own_P, own_a, own_a_star, Delta[lane], *out, stretch[lane])
        for i in range(p):
            drift_a[i, lane] = own_drift_a[i]
            for j in range(p):
                drift_GF[i, j, lane] = own_drift_GF[i, j]
                drift_Var[i, j, lane] = own_drift_Var[i, j]
            for r in range(k):
                drift_M[i, r, lane] = own_drift_M[i, r]
