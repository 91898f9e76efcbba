"""Right-hand sides of the mean fields, at the sizes where the field's own code takes seconds."""

import numpy as np

from benchmarks.timing import Benchmark, Work
from sweeplib import DYNAMICS, Problem
from sweeplib.networks.numerics.compiled import OneSignature
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of


def _called(equations, state, calls, out):  # type: ignore[no-untyped-def]
    """Call the right-hand side from compiled code, as an integrator does."""
    for _ in range(calls):
        equations.slope_of(0, state, equations.arguments, out)


def right_hand_side(dynamics: str, activation: str, p: int, k: int, d: int, calls: int) -> Work:
    """Return the right-hand side of all units at their start."""
    problem = Problem(gamma=0.5, p=p, k=k, d=d, Delta=0.0, activation=activation, teacher_start="gaussian")
    case = Case(problem, dynamics, 0, Recording((1.0,), (), ("risk",)))
    run = DYNAMICS[dynamics](replicas_of([case]), case.numerical_options())
    state, equations = run._paths[0].state, run._paths[0].rules.rule.equations.calls
    called, out = OneSignature(_called), np.empty_like(state)

    def work() -> float:
        called(equations, state, calls, out)
        return calls

    return work


BENCHMARKS = [
    Benchmark(
        "mean field, square, p = 1000, d = 3",
        "a call",
        right_hand_side("mean_field", "square", 1000, 1, 3, 100),
        reach=50e-6,
    ),
    Benchmark(
        "mean field, erf, p = 50, k = 2, d = 5",
        "a call",
        right_hand_side("mean_field", "erf", 50, 2, 5, 2),
        reach=5e-3,
    ),
    Benchmark(
        "mean field at d → ∞, erf, p = 1000, k = 2",
        "a call",
        right_hand_side("mean_field_hd", "erf", 1000, 2, 5, 5),
        reach=1e-3,
    ),
]
