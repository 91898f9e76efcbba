"""The compiled explicit integrator of the overlaps' ODE: Dormand and Prince's method of order 8(5,3).

Steps and error control are those of Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section
II.5, with the coefficients of scipy.integrate.DOP853, which takes the same steps. Compiled, because right-hand sides of
few overlaps take less time than one Python statement.

States at recording times and passages are ends of steps of their own, from the beginning of the step that holds them:
at the limit of stability the interpolant is wrong by many tolerances. Passages are looked for at four points of a step
on the interpolant of order 7, which only has to tell in which part of the step they are. A solution that becomes stiff
is told by Hairer's test (II, section IV.2) and left where it is, for an implicit method to go on.
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
_STABLE, _STIFF_STEPS, _CALM_STEPS = 4.0, 5, 6
"""The largest h |λ|, well below the limit of stability at 6.1; stiff are so many steps there, few others in between."""
_FEWEST_IMPLICIT, _JACOBIANS = 500, 30
"""Right-hand sides that an implicit method takes at least, beside so many Jacobians."""
_ROUNDING = 1e-14
_REFINEMENTS = 8

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

    `end` (n,): the last time that will be asked for. `time`, `step` (n,): the end of the last step and the length of
    the next; `state`, `slope` (n, size) there. `before`, `length` (n,), `start`, `start_slope` (n, size): the beginning
    and length of the last step, state and slope there. `left`, `evaluations` (n,): the steps that may follow, the
    right-hand sides taken. `stiff_steps`, `calm_steps` (n,): the counts of the test for stiffness. `stiff`, `failed`
    (n,): why a solution goes no further. `passages` (n, targets): inf where there is none yet.
    """

    end: Array
    time: Array
    step: Array
    state: Array
    slope: Array
    before: Array
    length: Array
    start: Array
    start_slope: Array
    left: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    stiff_steps: NDArray[np.int64]
    calm_steps: NDArray[np.int64]
    stiff: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    passages: Array


