"""Target: a function f* of the teacher's local fields, for kernels, and its Gaussian expectations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem.parameters import Part, declare_parameters_of

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations


@dataclass(frozen=True)
class Target(Part):
    """A target f*(λ*), λ* the k local fields of the teacher; labels are y = f* + √Δ z.

    label : LaTeX without dollars.
    labels : function (teacher_activation, **parameters) that returns `fill(lam_star, a_star, out)`, compiled or plain
        Python that numba compiles. `fill` sets out (n,) to f* of the fields lam_star (k, n) and second layers a_star
        (k, n). Equal arguments must return the same object.
    expectations : function (activation, teacher_activation, **parameters) that returns the `Expectations` of a student
        with that activation, with f* in place of the committee.
    k : the required teacher width; None for any.
    activations : names of the activations that f* is made of, in addition to the teacher's.
    exponents : function (**parameters) that returns the information exponent and the leap exponent, None where unknown.
    reads : those of the parameters `a_star` and `teacher_activation` on which f* depends.
    """

    name: str
    label: str
    labels: Callable[..., Callable[..., Any]]
    expectations: Callable[..., "Expectations"]
    k: int | None = None
    activations: tuple[str, ...] = ()
    exponents: Callable[..., tuple[int | None, int | None]] = lambda **_: (None, None)


TARGET_FIELDS = frozenset({"a_star", "teacher_activation"})
"""The parameters of a problem itself that only targets read."""

TARGETS: Registry[Target] = Registry("target", declare_parameters_of("target"))
