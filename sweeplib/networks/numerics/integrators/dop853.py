"""Steps of the explicit integrator of the overlaps' ODE: Dormand and Prince's method of order 8(5,3), compiled.

Steps and error control are those of Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section
II.5, with the coefficients of scipy.integrate.DOP853, which takes the same steps. Compiled, because right-hand sides of
few overlaps take less time than one Python statement.

Hairer's test (II, section IV.2) detects stiff solutions, which an implicit method continues.

In the kernels i is the number of a solution, of `size` variables; `equations` are the `Calls`, `solutions` the
`Solutions`, changed in place, `tableau` and `workspace` the `Tableau` and `Workspace`. A level is a number of a state,
such as the risk, whose passages of targets are noted.
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
from sweeplib.networks.numerics.binding import unbound
from sweeplib.networks.numerics.compiled import inlined, loops, pointer, without_references
from sweeplib.networks.numerics.integrators import floors
from sweeplib.networks.numerics.packed_arguments import PACKED, packed, unpacker

_SAFETY, _SMALLEST_FACTOR, _LARGEST_FACTOR = 0.9, 0.2, 10.0
"""Of the factor of the next step, as scipy has them: what makes it safer, the least and the largest."""
_STABLE, _STIFF_STEPS, _CALM_STEPS = 4.0, 5, 6
"""The largest h |λ|, well below the limit of stability at 6.1; stiff are so many steps there, few others in between."""
_FEWEST_IMPLICIT, _JACOBIANS = 500, 30
"""The least numbers of right-hand sides and Jacobians that an implicit method takes."""
_ROUNDING = 1e-14
"""Two states whose relative distance is less differ by rounding alone."""

kernel = without_references
"""For functions that neither allocate nor return arrays, compiled into their callers."""


class Calls(NamedTuple):
    """Many systems of equations for kernels, which are compiled once for all: two addresses and what both are given.

    slope_of : (i, state (size,), arguments, out (size,)) fills the slope of system i.
    level_of : (i, state, arguments) returns the level of a state of system i.
    arguments : constants and work arrays of the systems, packed (`packed_arguments`).
    """

    slope_of: Any
    level_of: Any
    arguments: NDArray[np.int64]


def no_level(i: int, state: Array, systems: Any, work: Any) -> float:
    """The level of equations without targets, which is never read."""
    return 0.0


class Equations:
    """Systems of equations and their work arrays; `calls` are what kernels take of them.

    `slope(i, state, systems, work, out)` and `level(i, state, systems, work)` are compiled once for all systems and
    work arrays of a type; without a level there are no targets.
    """

    def __init__(
        self, slope: Callable[..., None], systems: Any, work: Any, level: Callable[..., float] = no_level
    ) -> None:
        self.systems, self.work = systems, work
        kind = numba.typeof((systems, work))
        slope_of, level_of = _addresses(slope, level, kind)
        self.calls = Calls(slope_of, level_of, packed((systems, work), kind))


@cache
def _addresses(slope: Callable[..., None], level: Callable[..., float], kind: numba.types.Type) -> tuple[Any, Any]:
    """The addresses of a slope and of a level of equations whose systems and work arrays have this type of numba."""
    state, opened = numba.types.Array(numba.types.float64, 1, "C"), unpacker(kind)
    types = numba.types.int64, state, PACKED
    return (
        pointer(_slope, numba.void(*types, state), filled=inlined(slope), opened=opened),
        pointer(_level, numba.float64(*types), filled=inlined(level), opened=opened),
    )


filled = opened = unbound
"""Bound by `_addresses`."""


def _slope(i, state, arguments, out):  # type: ignore[no-untyped-def]
    """Fill out with the slope of system i by the bound `filled`; `arguments` are packed constants and work arrays."""
    systems, work = opened(arguments)
    filled(i, state, systems, work, out)


def _level(i, state, arguments):  # type: ignore[no-untyped-def]
    """Return the level of a state of system i by the bound `filled`; `arguments` as for `_slope`."""
    systems, work = opened(arguments)
    return filled(i, state, systems, work)


class Workspace(NamedTuple):
    """Work arrays of a step of `size` variables.

    slopes (16, size) : at the 12 stages and the end of a step, and at three more stages for the interpolant.
    new, scratch (size,) : the state at the end, and a state.
    terms (7, size) : of the interpolant.
    """

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


@kernel
def copy(values, out):  # type: ignore[no-untyped-def]
    """Fill out (size,) with the values (size,): an assignment of arrays takes seconds to compile."""
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
    """Fill out (size,) with the time derivative of a state (size,) of system i."""
    equations.slope_of(i, state, equations.arguments, out)


@kernel
def level(i, equations, state):  # type: ignore[no-untyped-def]
    """The level of a state (size,) of system i."""
    return equations.level_of(i, state, equations.arguments)


@kernel
def scaled_square(x, state, rtol, atol):  # type: ignore[no-untyped-def]
    """The mean over variables v of (x_v/(atol + rtol |state_v|))²; x and state are (size,)."""
    total = 0.0
    for v in range(x.shape[0]):
        ratio = x[v] / (atol + rtol * abs(state[v]))
        total += ratio * ratio
    return total / x.shape[0]


@kernel
def error_norm(i, length, new, tableau, solutions, slopes):  # type: ignore[no-untyped-def]
    """The error of a step of solution i to `new` (size,), in units of the tolerance.

    It is made of the estimates of orders 5 and 3. length : of the step. slopes (16, size) : of its stages.
    """
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
    """Begin solution i: fill its slope, choose the first step (Hairer et al., II.4), note targets reached already."""
    state, slope, rtol, atol = solutions.state[i], solutions.slope[i], solutions.rtol[i], solutions.atol[i]
    new, scratch, targets = workspace.new, workspace.scratch, solutions.targets
    fill_slope(i, equations, state, slope)
    size_of_state = math.sqrt(scaled_square(state, state, rtol, atol))
    size_of_slope = math.sqrt(scaled_square(slope, state, rtol, atol))
    probe = 1e-6 if size_of_state < 1e-5 or size_of_slope < 1e-5 else 0.01 * size_of_state / size_of_slope
    for v in range(state.shape[0]):
        new[v] = state[v] + probe * slope[v]
    fill_slope(i, equations, new, scratch)
    solutions.evaluations[i] += 2
    for v in range(state.shape[0]):
        scratch[v] -= slope[v]
    curvature = math.sqrt(scaled_square(scratch, state, rtol, atol)) / probe
    largest = max(size_of_slope, curvature)
    by_curvature = max(1e-6, probe * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.125
    solutions.step[i] = min(100.0 * probe, by_curvature, solutions.longest[i])
    if floors.fill_vanishing(i, solutions, new):
        fill_slope(i, equations, new, scratch)
        solutions.evaluations[i] += 1
        # a variable was put to zero: the slope was that of another start
        if floors.lower_floors(i, solutions, scratch):
            fill_slope(i, equations, state, slope)
    at_start = level(i, equations, state)
    for t in range(targets.shape[1]):
        if at_start <= targets[i, t]:
            solutions.passages[i, t] = 0.0


@loops
def fill_stages(i, equations, start, length, tableau, workspace):  # type: ignore[no-untyped-def]
    """Fill slopes 1 to 11 of a step of this length from the state `start`, whose slope is workspace.slopes[0].

    `workspace.scratch` is left at the state of the last stage.
    """
    slopes, scratch = workspace.slopes, workspace.scratch
    for stage in range(1, 12):
        combination(scratch, start, length, tableau.stages[stage], slopes, stage)
        fill_slope(i, equations, scratch, slopes[stage])


@kernel
def take_step(i, equations, tableau, solutions, workspace):  # type: ignore[no-untyped-def]
    """Take a step of solution i whose error is within the tolerance.

    Return False if the least step has a larger one.
    """
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
            longest_stable = most_stable_step(workspace)
            solutions.before[i], solutions.length[i] = time, length
            solutions.time[i] = time + length
            following = length * (min(1.0, factor) if rejections else factor)
            solutions.step[i] = min(following, longest_stable, solutions.longest[i])
            count_stiffness(i, following > longest_stable, solutions)
            copy(state, solutions.start[i])
            copy(slope, solutions.start_slope[i])
            floors.accept(i, new, solutions)
            copy(slopes[12], slope)
            return True
        factor = _SAFETY * error**-0.125
        length *= factor if factor > _SMALLEST_FACTOR else _SMALLEST_FACTOR
        rejections += 1
        if rejections % floors.REJECTIONS == 0 and floors.raise_floors(i, solutions):
            length = solutions.step[i]
    return False


@kernel
def most_stable_step(workspace):  # type: ignore[no-untyped-def]
    """The longest step well within the region of stability, by what the last step shows.

    The largest |λ| of the Jacobian is estimated by the slopes of the step's last two states, over their distance; inf
    where they are all but equal. A step that is longer is stiff.
    """
    slopes, new, last_stage = workspace.slopes, workspace.new, workspace.scratch
    rise, run, norm = 0.0, 0.0, 0.0
    for v in range(new.shape[0]):
        rise += (slopes[12, v] - slopes[11, v]) ** 2
        run += (new[v] - last_stage[v]) ** 2
        norm += new[v] ** 2
    if run <= _ROUNDING**2 * norm or rise == 0.0:
        return np.inf
    return _STABLE * math.sqrt(run / rise)


@kernel
def count_stiffness(i, limited, solutions):  # type: ignore[no-untyped-def]
    """Count a step of solution i that stability `limited`, or did not; mark the solution as stiff by the counts.

    It is stiff after _STIFF_STEPS limited steps with few others in between, unless explicit steps to its end take fewer
    right-hand sides than the Jacobians of an implicit method.
    """
    if limited:
        solutions.calm_steps[i] = 0
        solutions.stiff_steps[i] += 1
        right_hand_sides = 12.0 * (solutions.end[i] - solutions.time[i]) / solutions.step[i]
        pays = right_hand_sides > _FEWEST_IMPLICIT + _JACOBIANS * solutions.state.shape[1]
        solutions.stiff[i] = pays and solutions.stiff_steps[i] >= _STIFF_STEPS
    else:
        solutions.calm_steps[i] += 1
        if solutions.calm_steps[i] >= _CALM_STEPS:
            solutions.stiff_steps[i] = 0


@kernel
def fill_partial(i, equations, length, tableau, solutions, workspace, out):  # type: ignore[no-untyped-def]
    """Fill out (size,) with the end of a step of this length from the beginning of the last step of solution i."""
    copy(solutions.start_slope[i], workspace.slopes[0])
    fill_stages(i, equations, solutions.start[i], length, tableau, workspace)
    combination(out, solutions.start[i], length, tableau.stages[12], workspace.slopes, 12)
    solutions.evaluations[i] += 11
