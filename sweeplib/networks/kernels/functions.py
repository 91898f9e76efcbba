"""The functions of activations, target and expectations that kernels call through their addresses."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.label_noise import stretch_address
from sweeplib.networks.kernels.labels import labels_address
from sweeplib.networks.kernels.losses import force_address
from sweeplib.networks.kernels.steps import StepRule, step_rule
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations.addresses import drifts_address, lane_drifts_address, no_drifts, risk_address
from sweeplib.networks.maths.expectations.system import Drifts, Pair, System
from sweeplib.networks.numerics.compiled import over_arrays
from sweeplib.networks.problem import Criterion, Rule
from sweeplib.networks.problem import target as target_of


class Functions(NamedTuple):
    """Addresses of the functions of a student's activation, a target, a loss and a rule of steps, with their arguments.

    value, slope : σ and σ' (x (n,), out (n,)). labels : f* (λ* (k, n), a* (k, n), out (n,)).
    risk, drifts, one_drifts : the risks and drifts of many systems, the drifts of one; `pair` is their argument.
    lipschitz : a bound of |σ'|, or inf.
    is_plain : whether the loss is ½ E², whose force is the displacement E itself.
    force, numbers : (numbers, E, y) replaces displacements by forces of a loss with these parameters, unless it is
        plain.
    rule : the `StepRule`.
    tails : numbers (τ, e, r) of noise of labels that is not Gaussian, none if it is (`label_noise`).
    stretch : (tails, step, seed, key) returns the factor by which the normal number of a label is to be multiplied.
    """

    value: Any
    slope: Any
    labels: Any
    pair: Pair
    risk: Any
    drifts: Any
    lipschitz: float
    one_drifts: Any
    is_plain: bool
    force: Any
    numbers: Array
    rule: StepRule
    tails: Array
    stretch: Any


def no_lane_drifts(filled: int, system: System, out: Drifts) -> None:
    """Do nothing, in place of the drifts of many systems, in kernels that need none."""


NO_DRIFTS = no_lane_drifts, no_drifts
"""In place of the rules for the drifts of many systems and of one."""


@cache
def functions(
    student: str,
    target: str,
    teacher: str,
    criterion: Criterion,
    rule: Rule,
    drifts: tuple[Callable[..., None], ...] = NO_DRIFTS,
    level: Callable[..., None] | None = None,
) -> Functions:
    """The `Functions` that a kernel calls, compiled once for all runs with these names.

    student, teacher : names of the activations. target : name of the function f* of the teacher's fields.
    criterion, rule : the loss with its numbers, and the rule of the steps.
    drifts : rules for the drifts of many systems and of one, as `Expectations.of_many` returns them.
    level : a function with the signature of a risk, whose targets make exits in its place; no slack bounds its change.
    """
    sigma = activation(student)
    needed = target_of(target).expectations(student, teacher)
    return Functions(
        over_arrays(sigma.value),
        over_arrays(sigma.derivative),
        labels_address(target, teacher),
        needed.pair,
        risk_address(level or needed.risk),
        lane_drifts_address(drifts[0]),
        math.inf if level else needed.lipschitz,
        drifts_address(drifts[1]),
        criterion.is_plain,
        force_address(criterion.loss, criterion.signs),
        np.array(criterion.numbers, float),
        step_rule(rule),
        np.array(criterion.tails, float),
        stretch_address(),
    )
