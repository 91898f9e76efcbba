"""Nodes for the teacher's fields λ* = L z, z ~ N(0, I_k), L lower triangular: lines along the last z, one at a time.

Along an axis nodes are equally spaced, at a step that resolves every field on which z acts. Where the target has knots
in the field of the axis, which are at (c − Σ_{q<s} L_sq z_q)/L_ss, they are those of Gauss-Legendre panels between the
knots. Nodes with |z| beyond the reach are left out. For more than three fields, which equal steps cannot fill, nodes
are those of a rule of Gauss and Hermite.

A line is given by nodes of all axes but the last; `next_line` goes from one to the next, `fill_line` has its nodes.
Students' fields are N(A z, C) given λ*. Hinges are a row: an offset, then knots c and jumps κ of the slope in turn; the
student's are pair.series[0], those of the target's field r pair.series[1 + r]. s and q are numbers of axes, `rules`
Gauss's rules of the pair.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.grids import LONGEST, REACH, WIDEST, usable_step
from sweeplib.networks.maths.expectations.hinges import has_part
from sweeplib.networks.maths.expectations.nodes import MOST_AXES, Rules
from sweeplib.networks.maths.expectations.plane import (
    ENDS_OF_A_BEND,
    NARROWEST,
    Axis,
    add_bend,
    fill_between,
    fill_equal,
)
from sweeplib.networks.maths.expectations.products import PANEL_STEPS
from sweeplib.networks.maths.expectations.system import Pair
from sweeplib.networks.numerics.compiled import inlined, without_references


class Lines(NamedTuple):
    """The present line, and what leads to it.

    x, weight (k, nodes) : nodes and weights of each axis, at the present nodes of those before it.
    ends : a work array, for the ends of panels.
    step (k,) : the step of each axis; the length of its panels where there are knots.
    sizes, place (k,) : the number of nodes of each axis, and which is the present one.
    begun (1,) : whether there was a line.
    students (n, k), scales (n,) : A_i and √C_ii of the students around whose bends panels end.
    """

    x: Array
    weight: Array
    ends: Array
    step: Array
    sizes: NDArray[np.int64]
    place: NDArray[np.int64]
    begun: NDArray[np.int64]
    students: Array
    scales: Array


@without_references
def fill_given_teacher(Q: Array, M: Array, L: Array, A: Array, C: Array) -> None:
    """Fill A (p, k) = M L⁻ᵀ and C (p, p) = Q − A Aᵀ: given λ* = L z the students' fields are N(A z, C)."""
    p, k = M.shape
    for i in range(p):
        for r in range(k):
            remainder = M[i, r]
            for s in range(r):
                remainder -= A[i, s] * L[r, s]
            A[i, r] = remainder / L[r, r] if L[r, r] > 0.0 else 0.0
        for j in range(i + 1):
            remainder = Q[i, j]
            for r in range(k):
                remainder -= A[i, r] * A[j, r]
            C[i, j] = C[j, i] = remainder


@without_references
def factorise(Q: Array, M: Array, P: Array, L: Array, A: Array, C: Array) -> None:
    """Fill the lower triangular L (k, k), A (p, k) and C ≥ 0 (p, p); rows of L are zero where P is singular."""
    for r in range(len(P)):
        for s in range(r + 1):
            remainder = P[r, s]
            for q in range(s):
                remainder -= L[r, q] * L[s, q]
            if s < r:
                L[r, s] = remainder / L[s, s] if L[s, s] > 0.0 else 0.0
            else:
                L[r, r] = math.sqrt(remainder) if remainder > 1e-14 * P[r, r] else 0.0
    fill_given_teacher(Q, M, L, A, C)
    for i in range(len(C)):
        C[i, i] = max(C[i, i], 0.0)


@without_references
def are_finite(A: Array, C: Array) -> bool:
    """Whether all entries of A (p, k) and C (p, p) are finite numbers; else there are no nodes."""
    total = 0.0
    for i in range(len(A)):
        for s in range(A.shape[1]):
            total += abs(A[i, s])
        for j in range(len(C)):
            total += abs(C[i, j])
    return math.isfinite(total)


