"""What a target is: a function f* of the teacher's local fields, for kernels, and its Gaussian expectations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeplib.registry import Registry

if TYPE_CHECKING:
    from sweeplib.maths.expectations import Expectations


@dataclass(frozen=True)
class Target:
    """A target f*(λ*), λ* the k local fields of the teacher; labels are y = f* + √Δ z.

    `label` is LaTeX without the dollars. `labels(teacher_activation)` returns a function
    `fill(lam_star, a_star, out)`, plain Python that numba compiles, or compiled already: it fills out (n,) with f* of
    the fields lam_star (k, n) and the second layers a_star (k, n). Equal arguments must give the same object.
    `expectations(activation, teacher_activation)` returns the `Expectations` of a student with that activation, in
    which f* takes the place of the committee. `k` is the teacher width that it needs, None for any. `reads` names those
    of the fields `a_star` and `teacher_activation` that it acts on: a problem that gives another one is refused.
    """

    name: str
    label: str
    labels: Callable[[str], Callable[..., Any]]
    expectations: Callable[[str, str], "Expectations"]
    k: int | None = None
    reads: frozenset[str] = frozenset()


TARGET_FIELDS = frozenset({"a_star", "teacher_activation"})
"""The fields of a problem on which nothing but a target acts."""

TARGETS: Registry[Target] = Registry("target")
