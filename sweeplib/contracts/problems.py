"""The problems and the values of parameters on which dynamics, parts of problems and observables are checked."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pydantic

from sweeplib.contracts.check import require
from sweeplib.networks.problem import PARAMETERS, TASKS, Part, Problem

PROBLEMS = (
    Problem(gamma=0.2, p=3, k=2, d=60, Delta=0.1, activation="erf"),
    Problem(gamma=0.1, p=2, k=1, d=60, Delta=0.1, activation="square", spherical=True),
)
"""The problems on which dynamics are tried."""
OTHERS: dict[str, Any] = {name: parameter.example for name, parameter in PARAMETERS.items()} | {
    "p": 3,
    "k": 2,
    "d": 50,
    "Delta": 0.2,
    "teacher_activation": "linear",
    "a": 0.5,
    "a_star": 0.5,
    "second_layer_rate": 0.2,
    "offset_scale": 0.4,
    "offset_rate": 0.5,
    "contrast": 0.6,
    "m0": 0.3,
    "batch_size": 3,
    "repeats": 2,
    "samples": 1000,
    "second_layer_samples": 30,
    "ridge": 0.5,
    "switch_time": 0.1,
    "keep_probability": 0.9,
    "task_order": (2, 1),
}
"""Another value of each field of a problem than in the following ones: its example, or one that suits them."""
COMMON: dict[str, Any] = {
    "gamma": 0.2,
    "p": 2,
    "d": 40,
    "Delta": 0.1,
    "activation": "square",
    "second_layer_rate": 0.1,
}
"""The fields that the following problems share."""
CHANGED = Problem(k=1, **COMMON)
"""The problem of which a field is changed."""
CHANGED_OF: dict[str, Problem] = {
    "target": replace(CHANGED, k=2),
    "sampling": replace(CHANGED, samples=20),
    "contrast": Problem(**COMMON, k=0, data="two_gaussians", contrast=0.3),
    "huber_delta": replace(CHANGED, loss="huber", p=1),
    "noise_tail": replace(CHANGED, loss="huber", p=1),
    "outlier_share": replace(CHANGED, loss="huber", p=1),
    "outlier_scale": replace(CHANGED, loss="huber", p=1, outlier_share=0.1),
    "averaging_rate": replace(CHANGED, averaging_order=2.0),
    "averaging_order": replace(CHANGED, averaging_rate=1.0),
    "clip_norm": replace(CHANGED, update="clipped", p=1),
    "adagrad_start": replace(CHANGED, update="adagrad_norm"),
    "momentum": replace(CHANGED, update="heavy_ball"),
    "spectral_ridge": replace(CHANGED, update="spectral"),
    "update": replace(CHANGED, p=1),
    "eigenvalues": Problem(**COMMON, k=1, data="spectrum", eigenvalues=(3.0, 1.0), fractions=(1.0, 2.0)),
    "fractions": Problem(**COMMON, k=1, data="spectrum", eigenvalues=(3.0, 1.0), fractions=(1.0, 1.0)),
    "level_ratio": Problem(**COMMON, k=1, data="two_level", level_ratio=4.0),
    "level_fraction": Problem(**COMMON, k=1, data="two_level", level_ratio=4.0),
    "teacher_block": Problem(**COMMON, k=1, data="two_level", level_ratio=4.0),
    "exponent": Problem(**COMMON, k=1, data="power_law", exponent=0.5, bins=4),
    "bins": Problem(**COMMON, k=1, data="power_law", exponent=0.5, bins=4),
    "tasks": replace(CHANGED, k=2),
    **{name: Problem(**COMMON, k=2, tasks="in_turn", switch_time=0.2) for name in TASKS["in_turn"].parameter_names},
}
"""The problem of which a field is changed, for fields that CHANGED cannot have: what needs another part."""


def variants(problem: Problem) -> tuple[Problem, ...]:
    """Return the problem, in few dimensions, and with a full batch and long steps: what some dynamics need.

    The latter has a bounded activation: samples do not determine the means of polynomials after long steps.
    """
    batch: dict[str, Any] = {"samples": 120, "batch_size": 120, "activation": "erf"}
    if problem.in_turn:  # with fresh samples alone
        return (problem,)
    return problem, replace(problem, d=3), replace(problem, gamma=0.25 * problem.p * problem.d, **batch)


def two_values(name: str) -> tuple[Any, Any]:
    """Return two values of a parameter: its default, if it has one, its example, or others; BrokenError without two."""
    definition, result = PARAMETERS[name], list[Any]()
    example, more = definition.example, list[Any]()
    if isinstance(example, int | float):
        more = [0.5 * example, example + 1]
    elif isinstance(example, list) and isinstance(example[0], float):
        more = [[0.5 * example[0], *example[1:]]]
    for value in (definition.default, example, OTHERS.get(name), *more):
        with suppress(pydantic.ValidationError):
            if value is not None and definition.adapter.validate_python(value) not in result:
                result.append(definition.adapter.validate_python(value))
    require(len(result) > 1, f"its parameter {name} has one value alone; its example is not its default")
    return result[0], result[1]


def needed(problem_part: Part) -> dict[str, Any]:
    """Return a value, by name, of each parameter that a part of a problem needs."""
    return {name: two_values(name)[0] for name in problem_part.needed}