@without_references
def fill_steps(steps: Array, most: float, L: Array, step: Array) -> float:
    """Fill the step (k,) of each axis: one that resolves the fields, or a longer one where `most` nodes are not enough.

    steps (levels, functions) : as in a `Pair`. L (k, k) : λ* = L z. Return the shortest step.
    None is longer than that of a field of norm one: a single node would lose the axis, in finer rules as well.
    """
    norm, nodes, shortest = 1.0, 1.0, math.inf
    for r in range(len(L)):
        square = 0.0
        for s in range(len(L)):
            square += L[r, s] * L[r, s]
        norm = max(norm, math.sqrt(square))
    # −1e-9: a power of two that rounding has made a little larger keeps its level
    level = min(math.ceil(math.log2(min(norm, 1e6)) - 1e-9), len(steps) - 1)
    for s in range(len(L)):
        step[s] = steps[0, 1 + s]
        for r in range(len(L)):
            if L[r, s] != 0.0:
                step[s] = min(step[s], steps[level, 1 + r] / max(norm * 0.5**level, 1.0) / abs(L[r, s]))
        nodes *= 2.0 * REACH / step[s] if acts(L, s) else 1.0
    for s in range(len(L)):
        longer = step[s] * max((nodes / most) ** (1.0 / len(L)), 1.0)
        step[s] = usable_step(REACH, min(longer, steps[0, 1 + s]), most)
        shortest = min(shortest, step[s])
    return shortest


@without_references
def acts(L: Array, s: int) -> bool:
    """Whether any field depends on z_s, by L (k, k)."""
    total = 0.0
    for r in range(len(L)):
        total += abs(L[r, s])
    return total > 0.0


@inlined
def lines_of(pair: Pair, rules: Rules, L: Array, most: float, students: Array, scales: Array) -> Lines:
    """The lines for a teacher L (k, k), of at most about `most` nodes in all, before the first one.

    students, scales : those of `Lines`; z is turned with the first along the last axis if L is not lower triangular.
    """
    k, step, knots = len(L), np.empty(len(L)), len(pair.series[0]) // 2
    pieces = int(pair.reach / fill_steps(pair.steps, most, L, step))
    panels = max(rules.panel.shape[1] * knots, 1)
    size = (2 * pieces + 2) * panels + rules.teacher.shape[1]
    ends = knots + 1
    if len(students) > 0:
        ends += (ENDS_OF_A_BEND + 1) * knots * (len(students) + knots * (len(students) - 1))
        size += ends * rules.panel.shape[1]
    nodes, counts = np.empty((2, k, size)), np.zeros((3, k), np.int64)
    return Lines(nodes[0], nodes[1], np.empty(ends), step, counts[0], counts[1], counts[2], students, scales)


@without_references
def add_bends(hinges: Array, lines: Lines, axis: Axis, count: int, longest: float, limit: float) -> int:
    """Add the ends of panels around the bends of the students' means on the line to `axis`; return the number of ends.

    hinges : the students'. count : the number of ends before. longest, limit : the longest panel, and where nodes end.
    """
    students, last = lines.students, lines.students.shape[1] - 1
    for m in range(len(students)):
        slope, centre = students[m, last], along_line(students, m, lines)
        for knot in range(1, len(hinges), 2):
            if hinges[knot + 1] != 0.0 and slope != 0.0:
                place, width = (hinges[knot] - centre) / slope, lines.scales[m] / abs(slope)
                count = add_bend(axis, count, place, width, longest, limit)
    return count


@without_references
def add_crossings(hinges: Array, lines: Lines, axis: Axis, count: int, longest: float, limit: float) -> int:
    """Add ends of panels, on the last axis but one, where a bend of student m meets one of the first student.

    Bends are at A_m·z = c. On the last axis panels end at them, so that the integral over it bends where two meet: with
    the last coordinate eliminated, `tilt` = A_m/A_0 there, at (A_m − tilt A_0)·z = c_m − tilt c_0.
    Return the number of ends, which was `count` before. hinges : the students'. longest, limit : the longest panel, and
    where nodes end.
    """
    students, before = lines.students, lines.students.shape[1] - 2
    for m in range(1, len(students)):
        tilt = students[m, before + 1] / students[0, before + 1] if students[0, before + 1] != 0.0 else 0.0
        # along this axis, and what the axes before it contribute
        slope, centre = students[m, before] - tilt * students[0, before], 0.0
        for q in range(before):
            centre += (students[m, q] - tilt * students[0, q]) * lines.x[q, lines.place[q]]
        width = math.hypot(lines.scales[m], tilt * lines.scales[0]) / abs(slope) if slope != 0.0 else math.inf
        # never a kink, which would have no panels around it
        width = max(width, 2.0 * NARROWEST)
        for knot in range(1, len(hinges), 2):
            for other in range(1, len(hinges), 2):
                if hinges[knot + 1] * hinges[other + 1] != 0.0 and width < longest:
                    place = (hinges[knot] - tilt * hinges[other] - centre) / slope
                    count = add_bend(axis, count, place, width, longest, limit)
    return count


