"""Views: what observables may ask of the state of a dynamics, at one time, of n replicas."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sweeplib.maths.expectations import Expectations
    from sweeplib.problem import Problem

Array = NDArray[np.float64]
Lazy = Array | Callable[[], Array]
"""An array, or a function that makes it when it is first asked for."""


class View:
    """Arrays whose first axis counts replicas; the other axes have the names in `dims`."""

    dims: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """The lengths of the dimensions for a problem; those that the options of a dynamics decide are missing."""
        return {}


class OverlapView(View):
    """The overlaps of student and teacher units.

    `Q` (n, p, p), its diagonal `q` (n, p), `M` (n, p, k), `P` (n, k, k), the second layers `a` (n, p) and `a_star`
    (n, k), `Delta` (n,), and the Gaussian `expectations` of the problem. Q, q and M may be given as functions, called
    when they are first asked for; q is the diagonal of Q unless it is given.
    """

    dims = ("student", "student_2", "teacher", "teacher_2")

    def __init__(
        self,
        Q: Lazy,
        M: Lazy,
        P: Array,
        a: Array,
        a_star: Array,
        Delta: Array,
        expectations: "Expectations",
        q: Lazy | None = None,
    ) -> None:
        self._Q, self._M, self._q = Q, M, q
        self.P, self.a, self.a_star, self.Delta, self.expectations = P, a, a_star, Delta, expectations

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """The widths p and k."""
        return {"student": problem.p, "student_2": problem.p, "teacher": problem.k, "teacher_2": problem.k}

    @cached_property
    def Q(self) -> Array:
        """The overlaps of students (n, p, p)."""
        return _made(self._Q)

    @cached_property
    def M(self) -> Array:
        """The overlaps of students and teachers (n, p, k)."""
        return _made(self._M)

    @cached_property
    def q(self) -> Array:
        """The diagonal of Q (n, p); Q is not made for it where it was given."""
        return np.einsum("nii->ni", self.Q) if self._q is None else _made(self._q)


@dataclass(frozen=True, eq=False)
class ParticleView(View):
    """N particles, each a unit of the student, with weights whose sum is one.

    `m` (n, N, k) are their overlaps with the teacher, `q` (n, N) their squared norms over d, `a` (n, N) their second
    layer, `weight` (n, N); `P` (n, k, k), `a_star` (n, k) and `Delta` (n,). N is p unless the dynamics says otherwise.
    """

    dims = ("particle", "teacher", "teacher_2")

    m: Array
    q: Array
    a: Array
    weight: Array
    P: Array
    a_star: Array
    Delta: Array

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """One particle for each student unit, and the teacher width."""
        return {"particle": problem.p, "teacher": problem.k, "teacher_2": problem.k}


@dataclass(frozen=True, eq=False)
class TwoTimeView(View):
    """A response theory at T instants up to now.

    The correlations `C` (n, T, T) and responses `R` (n, T, T) of a student at two instants, the later one first, and
    its overlaps `m` (n, T, k) with the teacher. The dynamics says how many instants there are.
    """

    dims = ("instant", "instant_2", "teacher")

    C: Array
    R: Array
    m: Array

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """The teacher width; T is for the dynamics to add."""
        return {"teacher": problem.k}


VIEW_DIMS = tuple(dict.fromkeys(dim for view in (OverlapView, ParticleView, TwoTimeView) for dim in view.dims))
"""The dimensions of the views above, whose names no axis of a sweep can have."""


def _made(lazy: Any) -> Array:
    found: Array = lazy() if callable(lazy) else lazy
    return found
