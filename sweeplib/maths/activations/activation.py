"""What an activation function is."""

from collections.abc import Callable
from dataclasses import dataclass

from sweeplib.registry import Registry


@dataclass(frozen=True)
class Activation:
    """An activation σ with its derivative and its information exponent.

    `value` and `derivative` map a float to a float, in plain Python that numba compiles: they are inlined in the
    simulation kernels. `information_exponent` is the order of the first non-zero Hermite coefficient of σ(z),
    z ~ N(0, 1), beyond the constant. `label` is LaTeX without the dollars.
    """

    name: str
    label: str
    value: Callable[[float], float]
    derivative: Callable[[float], float]
    information_exponent: int


ACTIVATIONS: Registry[Activation] = Registry("activation")
