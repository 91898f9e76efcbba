"""The functions of activations, target and expectations that kernels call through their addresses."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from sweeplib.networks.kernels.labels import labels_address
from sweeplib.networks.kernels.lanes import Functions
from sweeplib.networks.kernels.losses import force_address
from sweeplib.networks.kernels.steps import step_rule
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations.addresses import drifts_address, lane_drifts_address, no_drifts, risk_address
from sweeplib.networks.maths.expectations.system import Drifts, System
from sweeplib.networks.numerics.compiled import over_arrays
from sweeplib.networks.problem import Criterion, Rule
from sweeplib.networks.problem import target as target_of


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
    """The addresses of the functions that a kernel calls.

    student, teacher : names of the activations; target : the name of what the teacher makes of its own.
    criterion, rule : the loss with its numbers, and the rule of the steps.
    drifts : rules for the drifts of many systems and of one, as `Expectations.of_many` returns them.
    level : what exits are on in place of the risk; it has no bound by the change of f.
    """
    form = activation(student)
    needed = target_of(target).expectations(student, teacher)
    return Functions(
        over_arrays(form.value),
        over_arrays(form.derivative),
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
    )
