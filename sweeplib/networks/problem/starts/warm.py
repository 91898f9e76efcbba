"""Start near the teacher: row i has norm √d and cosine m0 with teacher row i mod k, and is otherwise uniform."""

from typing import TYPE_CHECKING

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.problem.starts.sphere import Cosine
from sweeplib.networks.problem.starts.start import STARTS, Normals, Start, rows_on_sphere, turned_to

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


def weights(problem: "Problem", W_star: Array, normals: Normals) -> Array:
    """The weights W (p, d), made of N(0, 1) numbers, row i turned to row i mod k of W_star (k, d)."""
    W = rows_on_sphere(normals(problem.p, problem.d))
    assert problem.m0 is not None  # by `check`
    for r in range(min(problem.k, problem.p)):  # rows r, r + k, r + 2k, ...
        W[r :: problem.k] = turned_to(W[r :: problem.k], W_star[r], problem.m0)
    return W


def stated(problem: "Problem") -> Array:
    """The overlaps M_ir (p, k) that are fixed: m0 for r = i mod k, NaN for others."""
    assert problem.m0 is not None  # by `check`
    is_own = np.arange(problem.p)[:, None] % problem.k == np.arange(problem.k)
    return np.where(is_own, problem.m0, np.nan)


def check(problem: "Problem") -> None:
    """Raise InputError without m0, without a teacher, or in one dimension."""
    if problem.m0 is None:
        expected = "a number between -1 and 1, the cosine of student row i with teacher row i mod k"
        raise InputError("a warm start needs its overlap", key="m0", value=None, expected=expected)
    if problem.d < 2 or problem.k == 0:
        raise InputError("no given overlap", key="m0", value=problem.m0, expected="a teacher and d > 1 beside it")


STARTS.add(Start("warm", weights, parameters=Cosine, on_sphere=True, stated=stated, check=check))
