"""Two isotropic Gaussians of equal odds: s = ±1 and x ~ N(0, (1 + s c)² I_d/d), c the contrast; y = s + √Δ z.

The example of Mei, Montanari and Nguyen (arXiv 1804.06561, "centered isotropic Gaussians"), whose Δ is the contrast
here. Their step w_i += 2 s_k (y − f) σ'(w_i·x) x for x ~ N(0, (1 ± Δ)² I_d) is that of sgd for √d w_i and x/√d with
a_i = 1 and γ ξ/(pd) = 2 s_k, so that the ODE time is 2 Σ_k s_k; their risk is twice ours.
"""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.problem.data.data import DATA, DataLaw
from sweeplib.networks.problem.parameters import Parameters, parameter

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations
    from sweeplib.networks.maths.expectations.classes import ClassExpectations


class Contrast(Parameters):
    """The contrast c of the two classes."""

    contrast: Annotated[float, Field(gt=0, lt=1)] = parameter(..., "contrast of the two classes", "c", 0.8)
    """c in (0, 1) of `two_gaussians`."""


def random_words(index: Any, number: Any, seed: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """Stand for the random numbers, which kernels put in its place: reading a config needs no compiler."""
    raise NotImplementedError("bound by `inputs_address`")


def inputs(numbers: Array, key: Any, seed: Any, number: Any, x: Array) -> float:
    """Multiply the N(0, 1) numbers x (d,) by 1 + s c, and return s = ±1, by a random bit of the sample.

    numbers : (c,). key, seed, number : names of the stream and of the sample, whose first word has the bit.
    """
    bits, _, _, _ = random_words(np.uint64(0), number, seed, key)
    label = 1.0 if bits & np.uint64(1) else -1.0
    for j in range(x.shape[0]):
        x[j] *= 1.0 + label * numbers[0]
    return label


def expectations(activation: str, of_target: "Expectations", contrast: Array) -> "ClassExpectations":
    """The expectations over the two classes, of n replicas with a `contrast` (n,); labels are those of the classes."""
    from sweeplib.networks.maths.expectations.classes import ClassExpectations

    return ClassExpectations(activation, (-1.0, 1.0), (1.0 - contrast, 1.0 + contrast))


def classes(contrast: float) -> tuple[tuple[float, float, float], ...]:
    """The classes y = −1 and y = +1: of each its odds, √d times the standard deviation of its inputs, and y."""
    return (0.5, 1.0 - contrast, -1.0), (0.5, 1.0 + contrast, 1.0)


DATA.add(
    DataLaw(
        "two_gaussians",
        r"y = \pm 1,\; x \sim \mathcal{N}(0, (1 + y c)^2 I_d/d)",
        inputs,
        expectations,
        classes,
        teacher=False,
        parameters=Contrast,
    ),
)
