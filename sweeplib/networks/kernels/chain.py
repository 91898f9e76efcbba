"""The step of the overlap chain with one fresh sample, for a group of replicas in vector lanes.

The chain keeps a factor of the overlaps in place of the weights, in each block of inputs of one eigenvalue
(`chain_state`). With c_i what a sample adds to row i, a step is A_b += c u*_bᵀ and B_b ← a factor of
[B_b + c w_bᵀ, s_b c], with u*_b, w_b and s_b times √λ_b. The law of the overlaps is that of SGD (docs/theory.md).

Arguments of steps: `settings`; `functions` by address; `stream`, names of each lane's random numbers; `work`, the
`Chain` of the group; `broken` (lanes,), set where a lane diverges. T is the ODE time of a step; the slack of a lane is
how far f can move before the risk can reach its target, and `lipschitz` a bound of |σ'|.
"""

import math

import numpy as np

from sweeplib.networks.kernels.chain_rows import (
    draw_lengths,
    fill_squared_length,
    fill_student_fields,
    fill_teacher_fields,
    fill_variance,
    multiply_row,
    project,
    weight_coordinates,
    weight_lengths,
)
from sweeplib.networks.kernels.chain_rules import move_by_velocities, rescale, take_signs, turn_along_sphere
from sweeplib.networks.kernels.chain_state import rows_of
from sweeplib.networks.kernels.disturbances import disturb_coordinates, drop_units, take_units_back
from sweeplib.networks.kernels.lanes import OVERFLOW, add_mean, draw_normals, kernel, loops
from sweeplib.networks.kernels.noisy_labels import add_noise
from sweeplib.networks.kernels.rotations import refactor


@kernel
def needs_slack(settings, lipschitz, network):  # type: ignore[no-untyped-def]
    """Return whether slacks are to be shortened: a target is pending, and f moves no more than the weights allow.

    There is no such bound if no Lipschitz constant of σ is known (inf), if the second layer is trained, or on the
    sphere with several eigenvalues, where a projection may change fields by more than the step did; then the slack of
    the `network` becomes zero, so that the risk is computed after each step.
    """
    bounded = lipschitz < np.inf and not settings.trained and not (settings.spherical and settings.has_spectrum)
    if network.waiting[0] and not bounded:
        network.slack[:] = 0.0
    return network.waiting[0] and bounded


