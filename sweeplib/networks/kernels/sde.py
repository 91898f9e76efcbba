"""The Euler-Maruyama step of the overlaps' SDE, for a group of replicas in vector lanes.

The rows of a block of states are the entries of Q (p, p), M (p, k) and a (p,). A step has the drift Ψ of SGD, and as
noise the scatter of a few fresh samples, so that its covariance is that of SGD's steps without being computed.

`work` is the `Diffusion` of the group, `numbers` its `Numbers`, T the ODE time of an SGD step. A sample is given by
normals u (k + p + 2, lanes): u*, w, one for its label, and ξ. Other arguments: `settings` of the run, `functions`
by address, `stream` naming each lane's random numbers, `broken` (lanes,), set where a lane diverges.
"""

from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.kernels.factors import factorise, fill_teacher_overlaps
from sweeplib.networks.kernels.lanes import (
    OVERFLOW,
    Constants,
    Network,
    add_mean,
    allocating,
    constants_of,
    draw_normals,
    filled_lanes,
    kernel,
)
from sweeplib.networks.kernels.local_fields import fields
from sweeplib.networks.kernels.sde_moves import Step, add_drifts, move, project, project_drifts
from sweeplib.networks.maths.expectations.system import Drifts, System


class Settings(NamedTuple):
    """The settings of a run of the SDE.

    p, k, spherical, trained : widths; whether students stay on the sphere; whether the second layer is trained.
    length : length of a step in SGD steps.
    samples : number of fresh samples s in the noise T Σ_s η_s (X_s − E X) of a step. X_s is the mean increment of an
        SGD step over T, given the fields of the sample.
    share, spread : η_s = share + spread ξ_s, ξ_s ~ N(0, 1).
    batch_size : number n_b of samples in the batch of an SGD step.
    decays : whether weights or the second layer decay, or weights have noise.
    reflect : address of `reflect`, which allocates.
    """

    p: int
    k: int
    spherical: bool
    trained: bool
    length: float
    samples: int
    share: float
    spread: float
    batch_size: int
    decays: bool
    reflect: Any


class Fields(NamedTuple):
    """What a step computes of its samples; all but z is of one sample at a time.

    z (samples (k + p + 2) or more, lanes) : N(0, 1) numbers.
    lam, value, c (p, lanes), lam_star (k, lanes) : λ, σ(λ), c_i = a_i σ'(λ_i) E, and λ*.
    E, label (lanes,) : the displacement or the force, and the label where a force needs it.
    eta, total (lanes,) : T η_s, and its sum over the samples so far.
    square (lanes,) : (γ/(p n_b)) ‖x‖², the factor of c c in X_Q.
    per_dimension (lanes,) : 1/d.
    """

    z: Array
    lam: Array
    lam_star: Array
    value: Array
    c: Array
    E: Array
    eta: Array
    total: Array
    square: Array
    label: Array
    per_dimension: Array


class Pairs(NamedTuple):
    """Sums over samples u, for the products of mean gradients of a batch.

    gradient (p, k + p, lanes) : of c_s u_sᵀ. products (p, p, lanes) : of c_s c_s'ᵀ u_s·u_s' over pairs s ≠ s'.
    along (p, lanes) : Σ c_s' u_s'·u_s over earlier samples, a work array.
    """

    gradient: Array
    products: Array
    along: Array


class Diffusion(NamedTuple):
    """The data of a group: state and constants, the factor [L*; A, B] of Ω, and work arrays of a step.

    system : Q and M of the state, with the other arguments of drifts. drifts, step : their drifts and increments.
    fields, pairs : of the samples of a step. network : the arguments of the risk.
    indefinite (lanes,) : marks lanes whose Ω has no factor.
    """

    a: Array
    constants: Constants
    L_star: Array
    A: Array
    B: Array
    indefinite: Array
    system: System
    drifts: Drifts
    fields: Fields
    pairs: Pairs
    step: Step
    network: Network


