"""Loss: a function L(f, y) of the output f of the student and of the label y, whose gradient a step follows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem.parameters import Part, declare_parameters_of

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations


@dataclass(frozen=True)
class Loss(Part):
    """A loss, by its force g = −∂L/∂f, which takes the place of the displacement E = y − f in all gradients.

    label : LaTeX without dollars.
    force : function (numbers, E, y) that returns g, of numbers; plain Python that numba compiles. `numbers` has the
        loss's parameters, all numbers, in their order.
    value : function (numbers, E, y) that returns L, likewise.
    means : function (numbers, r, Delta) that returns E g, E g² and E L over y = f* + √Δ z at given r = f* − f, Δ > 0,
        likewise; of a loss of E alone. Without it they are sums over z.
    drifts : function that returns the `Expectations` with the drifts by g of those with the drifts by E, for labels
        that are no signs; without it drifts are sums over nodes.
    mean : function (risks, a, Delta) that returns E L of n replicas (n,), for labels that are no signs: `risks(a)` are
        the risks ½ E[(f* − f)²] at the second layers a (n, p). Without it E L is a sum over nodes.
    """

    name: str
    label: str
    force: Callable[..., float]
    value: Callable[..., float]
    means: Callable[..., tuple[float, float, float]] | None = None
    drifts: "Callable[[Expectations], Expectations] | None" = None
    mean: Callable[[Callable[[Array], Array], Array, Array], Array] | None = None


class Criterion(NamedTuple):
    """A loss by name, the values of its parameters, whether labels are signs, and the law of the noise of labels.

    tails : τ, e and r, the parameters `noise_tail`, `outlier_share` and `outlier_scale`; none for Gaussian noise.
    """

    loss: str
    numbers: tuple[float, ...]
    signs: bool
    tails: tuple[float, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it is the square loss of labels that are no signs, whose force is the displacement."""
        return self.loss == "square" and not self.signs

    @property
    def is_closed(self) -> bool:
        """Whether its drifts have a closed form where those of the square loss have one."""
        return LOSSES[self.loss].drifts is not None and not self.signs


def unchanged(needed: "Expectations") -> "Expectations":
    """Return the expectations as they are: the `drifts` of a loss whose force is the displacement."""
    return needed


LOSSES: Registry[Loss] = Registry("loss", declare_parameters_of("loss"))
