"""Steps of the explicit integrator of the overlaps' ODE: Dormand and Prince's method of order 8(5,3), compiled.

Steps and error control are those of Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section
II.5, with the coefficients of scipy.integrate.DOP853, which takes the same steps. Compiled, because right-hand sides of
few overlaps take less time than one Python statement.

Hairer's test (II, section IV.2) detects stiff solutions, which an implicit method continues.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.numerics.compiled import inlined, loops, pointer, without_references
from sweeplib.networks.numerics.integrators import floors
from sweeplib.networks.numerics.packed_arguments import PACKED, packed, unpacker

_SAFETY, _SMALLEST_FACTOR, _LARGEST_FACTOR = 0.9, 0.2, 10.0  # of the next step, as scipy has them
_STABLE, _STIFF_STEPS, _CALM_STEPS = 4.0, 5, 6
"""The largest h |λ|, well below the limit of stability at 6.1; stiff are so many steps there, few others in between."""
_FEWEST_IMPLICIT, _JACOBIANS = 500, 30
"""The least numbers of right-hand sides and Jacobians that an implicit method takes."""
_ROUNDING = 1e-14

kernel = without_references


class Calls(NamedTuple):
    """Many systems of equations for kernels, which are compiled once for all: two addresses and what both are given.

    `slope_of(i, state, given, out)` fills the slope of system i; `level_of(i, state, given)` is a number whose passages
    of targets are noted.
    """

    slope_of: Any
    level_of: Any
    arguments: NDArray[np.int64]


def no_level(i: int, state: Array, systems: Any, work: Any) -> float:
    """Zero: there are no targets."""
    return 0.0


class EquationRule:
    """The slope and the level of equations whose systems and work arrays are of one type; without a level no targets.

    `slope(i, state, systems, work, out)` and `level(i, state, systems, work)` are compiled for the types of examples.
    """

    def __init__(
        self, slope: Callable[..., None], systems: Any, work: Any, level: Callable[..., float] = no_level
    ) -> None:
        self.kind = numba.typeof((systems, work))
        state, opened = numba.types.Array(numba.types.float64, 1, "C"), unpacker(self.kind)
        types = numba.types.int64, state, PACKED
        self.slope = pointer(_slope, numba.void(*types, state), filled=inlined(slope), opened=opened)
        self.level = pointer(_level, numba.float64(*types), filled=inlined(level), opened=opened)


class Equations:
    """Systems of equations and their work arrays, of the types of the rule; `calls` are what kernels take of them."""

    def __init__(self, rule: EquationRule, systems: Any, work: Any) -> None:
        self.systems, self.work = systems, work
        self.calls = Calls(rule.slope, rule.level, packed((systems, work), rule.kind))


def _unbound(*_):  # type: ignore[no-untyped-def]
    raise NotImplementedError("bound by `EquationRule`")


filled = opened = _unbound


def _slope(i, state, arguments, out):  # type: ignore[no-untyped-def]
    """Fill out with the slope of system i, whose constants and work arrays are packed in `arguments`."""
    systems, work = opened(arguments)
    filled(i, state, systems, work, out)


def _level(i, state, arguments):  # type: ignore[no-untyped-def]
    """Return what `filled` does at level i, with the systems and work arrays that are packed in `arguments`."""
    systems, work = opened(arguments)
    return filled(i, state, systems, work)


class Workspace(NamedTuple):
    """Work arrays of a step: slopes (16, size), states `new`, `scratch` (size,), terms of an interpolant (7, size)."""

    slopes: Array
    new: Array
    scratch: Array
    terms: Array


class Tableau(NamedTuple):
    """The coefficients of the method.

    stages (13, 12) : of the stages, the last row of the step itself. error_5, error_3 (13,) : of both error estimates.
    more_stages (3, 16), terms (4, 16) : of the interpolant.
    """

    stages: Array
    error_5: Array
    error_3: Array
    more_stages: Array
    terms: Array


@cache
def tableau() -> Tableau:
    """The coefficients, from scipy; the last row of the stages is the step itself."""
    method = scipy.integrate.DOP853
    stages = np.vstack([method.A, method.B])
    return Tableau(stages, method.E5.copy(), method.E3.copy(), method.A_EXTRA.copy(), method.D.copy())


class Solutions(NamedTuple):
    """The progress of n solutions of `size` variables, changed in place by `explicit.advance`.

    end (n,) : last time that will be requested.
    longest (n,) : the longest step.
    time, step (n,) : end of the last step, length of the next.
    state, slope (n, size) : at `time`.
    before, length (n,) : beginning and length of the last step.
    start, start_slope (n, size) : state and slope at `before`.
    budget, evaluations (n,) : number of steps left, number of right-hand sides so far.
    stiff_steps, calm_steps (n,) : counts of the test for stiffness.
    stiff, failed (n,) : why a solution stopped.
    rtol, atol (n,) : tolerances.
    relative (n,) : the absolute tolerance of a variable whose size is below atol/relative, relative to this size.
    hidden (n,) : whether rounding hides how a small variable grows.
    floor (n, size) : the absolute tolerances now: min(atol, relative · the largest size so far); atol where that is 0.
    tremor (n, size) : by how much each step moves variables, relative to their size: the rounding of a companion.
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


