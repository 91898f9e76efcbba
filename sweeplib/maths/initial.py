"""Initial weights, drawn from counter-based streams so that every dynamics can start from the same ones."""

import numpy as np
from numpy.typing import NDArray

from sweeplib.errors import InputError
from sweeplib.maths.overlaps import Overlaps
from sweeplib.numerics.random import normals, stream_key

Array = NDArray[np.float64]


def initial_weights(role: str, law: str, units: int, d: int, *, root_seed: int, seed: int) -> Array:
    """Weights (units, d) of the `role` (student or teacher) in replica `seed`, drawn from the `law`.

    Laws: `gaussian` has N(0, 1) entries; `sphere` has rows uniform on the sphere of radius √d; `orthogonal` has
    uniformly random orthogonal rows of norm √d (units ≤ d).
    """
    key = stream_key(root_seed, "weights", role, law, units, d)
    rows = np.stack([normals(key, seed, row, d) for row in range(units)])
    if law == "gaussian":
        return rows
    if law == "sphere" or units == 1:
        return rows * (np.sqrt(d) / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None])
    frame, upper = np.linalg.qr(rows.T)
    return np.ascontiguousarray((frame * np.sign(np.diag(upper))).T) * np.sqrt(d)


def turned_to(W: Array, w_star: Array, m0: float) -> Array:
    """The rows of W (p, d), of norm √d, turned in their planes with w* (d,) until their cosine with it is m0."""
    axis = w_star / np.linalg.norm(w_star)
    across = W - np.outer(W @ axis, axis)
    across -= np.outer(across @ axis, axis)
    across *= np.sqrt(1.0 - m0**2) / np.linalg.norm(across, axis=1, keepdims=True)
    return np.sqrt(W.shape[1]) * (m0 * axis + across)


def weights_of_overlaps(overlaps: Overlaps, d: int, *, root_seed: int, seed: int) -> tuple[Array, Array]:
    """Weights W (p, d), W* (k, d) that have these overlaps, in a uniformly random frame of R^d.

    Raises InputError when d is smaller than the rank that the overlaps need.
    """
    width = overlaps.p + overlaps.k
    values, vectors = np.linalg.eigh(overlaps.omega)
    root = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    rank = int((values > 1e-12 * max(1.0, values[-1])).sum())
    if rank > d:
        raise InputError("no weights have these overlaps", key="d", value=d, expected=f"at least their rank {rank}")
    frame = initial_weights("frame", "orthogonal", min(width, d), d, root_seed=root_seed, seed=seed)
    rows = root[:, : min(width, d)] @ frame
    return rows[: overlaps.p], rows[overlaps.p :]
