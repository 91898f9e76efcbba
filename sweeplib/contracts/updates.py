"""What every rule for steps keeps.

Public functions of `name`, the registered name of a rule, are checks: each raises BrokenError with what is wrong, and
its own name is the sentence that it checks. A factor h multiplies the gradient g of a step; a spectrum is a factor of
each eigenvalue of G Gᵀ, for the gradient G (p, d) of all units.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sweeplib.contracts.check import require, require_equal, require_labelled
from sweeplib.contracts.problems import needed, two_values
from sweeplib.engine.status import Status
from sweeplib.networks.kernels.steps import factor_address, spectrum_address
from sweeplib.networks.numerics.compiled import call_by_address
from sweeplib.networks.problem import LOSSES, UPDATES, Problem
from sweeplib.networks.simulation import Case, Recording, run_cases

SQUARES = np.array([0.0, 1e-310, 1e-12, 0.01, 0.3, 1.0, 7.0, 1e12])
"""Squared norms of gradients at which factors are tried."""
T = 0.01
"""The time γ/(pd) of a step."""


def _problem(name: str, **fields: Any) -> Problem:
    """Return a problem with the rule; `fields` replace others."""
    values: dict[str, Any] = {"gamma": 0.1, "p": 1, "k": 1, "d": 50, "Delta": 0.3, "activation": "erf", "update": name}
    return Problem(**values | {"spherical": UPDATES[name].is_tangent} | needed(UPDATES[name]) | fields)


def its_factor_is_finite_and_compiled_as_in_python(name: str) -> None:
    """Check the factor at gradients of many sizes, zero among them, with the memory at the start."""
    rule, numbers = UPDATES[name], np.array(_problem(name).rule.numbers)
    require_labelled(rule, name, "label")
    if rule.factor is None:
        return
    start = rule.memory(tuple(numbers)) if rule.memory else 0.0
    expected = np.array([rule.factor(numbers, T, square, start) for square in SQUARES])
    require(bool(np.isfinite(expected * np.sqrt(SQUARES)[:, None]).all()), "a step is not finite")
    result, memories = SQUARES.copy(), np.full(len(SQUARES), start)
    call_by_address(factor_address(name), numbers, np.full(len(SQUARES), T), result, memories)
    require_equal(np.array([result, memories]).T, expected, "its factor and its memory, compiled", rtol=1e-9)


def its_spectrum_is_finite_and_compiled_as_in_python(name: str) -> None:
    """Check the factors of eigenvalues of many sizes, below a largest one and a sum, zero among them."""
    rule, numbers = UPDATES[name], np.array(_problem(name).rule.numbers)
    if rule.spectrum is None:
        return
    values, largest = (grid.ravel() for grid in np.meshgrid(SQUARES, SQUARES))
    values, total = np.minimum(values, largest), values + largest
    expected = np.array([rule.spectrum(numbers, *sizes) for sizes in zip(values, largest, total, strict=True)])
    require(bool(np.isfinite(expected * np.sqrt(values)).all()), "a step is not finite")
    result = values.copy()
    call_by_address(spectrum_address(name), numbers, result, largest, total)
    require_equal(result, expected, "its factors of eigenvalues, compiled", rtol=1e-9)


def its_loss_has_the_force_of_its_steps(name: str) -> None:
    """Check that h ‖g‖ is the force of the loss that it names, if any, at the displacement ‖g‖."""
    rule, numbers = UPDATES[name], np.array(_problem(name).rule.numbers)
    if rule.loss is None or rule.factor is None:
        return
    require(LOSSES[rule.loss].means is not None, f"the loss {rule.loss} has no means")
    for square in SQUARES[2:]:
        size = math.sqrt(square)
        length, force = (rule.factor(numbers, T, square, 0.0)[0] * size, LOSSES[rule.loss].force(numbers, size, 0.0))
        require_equal(length, force, f"the length of a step at the norm {size:.3g}", rtol=1e-12)


def short_runs_descend(name: str) -> None:
    """Check that runs of SGD and of its chain lower the risk, and change with the rule and its parameters."""
    for dynamics in ("sgd",) if UPDATES[name].takes_signs else ("sgd", "sgd_chain"):
        recording = Recording((0.0, 1.0), (), ("risk",))
        [risk] = (run := run_cases([Case(_problem(name), dynamics, 0, recording, pair_by=())])).data["risk"]
        require(run.status[0] == Status.ok, f"a run of {dynamics} ends {Status(int(run.status[0])).name}")
        require(bool(risk[1] < risk[0]), f"{dynamics} raises the risk from {risk[0]:.4g} to {risk[1]:.4g}")
        others = [replace(_problem(name), **{field: two_values(field)[1]}) for field in UPDATES[name].parameter_names]
        others += [] if UPDATES[name].is_plain else [replace(_problem("plain"), spherical=UPDATES[name].is_tangent)]
        for other in others:
            changed = run_cases([Case(other, dynamics, 0, recording, pair_by=())]).data["risk"][0]
            require(not np.array_equal(risk, changed), f"a run of {dynamics} is the same with {other.canonical()}")
