"""Weights with N(0, s²) entries, s the `start_scale`."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.starts.start import STARTS, Normals, Start

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


class Scale(Parameters):
    """The standard deviation s of the weights."""

    start_scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = parameter(
        1.0, "standard deviation of the student's first weights", "s", 0.8
    )
    """s > 0 of a `gaussian` start."""


def weights(problem: "Problem", W_star: Array, normals: Normals) -> Array:
    """The weights W (p, d) of a problem, from the N(0, 1) numbers of its replica."""
    return problem.start_scale * normals(problem.p, problem.d)


STARTS.add(Start("gaussian", weights, parameters=Scale))
