"""Initial weights of students and teachers, drawn from counter-based random streams.

Every dynamics can thus start from the same weights. A replica is named by the sweep's `root_seed` and its own `seed`;
W (p, d) are the weights of the student, W* (k, d) those of the teacher.
"""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.maths.overlaps import Overlaps, teacher_factors
from sweeplib.networks.numerics.random import normals, stream_key
from sweeplib.networks.problem import STARTS, TASKS, Problem
from sweeplib.networks.problem.starts.start import rows_on_sphere


def drawn_weights(problem: Problem, *, root_seed: int, seed: int) -> tuple[Array, Array]:
    """Return weights W (p, d), W* (k, d) of replica `seed`, drawn from the laws `start` and `teacher_start`."""
    W_star = teacher_weights(problem, root_seed=root_seed, seed=seed)
    law = problem.student_start

    def of_replica(rows: int, columns: int) -> Array:
        """Return the N(0, 1) numbers (rows, columns) from which the replica's student starts."""
        return _normals("student", law, rows, columns, root_seed, seed)

    return STARTS[law].weights(problem, W_star, of_replica), W_star


def teacher_weights(problem: Problem, *, root_seed: int, seed: int) -> Array:
    """The teacher's weights W* (k, d) of replica `seed`.

    Laws: `gaussian` has N(0, 1) entries; `sphere` has rows uniform on the sphere of radius √d; `orthogonal` has
    uniformly random orthogonal rows of norm √d (k ≤ d). Rows in a block of the inputs have the law of its coordinates,
    times √(d/d_b), and zeros elsewhere. Tasks may state the overlaps of orthogonal rows.
    """
    if problem.teacher_block is not None:
        return _rows_in_blocks(problem, root_seed, seed)
    rows = _normals("teacher", problem.teacher_start, problem.k, problem.d, root_seed, seed)
    rows = _of_law(problem.teacher_start, rows)
    P = teacher_overlaps(problem)
    return rows if P is None else teacher_factors(P[None])[0] @ rows


def teacher_overlaps(problem: Problem) -> Array | None:
    """Return P (k, k) of the teacher's rows if the tasks of the problem prescribe it; None if the law does."""
    return TASKS[problem.tasks].overlaps(problem)


def _of_law(law: str, rows: Array) -> Array:
    """Return rows (n, d) of a `teacher_start`, made of Gaussian rows (n, d)."""
    if len(rows) == 0 or law == "gaussian":
        return rows
    return rows_on_sphere(rows) if law == "sphere" else _orthogonal(rows)


def _rows_in_blocks(problem: Problem, root_seed: int, seed: int) -> Array:
    """Return the teacher's rows W* (k, d) of replica `seed`, each zero outside its block of the inputs.

    Within it they have the law `teacher_start` of rows of this length, times √(d/d_b): norms are those of whole rows.
    """
    ends, W_star = np.cumsum((0, *problem.blocks[1])), np.zeros((problem.k, problem.d))
    block_of_row = np.broadcast_to(problem.teacher_block, problem.k) - 1  # blocks are counted from 1
    for block in np.unique(block_of_row):
        rows, columns = np.flatnonzero(block_of_row == block), slice(ends[block], ends[block + 1])
        size, role = int(problem.blocks[1][block]), f"teacher in block {block + 1}"
        rows_of_block = _normals(role, problem.teacher_start, len(rows), size, root_seed, seed)
        W_star[rows, columns] = np.sqrt(problem.d / size) * _of_law(problem.teacher_start, rows_of_block)
    return W_star


def drawn_overlaps(problem: Problem, W: Array, W_star: Array) -> Overlaps:
    """Return the overlaps of drawn weights W (p, d), W* (k, d), exactly those that the laws of the start prescribe.

    Products of the weights have them to rounding only.
    """
    Q = W @ W.T / problem.d
    if STARTS[problem.student_start].on_sphere:
        np.fill_diagonal(Q, 1.0)
    return Overlaps(Q, drawn_M(problem, W, W_star), drawn_P(problem, W_star))


