"""The Gaussian expectations of a problem: those of its target for its student."""

from typing import TYPE_CHECKING

from sweeplib.problem.targets import target

if TYPE_CHECKING:
    from sweeplib.maths.expectations import Expectations
    from sweeplib.problem.problem import Problem


def problem_expectations(problem: "Problem") -> "Expectations":
    """The expectations of the problem's target for its activations; InputError where the target has none for them."""
    return target(problem.learned).expectations(problem.activation, problem.teacher)
