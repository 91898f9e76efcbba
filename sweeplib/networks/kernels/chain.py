"""The step of the overlap chain, for a group of replicas in vector lanes.

The chain keeps a factor of the overlaps in place of the weights: rows of W are [A, B] in an orthonormal frame of the
teacher's rows, which are [L*, 0], and of what is beyond them. A sample has the N(0, 1) coordinates u* and w in this
frame, z = (u*, w, ...), and s `length` out of it. The law of the overlaps is that of SGD (docs/theory.md).

The rows of a block of states are the entries of A (p, k), B (p, p), the memory of a rule that has one, and a (p,).
With momentum A and B have 2p rows, those of the velocities first: a step adds them to those of the weights, and B stays
lower triangular. Averages of the weights are p more rows, before all others.

Arguments of steps: `settings`; `functions` by address; `stream`, names of each lane's random numbers; `work`, the
`Chain` of the group; `broken` (lanes,), set where a lane diverges. T is the ODE time of a step; the slack of a lane is
how far f can move before the risk can reach its target, and `lipschitz` a bound of |σ'|.
"""

import math
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.chain_rules import (
    fill_squared_length,
    move_by_velocities,
    rescale,
    take_signs,
    turn_along_sphere,
)
from sweeplib.networks.kernels.disturbances import (
    Disturbed,
    disturb_fields,
    disturbed_work,
    drop_units,
    take_units_back,
)
from sweeplib.networks.kernels.factors import fill_teacher_overlaps
from sweeplib.networks.kernels.lanes import (
    OVERFLOW,
    Constants,
    Network,
    add_mean,
    allocating,
    constants_of,
    draw_normals,
    kernel,
    loops,
)
from sweeplib.networks.kernels.lengths import Length, draw_length, empty_length
from sweeplib.networks.kernels.local_fields import fields
from sweeplib.networks.kernels.noisy_labels import add_noise
from sweeplib.networks.kernels.rotations import Rotations, empty_rotations, refactor
from sweeplib.networks.numerics.random import gamma_constants


class Settings(NamedTuple):
    """The settings of a run.

    p, k, spherical : widths of student and teacher, and whether students stay on the sphere.
    trained, decays : whether the second layer is trained, and whether weights decay.
    batch_size, repeats : samples of a batch, and steps with each batch.
    rows : number of rows of A and B: p, with velocities and averages p more for each, before those of the weights.
    mixes, remembers : whether steps of batches mix units or keep other rows; whether the rule of steps has a memory.
    drops, has_input_noise : whether steps leave out units, and whether inputs have noise.
    takes_signs : whether steps take the sign of each entry of the gradient.
    tasks, heads : numbers of tasks and of second layers among which steps choose, zero if they do not.
    """

    p: int
    k: int
    spherical: bool
    trained: bool
    batch_size: int
    repeats: int
    decays: bool
    rows: int
    mixes: bool
    remembers: bool
    drops: bool
    has_input_noise: bool
    takes_signs: bool
    tasks: int
    heads: int


class Fields(NamedTuple):
    """What a step computes of a sample in each lane.

    lam, value, c (p, lanes) : λ, σ(λ), and c_i, where c_i x is added to row i of the weights.
    lam_star (k, lanes) : λ*.
    E, deviation, label (lanes,) : the displacement or the force, √Δ, and the label where a force needs it.
    """

    lam: Array
    lam_star: Array
    value: Array
    c: Array
    E: Array
    deviation: Array
    label: Array


class Chain(NamedTuple):
    """The data of a group: the state A, B, a, the constants, and work arrays of a step.

    memory (lanes,) : that of the rule of the steps, zero without one.
    z (k + rows + 2 or more, lanes) : normals of a sample; first u* and w, then those of the label and of its length.
    push (rows, lanes) : what a sample adds to the rows, c for each of the weights and of the velocities, 0 of averages.
    length, fields : s, and what a step computes of a sample. rotations, disturbed : work arrays.
    network : the overlaps, filled when the risk is to be computed.
    """

    A: Array
    B: Array
    a: Array
    memory: Array
    constants: Constants
    z: Array
    push: Array
    length: Length
    fields: Fields
    rotations: Rotations
    network: Network
    disturbed: Disturbed


