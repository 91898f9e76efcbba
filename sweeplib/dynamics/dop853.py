"""The compiled integrator of the overlaps' ODE: Dormand and Prince's method of order 8(5,3), one solution a replica.

Steps, error control and interpolation are those of Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations
I, section II.5, with the coefficients of scipy.integrate.DOP853, which takes the same steps. Compiled, because
right-hand sides of few overlaps take less time than one Python statement. Passages are looked for at four points of a
step, on the interpolant of order 7, and located to rounding.
"""

import math
from functools import cache
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SAFETY, _SMALLEST_FACTOR, _LARGEST_FACTOR = 0.9, 0.2, 10.0
_LOOKS_A_STEP = 4

_kernel = numba.njit(error_model="numpy", fastmath={"contract"})


class Tableau(NamedTuple):
    """Coefficients of the stages (13, 12), of the two error estimates (13,), of the interpolant's stages and terms."""

    stages: Array
    error_5: Array
    error_3: Array
    more_stages: Array
    terms: Array


@cache
def tableau() -> Tableau:
    """The coefficients, from scipy; the last row of the stages is the step itself."""
    from scipy.integrate import DOP853

    stages = np.vstack([DOP853.A, DOP853.B])
    return Tableau(stages, DOP853.E5.copy(), DOP853.E3.copy(), DOP853.A_EXTRA.copy(), DOP853.D.copy())


class Solutions(NamedTuple):
    """Where n solutions of `size` variables are, changed in place by `advance`.

    `time`, `step` (n,) the end of the last step and the length of the next; `state`, `slope` (n, size) there;
    `before`, `length` (n,) the beginning and length of the last step; `start` (n, size) and `terms` (n, 7, size) of
    its interpolant, valid where the step went beyond the time asked for; `left` (n,) the steps that may follow;
    `failed` (n,); `passages` (n, targets), inf where there is none yet.
    """

    time: Array
    step: Array
    state: Array
    slope: Array
    before: Array
    length: Array
    start: Array
    terms: Array
    left: NDArray[np.int64]
    failed: NDArray[np.bool_]
    passages: Array


def solutions(states: Array, targets: int, max_steps: int) -> Solutions:
    """Solutions at time zero that have these states (n, size), and a step of zero: not begun."""
    n, size = states.shape
    return Solutions(
        time=np.zeros(n),
        step=np.zeros(n),
        state=states.copy(),
        slope=np.zeros((n, size)),
        before=np.zeros(n),
        length=np.zeros(n),
        start=states.copy(),
        terms=np.zeros((n, 7, size)),
        left=np.full(n, max_steps),
        failed=np.zeros(n, dtype=np.bool_),
        passages=np.full((n, targets), np.inf),
    )


@_kernel
def copy(values, out):  # type: ignore[no-untyped-def]
    """Fill out with the values. (An assignment of arrays takes seconds to compile, for its error messages.)"""
    for v in range(out.shape[0]):
        out[v] = values[v]


@_kernel
def combination(out, start, length, weights, slopes, count):  # type: ignore[no-untyped-def]
    """Fill out = start + length Σ_s weights[s] slopes[s]."""
    for v in range(out.shape[0]):
        out[v] = 0.0
    for s in range(count):
        if weights[s] != 0.0:
            for v in range(out.shape[0]):
                out[v] += weights[s] * slopes[s, v]
    for v in range(out.shape[0]):
        out[v] = start[v] + length * out[v]


@_kernel
def scaled_square(x, state, rtol, atol):  # type: ignore[no-untyped-def]
    """The mean of (x_v/(atol + rtol |state_v|))²."""
    total = 0.0
    for v in range(x.shape[0]):
        part = x[v] / (atol + rtol * abs(state[v]))
        total += part * part
    return total / x.shape[0]


@_kernel
def error_norm(slopes, length, state, new, error_5, error_3, rtol, atol):  # type: ignore[no-untyped-def]
    """The error of a step in units of the tolerance, from the estimates of orders 5 and 3."""
    five, three = 0.0, 0.0
    for v in range(state.shape[0]):
        scale = atol + rtol * max(abs(state[v]), abs(new[v]))
        of_5, of_3 = 0.0, 0.0
        for s in range(13):
            of_5 += error_5[s] * slopes[s, v]
            of_3 += error_3[s] * slopes[s, v]
        five += (of_5 / scale) ** 2
        three += (of_3 / scale) ** 2
    if five == 0.0 and three == 0.0:
        return 0.0
    return abs(length) * five / math.sqrt((five + 0.01 * three) * state.shape[0])


