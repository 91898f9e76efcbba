"""What a step makes of the gradient of the weights: its factor by address, and the rule for kernels.

Updates are registered by name (`UPDATES`): some multiply the gradient by a factor h, which may depend on T, the squared
norm of the gradient and a memory; some multiply each singular value, by its square, an eigenvalue of GGᵀ.
`numbers` (m,) are the values of an update's parameters.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from sweeplib.networks.numerics.binding import bound, unbound
from sweeplib.networks.numerics.compiled import in_loops, pointer
from sweeplib.networks.problem import UPDATES, Rule

_LINE = types.Array(types.float64, 1, "C")
"""The type of arrays (n,) of numbers."""


class StepRule(NamedTuple):
    """A rule for kernels.

    rescales : whether the gradient has a factor, or each of its entries.
    factor : address of a function (numbers (m,), T (n,), square (n,), memory (n,)) that replaces squared norms of
        gradients by factors, and updates memories; of a spectrum, for gradients of rank one.
    is_spectral : whether each singular value of the gradient has a factor.
    spectrum : address of a function (numbers (m,), values (n,), largest (n,), total (n,)) that replaces eigenvalues of
        n matrices by their factors.
    numbers : the values of the rule's parameters.
    momentum : β; zero without velocities.
    has_velocities : whether steps add β times the step before. is_tangent : whether rows move along their spheres.
    takes_signs : whether each entry of the gradient becomes its sign.
    """

    rescales: bool
    factor: Any
    numbers: NDArray[np.float64]
    is_spectral: bool
    spectrum: Any
    momentum: float
    has_velocities: bool
    is_tangent: bool
    takes_signs: bool

    @property
    def moves_rows(self) -> bool:
        """Whether steps depend on more of the rows of weights than the factors of their samples."""
        return self.has_velocities or self.is_tangent or self.takes_signs


@cache
def step_rule(rule: Rule) -> StepRule:
    """The rule for kernels of an update and its numbers; without a factor, the address is one that no kernel calls."""
    step, numbers = UPDATES[rule.update], np.array(rule.numbers, float)
    momentum = rule.numbers[0] if step.has_velocities else 0.0
    factor, spectral = factor_address(rule.update if step.rescales else "normalised"), step.spectrum is not None
    spectrum = spectrum_address(rule.update) if spectral else factor
    kinds = step.has_velocities, step.is_tangent, step.takes_signs
    return StepRule(step.rescales or step.takes_signs, factor, numbers, spectral, spectrum, momentum, *kinds)


@cache
def factor_address(step: str) -> Any:
    """The address of the function that replaces squared norms by the factors of the update `step`."""
    return pointer(_fill_factors, types.void(_LINE, _LINE, _LINE, _LINE), factor=in_loops(factor_of(step)))


@cache
def spectrum_address(step: str) -> Any:
    """The address of the function that replaces eigenvalues by the factors of the update `step`."""
    return pointer(_fill_spectrum, types.void(_LINE, _LINE, _LINE, _LINE), spectrum=in_loops(UPDATES[step].spectrum))


def factor_of(step: str) -> Any:
    """The factor of gradients by the update `step`, a function (numbers, T, square, memory) → (factor, memory).

    Updates that have a spectrum have the factor of a gradient of rank one.
    """
    spectrum = UPDATES[step].spectrum
    return UPDATES[step].factor if spectrum is None else bound(_of_rank_one, spectrum=in_loops(spectrum))


factor = spectrum = unbound
"""Bound by `factor_address`."""


def _of_rank_one(numbers, T, square, memory):  # type: ignore[no-untyped-def]
    """The factor of a gradient of rank one, whose only eigenvalue is its squared norm; the memory stays."""
    return spectrum(numbers, square, square, square), memory


def _fill_factors(numbers, T, square, memory):  # type: ignore[no-untyped-def]
    """Replace squared norms of gradients (n,) by the factors of the gradients, and update memories (n,)."""
    for n in range(square.shape[0]):
        square[n], memory[n] = factor(numbers, T[n], square[n], memory[n])


def _fill_spectrum(numbers, values, largest, total):  # type: ignore[no-untyped-def]
    """Replace eigenvalues (n,) of n matrices by factors; `largest`, `total` (n,) are the largest and the traces."""
    for n in range(values.shape[0]):
        values[n] = spectrum(numbers, values[n], largest[n], total[n])
