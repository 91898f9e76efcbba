"""The time derivative and the risk of p particles, compiled: student units with λ_i = u_i·g + √q_i ρ ω_i + b_i.

The input has κ coordinates g along the teacher, and a rest of the length ρ, whose direction has the coordinate ω_i
along unit i.
The state is u (κ, p) coordinate by coordinate, then q (p,), then a (p,) if the second layer is trained, then the time
with a schedule. Without a rest of the input there is no q. Spherical particles have none either: q_i = 1 − |u_i|².
With offsets b_i these are the last coordinate of u, along which g is one, and which is no part of a norm.

At a node (g, ρ) of the law of the input, units i ≠ l are independent: E σ_l and E σ'_i are means over one ω each
(`smoothing`). With F = (1/p) Σ_l a_l E σ_l and the residual r_i = f* − F + (a_i/p) E σ_i, without the unit itself,

    u̇_i = a_i E[σ'_i g r_i] − (a_i²/p) u_i s_i,    q̇_i = 2 a_i E[σ'_i √q_i ρω r_i] − 2 (a_i²/p) q_i s_i + noise,
    ȧ_i = ε (E[σ_i r_i] − (a_i/p) E[σ_i²]),    s_i = E[σ_i σ'_i (λ_i − b_i)]/Var λ_i,
    ḃ_i = β (a_i E[σ'_i r_i] − (a_i²/p) E[σ_i σ'_i]),

with decays beside −λ u_i, −2λ q_i and −ε λ_a a_i. Terms of the unit with itself are means over one Gaussian number λ_i.
Noise is none; (γ/(p n_b)) a_i² Δ E[σ'_i² ‖x‖²] of the labels; or (γ/(p n_b)) a_i² E[σ'_i² E² ‖x‖²], E the whole
displacement and ‖x‖² its mean over a class of inputs: one, but for data of several classes.

Functions have the constants `flow`, the work arrays `room`, and the number n of a node of the input.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.particles.inputs import Inputs
from sweeplib.networks.maths.particles.self_terms import SelfMeans, SelfRule, fill_self_means
from sweeplib.networks.maths.particles.smoothing import (
    Means,
    Smoothing,
    fill_means,
    fill_products_of_pieces,
    fill_smoothed,
)
from sweeplib.networks.numerics.compiled import without_references

NO_NOISE, LABEL_NOISE, WHOLE_NOISE = 0, 1, 2
"""Kinds of the noise of q̇: none, by the noise of the labels, and by the whole displacement."""


class Flow(NamedTuple):
    """The constants of p particles.

    spherical, trained, self_terms : whether particles stay on the sphere, the second layer is trained, the input has a
        rest, coordinates beyond g.
    offsets : whether the last coordinate of u is an offset, and that of g is one.
    noise_kind : NO_NOISE, LABEL_NOISE or WHOLE_NOISE.
    a (p,) : the second layer at the start.
    inputs, smoothing : nodes of the law of the input with their labels; rules for means over ω.
    self_rule : the rule for means of a unit with itself, which has the addresses of σ and σ'.
    omega (2, n) : nodes and weights of ω, for the whole noise.
    scheduled, rates, end : whether the learning rate has a schedule, the address of ξ, and the last time of the run.
    """

    spherical: bool
    trained: bool
    self_terms: bool
    offsets: bool
    noise_kind: int
    numbers: Any
    a: Array
    inputs: Inputs
    smoothing: Smoothing
    self_rule: SelfRule
    omega: Array
    scheduled: bool
    rates: Any
    end: float


class Room(NamedTuple):
    """Work arrays: u (κ, p), q (p,), a (p,), their slopes, and the means at a node of the input.

    self_means : the means of each unit with itself; `steep` becomes E[σ'²E²‖x‖²] for the whole noise.
    moments (4, p) : means of products at a node of the input.
    x, value, slope (p nodes,) : arguments, σ and σ' at nodes of one number.
    clock (2, 1) : a time, and ξ there.
    mean_square (p,) : E_(g,ρ) of the squared means of σ, for the risk.
    risk (2,) : whether `fill_slope` shall also find the risk, and the risk that it found.
    """

    u: Array
    q: Array
    a: Array
    u_slope: Array
    q_slope: Array
    a_slope: Array
    means: Means
    self_means: SelfMeans
    moments: Array
    x: Array
    value: Array
    slope: Array
    clock: Array
    mean_square: Array
    risk: Array


def pack(u: Array, q: Array, a: Array, flow: Flow) -> Array:
    """The flat state (size,) at time zero of u (κ, p), q (p,) and a (p,)."""
    parts = [u.ravel()]
    parts += [q] if flow.self_terms and not flow.spherical else []
    parts += [a] if flow.trained else []
    parts += [np.zeros(1)] if flow.scheduled else []
    return np.concatenate(parts)


@without_references
def dimensions_of_norm(flow: Flow, dimensions: int) -> int:
    """The number of the `dimensions` κ of u that are no offset."""
    return dimensions - 1 if flow.offsets else dimensions


@without_references
def unpack(state: Array, flow: Flow, u: Array, q: Array, a: Array) -> None:
    """Fill u (κ, p), q (p,) and a (p,) from the flat state; spherical particles are put on their sphere."""
    dimensions, p = u.shape
    for r in range(dimensions):
        for i in range(p):
            u[r, i] = state[r * p + i]
    at = dimensions * p
    for i in range(p):
        q[i] = 0.0
    if flow.spherical:
        directions = dimensions_of_norm(flow, dimensions)
        for r in range(directions):
            for i in range(p):
                q[i] += u[r, i] * u[r, i]
        for i in range(p):
            # a step of the integrator may leave |u| > 1: then it is divided by its length, and there is no rest
            norm = math.sqrt(q[i]) if not flow.self_terms or q[i] > 1.0 else 1.0
            q[i] = max(1.0 - q[i], 0.0) if flow.self_terms else 0.0
            for r in range(directions):
                u[r, i] /= norm
    elif flow.self_terms:
        for i in range(p):
            # a step may leave a norm below zero, of which the root is NaN
            q[i] = max(state[at + i], 0.0)
        at += p
    for i in range(p):
        a[i] = state[at + i] if flow.trained else flow.a[i]


@without_references
def fill_fields(n: int, flow: Flow, room: Room) -> None:
    """Fill room.means: b = u·g and s = √q ρ of each unit at node n, and the means over ω there.

    Nodes are visited in order from 0: what depends on ρ alone is computed where ρ differs from that of node n − 1.
    """
    g, rho, b, s = flow.inputs.g, flow.inputs.rho, room.means.b, room.means.s
    dimensions, p = room.u.shape
    if n == 0 or rho[n] != rho[n - 1]:
        for i in range(p):
            s[i] = rho[n] * math.sqrt(room.q[i])
        fill_smoothed(flow.smoothing, room.means)
    for i in range(p):
        b[i] = 0.0
    for r in range(dimensions):
        for i in range(p):
            b[i] += room.u[r, i] * g[r, n]
    fill_means(flow.smoothing, room.means)


@without_references
def output(room: Room) -> float:
    """The mean output F = (1/p) Σ_i a_i E σ_i at the node of `room.means`."""
    total = 0.0
    for i in range(room.a.shape[0]):
        total += room.a[i] * room.means.value[i]
    return total / room.a.shape[0]


@without_references
def fill_self_terms(flow: Flow, room: Room, slopes: bool) -> None:
    """Fill room.self_means, the means of each unit with itself, over λ_i ~ N(b_i, |u_i|² + q_i); zero without a rest.

    slopes : whether the means with σ' are needed too, not only E[σ²].
    """
    self_means, p = room.self_means, room.a.shape[0]
    if not flow.self_terms:
        for i in range(p):
            self_means.square[i], self_means.mixed[i], self_means.tilted[i], self_means.steep[i] = 0.0, 0.0, 0.0, 0.0
        return
    directions = dimensions_of_norm(flow, room.u.shape[0])
    for i in range(p):
        self_means.norm[i] = room.q[i]
    for r in range(directions):
        for i in range(p):
            self_means.norm[i] += room.u[r, i] * room.u[r, i]
    if flow.offsets:
        for i in range(p):
            self_means.offset[i] = room.u[directions, i]
    fill_self_means(flow.self_rule, self_means, slopes)


@without_references
def add_node(n: int, flow: Flow, room: Room) -> None:
    """Add node n to the sums over inputs in `room`: of u̇, of q̇ over 2√q a and of ȧ, all without the unit itself."""
    inputs, means, a, p = flow.inputs, room.means, room.a, room.a.shape[0]
    residual, correction = inputs.label[n] - output(room), (1.0 if flow.self_terms else 0.0) / p
    weight, rho, push = inputs.weight[n], inputs.rho[n], means.work
    u_slope, q_slope, a_slope = room.u_slope, room.q_slope, room.a_slope
    for i in range(p):
        push_i = weight * (residual + correction * a[i] * means.value[i])
        q_slope[i] += push_i * rho * means.along[i]
        a_slope[i] += push_i * means.value[i]
        push[i] = push_i * a[i] * means.slope[i]
    for r in range(u_slope.shape[0]):
        g = inputs.g[r, n]
        for i in range(p):
            u_slope[r, i] += g * push[i]


@without_references
def add_to_risk(n: int, flow: Flow, room: Room) -> None:
    """Add node n to E_(g,ρ)[(f* − F)²], in room.risk[1], and to the means of squares in room.mean_square."""
    weight, value, square = flow.inputs.weight[n], room.means.value, room.mean_square
    room.risk[1] += weight * (flow.inputs.label[n] - output(room)) ** 2
    if flow.self_terms:
        for i in range(value.shape[0]):
            square[i] += weight * value[i] * value[i]


@without_references
def finish_risk(room: Room) -> None:
    """Make room.risk[1], a sum over nodes, the risk ½ E[(f* − f)²]: add the scatter of the units, and take half."""
    a, p = room.a, room.a.shape[0]
    for i in range(p):
        room.risk[1] += (a[i] / p) ** 2 * (room.self_means.square[i] - room.mean_square[i])
    room.risk[1] *= 0.5


@without_references
def fill_moments(flow: Flow, room: Room) -> None:
    """Fill room.moments with E[σ'²], E[σσ'²], E[σ²σ'²] and E[σ²] over ω of each unit at the node of the means."""
    p, nodes, moments, b, s = room.a.shape[0], flow.omega.shape[1], room.moments, room.means.b, room.means.s
    if flow.self_rule.pieces.shape[0]:
        fill_products_of_pieces(flow.smoothing, flow.self_rule.pieces, room.means, moments)
        return
    # without a closed form, by nodes of ω
    x, value, slope = room.x[: p * nodes], room.value[: p * nodes], room.slope[: p * nodes]
    for n in range(nodes):
        for i in range(p):
            x[n * p + i] = b[i] + s[i] * flow.omega[0, n]
    flow.self_rule.value(x, value)
    flow.self_rule.slope(x, slope)
    moments[:] = 0.0
    for n in range(nodes):
        for i in range(p):
            at = n * p + i
            steep = flow.omega[1, n] * slope[at] * slope[at]
            moments[0, i] += steep
            moments[1, i] += steep * value[at]
            moments[2, i] += steep * value[at] * value[at]
            moments[3, i] += flow.omega[1, n] * value[at] * value[at]


@without_references
def add_whole_noise(n: int, flow: Flow, room: Room) -> None:
    """Add E[σ'_i² E² ‖x‖²] at node n to self_means.steep, E the displacement with scatter of all units and noise."""
    a, p, moments = room.a, room.a.shape[0], room.moments
    fill_moments(flow, room)
    scatter = 0.0
    for i in range(p):
        scatter += (a[i] / p) ** 2 * (moments[3, i] - room.means.value[i] ** 2)
    residual, weight = flow.inputs.label[n] - output(room), flow.inputs.weight[n] * flow.inputs.square_norm[n]
    for i in range(p):
        value, share = room.means.value[i], a[i] / p
        # E without unit i has the mean `total` and the variance `others` + Δ; σ_i is averaged together with σ'_i²
        total = residual + share * value
        others = scatter - share * share * (moments[3, i] - value * value)
        whole = (total * total + others + flow.numbers.Delta) * moments[0, i] - 2.0 * total * share * moments[1, i]
        room.self_means.steep[i] += weight * (whole + share * share * moments[2, i])


def fill_slope(i: int, state: Array, flow: Flow, room: Room, slope: Array) -> None:
    """Fill slope, the derivative of a state (both (size,)), and the risk room.risk[1] if room.risk[0] is not zero."""
    u, q, a, u_slope, q_slope, a_slope = room.u, room.q, room.a, room.u_slope, room.q_slope, room.a_slope
    unpack(state, flow, u, q, a)
    # sums over nodes of inputs; then what needs no node: terms of a particle with itself, decay, noise
    fill_self_terms(flow, room, True)
    room.risk[1] = 0.0
    u_slope[:], q_slope[:], a_slope[:], room.mean_square[:] = 0.0, 0.0, 0.0, 0.0
    if flow.noise_kind == WHOLE_NOISE:
        room.self_means.steep[:] = 0.0
    for n in range(flow.inputs.weight.shape[0]):
        fill_fields(n, flow, room)
        if flow.noise_kind == WHOLE_NOISE:
            add_whole_noise(n, flow, room)
        if room.risk[0] != 0.0:
            add_to_risk(n, flow, room)
        add_node(n, flow, room)
    if room.risk[0] != 0.0:
        finish_risk(room)
    add_self_terms(flow, room)
    if flow.numbers.weight_decay + flow.numbers.second_layer_decay + flow.numbers.temperature > 0.0:
        add_decay(flow, room)
    rate = 1.0
    # with a schedule the last number of the state is the time
    if flow.scheduled:
        room.clock[0, 0] = min(state[state.shape[0] - 1], flow.end)
        flow.rates(room.clock[0], room.clock[1])
        rate = room.clock[1, 0]
    add_noise(rate, flow, room)
    write_slope(rate, flow, room, slope)


@without_references
def add_self_terms(flow: Flow, room: Room) -> None:
    """Complete u̇, ḃ and ȧ in `room` with the terms of each unit with itself, and turn the sum of q̇ into q̇."""
    u, q, a, p = room.u, room.q, room.a, room.a.shape[0]
    directions = dimensions_of_norm(flow, u.shape[0])
    for j in range(p):
        square = a[j] * a[j] / p * room.self_means.mixed[j]
        room.q_slope[j] = 2.0 * (a[j] * math.sqrt(q[j]) * room.q_slope[j] - square * q[j])
        room.a_slope[j] -= a[j] / p * room.self_means.square[j]
    for r in range(directions):
        for j in range(p):
            room.u_slope[r, j] -= a[j] * a[j] / p * room.self_means.mixed[j] * u[r, j]
    if flow.offsets:
        for j in range(p):
            room.u_slope[directions, j] -= a[j] * a[j] / p * room.self_means.tilted[j]
            room.u_slope[directions, j] *= flow.numbers.offset_rate


@without_references
def add_decay(flow: Flow, room: Room) -> None:
    """Add −λ u, 2T − 2λ q and −λ_a a to u̇, q̇ and ȧ; offsets do not decay. T is the temperature, for D → ∞ alone."""
    decay, p = flow.numbers.weight_decay, room.a.shape[0]
    for r in range(dimensions_of_norm(flow, room.u.shape[0])):
        for j in range(p):
            room.u_slope[r, j] -= decay * room.u[r, j]
    for j in range(p):
        room.q_slope[j] += 2.0 * (flow.numbers.temperature - decay * room.q[j])
        room.a_slope[j] -= flow.numbers.second_layer_decay * room.a[j]


@without_references
def add_noise(rate: float, flow: Flow, room: Room) -> None:
    """Add the noise to q̇; the schedule's `rate` multiplies γ in it, as it does all slopes later."""
    if flow.noise_kind != NO_NOISE:
        strength = rate * flow.numbers.noise * (flow.numbers.Delta if flow.noise_kind == LABEL_NOISE else 1.0)
        for j in range(room.a.shape[0]):
            room.q_slope[j] += strength * room.a[j] * room.a[j] * room.self_means.steep[j]


@without_references
def write_slope(rate: float, flow: Flow, room: Room, slope: Array) -> None:
    """Write the flat slope (size,): the slopes of the particles times ξ `rate`.

    Spherical particles lose u_i Φ_i/2, with Φ_i the derivative of |u_i|² + q_i.
    """
    u, u_slope, growth = room.u, room.u_slope, room.means.work
    dimensions, p = u.shape
    # back on the sphere: offsets, the last coordinate, are no part of the norm
    if flow.spherical:
        directions = dimensions_of_norm(flow, dimensions)
        for j in range(p):
            growth[j] = 0.5 * room.q_slope[j]
        for r in range(directions):
            for j in range(p):
                growth[j] += u[r, j] * u_slope[r, j]
        for r in range(directions):
            for j in range(p):
                u_slope[r, j] -= growth[j] * u[r, j]
    # u, q, a and the time, in the order of the state
    for r in range(dimensions):
        for j in range(p):
            slope[r * p + j] = rate * u_slope[r, j]
    at = dimensions * p
    if flow.self_terms and not flow.spherical:
        for j in range(p):
            slope[at + j] = rate * room.q_slope[j]
        at += p
    if flow.trained:
        for j in range(p):
            slope[at + j] = rate * flow.numbers.second_layer_rate * room.a_slope[j]
    if flow.scheduled:
        slope[slope.shape[0] - 1] = 1.0


def state_risk(i: int, state: Array, flow: Flow, room: Room) -> float:
    """The population risk ½ E[(f* − f)²] of the state."""
    unpack(state, flow, room.u, room.q, room.a)
    fill_self_terms(flow, room, False)
    room.risk[1] = 0.0
    room.mean_square[:] = 0.0
    for n in range(flow.inputs.weight.shape[0]):
        fill_fields(n, flow, room)
        add_to_risk(n, flow, room)
    finish_risk(room)
    return room.risk[1]
