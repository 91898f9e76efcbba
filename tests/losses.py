"""The forces of losses in NumPy, which share no code with sweeplib, and problems with each."""

import numpy as np

FORCES = {
    "square": lambda f, y: y - f,
    "correlation": lambda f, y: y + 0.0 * f,
    "logistic": lambda f, y: y / (1.0 + np.exp(y * f)),
    "huber": lambda f, y: np.clip(y - f, -0.3, 0.3),
    "absolute": lambda f, y: np.sign(y - f),
}
"""Functions (f, y) that return −∂L/∂f; that of the Huber loss has δ = .3."""


def with_loss(loss, labels="real"):
    """Return the parameters of a problem with a loss and a kind of labels."""
    return {"loss": loss, "labels": labels} | ({"huber_delta": 0.3} if loss == "huber" else {})


def force(problem, f, y):
    """The force of a problem's loss at outputs f and labels y with their noise, whose sign may be the label."""
    return FORCES[problem.loss](f, np.sign(y) if problem.labels == "sign" else y)
