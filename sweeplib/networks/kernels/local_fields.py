"""The local fields of samples in vector lanes: the last axis of all arrays is the lane.

z are the coordinates of a sample in a block of inputs: u* along the teacher, then w along the weights beyond it.
A (rows, r, lanes) and B (rows, rows, lanes) are the factor of the weights, in the last p rows; B has no rows where A
has the weights themselves. L* (k, r, lanes) is `L_star`, λ* (k, lanes) is `lam_star`, λ (p, lanes) is `lam`.
"""

from sweeplib.networks.kernels.lanes import kernel


@kernel
def put(adds, x, y, out):  # type: ignore[no-untyped-def]
    """Fill out with x times y, or add that to it; all are (lanes,)."""
    if adds:
        for lane in range(out.shape[0]):
            out[lane] += x[lane] * y[lane]
    else:
        for lane in range(out.shape[0]):
            out[lane] = x[lane] * y[lane]


@kernel
def put_teacher_fields(adds, L_star, z, first, is_lower, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* with L* u*, or add that to it, for coordinates from row `first` of z on.

    is_lower : whether L* is lower triangular, so that the rest is not read.
    """
    k, r, lanes = L_star.shape
    for row in range(k):
        put(adds, L_star[row, 0], z[first], lam_star[row])
        for s in range(1, min(r, row + 1) if is_lower else r):
            for lane in range(lanes):
                lam_star[row, lane] += L_star[row, s, lane] * z[first + s, lane]


@kernel
def put_student_fields(adds, A, B, z, first, lam):  # type: ignore[no-untyped-def]
    """Fill λ with A u* + B w, or add that to it, for coordinates from row `first` of z on; B is lower triangular."""
    (rows, r, lanes), p = A.shape, lam.shape[0]
    start, is_factored = rows - p, B.shape[0] > 0
    for i in range(p):
        if is_factored:
            put(adds, B[start + i, 0], z[first + r], lam[i])
        else:
            put(adds, A[start + i, 0], z[first], lam[i])
        for s in range(0 if is_factored else 1, r):
            for lane in range(lanes):
                lam[i, lane] += A[start + i, s, lane] * z[first + s, lane]
        if is_factored:
            for j in range(1, start + i + 1):
                for lane in range(lanes):
                    lam[i, lane] += B[start + i, j, lane] * z[first + r + j, lane]


@kernel
def fields(A, B, L_star, z, lam, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* with L* u*, and λ with A u* + B w, of inputs in one block; L* and B are lower triangular."""
    put_teacher_fields(False, L_star, z, 0, True, lam_star)
    put_student_fields(False, A, B, z, 0, lam)


@kernel
def add_fields_of_replica(A, B, replica, z, lam):  # type: ignore[no-untyped-def]
    """Add A u* + B w to λ of samples z in lanes, all of the replica with this number in A and B.

    A (rows, r, n), B (rows, rows, n) : the factors of n replicas.
    """
    (p, lanes), (rows, r, _) = lam.shape, A.shape
    first, is_factored = rows - p, B.shape[0] > 0
    for i in range(p):
        if is_factored:
            entry = B[first + i, 0, replica]
            for lane in range(lanes):
                lam[i, lane] += entry * z[r, lane]
        for s in range(r):
            entry = A[first + i, s, replica]
            for lane in range(lanes):
                lam[i, lane] += entry * z[s, lane]
        if is_factored:
            for j in range(1, first + i + 1):
                entry = B[first + i, j, replica]
                for lane in range(lanes):
                    lam[i, lane] += entry * z[r + j, lane]
