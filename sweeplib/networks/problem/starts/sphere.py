"""Rows uniform on the sphere of radius √d, or uniform given the cosine m0 with the single teacher row."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.starts.start import STARTS, Normals, Start, rows_on_sphere, turned_to

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


class Cosine(Parameters):
    """The cosine m0 with the teacher at the start."""

    m0: Annotated[float, Field(gt=-1, lt=1)] | None = parameter(None, "overlap at the start", "m_0", 0.1)
    """the cosine in (−1, 1) of every student row with the single teacher row (k = 1) or, in a warm start, of row i with
    teacher row i mod k; the directions are otherwise uniform. By default the cosine is random."""


def weights(problem: "Problem", W_star: Array, normals: Normals) -> Array:
    """The weights W (p, d), made of N(0, 1) numbers, turned to the teacher's row in W_star (1, d) if m0 is given."""
    W = rows_on_sphere(normals(problem.p, problem.d))
    return W if problem.m0 is None else turned_to(W, W_star[0], problem.m0)


def stated(problem: "Problem") -> Array:
    """The overlaps M (p, k) that are fixed: m0 if it is given, with k = 1, and NaN without it."""
    return np.full((problem.p, problem.k), np.nan if problem.m0 is None else problem.m0)


def check(problem: "Problem") -> None:
    """Raise InputError for m0 with several teacher rows, or in one dimension."""
    if problem.m0 is not None and (problem.k != 1 or problem.d < 2):
        expected = "k = 1 and d > 1 beside it (`start: warm` takes any k)"
        raise InputError("no given overlap", key="m0", value=problem.m0, expected=expected)


STARTS.add(Start("sphere", weights, parameters=Cosine, on_sphere=True, stated=stated, check=check))
