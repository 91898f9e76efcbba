"""Steps of the overlap chain with all rows written out in a frame of the weights and of what a batch adds.

In each block of inputs the frame has the coordinates u*_b and w_b of the chain (`chain_state`), and with a factor some
more out of their span: as many as a batch has samples, or p, which hold all that a fresh batch can add. In it rows are
V = [A_b, B_b, 0], of averages, of velocities and of the weights, and a step is one of SGD with explicit weights: with
`moves` T/n_b Σ c xᵀ the rule makes moves of its own, the weights decay and move, and are projected. Then A_b is the
first part of V, and B_b becomes a lower triangular factor of the others.

`chain` is the `Chain` of a group of replicas in lanes, `frame` its `Explicit`, `settings` those of the run, `rule` the
`StepRule`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.batch_sums import absorb
from sweeplib.networks.kernels.chain import needs_slack
from sweeplib.networks.kernels.chain_state import rows_of
from sweeplib.networks.kernels.lanes import allocating, loops
from sweeplib.networks.kernels.spectral import Spectrum, empty_spectrum, fill_spectral_matrix


class Explicit(NamedTuple):
    """Rows of weights in a frame of D columns, and work arrays.

    columns (L + 1,) : first column of each block of inputs; last, D.
    V (rows, D, lanes), moves (p, D, lanes) : the rows, and what a step adds to those of the weights.
    layer (p, lanes) : T/n_b Σ σ(λ) E over the batch.
    spectrum, square (lanes,) : work arrays.
    """

    columns: Any
    V: Array
    moves: Array
    layer: Array
    spectrum: Spectrum
    square: Array


@allocating
def empty_frame(settings, more, lanes):  # type: ignore[no-untyped-def]
    """An `Explicit` to be filled, with `more` columns in each block that has a factor."""
    p, chain, columns = settings.p, settings.frame, np.zeros(settings.frame.states.size, np.int64)
    for b in range(chain.factored.size):
        columns[b + 1] = columns[b] + chain.draws[b + 1] - chain.draws[b] + (more if chain.factored[b] else 0)
    V, moves = np.empty((settings.rows, columns[-1], lanes)), np.empty((p, columns[-1], lanes))
    return Explicit(columns, V, moves, np.empty((p, lanes)), empty_spectrum(p, lanes), np.empty(lanes))


@loops
def begin_round(chain, frame):  # type: ignore[no-untyped-def]
    """Set V to [A_b, B_b, 0] in the columns of each block b: the rows before a round, all steps with one batch."""
    V, columns = frame.V, frame.columns
    V[:] = 0.0
    for b in range(columns.size - 1):
        A, B = rows_of(chain, b)
        (rows, r, lanes), first = A.shape, columns[b]
        for i in range(rows):
            for s in range(r):
                for lane in range(lanes):
                    V[i, first + s, lane] = A[i, s, lane]
            # B_b is lower triangular; without a factor it has no rows
            if B.shape[0] > 0:
                for j in range(i + 1):
                    for lane in range(lanes):
                        V[i, first + r + j, lane] = B[i, j, lane]


@loops
def apply_rule(rule, chain, frame):  # type: ignore[no-untyped-def]
    """Replace the moves, T d times the gradient G over √d, by those of the rule, and rows of velocities by theirs.

    Velocities are β times those before, plus G for a spectral rule and the moves, with those of the decay, for others;
    they replace G, or the moves. A spectral rule makes T d h(GGᵀ) G of these, others multiply them by a factor of ‖G‖².
    """
    moves, V, square, numbers = frame.moves, frame.V, frame.square, chain.constants.numbers
    p, width, lanes = moves.shape
    before = V.shape[0] - 2 * p
    for lane in range(lanes):
        length = numbers.T[lane] * numbers.d[lane] if rule.is_spectral else 1.0
        square[lane] = 1.0 / length if length > 0.0 else 0.0
    for i in range(p):
        for s in range(width):
            for lane in range(lanes):
                moves[i, s, lane] *= square[lane]
                if rule.has_velocities and not rule.is_spectral:
                    # the decay is part of the gradient
                    decay = numbers.weight_decay[lane] * numbers.T[lane]
                    moves[i, s, lane] -= decay * V[before + p + i, s, lane]
                if rule.has_velocities:
                    moves[i, s, lane] += rule.momentum * V[before + i, s, lane]
                    V[before + i, s, lane] = moves[i, s, lane]
    if rule.is_spectral:
        apply_spectrum(rule, chain, frame)
    elif rule.rescales:
        square[:] = 0.0
        for i in range(p):
            for s in range(width):
                for lane in range(lanes):
                    square[lane] += moves[i, s, lane] * moves[i, s, lane]
        for lane in range(lanes):
            T = numbers.T[lane]
            square[lane] *= 1.0 / (numbers.d[lane] * T * T) if T > 0.0 else 0.0
        # in: squared norms of gradients; out: their factors
        rule.factor(rule.numbers, numbers.T, square, chain.memory)
        for i in range(p):
            for s in range(width):
                for lane in range(lanes):
                    moves[i, s, lane] *= square[lane]


@loops
def apply_spectrum(rule, chain, frame):  # type: ignore[no-untyped-def]
    """Replace the moves G by T d h(d G Gᵀ) G."""
    moves, H, numbers, rotations = frame.moves, frame.spectrum.R, chain.constants.numbers, chain.rotations
    (p, width, lanes), column = moves.shape, chain.fields.c
    H[:] = 0.0
    for s in range(width):
        for i in range(p):
            for lane in range(lanes):
                column[i, lane] = moves[i, s, lane]
        absorb(H, column, rotations.cosine, rotations.sine)
    fill_spectral_matrix(rule, numbers.d, frame.spectrum)
    for s in range(width):
        for i in range(p):
            for lane in range(lanes):
                column[i, lane] = numbers.T[lane] * numbers.d[lane] * moves[i, s, lane]
                moves[i, s, lane] = 0.0
        for i in range(p):
            for m in range(p):
                for lane in range(lanes):
                    moves[i, s, lane] += H[i, m, lane] * column[m, lane]


@loops
def step_in_frame(settings, rule, chain, frame):  # type: ignore[no-untyped-def]
    """Take a step of SGD in the frame: V ← (1 − λ T) V + the rule's moves, a += ε T [Σ σ(λ) E/n_b − λ_a a]; project.

    The moves and `frame.layer` are those of the batch. A tangent step also takes Σ c_i λ_i times a row from it.
    """
    if rule.is_spectral or rule.has_velocities or rule.rescales:
        apply_rule(rule, chain, frame)
    moves, V, a, numbers, square = frame.moves, frame.V, chain.a, chain.constants.numbers, frame.square
    (p, width, lanes), shrinkage = moves.shape, chain.rotations.tail
    for i in range(p):
        w = V[V.shape[0] - p + i]
        for lane in range(lanes):
            # velocities of plain steps have the decay in them
            decays = rule.is_spectral or not rule.has_velocities
            shrinkage[lane] = 1.0 - (numbers.weight_decay[lane] * numbers.T[lane] if decays else 0.0)
        if rule.is_tangent:
            for s in range(width):
                for lane in range(lanes):
                    shrinkage[lane] -= moves[i, s, lane] * w[s, lane]
        for s in range(width):
            for lane in range(lanes):
                w[s, lane] = shrinkage[lane] * w[s, lane] + moves[i, s, lane]
        if settings.spherical:
            square[:] = 0.0
            for s in range(width):
                for lane in range(lanes):
                    square[lane] += w[s, lane] * w[s, lane]
            for lane in range(lanes):
                square[lane] = 1.0 / math.sqrt(square[lane])
            for s in range(width):
                for lane in range(lanes):
                    w[s, lane] *= square[lane]
        if settings.trained:
            for lane in range(lanes):
                rate = numbers.second_layer_rate[lane]
                a[i, lane] *= 1.0 - rate * numbers.T[lane] * numbers.second_layer_decay[lane]
                a[i, lane] += rate * frame.layer[i, lane]


@loops
def shorten_slack(settings, lipschitz, chain, frame):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f in a round: (L/p) Σ_i |a_i| √(Σ_b λ_b ‖ΔV_i‖²).

    L is σ's Lipschitz constant `lipschitz`. ΔV is V − [A_b, B_b, 0]: these are still those before the round.
    """
    V, slack, square, of_block = frame.V, chain.network.slack, frame.square, chain.rotations.tail
    if not needs_slack(settings, lipschitz, chain.network):
        return
    rows, p = V.shape[0], settings.p
    for i in range(rows - p, rows):
        square[:] = 0.0
        for b in range(frame.columns.size - 1):
            A, B = rows_of(chain, b)
            root = chain.constants.teacher[chain.frame.teachers[b]]
            first, r = frame.columns[b], A.shape[1]
            of_block[:] = 0.0
            for s in range(frame.columns[b + 1] - first):
                for lane in range(of_block.shape[0]):
                    before = A[i, s, lane] if s < r else (B[i, s - r, lane] if s <= r + i else 0.0)
                    of_block[lane] += (V[i, first + s, lane] - before) * (V[i, first + s, lane] - before)
            for lane in range(of_block.shape[0]):
                square[lane] += root[lane] * root[lane] * of_block[lane]
        for lane in range(of_block.shape[0]):
            # no factor 2 on the sphere: these are the moves of the whole round, projections included
            slack[lane] -= lipschitz / p * abs(chain.a[i - rows + p, lane]) * math.sqrt(square[lane])


@loops
def finish_round(chain, frame, triangular):  # type: ignore[no-untyped-def]
    """Set A_b to its columns of V, and B_b to a lower triangular factor of the others.

    triangular : how many of the last columns are zero above the diagonal of the last rows, so that B_b begins as these.
    """
    V, columns, column, rotations = frame.V, frame.columns, chain.push, chain.rotations
    for b in range(columns.size - 1):
        A, B = rows_of(chain, b)
        (rows, r, lanes), first = A.shape, columns[b]
        for i in range(rows):
            for s in range(r):
                for lane in range(lanes):
                    A[i, s, lane] = V[i, first + s, lane]
        last = columns[b + 1] - min(triangular, B.shape[0])
        B[:] = 0.0
        for j in range(columns[b + 1] - last):
            for i in range(j, rows):
                for lane in range(lanes):
                    B[i, j, lane] = V[i, last + j, lane]
        for s in range(first + r, last):
            for i in range(rows):
                for lane in range(lanes):
                    column[i, lane] = V[i, s, lane]
            absorb(B, column, rotations.cosine, rotations.sine)