@_kernel
def interpolant(out, start, terms, x):  # type: ignore[no-untyped-def]
    """Fill out with the state at the fraction x of a step."""
    for v in range(out.shape[0]):
        out[v] = 0.0
    for i in range(6, -1, -1):
        factor = x if i % 2 == 0 else 1.0 - x
        for v in range(out.shape[0]):
            out[v] = (out[v] + terms[i, v]) * factor
    for v in range(out.shape[0]):
        out[v] += start[v]


@_kernel
def begin(i, slope_of, risk_of, rtol, atol, solutions, targets, systems, work, scratch, new):  # type: ignore[no-untyped-def]
    """Take the slope at the start, choose the first step (Hairer et al., II.4), note targets that are reached there."""
    state, slope = solutions.state[i], solutions.slope[i]
    slope_of(i, state, systems, work, slope)
    size_of_state = math.sqrt(scaled_square(state, state, rtol, atol))
    size_of_slope = math.sqrt(scaled_square(slope, state, rtol, atol))
    step = 1e-6 if size_of_state < 1e-5 or size_of_slope < 1e-5 else 0.01 * size_of_state / size_of_slope
    for v in range(state.shape[0]):
        new[v] = state[v] + step * slope[v]
    slope_of(i, new, systems, work, scratch)
    for v in range(state.shape[0]):
        scratch[v] -= slope[v]
    curvature = math.sqrt(scaled_square(scratch, state, rtol, atol)) / step
    largest = max(size_of_slope, curvature)
    other = max(1e-6, step * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.125
    solutions.step[i] = min(100.0 * step, other)
    risk = risk_of(i, state, systems, work)
    for target in range(targets.shape[1]):
        if risk <= targets[i, target]:
            solutions.passages[i, target] = 0.0


@_kernel
def stepped(i, slope_of, rtol, atol, tableau, solutions, slopes, new, scratch, systems, work):  # type: ignore[no-untyped-def]
    """Take a step whose error is within the tolerance; false when none that changes the time is."""
    state, slope = solutions.state[i], solutions.slope[i]
    time, length, rejected = solutions.time[i], solutions.step[i], False
    shortest = 10.0 * abs(np.nextafter(time, np.inf) - time)
    length = max(length, shortest)
    copy(slope, slopes[0])
    while length >= shortest:
        for stage in range(1, 12):
            combination(scratch, state, length, tableau.stages[stage], slopes, stage)
            slope_of(i, scratch, systems, work, slopes[stage])
        combination(new, state, length, tableau.stages[12], slopes, 12)
        slope_of(i, new, systems, work, slopes[12])
        error = error_norm(slopes, length, state, new, tableau.error_5, tableau.error_3, rtol, atol)
        if error < 1.0:
            factor = min(_LARGEST_FACTOR, _SAFETY * error**-0.125) if error > 0.0 else _LARGEST_FACTOR
            solutions.before[i], solutions.length[i] = time, length
            solutions.time[i] = time + length
            solutions.step[i] = length * (min(1.0, factor) if rejected else factor)
            copy(state, solutions.start[i])
            copy(new, solutions.state[i])
            copy(slopes[12], solutions.slope[i])
            return True
        factor = _SAFETY * error**-0.125
        length *= factor if factor > _SMALLEST_FACTOR else _SMALLEST_FACTOR
        rejected = True
    return False


@_kernel
def fill_terms(i, slope_of, tableau, solutions, slopes, scratch, systems, work):  # type: ignore[no-untyped-def]
    """Fill the terms of the interpolant of the last step, at the cost of three slopes."""
    start, state, length, terms = solutions.start[i], solutions.state[i], solutions.length[i], solutions.terms[i]
    for stage in range(3):
        combination(scratch, start, length, tableau.more_stages[stage], slopes, 13 + stage)
        slope_of(i, scratch, systems, work, slopes[13 + stage])
    for v in range(state.shape[0]):
        change = state[v] - start[v]
        terms[0, v] = change
        terms[1, v] = length * slopes[0, v] - change
        terms[2, v] = 2.0 * change - length * (slopes[12, v] + slopes[0, v])
        scratch[v] = 0.0
    for row in range(4):
        combination(terms[3 + row], scratch, length, tableau.terms[row], slopes, 16)


@_kernel
def may_have_passed(i, risk_of, solutions, targets, systems, work, scratch):  # type: ignore[no-untyped-def]
    """Whether the risk came to a target that waits, or is rising at the end of the step, so that it may have been."""
    target = -np.inf
    for t in range(targets.shape[1]):
        if solutions.passages[i, t] == np.inf:
            target = max(target, targets[i, t])
    if target == -np.inf:
        return False
    state, slope = solutions.state[i], solutions.slope[i]
    risk = risk_of(i, state, systems, work)
    if risk <= target:
        return True
    for v in range(state.shape[0]):
        scratch[v] = state[v] + 1e-3 * solutions.length[i] * slope[v]
    return risk_of(i, scratch, systems, work) > risk


@_kernel
def risk_within(i, risk_of, solutions, x, scratch, systems, work):  # type: ignore[no-untyped-def]
    """The risk at the fraction x of the last step."""
    interpolant(scratch, solutions.start[i], solutions.terms[i], x)
    return risk_of(i, scratch, systems, work)


@_kernel
def note_passages(i, risk_of, solutions, targets, systems, work, scratch):  # type: ignore[no-untyped-def]
    """Note the first time in the last step at which the risk is at each target that waits, by bisection."""
    for t in range(targets.shape[1]):
        before, after = 0.0, 0.0
        while solutions.passages[i, t] == np.inf and after < 1.0:
            before, after = after, after + 1.0 / _LOOKS_A_STEP
            if risk_within(i, risk_of, solutions, after, scratch, systems, work) <= targets[i, t]:
                while before < 0.5 * (before + after) < after:
                    middle = 0.5 * (before + after)
                    if risk_within(i, risk_of, solutions, middle, scratch, systems, work) <= targets[i, t]:
                        after = middle
                    else:
                        before = middle
                solutions.passages[i, t] = solutions.before[i] + after * solutions.length[i]


@_kernel
def last_passage(solutions, i):  # type: ignore[no-untyped-def]
    """The time of the last passage, inf while one is missing or where there are none."""
    last = -np.inf
    for t in range(solutions.passages.shape[1]):
        last = max(last, solutions.passages[i, t])
    return last if solutions.passages.shape[1] else np.inf


@numba.njit(error_model="numpy", fastmath={"contract"}, nogil=True, cache=True)
def advance(  # type: ignore[no-untyped-def]
    slope_of,
    risk_of,
    order,
    until,
    most_steps,
    stops,
    rtol,
    atol,
    tableau,
    solutions,
    targets,
    states,
    times,
    systems,
    work,
):
    """Bring the solutions in `order` to the times `until` (n,), to their last passage if it `stops`, or to failure.

    At most `most_steps` steps each; says whether that was enough. `times` (n,), `states` (n, size) are filled with
    where they came. `slope_of(i, state, systems, work, out)` and `risk_of(i, state, systems, work)` are pointers to
    functions, so that this is compiled once for all; i is the number of the solution, the rest is for them alone.
    """
    size = solutions.state.shape[1]
    slopes, new, scratch = np.empty((16, size)), np.empty(size), np.empty(size)
    enough = True
    for i in order:
        if solutions.step[i] == 0.0:
            begin(i, slope_of, risk_of, rtol, atol, solutions, targets, systems, work, scratch, new)
        steps, end = most_steps, last_passage(solutions, i) if stops else np.inf
        while solutions.time[i] < min(until[i], end) and steps > 0 and solutions.left[i] > 0:
            if not stepped(i, slope_of, rtol, atol, tableau, solutions, slopes, new, scratch, systems, work):
                solutions.failed[i] = True
                break
            steps -= 1
            solutions.left[i] -= 1
            passing = may_have_passed(i, risk_of, solutions, targets, systems, work, scratch)
            if passing or solutions.time[i] >= until[i]:
                fill_terms(i, slope_of, tableau, solutions, slopes, scratch, systems, work)
            if passing:
                note_passages(i, risk_of, solutions, targets, systems, work, scratch)
                end = last_passage(solutions, i) if stops else np.inf
        came = min(solutions.time[i], until[i], end)
        enough &= came == min(until[i], end) or solutions.failed[i]
        times[i] = came
        if came == solutions.time[i]:
            copy(solutions.state[i], states[i])
        else:
            x = (came - solutions.before[i]) / solutions.length[i]
            interpolant(states[i], solutions.start[i], solutions.terms[i], x)
    return enough
