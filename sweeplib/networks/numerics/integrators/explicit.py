"""The compiled explicit integrator of many solutions: steps, the states at recording times, passages of targets.

States at recording times and passages are ends of steps of their own, from the beginning of the step that holds them:
at the limit of stability the interpolant is wrong by many tolerances. Passages are looked for at four points of a step
on the interpolant of order 7, which only has to tell in which part of the step they are.

Arguments are those of `dop853`: i, the number of a solution; `equations`, the `Calls`; `solutions`, changed in place;
`tableau` and `workspace`. A target waits until its passage is noted; x in [0, 1] is a fraction of the last step.
"""

import numpy as np

from sweeplib.networks.numerics.compiled import loops
from sweeplib.networks.numerics.integrators.dop853 import (
    Workspace,
    begin,
    combination,
    copy,
    fill_partial,
    fill_slope,
    kernel,
    level,
    take_step,
)

_LOOKS_A_STEP = 4
"""Parts of a step, at the ends of which the interpolant is looked at for a passage."""
_REFINEMENTS = 8
"""The most iterations of Newton; they end where x moves by less than 1e-14."""


@loops
def interpolant(out, start, terms, x):  # type: ignore[no-untyped-def]
    """Fill out (size,) with the state at the fraction x of the step from the state `start`, by the terms (7, size)."""
    for v in range(out.shape[0]):
        out[v] = 0.0
    for i in range(6, -1, -1):
        # Horner's scheme for Hairer's interpolant, whose factors are x and 1 − x in turn
        factor = x if i % 2 == 0 else 1.0 - x
        for v in range(out.shape[0]):
            out[v] = (out[v] + terms[i, v]) * factor
    for v in range(out.shape[0]):
        out[v] += start[v]


@kernel
def fill_terms(i, equations, tableau, solutions, workspace):  # type: ignore[no-untyped-def]
    """Fill workspace.terms, of the interpolant of the last step of solution i, at the cost of three slopes."""
    start, state, length = solutions.start[i], solutions.state[i], solutions.length[i]
    slopes, terms, scratch = workspace.slopes, workspace.terms, workspace.scratch
    for stage in range(3):
        combination(scratch, start, length, tableau.more_stages[stage], slopes, 13 + stage)
        fill_slope(i, equations, scratch, slopes[13 + stage])
    solutions.evaluations[i] += 3
    for v in range(state.shape[0]):
        change = state[v] - start[v]
        terms[0, v] = change
        terms[1, v] = length * slopes[0, v] - change
        terms[2, v] = 2.0 * change - length * (slopes[12, v] + slopes[0, v])
        scratch[v] = 0.0
    for row in range(4):
        combination(terms[3 + row], scratch, length, tableau.terms[row], slopes, 16)


@kernel
def may_have_passed(i, equations, solutions, scratch):  # type: ignore[no-untyped-def]
    """Whether the level may have been at a target that waits: it is at one, or it rises at the end of the step.

    scratch (size,) : a work array. Where the level rises at the end, it had a minimum within the step.
    """
    target = -np.inf
    for t in range(solutions.targets.shape[1]):
        if solutions.passages[i, t] == np.inf:
            target = max(target, solutions.targets[i, t])
    if target == -np.inf:
        return False
    state, slope = solutions.state[i], solutions.slope[i]
    now = level(i, equations, state)
    if now <= target:
        return True
    for v in range(state.shape[0]):
        scratch[v] = state[v] + 1e-3 * solutions.length[i] * slope[v]
    return level(i, equations, scratch) > now


@kernel
def level_within(i, equations, solutions, workspace, x):  # type: ignore[no-untyped-def]
    """The level at the fraction x of the last step of solution i, on its interpolant, whose terms are filled."""
    interpolant(workspace.scratch, solutions.start[i], workspace.terms, x)
    return level(i, equations, workspace.scratch)