@allocating
def chain_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Chain` of a group: views of its flat blocks of state and constants, and work arrays."""
    p, k, rows = settings.p, settings.k, settings.rows
    remembered = 1 if settings.remembers else 0
    lanes = state.shape[0] // (rows * k + rows * rows + remembered + p)
    after_A, after_B = rows * k * lanes, (rows * k + rows * rows) * lanes
    memory = state[after_B : after_B + lanes] if settings.remembers else np.zeros(lanes)
    a = state[after_B + remembered * lanes :].reshape((p, lanes))
    fixed, length, push = constants_of(constants, k), empty_length(lanes), np.zeros((rows, lanes))
    for lane in range(lanes):
        # s² has one degree of freedom for each dimension out of the frame
        length.degrees[lane] = fixed.numbers.d[lane] - rows - k
        length.scale[lane], length.width[lane] = gamma_constants(length.degrees[lane])
    network = empty_network(fixed, a)
    fill_teacher_overlaps(fixed.L_star, network.P)
    return Chain(
        state[:after_A].reshape((rows, k, lanes)),
        state[after_A:after_B].reshape((rows, rows, lanes)),
        a,
        memory,
        fixed,
        np.empty((4 * ((rows + k + 5) // 4), lanes)),  # k + rows + 2 normals, in whole draws of four
        push,
        length,
        empty_fields(push[rows - p :], k, fixed.numbers.deviation),
        empty_rotations(lanes),
        network,
        disturbed_work(settings, lanes),
    )


@allocating
def empty_fields(c, k, deviation):  # type: ignore[no-untyped-def]
    """Work arrays for the fields of samples in lanes; c (p, lanes) and √Δ `deviation` (lanes,) are shared."""
    p, lanes = c.shape
    lam, lam_star, value = np.empty((p, lanes)), np.empty((k, lanes)), np.empty((p, lanes))
    return Fields(lam, lam_star, value, c, np.empty(lanes), deviation, np.empty(lanes))


@allocating
def empty_network(constants, a):  # type: ignore[no-untyped-def]
    """The `Network` of a group with the second layers a (p, lanes) and these `Constants`.

    Its overlaps have to be filled.
    """
    (p, lanes), k = a.shape, constants.a_star.shape[0]
    Q, M, P = np.empty((p, p, lanes)), np.empty((p, k, lanes)), np.zeros((k, k, lanes))
    return Network(Q, M, P, a, constants.a_star, np.empty(lanes), np.empty(lanes), np.zeros(1, np.bool_))


@kernel
def chain_prepare(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Do nothing: the chain needs no preparation before its first step."""


@kernel
def project(A, B, first, norm):  # type: ignore[no-untyped-def]
    """Divide the rows of A and B from number `first` on, the student's, by their norms.

    norm (lanes,) : a work array.
    """
    rows, k, lanes = A.shape
    for i in range(first, rows):
        for lane in range(lanes):
            norm[lane] = B[i, 0, lane] * B[i, 0, lane]
        for j in range(1, i + 1):
            for lane in range(lanes):
                norm[lane] += B[i, j, lane] * B[i, j, lane]
        for s in range(k):
            for lane in range(lanes):
                norm[lane] += A[i, s, lane] * A[i, s, lane]
        for lane in range(lanes):
            norm[lane] = 1.0 / math.sqrt(norm[lane])
        for s in range(k):
            for lane in range(lanes):
                A[i, s, lane] *= norm[lane]
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] *= norm[lane]


@kernel
def add_products(x, y, count, out):  # type: ignore[no-untyped-def]
    """Add Σ_s x_s y_s, over the first `count` rows of x and y (rows, lanes), to out (lanes,)."""
    lanes = out.shape[0]
    # two rows a pass: `out` is read and written half as often
    for s in range(0, count - 1, 2):
        for lane in range(lanes):
            out[lane] += x[s, lane] * y[s, lane] + x[s + 1, lane] * y[s + 1, lane]
    if count % 2:
        for lane in range(lanes):
            out[lane] += x[count - 1, lane] * y[count - 1, lane]


@loops
def fill_overlaps(A, B, L_star, Q, M):  # type: ignore[no-untyped-def]
    """Fill Q (p, p, lanes) with A Aᵀ + B Bᵀ and M (p, k, lanes) with A L*ᵀ, for the last p rows of A and B.

    A (rows, k, lanes), B (rows, rows, lanes), L_star (k, k, lanes) : the last two are lower triangular.
    """
    first, p, k, lanes = A.shape[0] - M.shape[0], M.shape[0], A.shape[1], A.shape[2]
    Q[:], M[:] = 0.0, 0.0
    for i in range(p):
        for j in range(i + 1):
            add_products(B[first + i], B[first + j], first + j + 1, Q[i, j])
            add_products(A[first + i], A[first + j], k, Q[i, j])
            for lane in range(lanes):
                Q[j, i, lane] = Q[i, j, lane]
        for r in range(k):
            add_products(A[first + i], L_star[r], r + 1, M[i, r])


@kernel
def chain_network(work):  # type: ignore[no-untyped-def]
    """Fill Q and M of the group's network from the factor (A, B) of the chain."""
    chain = work.chain
    fill_overlaps(chain.A, chain.B, chain.constants.L_star, chain.network.Q, chain.network.M)


@kernel
def needs_slack(settings, lipschitz, network):  # type: ignore[no-untyped-def]
    """Return whether slacks are to be shortened: a target is pending, and f moves no more than the weights allow.

    There is no such bound if no Lipschitz constant of σ is known (inf), or if the second layer is trained; then the
    slack of the `network` becomes zero, so that the risk is computed after each step.
    """
    bounded = lipschitz < np.inf and not settings.trained
    if network.waiting[0] and not bounded:
        network.slack[:] = 0.0
    return network.waiting[0] and bounded


@kernel
def shorten_slack(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Subtract from the slack a bound of the change of f: (L/p) Σ_i |a_i c_i| |x| √d, twice that on the sphere.

    L is σ's Lipschitz constant `lipschitz`. A projection moves a row by no more than the step did, hence the factor
    two.
    """
    a, c, z, slack = work.a, work.fields.c, work.z, work.network.slack
    if not needs_slack(settings, lipschitz, work.network):
        return
    p, lanes = c.shape
    factor = (2.0 if settings.spherical else 1.0) * lipschitz / p
    # the rotations of the step come later: until then their arrays are free
    square, size = work.rotations.cosine, work.rotations.sine
    fill_squared_length(z, work.length.s, settings.rows + settings.k, square)
    size[:] = 0.0
    for i in range(p):
        for lane in range(lanes):
            size[lane] += abs(a[i, lane] * c[i, lane])
    for lane in range(lanes):
        slack[lane] -= factor * size[lane] * math.sqrt(square[lane])


@kernel
def decay(settings, lipschitz, work):  # type: ignore[no-untyped-def]
    """Multiply [A, B] by 1 − λ T, and subtract a bound of the change of f: (L/p) Σ_i |a_i| λ T ‖[A, B]_i‖.

    λ is the weight decay, L σ's Lipschitz constant `lipschitz`. Rows of velocities do not decay. The bound is twice as
    large on the sphere, as a projection moves a row by no more than the step did.
    """
    if not settings.decays:
        return
    A, B, numbers, rate, norm = work.A, work.B, work.constants.numbers, work.rotations.cosine, work.rotations.sine
    rows, k, lanes = A.shape
    first = rows - settings.p
    bounded = needs_slack(settings, lipschitz, work.network)
    for lane in range(lanes):
        rate[lane] = numbers.weight_decay[lane] * numbers.T[lane]
    for i in range(first, rows):
        if bounded:
            norm[:] = 0.0
            add_products(A[i], A[i], k, norm)
            add_products(B[i], B[i], i + 1, norm)
            factor = (2.0 if settings.spherical else 1.0) * lipschitz / settings.p
            for lane in range(lanes):
                work.network.slack[lane] -= factor * rate[lane] * abs(work.a[i - first, lane]) * math.sqrt(norm[lane])
        for s in range(k):
            for lane in range(lanes):
                A[i, s, lane] *= 1.0 - rate[lane]
        for j in range(i + 1):
            for lane in range(lanes):
                B[i, j, lane] *= 1.0 - rate[lane]


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
def chain_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step: A += c u*ᵀ, B a factor of [B + c wᵀ, s c], a += ε T [σ(λ) E − λ_a a]; project.

    Here c_i = T a_i σ'(λ_i) E, with the factor of the rule. A and B decay first. With dropout a_i and σ(λ_i) have the
    factors b_i/π; with noise of inputs the student's fields and its step are by noisy inputs, the label is by clean
    ones.
    """
    p, k, rows, rule = settings.p, settings.k, settings.rows, functions.rule
    A, a, constants, numbers, z, push = work.A, work.a, work.constants, work.constants.numbers, work.z, work.push
    lam, lam_star, _, c, E, deviation, _ = work.fields
    lanes = E.shape[0]
    # z: u*, w, the label's noise, and what the length is made of
    draw_normals(stream.step, stream.seed, stream.key, z)
    draw_length(stream, work.length, z[k + rows + 1])
    fields(A, work.B, constants.L_star, z, lam, lam_star)
    if settings.has_input_noise:
        disturb_fields(stream, k, work)
    functions.labels(lam_star, constants.a_star, E)
    add_noise(functions, stream, deviation, z[k + rows], E)
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
        rescale(settings, rule, work)
    if rule.has_velocities:
        move_by_velocities(work, rule.momentum)
    if rule.is_tangent:
        turn_along_sphere(work)
    # `push` has c of the weights, and of the velocities too
    for i in range(rows):
        for s in range(k):
            for lane in range(lanes):
                A[i, s, lane] += push[i, lane] * z[s, lane]
    if settings.trained:
        train_second_layer(a, work.fields, numbers)
    shorten_slack(settings, functions.lipschitz, work)
    refactor(work.B, push, z[k : k + rows], work.length.s, work.rotations)
    if settings.spherical:
        project(A, work.B, rows - p, work.rotations.cosine)
