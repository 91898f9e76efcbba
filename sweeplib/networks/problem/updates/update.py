"""Update: what a step of the weights makes of their gradient g, where plain SGD takes w_i ← w_i − γ g_i."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem.parameters import Part, declare_parameters_of

Factor = Callable[[Any, float, float, float], tuple[float, float]]
"""A function (numbers, T, square, memory) that returns the factor of a gradient, and the next memory."""
Spectrum = Callable[[Any, float, float, float], float]
"""A function (numbers, value, largest, total) that returns the factor of an eigenvector of GGᵀ."""


@dataclass(frozen=True)
class Update(Part):
    """A rule for steps of the weights; the second layer has plain steps.

    With c_i = a_i σ'(λ_i) E the gradient of a step has the squared norm ‖g‖² = ‖x‖² Σ c_i²; with a batch, that of the
    mean gradient.

    label : LaTeX without dollars.
    factor : function (numbers, T, square, memory) that returns the factor h of the gradient and the next memory, of the
        length T of the step in ODE time and ‖g‖² = `square`; plain Python that numba compiles. `numbers` has the
        parameters of the rule in their order. Without a gradient it must return a finite h.
    memory : function of the numbers that returns the memory at the start.
    spectrum : function (numbers, value, largest, total) of an eigenvalue of GGᵀ, the p x p products of the gradients of
        units, the largest and their sum, that returns the factor of its eigenvector in the step; in place of `factor`.
    loss : name of the loss with `means` whose force at E = ±‖g‖, with the same numbers, is ±h ‖g‖; of rules without
        memory. With it the ODE has sums over nodes for p + k ≤ 3.
    has_velocities : whether steps are those of momentum, v_i ← β v_i − γ g_i, w_i ← w_i + v_i, β the first number; with
        a spectrum, that of N ← β N + G in place of G.
    is_tangent : whether steps are along the sphere, by the part of x orthogonal to w_i, before the projection.
    takes_signs : whether steps are those of the signs of all entries of the gradient, of the length of a gradient 1.
    """

    name: str
    label: str
    factor: Factor | None = None
    memory: Callable[[tuple[float, ...]], float] | None = None
    spectrum: Spectrum | None = None
    loss: str | None = None
    has_velocities: bool = False
    is_tangent: bool = False
    takes_signs: bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether steps are those of plain SGD."""
        return not (self.rescales or self.has_velocities or self.is_tangent or self.takes_signs)

    @property
    def rescales(self) -> bool:
        """Return whether the gradient, or each of its singular values, has a factor."""
        return self.factor is not None or self.spectrum is not None


class Rule(NamedTuple):
    """An update by name, and the values of its parameters."""

    update: str
    numbers: tuple[float, ...]


UPDATES: Registry[Update] = Registry("update", declare_parameters_of("update"))