@kernel
def note_passages(i, equations, tableau, solutions, workspace):  # type: ignore[no-untyped-def]
    """Note the first time in the last step of solution i at which the level is at each target that waits."""
    for t in range(solutions.targets.shape[1]):
        before, after, target = 0.0, 0.0, solutions.targets[i, t]
        while solutions.passages[i, t] == np.inf and after < 1.0:
            before, after = after, after + 1.0 / _LOOKS_A_STEP
            if level_within(i, equations, solutions, workspace, after) <= target:
                x = crossing(i, equations, solutions, workspace, before, after, target)
                x = refined(i, equations, tableau, solutions, workspace, x, target)
                solutions.passages[i, t] = solutions.before[i] + x * solutions.length[i]
                copy(workspace.new, solutions.passing[i, t])
                near, far = max(x - 1e-3, 0.0), min(x + 1e-3, 1.0)
                rise = level_within(i, equations, solutions, workspace, far)
                rise -= level_within(i, equations, solutions, workspace, near)
                solutions.rates[i, t] = rise / ((far - near) * solutions.length[i])


@kernel
def crossing(i, equations, solutions, workspace, before, after, target):  # type: ignore[no-untyped-def]
    """Where in (before, after], fractions of the last step, its interpolant comes to the target, by bisection."""
    # until no double is left between the two: no tolerance has to be chosen
    while before < 0.5 * (before + after) < after:
        middle = 0.5 * (before + after)
        if level_within(i, equations, solutions, workspace, middle) <= target:
            after = middle
        else:
            before = middle
    return after


@kernel
def refined(i, equations, tableau, solutions, workspace, x, target):  # type: ignore[no-untyped-def]
    """The fraction x of a crossing: on the interpolant as given, then by the method itself, by Newton's iteration.

    The value is that of a step to x, the slope that of the interpolant; where that is flat, x stays. workspace.new is
    left at the state at the crossing.
    """
    for _ in range(_REFINEMENTS):
        fill_partial(i, equations, x * solutions.length[i], tableau, solutions, workspace, workspace.new)
        excess = level(i, equations, workspace.new) - target
        near, far = max(x - 1e-3, 0.0), min(x + 1e-3, 1.0)
        rise = level_within(i, equations, solutions, workspace, far)
        rise -= level_within(i, equations, solutions, workspace, near)
        if rise == 0.0:
            break
        move = -excess * (far - near) / rise
        # so far the interpolant is not wrong: its slope tells nothing here
        if abs(move) > 0.1:
            break
        x = min(max(x + move, 0.0), 1.0)
        if abs(move) < 1e-14:
            break
    return x


@kernel
def last_passage(solutions, i):  # type: ignore[no-untyped-def]
    """The time of the last passage of solution i, inf while one is missing or where there are none."""
    last = -np.inf
    for t in range(solutions.passages.shape[1]):
        last = max(last, solutions.passages[i, t])
    return last if solutions.passages.shape[1] else np.inf


def advance(equations, order, until, most_steps, stops, tableau, solutions, states, times):  # type: ignore[no-untyped-def]
    """Bring the solutions in `order` to the times `until` (n,), to their last passage if it `stops`, or to failure.

    equations : the `Calls`, by address, so that this is compiled once for all. solutions : changed in place.
    most_steps : of each solution in this call, none once it is stiff; `solutions.budget` is for all calls.
    states (n, size), times (n,) : filled with where the solutions in `order` came.
    """
    size = solutions.state.shape[1]
    workspace = Workspace(np.empty((16, size)), np.empty(size), np.empty(size), np.empty((7, size)))
    for i in order:
        # it has not begun
        if solutions.step[i] == 0.0:
            begin(i, equations, solutions, workspace)
        steps, end = most_steps, last_passage(solutions, i) if stops else np.inf
        while (
            solutions.time[i] < min(until[i], end) and steps > 0 and solutions.budget[i] > 0 and not solutions.stiff[i]
        ):
            if not take_step(i, equations, tableau, solutions, workspace):
                solutions.failed[i] = True
                break
            steps -= 1
            solutions.budget[i] -= 1
            if may_have_passed(i, equations, solutions, workspace.scratch):
                fill_terms(i, equations, tableau, solutions, workspace)
                note_passages(i, equations, tableau, solutions, workspace)
                end = last_passage(solutions, i) if stops else np.inf
        reached = min(solutions.time[i], until[i], end)
        times[i] = reached
        if reached == solutions.time[i]:
            copy(solutions.state[i], states[i])
        elif reached == solutions.before[i]:
            copy(solutions.start[i], states[i])
        else:
            fill_partial(i, equations, reached - solutions.before[i], tableau, solutions, workspace, states[i])