def drawn_q(problem: Problem, W: Array) -> Array:
    """Return the squared norms q (p,) over d of drawn weights; exactly 1 for rows on the sphere."""
    if STARTS[problem.student_start].on_sphere:
        return np.ones(problem.p)
    return np.einsum("ij,ij->i", W, W) / problem.d


def drawn_M(problem: Problem, W: Array, W_star: Array) -> Array:
    """Return M (p, k) of drawn weights W (p, d), W* (k, d), with the exact overlaps that the start prescribes.

    Products of the weights have these to rounding only. They are in proportion to the norms √P_rr of teacher rows.
    """
    stated = STARTS[problem.student_start].stated(problem) * np.sqrt(np.diagonal(drawn_P(problem, W_star)))
    return np.where(np.isnan(stated), W @ W_star.T / problem.d, stated)


def drawn_P(problem: Problem, W_star: Array) -> Array:
    """Return P (k, k) of drawn rows W* (k, d): as the tasks prescribe it, or the products of the rows.

    Of orthogonal rows it is exactly the identity, and on the sphere its diagonal is exactly 1.
    """
    if (stated := teacher_overlaps(problem)) is not None:
        return stated
    if problem.teacher_start == "orthogonal":
        return np.eye(problem.k)
    P = W_star @ W_star.T / problem.d
    if problem.teacher_start == "sphere":
        np.fill_diagonal(P, 1.0)
    return P


def drawn_offsets(problem: Problem, count: int, *, root_seed: int, seed: int) -> Array:
    """Offsets b (count,) of the units of replica `seed` at the start: N(0, s_b²) numbers, zero without offsets.

    For another count all numbers are others.
    """
    if problem.offset_scale == 0.0:
        return np.zeros(count)
    return problem.offset_scale * normals(stream_key(root_seed, "offsets", count), seed, 0, count)


def drawn_second_layer(problem: Problem, *, root_seed: int, seed: int) -> Array:
    """The student's second layer a (p,) of replica `seed` at the start: as it is given, or drawn by its law.

    It is the same for all problems of one width.
    """
    if not isinstance(problem.a, str):
        return np.broadcast_to(problem.a, problem.p)
    numbers = normals(stream_key(root_seed, "student layer", problem.a, problem.p), seed, 0, problem.p)
    return numbers if problem.a == "normal" else np.sign(numbers)


def weights_of_overlaps(overlaps: Overlaps, d: int, *, root_seed: int, seed: int) -> tuple[Array, Array]:
    """Return weights W (p, d), W* (k, d) that have these overlaps, in a uniformly random frame of R^d.

    InputError when d is smaller than the rank that the overlaps need.
    """
    width = overlaps.p + overlaps.k
    values, vectors = np.linalg.eigh(overlaps.omega)
    # Ω = root rootᵀ, columns of the largest eigenvalues first
    root = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    rank = int((values > 1e-12 * values[-1]).sum())  # smaller ones are rounding errors of eigh
    if rank > d:
        raise InputError("no weights have these overlaps", key="d", value=d, expected=f"at least their rank {rank}")
    frame = _orthogonal(_normals("frame", "orthogonal", min(width, d), d, root_seed, seed))
    rows = root[:, : min(width, d)] @ frame
    return rows[: overlaps.p], rows[overlaps.p :]


def _normals(role: str, law: str, rows: int, columns: int, root_seed: int, seed: int) -> Array:
    """Return N(0, 1) numbers (rows, columns) of a replica for a role, such as "student", and the name of a law.

    Numbers for another role, law or shape are independent.
    """
    key = stream_key(root_seed, "weights", role, law, rows, columns)
    return np.array([normals(key, seed, row, columns) for row in range(rows)]).reshape(rows, columns)


def _orthogonal(rows: Array) -> Array:
    """Return uniformly random orthogonal rows (n, d) of norm √d, made of Gaussian rows (n, d)."""
    # of one row this is the same without a factorisation
    if len(rows) == 1:
        return rows_on_sphere(rows)
    # with a positive diagonal of the triangle the factorisation is unique, and its frame uniform
    frame, upper = np.linalg.qr(rows.T)
    return np.ascontiguousarray((frame * np.sign(np.diag(upper))).T) * np.sqrt(rows.shape[1])
