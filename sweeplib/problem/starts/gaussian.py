"""Weights with N(0, s²) entries, s the `start_scale`."""

from typing import TYPE_CHECKING

from sweeplib.problem.starts.start import STARTS, Array, Normals, Start

if TYPE_CHECKING:
    from sweeplib.problem.problem import Problem


def weights(problem: "Problem", W_star: Array, normals: Normals) -> Array:
    """W (p, d)."""
    return problem.start_scale * normals(problem.p, problem.d)


STARTS.register("gaussian", Start("gaussian", weights, frozenset({"start_scale"})))
