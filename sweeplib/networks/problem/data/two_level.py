"""Gaussian inputs with two eigenvalues: a part φ of the coordinates has r times the variance of the others."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from sweeplib.networks.problem.data.data import DATA, Blocks
from sweeplib.networks.problem.data.spectrum import Positive, TeacherBlocks, law_of, multiplicities, normalised
from sweeplib.networks.problem.parameters import parameter

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


class TwoLevels(TeacherBlocks):
    """The ratio r of the eigenvalues, and the part φ of the coordinates with the first."""

    level_ratio: Positive = parameter(..., "ratio of the two eigenvalues", r"\lambda_1/\lambda_2", 10.0)
    """λ_1/λ_2 > 0 of `two_level`, the ratio of the eigenvalues of the first and the second block."""
    level_fraction: Annotated[float, Field(gt=0, lt=1)] = parameter(
        0.5, "part of the coordinates with the first eigenvalue", "d_1/d", 0.1
    )
    """the part in (0, 1) of the coordinates that are in the first block of `two_level`."""


def levels(problem: "Problem") -> Blocks:
    """The two eigenvalues of a problem, scaled, and their multiplicities."""
    fraction = problem.level_fraction
    sizes = multiplicities((fraction, 1.0 - fraction), problem.d, "level_fraction", fraction)
    return normalised((problem.level_ratio, 1.0), sizes)


DATA.add(law_of("two_level", r"x \sim \mathcal{N}(0, \mathrm{diag}(\lambda_1, \lambda_2)/d)", TwoLevels, levels))