def solutions(
    states: Array,
    end: Array,
    longest: Array,
    rtol: Array,
    atol: Array,
    relative: Array,
    tremor: Array,
    targets: Array,
    max_steps: int,
) -> Solutions:
    """Solutions at time zero with these states (n, size), ends (n,) and longest steps (n,), not begun (step zero)."""
    n, size = states.shape
    return Solutions(
        rtol=rtol,
        atol=atol,
        relative=relative,
        hidden=np.zeros(n, dtype=np.bool_),
        floor=np.repeat(atol[:, None], size, axis=1),
        tremor=tremor,
        targets=targets,
        end=end,
        longest=longest,
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


@kernel
def copy(values, out):  # type: ignore[no-untyped-def]
    """Fill out with the values. (An assignment of arrays takes seconds to compile, for its error messages.)"""
    for v in range(out.shape[0]):
        out[v] = values[v]


@loops
def combination(out, start, length, weights, slopes, count):  # type: ignore[no-untyped-def]
    """Fill out (size,) with start + length Σ_s weights[s] slopes[s], a sum over the first `count` slopes."""
    for v in range(out.shape[0]):
        out[v] = 0.0
    for s in range(count):
        # a quarter of the coefficients of the stages are zero
        if weights[s] != 0.0:
            for v in range(out.shape[0]):
                out[v] += weights[s] * slopes[s, v]
    for v in range(out.shape[0]):
        out[v] = start[v] + length * out[v]


@kernel
def fill_slope(i, equations, state, out):  # type: ignore[no-untyped-def]
    """Fill out with the time derivative of a state of system i."""
    equations.slope_of(i, state, equations.arguments, out)


@kernel
def level(i, equations, state):  # type: ignore[no-untyped-def]
    """The level of a state of system i."""
    return equations.level_of(i, state, equations.arguments)


@kernel
def scaled_square(x, state, rtol, atol):  # type: ignore[no-untyped-def]
    """The mean over v of (x_v/(atol + rtol |state_v|))²."""
    total = 0.0
    for v in range(x.shape[0]):
        ratio = x[v] / (atol + rtol * abs(state[v]))
        total += ratio * ratio
    return total / x.shape[0]


@kernel
def error_norm(i, length, new, tableau, solutions, slopes):  # type: ignore[no-untyped-def]
    """The error of a step of solution i to `new` in units of the tolerance, from the estimates of orders 5 and 3."""
    state, rtol, floor, five, three = solutions.state[i], solutions.rtol[i], solutions.floor[i], 0.0, 0.0
    for v in range(state.shape[0]):
        scale = floor[v] + rtol * max(abs(state[v]), abs(new[v]))
        of_5, of_3 = 0.0, 0.0
        for s in range(13):
            of_5 += tableau.error_5[s] * slopes[s, v]
            of_3 += tableau.error_3[s] * slopes[s, v]
        five += (of_5 / scale) ** 2
        three += (of_3 / scale) ** 2
    if five == 0.0 and three == 0.0:
        return 0.0
    # Hairer's combination: the square of the estimate of order 5 over that of order 3 is of order 8 in the length
    return abs(length) * five / math.sqrt((five + 0.01 * three) * state.shape[0])


@kernel
def begin(i, equations, solutions, workspace):  # type: ignore[no-untyped-def]
    """Take the slope at the start, choose the first step (Hairer et al., II.4), note targets that are reached there."""
    state, slope, rtol, atol = solutions.state[i], solutions.slope[i], solutions.rtol[i], solutions.atol[i]
    new, scratch, targets = workspace.new, workspace.scratch, solutions.targets
    fill_slope(i, equations, state, slope)
    size_of_state = math.sqrt(scaled_square(state, state, rtol, atol))
    size_of_slope = math.sqrt(scaled_square(slope, state, rtol, atol))
    step = 1e-6 if size_of_state < 1e-5 or size_of_slope < 1e-5 else 0.01 * size_of_state / size_of_slope
    for v in range(state.shape[0]):
        new[v] = state[v] + step * slope[v]
    fill_slope(i, equations, new, scratch)
    solutions.evaluations[i] += 2
    for v in range(state.shape[0]):
        scratch[v] -= slope[v]
    curvature = math.sqrt(scaled_square(scratch, state, rtol, atol)) / step
    largest = max(size_of_slope, curvature)
    other = max(1e-6, step * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.125
    solutions.step[i] = min(100.0 * step, other, solutions.longest[i])
    if floors.vanishing(i, solutions, new):
        fill_slope(i, equations, new, scratch)
        solutions.evaluations[i] += 1
        # a variable was put to zero: the slope was that of another start
        if floors.lower(i, solutions, scratch):
            fill_slope(i, equations, state, slope)
    at_start = level(i, equations, state)
    for t in range(targets.shape[1]):
        if at_start <= targets[i, t]:
            solutions.passages[i, t] = 0.0


@loops
def fill_stages(i, equations, start, length, tableau, workspace):  # type: ignore[no-untyped-def]
    """Fill the slopes 1 to 11 of a step from `start`, whose slope is slopes[0]; `scratch` is left at the last stage."""
    slopes, scratch = workspace.slopes, workspace.scratch
    for stage in range(1, 12):
        combination(scratch, start, length, tableau.stages[stage], slopes, stage)
        fill_slope(i, equations, scratch, slopes[stage])


@kernel
def stepped(i, equations, tableau, solutions, workspace):  # type: ignore[no-untyped-def]
    """Take a step of solution i whose error is within the tolerance; return false if none that changes the time is."""
    state, slope, slopes, new = solutions.state[i], solutions.slope[i], workspace.slopes, workspace.new
    time, length, rejections = solutions.time[i], solutions.step[i], 0
    # scipy's least step: ten units of the last digit of the time
    shortest = 10.0 * abs(np.nextafter(time, np.inf) - time)
    length = max(length, shortest)
    copy(slope, slopes[0])
    while length >= shortest:
        fill_stages(i, equations, state, length, tableau, workspace)
        combination(new, state, length, tableau.stages[12], slopes, 12)
        fill_slope(i, equations, new, slopes[12])
        solutions.evaluations[i] += 12
        error = error_norm(i, length, new, tableau, solutions, slopes)
        if error < 1.0:
            factor = min(_LARGEST_FACTOR, _SAFETY * error**-0.125) if error > 0.0 else _LARGEST_FACTOR
            stable = most_stable_step(workspace)
            solutions.before[i], solutions.length[i] = time, length
            solutions.time[i] = time + length
            following = length * (min(1.0, factor) if rejections else factor)
            solutions.step[i] = min(following, stable, solutions.longest[i])
            count_stiffness(i, following > stable, solutions)
            copy(state, solutions.start[i])
            copy(slope, solutions.start_slope[i])
            floors.take(i, new, solutions)
            copy(slopes[12], slope)
            return True
        factor = _SAFETY * error**-0.125
        length *= factor if factor > _SMALLEST_FACTOR else _SMALLEST_FACTOR
        rejections += 1
        if rejections % floors.REJECTIONS == 0 and floors.are_raised(i, solutions):
            length = solutions.step[i]
    return False


@kernel
def most_stable_step(workspace):  # type: ignore[no-untyped-def]
    """The longest step well within the region of stability, |λ| being told by the two slopes at the end of a step.

    The step was stiff if it was longer. Infinite where the two states differ in nothing but rounding.
    """
    slopes, new, last_stage = workspace.slopes, workspace.new, workspace.scratch
    rise, run, size = 0.0, 0.0, 0.0
    for v in range(new.shape[0]):
        rise += (slopes[12, v] - slopes[11, v]) ** 2
        run += (new[v] - last_stage[v]) ** 2
        size += new[v] ** 2
    if run <= _ROUNDING**2 * size or rise == 0.0:
        return np.inf
    return _STABLE * math.sqrt(run / rise)


@kernel
def count_stiffness(i, limited, solutions):  # type: ignore[no-untyped-def]
    """Count the steps that stability limits; solution i is stiff after some of them with few others in between.

    It is not called stiff where explicit steps to its end take fewer right-hand sides than the Jacobians of an implicit
    method.
    """
    if limited:
        solutions.calm_steps[i] = 0
        solutions.stiff_steps[i] += 1
        steps = 12.0 * (solutions.end[i] - solutions.time[i]) / solutions.step[i]
        worth = steps > _FEWEST_IMPLICIT + _JACOBIANS * solutions.state.shape[1]
        solutions.stiff[i] = worth and solutions.stiff_steps[i] >= _STIFF_STEPS
    else:
        solutions.calm_steps[i] += 1
        if solutions.calm_steps[i] >= _CALM_STEPS:
            solutions.stiff_steps[i] = 0


@kernel
def fill_partial(i, equations, length, tableau, solutions, workspace, out):  # type: ignore[no-untyped-def]
    """Fill out (size,) with the end of a step of some length from the beginning of the last step of solution i."""
    copy(solutions.start_slope[i], workspace.slopes[0])
    fill_stages(i, equations, solutions.start[i], length, tableau, workspace)
    combination(out, solutions.start[i], length, tableau.stages[12], workspace.slopes, 12)
    solutions.evaluations[i] += 11
