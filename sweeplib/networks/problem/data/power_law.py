"""Gaussian inputs with the eigenvalues λ_j ∝ j^{−(1+a)}, j = 1 ... d, in bins that are geometric in j.

Scaling laws of the risk come from such inputs: a linear student of a teacher with equal coordinates has the risk
t^{−a/(1+a)} between the times of the first and of the last eigenvalue. A bin has the mean of its eigenvalues: with as
many bins as coordinates the law is exact, with fewer the risk has an error like the square of the log-width of a bin,
and beyond the time of the last eigenvalue a larger one.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from sweeplib.engine.base.late_modules import scipy
from sweeplib.errors import InputError
from sweeplib.networks.problem.data.data import DATA, Blocks
from sweeplib.networks.problem.data.spectrum import TeacherBlocks, law_of, normalised
from sweeplib.networks.problem.parameters import parameter

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


MOST_LOST = 1e-6
"""The largest relative error of an eigenvalue by rounding."""


class PowerLaw(TeacherBlocks):
    """a and the number of bins."""

    exponent: Annotated[float, Field(gt=0, allow_inf_nan=False)] = parameter(..., "exponent of the spectrum", "a", 1.0)
    """a > 0 of `power_law`: the eigenvalues are λ_j ∝ j^{−(1+a)}."""
    bins: Annotated[int, Field(ge=1, lt=2**31)] = parameter(20, "bins of the spectrum", "L", 40)
    """the number of bins of eigenvalues of `power_law`; bins without a coordinate are left out."""


@lru_cache(maxsize=1024)
def binned(exponent: float, bins: int, d: int) -> Blocks:
    """The means of the eigenvalues λ_j ∝ j^{−(1+a)} in geometric bins of j = 1 ... d, and the numbers of j in them.

    A sum over a bin is a difference of two Hurwitz zeta functions; bins that round to none are left out. InputError for
    an exponent that is so small that rounding of the two shows.
    """
    ends = np.unique(np.rint(np.geomspace(1, d + 1, min(bins, d) + 1))) if bins < d else np.arange(1.0, d + 2.0)
    sizes = np.diff(ends)
    # the functions are larger than the sum of a bin of n coordinates at j by about j/(a n)
    least = float((ends[:-1] / sizes).max()) * np.finfo(float).eps / MOST_LOST
    if exponent < least:
        raise InputError("too small an exponent", key="exponent", value=exponent, expected=f"at least {least:.2g}")
    sums = -np.diff(scipy.special.zeta(1.0 + exponent, ends))
    return normalised(sums / sizes, tuple(sizes.astype(int).tolist()))


def levels(problem: "Problem") -> Blocks:
    """Return the mean eigenvalues of the bins and the numbers of coordinates in them, for a problem."""
    return binned(problem.exponent, problem.bins, problem.d)


DATA.add(
    law_of("power_law", r"x \sim \mathcal{N}(0, \Sigma/d),\; \lambda_j \propto j^{-(1+a)}", PowerLaw, levels),
)
