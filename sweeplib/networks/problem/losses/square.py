"""The square loss ½ (y − f)², whose force is the displacement.

E = y − f is the displacement; the loss has no parameters, so `numbers` is empty.
"""

from typing import Any

from sweeplib.networks.problem.losses.loss import LOSSES, Loss, unchanged


def force(numbers: Any, E: float, y: float) -> float:
    """Return the force, which is the displacement E = y − f."""
    return E


def value(numbers: Any, E: float, y: float) -> float:
    """Return the loss ½ E²."""
    return 0.5 * E * E


def means(numbers: Any, r: float, Delta: float) -> tuple[float, float, float]:
    """The means of the force, its square and the loss, for a normal displacement E of mean r and variance Δ."""
    square = r * r + Delta
    return r, square, 0.5 * square


def mean(risks: Any, a: Any, Delta: Any) -> Any:
    """The mean loss R + Δ/2 (n,); risks : function of second layers a (n, p) that returns the risks R (n,)."""
    return risks(a) + 0.5 * Delta


LOSSES.add(Loss("square", r"(y - f)^2/2", force, value, means, unchanged, mean))
