"""Gaussian inputs x ~ N(0, I_d/d) and the labels of a target, y = f* + √Δ z."""

from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.problem.data.data import DATA, Blocks, DataLaw

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations
    from sweeplib.networks.problem.problem import Problem


def inputs(numbers: Array, key: Any, seed: Any, number: Any, x: Array) -> float:
    """Leave the inputs x (d,) as they are, and return 0: no part of the label comes with them.

    The other arguments are those of every data law (`DataLaw.inputs`).
    """
    return 0.0


def expectations(activation: str, of_target: "Expectations") -> "Expectations":
    """The expectations over Gaussian inputs, as they are."""
    return of_target


def classes() -> tuple[tuple[float, float, float], ...]:
    """One Gaussian: its odds, √d times the standard deviation of its inputs, and what it adds to the label."""
    return ((1.0, 1.0, 0.0),)


def blocks(problem: "Problem") -> Blocks:
    """Return the one eigenvalue 1 and its multiplicity d."""
    return (1.0,), (problem.d,)


DATA.add(
    DataLaw("teacher_student", r"x \sim \mathcal{N}(0, I_d/d)", inputs, expectations, classes, blocks=blocks),
)
