"""What an activation function is."""

from collections.abc import Callable
from dataclasses import dataclass

from sweeplib.registry import Registry


@dataclass(frozen=True)
class Activation:
    """An activation σ with its derivative, its information exponent, and what is known of its form.

    `value` and `derivative` map a float to a float, in plain Python that numba compiles: they are inlined in the
    simulation kernels, where `math.exp`, `math.erf` and `math.tanh` become vector instructions. `information_exponent`
    is the order of the first non-zero Hermite coefficient of σ(z), z ~ N(0, 1), beyond the constant. `label` is LaTeX
    without the dollars.

    The form decides how Gaussian expectations are computed; without one, by quadrature. `hermite` holds the
    coefficients c_0, c_1, ... of a polynomial σ(z) = Σ c_n He_n(z)/√n!. `error_functions` holds (offset,
    ((weight, slope), ...)) of σ(z) = offset + Σ weight · erf(slope · z/√2).
    """

    name: str
    label: str
    value: Callable[[float], float]
    derivative: Callable[[float], float]
    information_exponent: int
    hermite: tuple[float, ...] | None = None
    error_functions: tuple[float, tuple[tuple[float, float], ...]] | None = None


ACTIVATIONS: Registry[Activation] = Registry("activation")