def solutions(states: Array, end: Array, targets: int, max_steps: int) -> Solutions:
    """Solutions at time zero that have these states (n, size) and ends (n,), and a step of zero: not begun."""
    n, size = states.shape
    return Solutions(
        end=end,
        time=np.zeros(n),
        step=np.zeros(n),
        state=states.copy(),
        slope=np.zeros((n, size)),
        before=np.zeros(n),
        length=np.zeros(n),
        start=states.copy(),
        start_slope=np.zeros((n, size)),
        left=np.full(n, max_steps),
        evaluations=np.zeros(n, dtype=np.int64),
        stiff_steps=np.zeros(n, dtype=np.int64),
        calm_steps=np.zeros(n, dtype=np.int64),
        stiff=np.zeros(n, dtype=np.bool_),
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
    solutions.evaluations[i] += 2
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
def fill_stages(i, slope_of, start, length, tableau, slopes, scratch, systems, work):  # type: ignore[no-untyped-def]
    """Fill the slopes 1 to 11 of a step from `start`, whose slope is slopes[0]; `scratch` is left at the last stage."""
    for stage in range(1, 12):
        combination(scratch, start, length, tableau.stages[stage], slopes, stage)
        slope_of(i, scratch, systems, work, slopes[stage])


@_kernel
def stepped(i, slope_of, rtol, atol, tableau, solutions, slopes, new, scratch, systems, work):  # type: ignore[no-untyped-def]
    """Take a step whose error is within the tolerance; false when none that changes the time is."""
    state, slope = solutions.state[i], solutions.slope[i]
    time, length, rejected = solutions.time[i], solutions.step[i], False
    shortest = 10.0 * abs(np.nextafter(time, np.inf) - time)
    length = max(length, shortest)
    copy(slope, slopes[0])
    while length >= shortest:
        fill_stages(i, slope_of, state, length, tableau, slopes, scratch, systems, work)
        combination(new, state, length, tableau.stages[12], slopes, 12)
        slope_of(i, new, systems, work, slopes[12])
        solutions.evaluations[i] += 12
        error = error_norm(slopes, length, state, new, tableau.error_5, tableau.error_3, rtol, atol)
        if error < 1.0:
            factor = min(_LARGEST_FACTOR, _SAFETY * error**-0.125) if error > 0.0 else _LARGEST_FACTOR
            stable = most_stable_step(i, slopes, new, scratch, solutions)
            solutions.before[i], solutions.length[i] = time, length
            solutions.time[i] = time + length
            following = length * (min(1.0, factor) if rejected else factor)
            solutions.step[i] = min(following, stable)
            count_stiffness(i, following > stable, solutions)
            copy(state, solutions.start[i])
            copy(slope, solutions.start_slope[i])
            copy(new, state)
            copy(slopes[12], slope)
            return True
        factor = _SAFETY * error**-0.125
        length *= factor if factor > _SMALLEST_FACTOR else _SMALLEST_FACTOR
        rejected = True
    return False


@_kernel
def most_stable_step(i, slopes, new, last_stage, solutions):  # type: ignore[no-untyped-def]
    """The longest step well within the region of stability, |λ| being told by the two slopes at the end of a step.

    The step is stiff if it was longer. Where rounding is all that the two states differ in, nothing is told.
    """
    rise, run, size = 0.0, 0.0, 0.0
    for v in range(new.shape[0]):
        rise += (slopes[12, v] - slopes[11, v]) ** 2
        run += (new[v] - last_stage[v]) ** 2
        size += new[v] ** 2
    if run <= _ROUNDING**2 * size or rise == 0.0:
        return np.inf
    return _STABLE * math.sqrt(run / rise)


@_kernel
def count_stiffness(i, limited, solutions):  # type: ignore[no-untyped-def]
    """Count the steps that stability limits; a solution is stiff after some of them with few others in between.

    It is not called stiff where explicit steps to its end take fewer right-hand sides than the Jacobians of an implicit
    method.
    """
    if limited:
        solutions.calm_steps[i] = 0
        solutions.stiff_steps[i] += 1
        left = 12.0 * (solutions.end[i] - solutions.time[i]) / solutions.step[i]
        worth = left > _FEWEST_IMPLICIT + _JACOBIANS * solutions.state.shape[1]
        solutions.stiff[i] = worth and solutions.stiff_steps[i] >= _STIFF_STEPS
    else:
        solutions.calm_steps[i] += 1
        if solutions.calm_steps[i] >= _CALM_STEPS:
            solutions.stiff_steps[i] = 0


@_kernel
def fill_partial(i, slope_of, length, tableau, solutions, slopes, scratch, out, systems, work):  # type: ignore[no-untyped-def]
    """Fill out with the end of a step of this length from the beginning of the last step."""
    copy(solutions.start_slope[i], slopes[0])
    fill_stages(i, slope_of, solutions.start[i], length, tableau, slopes, scratch, systems, work)
    combination(out, solutions.start[i], length, tableau.stages[12], slopes, 12)
    solutions.evaluations[i] += 11


@_kernel
def fill_terms(i, slope_of, tableau, solutions, slopes, terms, scratch, systems, work):  # type: ignore[no-untyped-def]
    """Fill the terms (7, size) of the interpolant of the last step, at the cost of three slopes."""
    start, state, length = solutions.start[i], solutions.state[i], solutions.length[i]
    for stage in range(3):
        combination(scratch, start, length, tableau.more_stages[stage], slopes, 13 + stage)
        slope_of(i, scratch, systems, work, slopes[13 + stage])
    solutions.evaluations[i] += 3
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
def risk_within(i, risk_of, solutions, terms, x, scratch, systems, work):  # type: ignore[no-untyped-def]
    """The risk at the fraction x of the last step, on its interpolant."""
    interpolant(scratch, solutions.start[i], terms, x)
    return risk_of(i, scratch, systems, work)


@_kernel
def note_passages(  # type: ignore[no-untyped-def]
    i, slope_of, risk_of, tableau, solutions, targets, slopes, terms, scratch, new, systems, work
):
    """Note the first time in the last step at which the risk is at each target that waits."""
    for t in range(targets.shape[1]):
        before, after = 0.0, 0.0
        while solutions.passages[i, t] == np.inf and after < 1.0:
            before, after = after, after + 1.0 / _LOOKS_A_STEP
            if risk_within(i, risk_of, solutions, terms, after, scratch, systems, work) <= targets[i, t]:
                target = targets[i, t]
                x = crossing(i, risk_of, solutions, terms, before, after, target, scratch, systems, work)
                x = refined(
                    i, slope_of, risk_of, tableau, solutions, slopes, terms, x, target, scratch, new, systems, work
                )
                solutions.passages[i, t] = solutions.before[i] + x * solutions.length[i]


@_kernel
def crossing(i, risk_of, solutions, terms, before, after, target, scratch, systems, work):  # type: ignore[no-untyped-def]
    """Where in (before, after], fractions of the last step, its interpolant comes to the target, by bisection."""
    while before < 0.5 * (before + after) < after:
        middle = 0.5 * (before + after)
        if risk_within(i, risk_of, solutions, terms, middle, scratch, systems, work) <= target:
            after = middle
        else:
            before = middle
    return after


@_kernel
def refined(  # type: ignore[no-untyped-def]
    i, slope_of, risk_of, tableau, solutions, slopes, terms, x, target, scratch, new, systems, work
):
    """The crossing x of the interpolant moved to that of the method itself, by Newton's iteration.

    The value is that of a step to x, the slope that of the interpolant; where that is flat, x stays.
    """
    for _ in range(_REFINEMENTS):
        fill_partial(i, slope_of, x * solutions.length[i], tableau, solutions, slopes, scratch, new, systems, work)
        excess = risk_of(i, new, systems, work) - target
        near, far = max(x - 1e-3, 0.0), min(x + 1e-3, 1.0)
        rise = risk_within(i, risk_of, solutions, terms, far, scratch, systems, work)
        rise -= risk_within(i, risk_of, solutions, terms, near, scratch, systems, work)
        if rise == 0.0:
            break
        move = -excess * (far - near) / rise
        if abs(move) > 0.1:
            break
        x = min(max(x + move, 0.0), 1.0)
        if abs(move) < 1e-14:
            break
    return x


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

    At most `most_steps` steps each, none once a solution is stiff. `rtol` and `atol` are (n,). `times` (n,), `states`
    (n, size) are filled with where they came. `slope_of(i, state, systems, work, out)` and `risk_of(i, state, systems,
    work)` are pointers to functions, so that this is compiled once for all; i is the number of the solution, the rest
    is for them alone.
    """
    size = solutions.state.shape[1]
    slopes, new, scratch, terms = np.empty((16, size)), np.empty(size), np.empty(size), np.empty((7, size))
    for i in order:
        if solutions.step[i] == 0.0:
            begin(i, slope_of, risk_of, rtol[i], atol[i], solutions, targets, systems, work, scratch, new)
        steps, end = most_steps, last_passage(solutions, i) if stops else np.inf
        while solutions.time[i] < min(until[i], end) and steps > 0 and solutions.left[i] > 0 and not solutions.stiff[i]:
            if not stepped(i, slope_of, rtol[i], atol[i], tableau, solutions, slopes, new, scratch, systems, work):
                solutions.failed[i] = True
                break
            steps -= 1
            solutions.left[i] -= 1
            if may_have_passed(i, risk_of, solutions, targets, systems, work, scratch):
                fill_terms(i, slope_of, tableau, solutions, slopes, terms, scratch, systems, work)
                note_passages(
                    i, slope_of, risk_of, tableau, solutions, targets, slopes, terms, scratch, new, systems, work
                )
                end = last_passage(solutions, i) if stops else np.inf
        came = min(solutions.time[i], until[i], end)
        times[i] = came
        if came == solutions.time[i]:
            copy(solutions.state[i], states[i])
        elif came == solutions.before[i]:
            copy(solutions.start[i], states[i])
        else:
            length = came - solutions.before[i]
            fill_partial(i, slope_of, length, tableau, solutions, slopes, scratch, states[i], systems, work)
