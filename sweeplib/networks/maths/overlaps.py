"""Overlaps: the sufficient statistics Q, M, P of student and teacher weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError

_TOLERANCE = 1e-9
"""By how much Ω may be asymmetric or indefinite, relative to its largest entry: rounding errors of what users state."""

DEPENDENT = 1e-14
"""Teacher rows depend on each other if P has an eigenvalue of less than this part of the largest: rounding errors."""

NEW_DIRECTION = 1e-10
"""A unit row has a new direction if more than this is left of it: of independent rows √DEPENDENT is, else rounding."""


@dataclass(frozen=True, eq=False)
class Overlaps:
    """The overlaps Q = WWᵀ/d (p, p), M = WW*ᵀ/d (p, k) and P = W*W*ᵀ/d (k, k) of student W and teacher W*.

    Raises InputError unless the shapes fit, all entries are finite and Ω = [[Q, M], [Mᵀ, P]] is symmetric and positive
    semi-definite to rounding.
    """

    Q: Array
    M: Array
    P: Array

    def __init__(self, Q: ArrayLike, M: ArrayLike, P: ArrayLike) -> None:
        for name, value in (("Q", Q), ("M", M), ("P", P)):
            matrix = matrix_of(name, value, "not an overlap matrix")
            matrix.flags.writeable = False
            object.__setattr__(self, name, matrix)
        self._check()

    def _check(self) -> None:
        """Raise InputError for shapes that do not fit, or overlaps that are no covariance."""
        for name, matrix, shape in (("Q", self.Q, (self.p, self.p)), ("P", self.P, (self.k, self.k))):
            if matrix.shape != shape:
                raise InputError("shapes do not fit", key=name, value=matrix.shape, expected=f"{shape}, as M has")
        omega = self.omega
        if not self.p:
            raise InputError("overlaps of no units", key="M", value=self.M.shape, expected="at least one row")
        scale = float(np.abs(omega).max())
        if not np.allclose(omega, omega.T, rtol=0, atol=_TOLERANCE * scale):
            raise InputError("overlaps are not symmetric", key="omega", expected="Q = Qᵀ and P = Pᵀ")
        lowest = float(np.linalg.eigvalsh(omega)[0])
        if lowest < -_TOLERANCE * scale:
            raise InputError("overlaps of no weights", key="omega", value=lowest, expected="no negative eigenvalue")

    @classmethod
    def from_weights(cls, W: ArrayLike, W_star: ArrayLike) -> "Overlaps":
        """The overlaps of the weights W (p, d) and W* (k, d)."""
        student, teacher = (matrix_of(name, value, "no weights") for name, value in (("W", W), ("W_star", W_star)))
        if not student.shape[1]:
            raise InputError("weights of no inputs", key="W", value=student.shape, expected="at least one column")
        if student.shape[1] != teacher.shape[1]:
            raise InputError("shapes do not fit", key="W_star", value=teacher.shape, expected="as many columns as W")
        d = student.shape[1]
        return cls(student @ student.T / d, student @ teacher.T / d, teacher @ teacher.T / d)

    @property
    def p(self) -> int:
        """Student width."""
        return int(self.M.shape[0])

    @property
    def k(self) -> int:
        """Teacher width."""
        return int(self.M.shape[1])

    @property
    def omega(self) -> Array:
        """Ω = [[Q, M], [Mᵀ, P]], the covariance of the local fields (λ, λ*), shape (p+k, p+k)."""
        return np.block([[self.Q, self.M], [self.M.T, self.P]])

    def factor(self) -> Array:
        """The lower triangular factor of the overlaps, see `lower_factors`."""
        return lower_factors(self.Q, self.M, self.P)


def matrix_of(name: str, value: ArrayLike, trouble: str) -> Array:
    """The value as a matrix, a copy; raise InputError with this `trouble` unless it is one of finite numbers."""
    try:
        numbers = np.array(value, ndmin=2)
        # of an array of texts NumPy would read the numbers
        matrix = numbers.astype(np.float64) if numbers.dtype.kind in "biufO" else None
    except (ValueError, TypeError, OverflowError):  # lists of several lengths, None, 10**400
        matrix = None
    if matrix is None or matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(trouble, key=name, value=value, expected="a matrix of finite numbers")
    return matrix


def block_overlaps(W: Array, W_star: Array, multiplicities: Array) -> tuple[Array, Array, Array]:
    """The overlaps Q (L, p, p), M (L, p, k), P (L, k, k) of L blocks of columns of W (p, d) and W* (k, d), over d.

    multiplicities (L,) : the numbers of columns, one block after the other.
    """
    ends = np.cumsum(multiplicities)[:-1].astype(int)
    parts = list(zip(np.split(W, ends, axis=1), np.split(W_star, ends, axis=1), strict=True))
    pairs = ([(w, w) for w, _ in parts], parts, [(w_star, w_star) for _, w_star in parts])
    Q, M, P = (np.array([first @ second.T for first, second in pair]) / W.shape[1] for pair in pairs)
    return Q, M, P


def lower_factors(Q: Array, M: Array, P: Array) -> Array:
    """The lower triangular L (..., k+p, k+p), L Lᵀ = [[P, Mᵀ], [M, Q]], teacher rows first, diagonal not negative.

    Computed by the spectral square root and a QR decomposition, which unlike Cholesky's allow singular overlaps.
    Leading axes are independent systems.
    """
    swapped = np.concatenate(
        [np.concatenate([P, np.swapaxes(M, -1, -2)], axis=-1), np.concatenate([M, Q], axis=-1)], axis=-2
    )
    values, vectors = np.linalg.eigh(swapped)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    lower = np.swapaxes(np.linalg.qr(np.swapaxes(root, -1, -2), mode="r"), -1, -2)
    # which signs a diagonal has is left to LAPACK
    signs = np.where(np.diagonal(lower, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return lower * signs[..., None, :]


def teacher_factors(P: Array) -> Array:
    """The lower triangular L* (n, k, k) with L* L*ᵀ = P (n, k, k); dependent rows have no new direction.

    The diagonal entry of a row that depends on earlier ones and the column below are exactly zero, so M = A L*ᵀ can be
    solved for A. In `lower_factors` the entry is √ of a rounding error, by which M would be divided. Rows depend on
    others if P, scaled to a unit diagonal, has an eigenvalue of less than DEPENDENT of the largest. Orthogonalised
    twice: rounding errors do not grow.
    """
    norm, values, vectors = _of_unit_diagonal(P)
    root = vectors * np.sqrt(np.where(values > DEPENDENT * values[:, -1:], values, 0.0))[:, None, :]
    lower, directions = np.zeros(P.shape), np.zeros(P.shape)
    for r in range(P.shape[-1]):
        remainder = root[:, r]
        for _ in range(2):
            along = np.einsum("nsi,ni->ns", directions[:, :r], remainder)
            lower[:, r, :r] += along
            remainder = remainder - np.einsum("ns,nsi->ni", along, directions[:, :r])
        length = np.linalg.norm(remainder, axis=-1)
        new = length > NEW_DIRECTION
        lower[:, r, r] = np.where(new, length, 0.0)
        directions[:, r] = np.where(new[:, None], remainder / np.where(new, length, 1.0)[:, None], 0.0)
    return norm[:, :, None] * lower


def split_factors(Q: Array, M: Array, P: Array) -> tuple[Array, Array, Array]:
    """The factors L* of `teacher_factors`, A (n, p, k) with M = A L*ᵀ, and the lower B (n, p, p), Q = A Aᵀ + B Bᵀ.

    For orthonormal teacher rows A is exactly M.
    """
    L_star, A = teacher_factors(P), np.zeros(M.shape)
    for r in range(P.shape[-1]):
        remainder, pivot = M[:, :, r] - np.einsum("nis,ns->ni", A[:, :, :r], L_star[:, r, :r]), L_star[:, r, r, None]
        A[:, :, r] = np.where(pivot > 0.0, remainder / np.where(pivot > 0.0, pivot, 1.0), 0.0)
    return L_star, A, lower_factors(Q - A @ A.transpose(0, 2, 1), M[:, :, :0], P[:, :0, :0])


def are_dependent(P: Array) -> NDArray[np.bool_]:
    """Whether the teacher rows depend on each other (n,), in the sense of `teacher_factors`; P (n, k, k)."""
    _, values, _ = _of_unit_diagonal(P)
    return np.asarray(values[:, 0] <= DEPENDENT * values[:, -1])


def _of_unit_diagonal(P: Array) -> tuple[Array, Array, Array]:
    """The norms √P_rr (n, k), and the eigenvalues and eigenvectors of P (n, k, k) scaled to a unit diagonal."""
    norm = np.sqrt(np.einsum("nrr->nr", P))
    unit = np.where(norm > 0.0, norm, 1.0)
    return norm, *np.linalg.eigh(P / (unit[:, :, None] * unit[:, None, :]))


def on_sphere(Q: Array, M: Array) -> tuple[Array, Array]:
    """The overlaps Q (n, p, p) and M (n, p, k) of n systems, each student row divided by its norm."""
    norm = np.sqrt(np.einsum("nii->ni", Q))
    return Q / (norm[:, :, None] * norm[:, None, :]), M / norm[:, :, None]


def blocks_on_sphere(Q: Array, M: Array) -> tuple[Array, Array]:
    """The overlaps Q_b (n, L, p, p), M_b (n, L, p, k) of L blocks.

    Student rows are divided by norms over all blocks.
    """
    norm = np.sqrt(np.einsum("nbii->ni", Q))[:, None, :, None]
    return Q / (norm * norm.swapaxes(2, 3)), M / norm


def nearest_covariances(Q: Array, M: Array, P: Array) -> Array:
    """Q (n, p, p) of n systems, replaced where Ω is indefinite by the nearest Q with Ω ≥ 0 at the same M and P.

    That is M P⁺ Mᵀ plus the positive part of Q − M P⁺ Mᵀ; M (n, p, k), P (n, k, k). Systems with non-finite entries are
    unchanged.
    """
    nearest = Q.copy()
    finite = np.isfinite(Q).all(axis=(1, 2)) & np.isfinite(M).all(axis=(1, 2))
    inside = M[finite] @ np.linalg.pinv(P[finite], hermitian=True) @ M[finite].transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(Q[finite] - inside)
    positive = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    broken = (values < 0.0).any(axis=1)
    nearest[np.flatnonzero(finite)[broken]] = (inside + 0.5 * (positive + positive.transpose(0, 2, 1)))[broken]
    return nearest