@allocating
def sde_work(settings, state, constants):  # type: ignore[no-untyped-def]
    """The `Diffusion` of a group: views of its flat blocks of state and constants, and work arrays."""
    p, k = settings.p, settings.k
    lanes = state.shape[0] // (p * p + p * k + p)
    after_Q, after_M = p * p * lanes, (p * p + p * k) * lanes
    Q, M = state[:after_Q].reshape((p, p, lanes)), state[after_Q:after_M].reshape((p, k, lanes))
    a, fixed = state[after_M:].reshape((p, lanes)), constants_of(constants, k, lanes)
    P, stretch, numbers, sample = np.empty((k, k, lanes)), np.empty(lanes), fixed.numbers, empty_fields(settings, lanes)
    L_star = fixed.teacher.reshape((k, k, lanes))
    fill_teacher_overlaps(L_star, P)
    for lane in range(lanes):
        # Ψ^Var at Ω (1 + 2/d): its correction of order 1/d
        stretch[lane] = 1.0 + 2.0 / numbers.d[lane]
        sample.per_dimension[lane] = 1.0 / numbers.d[lane]
    return Diffusion(
        a,
        fixed,
        L_star,
        np.empty((p, k, lanes)),
        np.zeros((p, p, lanes)),
        np.empty(lanes, np.bool_),
        System(Q, M, P, a, fixed.a_star, numbers.Delta, stretch, None, None),
        Drifts(np.zeros((p, k, lanes)), np.zeros((p, p, lanes)), np.zeros((p, p, lanes)), np.empty((p, lanes))),
        sample,
        Pairs(np.empty((p, k + p, lanes)), np.empty((p, p, lanes)), np.empty((p, lanes))),
        Step(np.zeros((p, k, lanes)), np.zeros((p, p, lanes)), np.empty((p, lanes))),
        Network(Q, M, P, a, fixed.a_star, np.empty(lanes), np.empty(lanes), np.zeros(1, np.bool_)),
    )


