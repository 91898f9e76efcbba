"""States of the overlap chain for inputs with several eigenvalues: the rows that `kernels/chain_blocks` has."""

import numpy as np

from sweeplib.arrays import Array
from sweeplib.dynamics.lane_dynamics import rows, unrolled
from sweeplib.dynamics.replicas import Replicas
from sweeplib.kernels.chain_blocks import BlockSettings
from sweeplib.maths.overlaps import split_factors


def block_settings(replicas: Replicas) -> BlockSettings:
    """The settings of replicas whose blocks of inputs agree in all numbers of coordinates up to p + k."""
    p, k, sizes = replicas.p, replicas.k, replicas.multiplicities[0].astype(int)
    factored = sizes > p + k
    coordinates = np.where(factored, k, sizes)
    lengths = 2 + (k + p) * coordinates + p * p * factored
    first_rows, first_draws = (np.cumsum([0, *counts]) for counts in (lengths, coordinates + p * factored))
    decays = bool((replicas.numbers.weight_decay > 0.0).any())
    own = replicas.spherical, replicas.trains_second_layer, decays
    return BlockSettings(p, k, *own, coordinates, factored, first_rows, first_draws)


def block_states(replicas: Replicas, settings: BlockSettings) -> Array:
    """The states (rows, n) at the start."""
    start, found = replicas.blocks, list[Array]()
    columns = _few_columns(replicas, settings)
    for b, factored in enumerate(settings.factored):
        parts = split_factors(start.Q[:, b], start.M[:, b], start.P[:, b]) if factored else columns[b]
        found += [np.sqrt(replicas.eigenvalues[:, b]), replicas.multiplicities[:, b] - settings.p - settings.k, *parts]
    return np.concatenate([rows(part) for part in (*found, replicas.a)])


def _few_columns(replicas: Replicas, settings: BlockSettings) -> dict[int, tuple[Array, Array]]:
    """The weights W*_b (n, k, d_b) and W_b (n, p, d_b) over √d of the blocks without a factor, by their numbers."""
    chosen = np.flatnonzero(~settings.factored)
    if not chosen.size:
        return {}
    found: dict[int, list[tuple[Array, Array]]] = {b: [] for b in chosen.tolist()}
    for i, sizes in enumerate(replicas.multiplicities):
        W, W_star = (weights / np.sqrt(replicas.d[i]) for weights in replicas.weights(i))
        ends = np.cumsum([0, *sizes]).astype(int)
        for b, parts in found.items():
            parts.append((W_star[:, ends[b] : ends[b + 1]], W[:, ends[b] : ends[b + 1]]))
    return {b: (np.array([one for one, _ in parts]), np.array([two for _, two in parts])) for b, parts in found.items()}


def block_overlaps_of(state: Array, settings: BlockSettings) -> tuple[Array, Array, Array]:
    """Q (n, L, p, p), M (n, L, p, k) and a (n, p) of states (rows, n)."""
    p, k, Q, M = settings.p, settings.k, list[Array](), list[Array]()
    for r, factored, first in zip(settings.coordinates, settings.factored, settings.rows, strict=False):
        at = first + 2 + k * r
        L_star, A = unrolled(state[first + 2 : at], k, r), unrolled(state[at : at + p * r], p, r)
        Q.append(A @ A.transpose(0, 2, 1))
        if factored:
            B = np.tril(unrolled(state[at + p * r : at + p * (r + p)], p, p))
            Q[-1] += B @ B.transpose(0, 2, 1)
        M.append(A @ L_star.transpose(0, 2, 1))
    return np.stack(Q, axis=1), np.stack(M, axis=1), unrolled(state[settings.rows[-1] :], p)