@without_references
def fill_axis(pair: Pair, rules: Rules, L: Array, s: int, lines: Lines) -> None:
    """Fill the nodes of axis s at the present nodes of the axes before it."""
    x, weight, step = lines.x[s], lines.weight[s], lines.step[s]
    axis = Axis(x, weight, lines.ends)
    offset, square = 0.0, pair.reach * pair.reach
    for q in range(s):
        z = lines.x[q, lines.place[q]]
        offset += L[s, q] * z
        square -= z * z
    limit, lines.place[s] = math.sqrt(max(square, 0.0)), 0
    # bends of one student need the last axis, those of several the one before too
    has_students = len(lines.students) > len(L) - 1 - s and s >= len(L) - 2
    if not acts(L, s):
        lines.sizes[s], x[0], weight[0] = 1, 0.0, 1.0
    elif len(L) > MOST_AXES:
        lines.sizes[s] = rules.teacher.shape[1]
        for n in range(lines.sizes[s]):
            x[n], weight[n] = rules.teacher[0, n], rules.teacher[1, n]
    elif has_part(pair.series[1 + s]) or has_students:
        hinges, count = pair.series[1 + s], 0
        longest = step if has_part(hinges) else min(LONGEST, PANEL_STEPS * step)
        for knot in range(1, len(hinges), 2):
            if hinges[knot + 1] != 0.0:
                axis.ends[count], count = (hinges[knot] - offset) / L[s, s], count + 1
        if has_students and s == len(L) - 1:
            count = add_bends(pair.series[0], lines, axis, count, longest, limit)
        elif has_students:
            count = add_crossings(pair.series[0], lines, axis, count, longest, limit)
        lines.sizes[s] = fill_between(axis, count, rules.panel, longest, limit)
    else:
        lines.sizes[s] = fill_equal(axis, step, limit)


@without_references
def next_line(pair: Pair, rules: Rules, L: Array, lines: Lines) -> bool:
    """Go on to the next line; return false if there is none."""
    k, first = len(L), 0
    if lines.begun[0] != 0:
        # count up the nodes of all axes but the last, as digits of a number; axes from `first` on have new nodes
        first = k - 1
        while first > 0:
            lines.place[first - 1] += 1
            if lines.place[first - 1] < lines.sizes[first - 1]:
                break
            first -= 1
        if first == 0:
            return False
    lines.begun[0] = 1
    for s in range(first, k):
        fill_axis(pair, rules, L, s, lines)
        if lines.sizes[s] == 0:
            # an axis without nodes within the reach has one of no weight
            lines.sizes[s], lines.x[s, 0], lines.weight[s, 0] = 1, 0.0, 0.0
    return True


@inlined
def fill_line(L: Array, lines: Lines, weight: Array, fields: Array) -> int:
    """Fill the weights (n,) and fields (k n,) of the present line, λ* field by field; return n."""
    last = len(L) - 1
    count, outer = lines.sizes[last], 1.0
    for q in range(last):
        outer *= lines.weight[q, lines.place[q]]
    for n in range(count):
        weight[n] = outer * lines.weight[last, n]
    for r in range(last + 1):
        centre = along_line(L, r, lines)
        for n in range(count):
            fields[r * count + n] = centre + L[r, last] * lines.x[last, n]
    return count


@without_references
def along_line(rows: Array, row: int, lines: Lines) -> float:
    """The sum Σ_q rows_row,q z_q over all axes but the last, at the present nodes."""
    total = 0.0
    for q in range(rows.shape[1] - 1):
        total += rows[row, q] * lines.x[q, lines.place[q]]
    return total


@without_references
def is_narrow(pair: Pair, row: Array, scale: float, step: Array) -> bool:
    """Whether steps (k,) do not resolve the bends of a student.

    row (k,), scale : given λ*, its field has the mean row·z and the deviation `scale`.
    """
    narrow = False
    for s in range(len(row)):
        width = step[s] / PANEL_STEPS if has_part(pair.series[1 + s]) else step[s]
        narrow = narrow or abs(row[s]) * width > WIDEST * scale
    return narrow and len(row) <= MOST_AXES


@without_references
def fill_turned(rows: Array, row: Array, turns: bool, out: Array) -> None:
    """Fill out (n, k) with rows (n, k) of L or A after the reflection of z that moves A_i = row (k,) to the last axis.

    If not `turns` they are copied.
    """
    k, norm, square = len(row), 0.0, 0.0
    for s in range(k):
        norm = math.hypot(norm, row[s])
    for s in range(k):
        square += (row[s] - (norm if s == k - 1 else 0.0)) ** 2
    for r in range(len(rows)):
        along = -norm * rows[r, k - 1]
        for s in range(k):
            along += rows[r, s] * row[s]
        for s in range(k):
            reflected = row[s] - (norm if s == k - 1 else 0.0)
            out[r, s] = rows[r, s] - (2.0 * along * reflected / square if turns and square > 0.0 else 0.0)


@without_references
def can_turn(pair: Pair, k: int) -> bool:
    """Whether z may be turned: f* has one field, or no kinks, which panels on fixed axes meet."""
    knots = False
    for r in range(k):
        knots = knots or has_part(pair.series[1 + r])
    return k == 1 or not knots
