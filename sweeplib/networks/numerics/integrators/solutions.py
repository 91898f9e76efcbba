"""The progress of many solutions of the overlaps' ODE, as the explicit integrator changes it and others read it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array


class Solutions(NamedTuple):
    """The progress of n solutions of `size` variables, changed in place by `explicit.advance`.

    rtol, atol (n,) : tolerances.
    relative (n,) : the absolute tolerance of a variable whose size is below atol/relative, relative to this size.
    hidden (n,) : whether rounding hides how a small variable grows.
    floor (n, size) : the absolute tolerances now: min(atol, relative · the largest size so far); atol where that is 0.
    tremor (n, size) : by how much each step moves variables, relative to their size: the rounding of a companion.
    targets (n, targets) : values of the level whose first passages are noted.
    end (n,) : last time that will be requested.
    longest (n,) : the longest step.
    time, step (n,) : end of the last step, length of the next.
    state, slope (n, size) : at `time`.
    before, length (n,) : beginning and length of the last step.
    start, start_slope (n, size) : state and slope at `before`.
    budget, evaluations (n,) : number of steps left, number of right-hand sides so far.
    stiff_steps, calm_steps (n,) : counts of the test for stiffness.
    stiff, failed (n,) : why a solution stopped.
    passages (n, targets) : first time at which each target was reached, inf before.
    rates (n, targets) : time derivative of the level there; passing (n, targets, size) : state there.
    """

    rtol: Array
    atol: Array
    relative: Array
    hidden: NDArray[np.bool_]
    floor: Array
    tremor: Array
    targets: Array
    end: Array
    longest: Array
    time: Array
    step: Array
    state: Array
    slope: Array
    before: Array
    length: Array
    start: Array
    start_slope: Array
    budget: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    stiff_steps: NDArray[np.int64]
    calm_steps: NDArray[np.int64]
    stiff: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    passages: Array
    rates: Array
    passing: Array


def solutions_at_start(states: Array, max_steps: int, atol: Array, targets: Array, **constants: Array) -> Solutions:
    """The solutions with these states (n, size) at time zero, none of which has begun: their next step is zero.

    targets (n, targets) : of the level. max_steps : of each solution. constants : the other fields of `Solutions` that
    hold from the start: tolerances, `relative` and `tremor`, and the times `end` and `longest`.
    """
    n, size = states.shape
    return Solutions(
        **constants,
        atol=atol,
        targets=targets,
        hidden=np.zeros(n, dtype=np.bool_),
        floor=np.repeat(atol[:, None], size, axis=1),
        time=np.zeros(n),
        step=np.zeros(n),
        state=states.copy(),
        slope=np.zeros((n, size)),
        before=np.zeros(n),
        length=np.zeros(n),
        start=states.copy(),
        start_slope=np.zeros((n, size)),
        budget=np.full(n, max_steps),
        evaluations=np.zeros(n, dtype=np.int64),
        stiff_steps=np.zeros(n, dtype=np.int64),
        calm_steps=np.zeros(n, dtype=np.int64),
        stiff=np.zeros(n, dtype=np.bool_),
        failed=np.zeros(n, dtype=np.bool_),
        passages=np.full(targets.shape, np.inf),
        rates=np.full(targets.shape, np.nan),
        passing=np.repeat(states[:, None], targets.shape[1], axis=1),
    )
