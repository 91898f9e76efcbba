"""The local fields of samples in vector lanes: the last axis of all arrays is the lane.

z (k + rows, lanes) are the N(0, 1) coordinates of a sample: u* along the teacher, then w along the weights beyond it.
λ* (k, lanes) is `lam_star`, λ (p, lanes) is `lam`, L* (k, k, lanes) is `L_star`, lower triangular.
With momentum A (rows, k, lanes) and B (rows, rows, lanes) have the rows of velocities first; the last p are those of
the weights.
"""

from sweeplib.networks.kernels.lanes import kernel


@kernel
def teacher_fields(L_star, z, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* (k, lanes) with L* u*, for the lower triangular L* (k, k, lanes) and u*, the first k rows of z."""
    k, lanes = lam_star.shape
    for r in range(k):
        for lane in range(lanes):
            lam_star[r, lane] = L_star[r, 0, lane] * z[0, lane]
        for s in range(1, r + 1):
            for lane in range(lanes):
                lam_star[r, lane] += L_star[r, s, lane] * z[s, lane]


@kernel
def fields(A, B, L_star, z, lam, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* (k, lanes) with L* u*, and λ (p, lanes) with A u* + B w for the last p rows of A and B."""
    teacher_fields(L_star, z, lam_star)
    student_fields(A, B, z, lam)


@kernel
def student_fields(A, B, z, lam):  # type: ignore[no-untyped-def]
    """Fill λ (p, lanes) with A u* + B w for the last p rows of A and B, with B lower triangular."""
    p, k, lanes = lam.shape[0], A.shape[1], A.shape[2]
    first = A.shape[0] - p
    for i in range(p):
        for lane in range(lanes):
            lam[i, lane] = B[first + i, 0, lane] * z[k, lane]
        for s in range(k):
            for lane in range(lanes):
                lam[i, lane] += A[first + i, s, lane] * z[s, lane]
        for j in range(1, first + i + 1):
            for lane in range(lanes):
                lam[i, lane] += B[first + i, j, lane] * z[k + j, lane]


@kernel
def fields_of_replica(A, B, replica, L_star, z, lam, lam_star):  # type: ignore[no-untyped-def]
    """Fill λ* (k, lanes) and λ (p, lanes) of samples z in lanes, all of the replica with this number in A and B.

    A (rows, k, n), B (rows, rows, n) : the factors of n replicas. L_star (k, k, lanes) : of the replica, in each lane.
    """
    (p, lanes), (rows, k, _) = lam.shape, A.shape
    first = rows - p
    teacher_fields(L_star, z, lam_star)
    for i in range(p):
        entry = B[first + i, 0, replica]
        for lane in range(lanes):
            lam[i, lane] = entry * z[k, lane]
        for s in range(k):
            entry = A[first + i, s, replica]
            for lane in range(lanes):
                lam[i, lane] += entry * z[s, lane]
        for j in range(1, first + i + 1):
            entry = B[first + i, j, replica]
            for lane in range(lanes):
                lam[i, lane] += entry * z[k + j, lane]
