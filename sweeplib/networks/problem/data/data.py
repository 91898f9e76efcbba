"""DataLaw: the law of the inputs x, and of the part of the label y that comes with the input."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem.parameters import Part, declare_parameters_of

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations, Risks
    from sweeplib.networks.problem.problem import Problem

Blocks = tuple[tuple[float, ...], tuple[int, ...]]
"""The eigenvalues λ_b of the covariance of √d x, of the sum Σ λ_b d_b = d, and their multiplicities d_b."""


@dataclass(frozen=True)
class DataLaw(Part):
    """A law of samples (x, y): y = s + f*(x) + √Δ z, s the part of the label that comes with the input.

    label : LaTeX without dollars.
    inputs : function (numbers, key, seed, number, x) that turns x (d,), which has N(0, 1) numbers, into √d times the
        input of sample `number` of replica `seed`, and returns s; plain Python that numba compiles. `numbers` has the
        law's parameters, all numbers, in their order; with `blocks`, the root of the eigenvalue of each coordinate. It
        may draw random numbers by
        `random_words(index, number, seed, key)`: `key` names a stream of the law alone.
    expectations : function (activation, of_target, **parameters) that returns the expectations over the inputs of n
        replicas, as observables read them: `of_target`, those of the target over Gaussian inputs, or other `Risks`.
        Each of the law's parameters is an array (n,).
    classes : function (**parameters) that returns the law as a mixture of isotropic Gaussians: of each its odds, √d
        times the standard deviation of the inputs, and s; None if it is no such mixture, which dynamics of particles
        need.
    blocks : function (problem) that returns the eigenvalues and multiplicities of Gaussian inputs; None if inputs are
        not Gaussian. `expectations` get no parameters then, and are those of Gaussian fields.
    teacher : whether labels have a teacher. Without one f* is zero, k is 0, and the fields of a teacher are refused.
    """

    name: str
    label: str
    inputs: Callable[..., float]
    expectations: Callable[..., "Expectations | Risks"]
    classes: Callable[..., tuple[tuple[float, float, float], ...]] | None = None
    teacher: bool = True
    blocks: "Callable[[Problem], Blocks] | None" = None

    @property
    def has_spectrum(self) -> bool:
        """Whether inputs have several eigenvalues, so that fields have another covariance than the overlaps."""
        return self.blocks is not None and self.classes is None

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of its own parameters that `inputs` and `expectations` get."""
        return () if self.has_spectrum else self.parameter_names

    @cached_property
    def acts_on(self) -> frozenset[str]:
        """The names of its parameters, and those of a teacher if it has one."""
        return self.reads.union(self.parameter_names, TEACHER_FIELDS if self.teacher else ())


TEACHER_FIELDS = frozenset({"target", "teacher_activation", "a_star", "teacher_start"})
"""The parameters of a problem that describe a teacher."""

DATA: Registry[DataLaw] = Registry("data law", declare_parameters_of("data"))
