"""What every loss keeps.

Public functions of `name`, the registered name of a loss, are checks: each raises BrokenError with what is wrong, and
its own name is the sentence that it checks. E = y − f is the displacement of an output f from the label y; the force is
−∂L/∂f.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sweeplib.contracts.check import require, require_equal, require_labelled
from sweeplib.contracts.problems import needed, two_values
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.status import Status
from sweeplib.networks.dynamics.label_means import LabelMeans, mean_losses
from sweeplib.networks.kernels.loss_drifts import expectations_of_steps
from sweeplib.networks.kernels.losses import force_address
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import call_by_address
from sweeplib.networks.problem import LOSSES, Problem, Rule
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.views import OverlapView

LINES = np.random.default_rng(2).normal(size=(2, 40)) * [[1.5], [1.0]]
"""Displacements E and labels y at which functions are tried."""
NOISE = 1e-3 * (np.arange(-8000, 8000) + 0.5)
"""Nodes over the noise of a label, close enough for forces with jumps."""
DELTA = 0.3
"""The variance of the label noise."""
PLAIN = Rule("plain", ())
"""The rule of steps along the gradient."""


def _problem(name: str, **fields: Any) -> Problem:
    """Return a small problem with the loss, and with values of what it needs; `fields` replace others."""
    values: dict[str, Any] = {"gamma": 0.5, "p": 1, "k": 1, "d": 50, "Delta": DELTA, "activation": "erf", "loss": name}
    return Problem(**values | needed(LOSSES[name]) | fields)


def _numbers(name: str) -> Array:
    """Return the parameters of the loss, as its functions take them."""
    return np.array(_problem(name).criterion.numbers, float)


def its_force_is_minus_the_slope_of_its_value(name: str) -> None:
    """Check the force −∂L/∂f. At a fixed label y it is ∂L/∂E, as E = y − f: a difference of values."""
    loss, numbers, step = LOSSES[name], _numbers(name), 1e-6
    require_labelled(loss, name, "label")
    for E, y in LINES.T:
        ends = [loss.value(numbers, E + sign * step, y) for sign in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / (2.0 * step)
        require_equal(loss.force(numbers, E, y), slope, f"its force at E = {E:.3f}, y = {y:.3f}", rtol=1e-6, atol=1e-6)


def its_force_is_compiled_as_it_is_in_python(name: str) -> None:
    """Check the compiled force for labels as they are, and for their signs."""
    loss, numbers = LOSSES[name], _numbers(name)
    for signs in (False, True):
        (E, y), labels = LINES.copy(), np.where(LINES[1] > 0.0, 1.0, -1.0) if signs else LINES[1]
        expected = [loss.force(numbers, first, label) for first, label in zip(E + (labels - y), labels, strict=True)]
        call_by_address(force_address(name, signs), numbers, E, y)
        require_equal(E, expected, "its force, compiled", rtol=1e-9, atol=1e-12)


def its_means_are_those_over_the_noise_of_a_label(name: str) -> None:
    """Check the means of the force, of its square and of the loss, if it has `means`, by sums over many labels."""
    loss, numbers = LOSSES[name], _numbers(name)
    if loss.means is None:
        return
    weight = 1e-3 * np.exp(-0.5 * NOISE**2) / math.sqrt(2.0 * math.pi)
    for f_star, f in ((0.4, -0.5), (-0.2, 0.1), (1.5, 0.2)):
        y = f_star + math.sqrt(DELTA) * NOISE
        force, value = (
            np.array([function(numbers, first - f, first) for first in y]) for function in (loss.force, loss.value)
        )
        expected = weight @ force, weight @ force**2, weight @ value
        require_equal(loss.means(numbers, f_star - f, DELTA), expected, "its means over the noise", atol=5e-4)


def its_closed_forms_are_sums_over_nodes(name: str) -> None:
    """Check its `drifts` and its `mean`, if it has these, for one unit."""
    criterion, needed_ones, loss = _problem(name).criterion, expectations("erf"), LOSSES[name]
    Q, M, P, a, ones = (np.full((1, 1), value) for value in (0.9, 0.4, 1.1, 0.8, 1.0))
    if loss.drifts is not None:
        system = System(Q, M, P, a[0], ones[0], DELTA, 1.0)
        rules = (
            expectations_of_steps(criterion, PLAIN, needed_ones, 2, "erf", "committee", "erf", closed=closed)
            for closed in (True, False)
        )
        for first, other in zip(*(rule.drifts_of(system) for rule in rules), strict=True):
            require_equal(first, other, "its drifts in closed form", rtol=1e-7, atol=1e-9)
    if loss.mean is not None:
        means = LabelMeans(criterion, "erf", "committee", "erf")
        now = OverlapView(Q[None], M[None], P[None], a, ones, np.full(1, DELTA), needed_ones, of_labels=means)
        require_equal(means.test_loss(now).value, mean_losses(means, now).value, "its mean in closed form", rtol=1e-6)


def steps_descend_it(name: str) -> None:
    """Check that short runs of SGD and of its chain lower the mean loss, and change with its parameters."""
    for dynamics in ("sgd", "sgd_chain"):
        recording = Recording((0.0, 1.0), (), ("test_loss",))
        [loss] = (run := run_cases([Case(_problem(name, gamma=0.1), dynamics, 0, recording)])).data["test_loss"]
        require(run.status[0] == Status.ok, f"a run of {dynamics} ends {Status(int(run.status[0])).name}")
        require(bool(loss[1] < loss[0]), f"{dynamics} raises its mean from {loss[0]:.4g} to {loss[1]:.4g}")
    for field in LOSSES[name].parameter_names:
        cases = (
            Case(replace(_problem(name), **{field: value}), "sgd", 0, Recording((1.0,)), pair_by=())
            for value in two_values(field)
        )
        first, other = (run_cases([case]).data["risk"] for case in cases)
        require(not np.array_equal(first, other), f"a run of SGD is the same with another {field}")
