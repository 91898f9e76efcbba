"""Target: a function f* of the teacher's local fields, for kernels, and its Gaussian expectations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.registry import Registry

if TYPE_CHECKING:
    from sweeplib.maths.expectations import Expectations


@dataclass(frozen=True)
class Target:
    """A target f*(λ*), λ* the k local fields of the teacher; labels are y = f* + √Δ z.

    label : LaTeX without dollars.
    labels : function (teacher_activation) that returns `fill(lam_star, a_star, out)`, compiled or plain Python that
        numba compiles. `fill` sets out (n,) to f* of the fields lam_star (k, n) and second layers a_star (k, n). Equal
        arguments must return the same object.
    expectations : function (activation, teacher_activation) that returns the `Expectations` of a student with that
        activation, with f* in place of the committee.
    k : the required teacher width; None for any.
    activations : names of the activations that f* is made of, in addition to the teacher's.
    exponents : function that returns the information exponent and the leap exponent, None where unknown.
    reads : which of the fields `a_star` and `teacher_activation` f* depends on. A problem that sets the other one is
        refused.
    """

    name: str
    label: str
    labels: Callable[[str], Callable[..., Any]]
    expectations: Callable[[str, str], "Expectations"]
    k: int | None = None
    activations: tuple[str, ...] = ()
    exponents: Callable[[], tuple[int | None, int | None]] = lambda: (None, None)
    reads: frozenset[str] = frozenset()


TARGET_FIELDS = frozenset({"a_star", "teacher_activation"})
"""The fields of a problem that only targets read."""

TARGETS: Registry[Target] = Registry("target")
