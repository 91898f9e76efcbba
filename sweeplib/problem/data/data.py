"""DataLaw: the law of the inputs x, and of the part of the label y that comes with the input."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sweeplib.registry import Registry

if TYPE_CHECKING:
    from sweeplib.maths.expectations import Expectations, Risks

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DataLaw:
    """A law of samples (x, y): y = s + f*(x) + √Δ z, s the part of the label that comes with the input.

    label : LaTeX without dollars.
    inputs : function (contrast, key, seed, number, x) that turns x (d,), which has N(0, 1) numbers, into √d times the
        input of sample `number` of replica `seed`, and returns s; plain Python that numba compiles. It may draw random
        numbers by `random_words(index, number, seed, key)`: `key` names a stream of the law alone.
    expectations : function (activation, of_target, contrast) that returns the expectations over the inputs of n
        replicas, as observables read them: `of_target`, those of the target over Gaussian inputs, or other `Risks`.
        contrast (n,) is zero in problems without one.
    classes : function (contrast) that returns the law as a mixture of isotropic Gaussians: of each its odds, √d times
        the standard deviation of the inputs, and s; None if it is no such mixture, which dynamics of particles need.
    teacher : whether labels have a teacher. Without one f* is zero, k is 0, and the fields of a teacher are refused.
    reads : which of the fields in `DATA_FIELDS` the law depends on. A problem needs these, and no other.
    """

    name: str
    label: str
    inputs: Callable[..., float]
    expectations: Callable[[str, "Expectations", Array], "Risks"]
    classes: Callable[[float], tuple[tuple[float, float, float], ...]] | None = None
    teacher: bool = True
    reads: frozenset[str] = frozenset()


DATA_FIELDS = frozenset({"contrast"})
"""The fields of a problem that only data laws read."""

TEACHER_FIELDS = ("target", "teacher_activation", "a_star", "teacher_start", "m0")
"""The fields of a problem that describe a teacher, or a start relative to it."""

DATA: Registry[DataLaw] = Registry("data law")


def meaningless_fields(laws: Iterable[str]) -> frozenset[str]:
    """The fields of a teacher if none of these laws has one, else no field."""
    return frozenset() if any(DATA[law].teacher for law in laws) else frozenset(TEACHER_FIELDS)
