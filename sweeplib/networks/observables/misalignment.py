"""Misalignment: one minus the cosine of the teacher row found last with the student row nearest to it, up to its sign.

1 − min_r max_i |M_ir|/√(Q_ii P_rr). A random start has 1 − O(1/√d); it is 0 when each teacher row has a student's
direction.
"""

import math

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.observables.observable import OBSERVABLES, Observable
from sweeplib.networks.problem import DEFAULTS, Problem
from sweeplib.networks.views import ExitLevel, OverlapView


def of_units(now: OverlapView) -> Array:
    """The misalignment (n,); rows without a length have the cosine 0."""
    norms = np.sqrt(now.q[:, :, None] * np.einsum("nrr->nr", now.P)[:, None, :])
    cosines = np.divide(np.abs(now.M), norms, out=np.zeros(norms.shape), where=norms != 0.0)
    return 1.0 - cosines.max(axis=1).min(axis=1)


def rule(pair, Q, M, P, a, a_star, out):  # type: ignore[no-untyped-def]
    """Fill out (n,) with the misalignments of n networks: a rule of exits (`ExitLevel`), for kernels.

    Q (p, p, n), M (p, k, n), P (k, k, n); pair, a and a_star, which all such rules get, are not read.
    """
    p, k, n = M.shape
    for lane in range(n):
        least = math.inf
        for r in range(k):
            most = 0.0
            for i in range(p):
                norm = math.sqrt(Q[i, i, lane] * P[r, r, lane])
                most = max(most, abs(M[i, r, lane]) / norm if norm > 0.0 else 0.0)
            least = min(least, most)
        out[lane] = 1.0 - least


def level(problem: Problem) -> ExitLevel:
    """The level of exits on the misalignment; InputError for inputs with a spectrum.

    Rules are given covariances of fields, which then are not the overlaps.
    """
    if problem.has_spectrum:
        expected = f"{DEFAULTS['data']} where runs exit on misalignment; or exits on risk"
        raise InputError("no misalignment to exit on", key="data", value=problem.data, expected=expected)
    return ExitLevel(rule)


OBSERVABLES.add(
    Observable(
        "misalignment",
        of_units,
        (),
        "misalignment",
        r"1 - \min_r \max_i |\cos\vartheta_{ir}|",
        reads=frozenset(),
        needs_teacher=True,
        level=level,
    ),
)
