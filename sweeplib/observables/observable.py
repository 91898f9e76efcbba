"""What an observable is: a labelled function of the overlaps at one time."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweeplib.maths.expectations import Expectations
from sweeplib.problem import PROBLEM_FIELDS
from sweeplib.registry import Registry

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of n replicas at one recording time.

    `Q` (n, p, p), `M` (n, p, k), `P` (n, k, k), `a` (n, p), `a_star` (n, k), `Delta` (n,), and the Gaussian
    `expectations` of the pair of activations.
    """

    Q: Array
    M: Array
    P: Array
    a: Array
    a_star: Array
    Delta: Array
    expectations: Expectations


@dataclass(frozen=True)
class Observable:
    """`function(snapshot)` gives an array (n, *dims); dims are among student, student_2, teacher and teacher_2.

    `symbol` is LaTeX without dollars; `over_time` says whether it is recorded at every time or, being constant, once.
    `reads` names the fields of a problem that it reads itself: all, unless it says less.
    """

    name: str
    function: Callable[[Snapshot], Array]
    dims: tuple[str, ...]
    long_name: str
    symbol: str
    units: str = "1"
    over_time: bool = True
    reads: frozenset[str] = frozenset(PROBLEM_FIELDS)


OBSERVABLES: Registry[Observable] = Registry("observable")
