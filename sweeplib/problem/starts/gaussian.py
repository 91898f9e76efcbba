"""Weights with N(0, 1) entries."""

from typing import TYPE_CHECKING

from sweeplib.problem.starts.start import STARTS, Array, Normals, Start

if TYPE_CHECKING:
    from sweeplib.problem.problem import Problem


def weights(problem: "Problem", W_star: Array, normals: Normals) -> Array:
    """W (p, d)."""
    return normals(problem.p, problem.d)


STARTS.register("gaussian", Start("gaussian", weights))