@kernel
def shorten_slack(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f: (L/p) Σ_i |a_i c_i| √(Σ_b λ_b |x_b|² d).

    L is σ's Lipschitz constant `lipschitz`. On the sphere it is twice that: a projection moves a row by no more than
    the step did.
    """
    a, c, slack = work.a, work.fields.c, work.network.slack
    if not needs_slack(settings, lipschitz, work.network):
        return
    p, lanes = c.shape
    factor = (2.0 if settings.spherical else 1.0) * lipschitz / p
    # the rotations of the step come later: until then their arrays are free
    square, size = work.rotations.cosine, work.rotations.sine
    fill_squared_length(work, settings.has_spectrum, square)
    size[:] = 0.0
    for i in range(p):
        for lane in range(lanes):
            size[lane] += abs(a[i, lane] * c[i, lane])
    for lane in range(lanes):
        slack[lane] -= factor * size[lane] * math.sqrt(square[lane])


@kernel
def decay(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Multiply the weights by 1 − λ T, and subtract a bound of the change of f: (L/p) Σ_i |a_i| λ T √Q_ii.

    λ is the weight decay, L σ's Lipschitz constant `lipschitz`, Q_ii the variance of a field. Rows of velocities do not
    decay. The bound is twice as large on the sphere, as a projection moves a row by no more than the step did.
    """
    if not settings.decays:
        return
    numbers, rate, norm, slack = work.constants.numbers, work.rotations.sine, work.rotations.cosine, work.network.slack
    first, lanes = settings.rows - settings.p, rate.shape[0]
    bounded = needs_slack(settings, lipschitz, work.network)
    for lane in range(lanes):
        rate[lane] = numbers.weight_decay[lane] * numbers.T[lane]
    for i in range(first, settings.rows):
        if bounded:
            fill_variance(work, i, norm)
            factor = (2.0 if settings.spherical else 1.0) * lipschitz / settings.p
            for lane in range(lanes):
                slack[lane] -= factor * rate[lane] * abs(work.a[i - first, lane]) * math.sqrt(norm[lane])
        for lane in range(lanes):
            norm[lane] = 1.0 - rate[lane]
        multiply_row(work, i, norm)


@kernel
def displace(functions, a, fields, broken):  # type: ignore[no-untyped-def]
    """Replace the labels in fields.E by y − f, or by the loss's force; fill σ(λ), and c with σ'(λ).

    a (p, lanes) : the second layer. broken (lanes,) : set where y − f overflows. λ and the labels must be in `fields`.
    """
    lam, _, value, c, E, _, label = fields
    p, lanes = lam.shape
    # the force of a loss other than ½ (y − f)² needs the label beside y − f
    if not functions.is_plain:
        for lane in range(lanes):
            label[lane] = E[lane]
    functions.value(lam.reshape(p * lanes), value.reshape(p * lanes))
    add_mean(-1.0 / p, a, value, E)
    for lane in range(lanes):
        # not `>=`, which is false for NaN
        broken[lane] |= not abs(E[lane]) < OVERFLOW
    if not functions.is_plain:
        functions.force(functions.numbers, E, label)
    functions.slope(lam.reshape(p * lanes), c.reshape(p * lanes))


@kernel
def train_second_layer(a, fields, numbers):  # type: ignore[no-untyped-def]
    """Add ε T [σ(λ) E − λ_a a] to a (p, lanes), by the `fields` of the samples.

    ε and λ_a are rate and decay of the second layer, in the `Numbers` of the group.
    """
    value, E, (p, lanes) = fields.value, fields.E, a.shape
    for i in range(p):
        for lane in range(lanes):
            force = value[i, lane] * E[lane] - numbers.second_layer_decay[lane] * a[i, lane]
            a[i, lane] += numbers.second_layer_rate[lane] * numbers.T[lane] * force


@kernel
def push_rows(A, B, push, z, first, outside, rotations):  # type: ignore[no-untyped-def]
    """Add push u*ᵀ to A, and make B a factor of [B + push wᵀ, s push]; u* and w are in z from row `first` on."""
    rows, r, lanes = A.shape
    for i in range(rows):
        for s in range(r):
            for lane in range(lanes):
                A[i, s, lane] += push[i, lane] * z[first + s, lane]
    if B.shape[0] > 0:
        refactor(B, push, z[first + r : first + r + rows], outside, rotations)


@loops
def push_other_rows(work):  # type: ignore[no-untyped-def]
    """Take the step of the rows of all blocks of inputs but the first."""
    for b in range(1, work.frame.factored.size):
        A, B = rows_of(work, b)
        push_rows(A, B, work.push, work.z, work.frame.draws[b], work.lengths.s[b], work.rotations)


@kernel
def chain_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step: A_b += c u*_bᵀ, B_b a factor of [B_b + c w_bᵀ, s_b c], a += ε T [σ(λ) E − λ_a a]; project.

    Here c_i = T a_i σ'(λ_i) E, with the factor of the rule. The weights decay first. With dropout a_i and σ(λ_i) have
    the factors b_i/π; with noise of inputs the student's fields and its step are by noisy inputs, the label is by clean
    ones.
    """
    frame, rule, a, numbers, z, push = work.frame, functions.rule, work.a, work.constants.numbers, work.z, work.push
    lam, lam_star, _, c, E, deviation, _ = work.fields
    p, lanes = c.shape
    draw_normals(stream.step, stream.seed, stream.key, z)
    draw_lengths(stream, work)
    if settings.has_spectrum or settings.has_input_noise:
        weight_lengths(work, work.lengths.s)
    if settings.has_spectrum:
        weight_coordinates(work, z)
    fill_teacher_fields(work, z, lam_star)
    if settings.has_input_noise:
        disturb_coordinates(stream, work, z)
    fill_student_fields(work, z, lam)
    functions.labels(lam_star, work.constants.a_star, E)
    add_noise(functions, stream, deviation, z[frame.draws[-1]], E)
    if settings.drops:
        drop_units(stream, work)
    displace(functions, a, work.fields, broken)
    for i in range(p):
        for lane in range(lanes):
            c[i, lane] *= numbers.T[lane] * a[i, lane] * E[lane]
    if settings.drops:
        take_units_back(work)
    decay(settings, functions.lipschitz, work)
    if rule.takes_signs:
        take_signs(settings, stream, work)
    elif rule.rescales:
        rescale(rule, work)
    if rule.has_velocities:
        move_by_velocities(work, rule.momentum)
    if rule.is_tangent:
        turn_along_sphere(work)
    if settings.trained:
        train_second_layer(a, work.fields, numbers)
    shorten_slack(settings, functions.lipschitz, work)
    # `push` has c of the weights, and of the velocities too
    push_rows(work.A, work.B, push, z, 0, work.lengths.s[0], work.rotations)
    if frame.factored.size > 1:
        push_other_rows(work)
    if settings.spherical:
        project(work)
