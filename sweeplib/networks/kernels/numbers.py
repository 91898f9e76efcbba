"""The numbers of replicas, in one container for all kernels.

A parameter of a problem itself that is a real number is a field of it, under its own name and without being named here.
"""

from collections import namedtuple
from typing import Any, cast, get_args

from sweeplib.networks.numerics.compiled import inlined
from sweeplib.networks.problem.base_parameters import CORE, TAILS
from sweeplib.networks.problem.parameters import PARAMETERS

REAL = tuple(name for name in CORE if get_args(PARAMETERS[name].type)[:1] == (float,) and name not in TAILS)
"""The parameters of a problem itself that are real numbers; the criterion has the numbers of the noise of labels."""

Numbers = cast(Any, namedtuple("Numbers", (*REAL, "d", "T", "noise", "deviation")))
"""The numbers of a replica, or arrays (n,) for n replicas: parameters, d, T = γ/(pd), the noise γ/(p n_b) and √Δ.

T is the ODE time of a step. With schedules, those in lanes have T, the noise, √Δ and Δ of the present step in it.
"""


COUNT = len(Numbers._fields)
"""The number of rows of `Numbers` in a block of constants."""


def _of_rows() -> Any:
    """A function that makes `Numbers` of the rows of an array (COUNT, n): compiled code needs a tuple in full."""
    rows = ", ".join(f"rows[{at}]" for at in range(COUNT))
    return eval(compile(f"lambda rows: Numbers({rows})", __file__, "eval"), globals())


numbers_of_rows = inlined(_of_rows())
"""Compiled: rows (COUNT, n) → the `Numbers` whose fields are these rows."""