@allocating
def empty_fields(settings, lanes):  # type: ignore[no-untyped-def]
    """Work arrays for the samples of a step, whose normals are in whole draws of four."""
    p, k = settings.p, settings.k
    z = np.empty((4 * ((settings.samples * (p + k + 2) + 3) // 4), lanes))
    lam, lam_star, value, c = np.empty((p, lanes)), np.empty((k, lanes)), np.empty((p, lanes)), np.empty((p, lanes))
    E, eta, total, square = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes)
    return Fields(z, lam, lam_star, value, c, E, eta, total, square, np.empty(lanes), np.empty(lanes))


@kernel
def sde_prepare(settings, functions, work, broken):  # type: ignore[no-untyped-def]
    """Fill the factor (A, B) of Ω; where Ω is indefinite, reflect it first, unless the lane is `broken`."""
    Q, M, A, B, indefinite = work.system.Q, work.system.M, work.A, work.B, work.indefinite
    L_star, spherical = work.L_star, settings.spherical
    lanes = Q.shape[2]
    if factorise(Q, M, L_star, A, B, indefinite):
        for lane in range(lanes):
            if indefinite[lane] and not broken[lane]:
                settings.reflect(Q, M, A, lane, spherical)
        factorise(Q, M, L_star, A, B, indefinite)


@kernel
def with_functions(system, functions):  # type: ignore[no-untyped-def]
    """The system with the rules' arguments from `functions`, in place of the `None` that it is made with."""
    Q, M, P, a, a_star, Delta, stretch, _, _ = system
    return System(Q, M, P, a, a_star, Delta, stretch, functions.pair, functions.one_drifts)


@kernel
def sde_network(work):  # type: ignore[no-untyped-def]
    """Do nothing: the overlaps are the state."""


@kernel
def draw_sample(u, settings, functions, work):  # type: ignore[no-untyped-def]
    """Fill `work.fields` for a fresh sample u (k + p + 2, lanes): u*, w, one normal for the label, and ξ."""
    p, k = settings.p, settings.k
    constants, numbers = work.constants, work.constants.numbers
    _, lam, lam_star, value, c, E, eta, total, square, label, per_dimension = work.fields
    lanes = E.shape[0]
    fields(work.A, work.B, work.L_star, u, lam, lam_star)
    functions.labels(lam_star, constants.a_star, E)
    for lane in range(lanes):
        E[lane] += numbers.deviation[lane] * u[k + p, lane]
        eta[lane] = numbers.T[lane] * (settings.share + settings.spread * u[k + p + 1, lane])
        total[lane] += eta[lane]
        square[lane] = 0.0
    for row in range(k + p):
        for lane in range(lanes):
            square[lane] += u[row, lane] * u[row, lane]
    for lane in range(lanes):
        # ‖x‖² given u, in the mean over what is out of the span: 1 + (|u|² − p − k)/d
        square[lane] = numbers.noise[lane] * (1.0 + per_dimension[lane] * (square[lane] - (k + p)))
    functions.value(lam.reshape(p * lanes), value.reshape(p * lanes))
    if not functions.is_plain:
        for lane in range(lanes):
            label[lane] = E[lane]
    add_mean(-1.0 / p, work.a, value, E)
    if not functions.is_plain:
        functions.force(functions.numbers, E, label)
    functions.slope(lam.reshape(p * lanes), c.reshape(p * lanes))
    for i in range(p):
        for lane in range(lanes):
            c[i, lane] *= work.a[i, lane] * E[lane]
    if settings.decays:  # c x is added to weights that have decayed
        for i in range(p):
            for lane in range(lanes):
                lam[i, lane] *= 1.0 - numbers.weight_decay[lane] * numbers.T[lane]


@kernel
def add_pairs(u, c, pairs):  # type: ignore[no-untyped-def]
    """Add the pairs of a sample u (k + p or more, lanes) with the earlier ones: c_s c_s'ᵀ u_s·u_s' and its transpose.

    c (p, lanes) : of the sample. pairs : the `Pairs`, whose gradient then has the sample too.
    """
    gradient, products, along = pairs
    p, width, lanes = gradient.shape
    along[:] = 0.0
    for i in range(p):
        for s in range(width):
            for lane in range(lanes):
                along[i, lane] += gradient[i, s, lane] * u[s, lane]
                gradient[i, s, lane] += c[i, lane] * u[s, lane]
    for i in range(p):
        for j in range(i + 1):
            for lane in range(lanes):
                products[i, j, lane] += along[i, lane] * c[j, lane] + along[j, lane] * c[i, lane]


@kernel
def add_products_of_means(settings, T, pairs, drifts):  # type: ignore[no-untyped-def]
    """Add T (1 − 1/n_b) E[c uᵀ] E[c uᵀ]ᵀ to the drift of Q, estimated without bias from pairs of samples.

    T (lanes,) : the ODE time of an SGD step.
    """
    p, _, lanes = pairs.gradient.shape
    share = (1.0 - 1.0 / settings.batch_size) / (settings.samples * (settings.samples - 1))
    for i in range(p):
        for j in range(i + 1):
            for lane in range(lanes):
                drifts.GF[i, j, lane] += share * T[lane] * pairs.products[i, j, lane]


@kernel
def shorten_flow(numbers, drifts):  # type: ignore[no-untyped-def]
    """Multiply Ψ^GF by 1 − λT, as c x is added to weights that have already decayed in the step."""
    p, _, lanes = drifts.GF.shape
    for i in range(p):
        for j in range(i + 1):
            for lane in range(lanes):
                drifts.GF[i, j, lane] *= 1.0 - numbers.weight_decay[lane] * numbers.T[lane]


@kernel
def add_decay(work):  # type: ignore[no-untyped-def]
    """Add the drifts of an SGD step by decay, −λ M, −(2 − λT) λ Q and −λ_a a, and by noise of the weights, 2 T_w I."""
    system, drifts, numbers = work.system, work.drifts, work.constants.numbers
    p, k, lanes = drifts.M.shape
    for i in range(p):
        for lane in range(lanes):
            drifts.a[i, lane] -= numbers.second_layer_decay[lane] * work.a[i, lane]
            drifts.GF[i, i, lane] += 2.0 * numbers.temperature[lane]
        for r in range(k):
            for lane in range(lanes):
                drifts.M[i, r, lane] -= numbers.weight_decay[lane] * system.M[i, r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                decay = numbers.weight_decay[lane]
                drifts.GF[i, j, lane] -= (2.0 - decay * numbers.T[lane]) * decay * system.Q[i, j, lane]


@kernel
def add_noise(settings, work):  # type: ignore[no-untyped-def]
    """Add η X of the sample to the step: X_M = c λ*, X_Q = c λ + λ c + (γ/(p n_b)) ‖x‖² c c, X_a = σ(λ) E."""
    _, lam, lam_star, value, c, E, eta, _, square, _, _ = work.fields
    step = work.step
    p, k, lanes = step.M.shape
    for i in range(p):
        for r in range(k):
            for lane in range(lanes):
                step.M[i, r, lane] += eta[lane] * c[i, lane] * lam_star[r, lane]
        for j in range(i + 1):
            for lane in range(lanes):
                linear = c[i, lane] * lam[j, lane] + c[j, lane] * lam[i, lane]
                step.Q[i, j, lane] += eta[lane] * (linear + square[lane] * c[i, lane] * c[j, lane])
        if settings.trained:
            for lane in range(lanes):
                step.a[i, lane] += eta[lane] * value[i, lane] * E[lane]


@kernel
def note_overflow(Q, a, broken):  # type: ignore[no-untyped-def]
    """Set `broken` (lanes,) where a norm Q_ii or a second layer is beyond OVERFLOW, or NaN."""
    p, lanes = a.shape
    for i in range(p):
        for lane in range(lanes):
            broken[lane] |= not ((abs(Q[i, i, lane]) < OVERFLOW) & (abs(a[i, lane]) < OVERFLOW))


@kernel
def sde_step(settings, functions, stream, work, broken):  # type: ignore[no-untyped-def]
    """Take a step: (Q, M) += Ψ Δt + T Σ_s η_s (X_s − Ψ), a += ε (Ψ^a Δt + T Σ_s η_s (X_s − Ψ^a)); project.

    Then the factor of Ω is computed anew, for the next step.
    """
    system, drifts, step, sample, numbers = work.system, work.drifts, work.step, work.fields, work.constants.numbers
    p, _, lanes = step.M.shape
    width = p + settings.k + 2
    draw_normals(stream.step, stream.seed, stream.key, sample.z)
    step.M[:], step.Q[:], step.a[:], sample.total[:] = 0.0, 0.0, 0.0, 0.0
    if settings.batch_size > 1:
        work.pairs.gradient[:], work.pairs.products[:] = 0.0, 0.0
    for s in range(settings.samples):
        draw_sample(sample.z[s * width : (s + 1) * width], settings, functions, work)
        add_noise(settings, work)
        if settings.batch_size > 1:
            add_pairs(sample.z[s * width : (s + 1) * width], sample.c, work.pairs)
    functions.drifts(filled_lanes(broken), with_functions(system, functions), drifts)
    if settings.decays:
        shorten_flow(numbers, drifts)
    for i in range(p):
        for j in range(i + 1):
            for lane in range(lanes):
                drifts.GF[i, j, lane] += numbers.noise[lane] * drifts.Var[i, j, lane]
    # − Σ_s T η_s Ψ, the mean of the noise; Ψ is known only after all samples
    add_drifts(sample.total, -1.0, drifts, step)
    if settings.batch_size > 1:
        add_products_of_means(settings, numbers.T, work.pairs, drifts)
    if settings.decays:
        add_decay(work)
    if settings.spherical:
        project_drifts(system, numbers.T, drifts, step, sample.c)
    add_drifts(numbers.T, settings.length, drifts, step)
    move(system.Q, system.M, step)
    if settings.trained:
        for i in range(p):
            for lane in range(lanes):
                work.a[i, lane] += numbers.second_layer_rate[lane] * step.a[i, lane]
    note_overflow(system.Q, work.a, broken)
    work.network.slack[:] = 0.0  # the noise has no bound
    if settings.spherical:
        project(system.Q, system.M, sample.square)
    sde_prepare(settings, functions, work, broken)
