"""Overlaps, their factor, and weights constructed from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeplib.errors import InputError
from sweeplib.networks.maths.overlaps import Overlaps, are_dependent, teacher_factors
from sweeplib.networks.problem import Problem
from sweeplib.networks.problem.weights import drawn_weights, weights_of_overlaps

shapes = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(4, 12), st.integers(0, 2**31))


def weights(p, k, d, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((p, d)), rng.standard_normal((k, d))


@pytest.mark.rest
@given(shapes)
def test_the_factor_gives_the_overlaps_back(shape):
    overlaps = Overlaps.from_weights(*weights(*shape))
    k = overlaps.k
    L = overlaps.factor()
    assert np.allclose(L, np.tril(L))
    product = L @ L.T
    assert np.allclose(product[:k, :k], overlaps.P, atol=1e-12)
    assert np.allclose(product[k:, :k], overlaps.M, atol=1e-12)
    assert np.allclose(product[k:, k:], overlaps.Q, atol=1e-12)


def test_the_factor_stands_units_that_coincide():
    overlaps = Overlaps(np.ones((3, 3)), np.full((3, 1), 1.0), [[1.0]])
    L = overlaps.factor()
    assert np.isfinite(L).all()
    assert np.allclose(L @ L.T, 1.0, atol=1e-12)


@settings(deadline=None)  # the first example compiles
@given(shapes)
def test_weights_of_overlaps_have_them(shape):
    overlaps = Overlaps.from_weights(*weights(*shape))
    W, W_star = weights_of_overlaps(overlaps, 20, root_seed=1, seed=2)
    assert W.shape == (overlaps.p, 20)
    assert np.allclose(Overlaps.from_weights(W, W_star).omega, overlaps.omega, atol=1e-9)


def test_too_few_dimensions_for_the_overlaps_are_refused():
    with pytest.raises(InputError, match="rank"):
        weights_of_overlaps(Overlaps(np.eye(3), np.zeros((3, 1)), [[1.0]]), 3, root_seed=0, seed=0)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_the_rank_that_weights_need_does_not_depend_on_the_scale_of_overlaps(scale):
    overlaps = Overlaps(scale * np.eye(2), np.zeros((2, 1)), scale * np.eye(1))
    with pytest.raises(InputError, match="at least their rank 3"):
        weights_of_overlaps(overlaps, 2, root_seed=0, seed=0)


def test_weights_of_overlaps_that_are_zero_are_zero():
    W, W_star = weights_of_overlaps(Overlaps(np.zeros((2, 2)), np.zeros((2, 1)), [[0.0]]), 1, root_seed=0, seed=0)
    assert not W.any() and not W_star.any()


@pytest.mark.parametrize(
    ("Q", "M", "P"),
    [
        ([[1.0, 0.2], [0.3, 1.0]], [[0.0], [0.0]], [[1.0]]),
        ([[1.0]], [[1.5]], [[1.0]]),
        ([[float("nan")]], [[0.0]], [[1.0]]),
        ([[1.0]], [[0.0, 0.0]], [[1.0]]),
        ([[1e-8]], [[1.05e-8]], [[1e-8]]),
        ([[1e-8, 2e-9], [3e-9, 1e-8]], [[0.0], [0.0]], [[1e-8]]),
    ],
)
def test_what_no_weights_have_is_refused(Q, M, P):
    with pytest.raises(InputError):
        Overlaps(Q, M, P)


def drawn(root_seed=0, **fields):
    common = {"gamma": 0.1, "p": 2, "k": 2, "d": 40, "Delta": 0.0, "activation": "erf"}
    return drawn_weights(Problem(**(common | fields)), root_seed=root_seed, seed=5)


@pytest.mark.parametrize("law", ["sphere", "orthogonal"])
def test_rows_on_the_sphere_have_norm_root_d(law):
    _, W_star = drawn(k=3, teacher_start=law)
    assert np.allclose((W_star**2).sum(axis=1), 40)


def test_orthogonal_teachers_are_orthogonal():
    _, W_star = drawn(k=4, teacher_start="orthogonal")
    assert np.allclose(W_star @ W_star.T / 40, np.eye(4), atol=1e-12)


def test_starts_differ_between_rows_roots_and_roles():
    W, W_star = drawn(teacher_start="gaussian")
    assert not np.allclose(W[0], W[1])
    assert not np.allclose(W, drawn(root_seed=1)[0])
    assert not np.allclose(W, W_star)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**31))
def test_a_dependent_teacher_row_has_no_direction(k, d, seed):
    """Of rows of very different lengths: rows after the first d have a zero on the diagonal and in the column below."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3, k, d)) * 10.0 ** rng.integers(-3, 4, (3, k, 1))
    P = rows @ rows.transpose(0, 2, 1)
    L, norm = teacher_factors(P), np.linalg.norm(rows, axis=2)
    assert np.allclose(L @ L.transpose(0, 2, 1), P, rtol=0, atol=1e-12 * norm.max() ** 2)
    assert np.array_equal(L, np.tril(L))
    assert (np.diagonal(L, axis1=1, axis2=2)[:, :d] > 0).all()
    assert (L[:, :, d:] == 0).all()
    assert np.array_equal(are_dependent(P), [k > d] * 3)


def test_parallel_and_nearly_parallel_teacher_rows():
    P = np.array([[1.0, 1.0, 0.4], [1.0, 1.0, 0.4], [0.4, 0.4, 1.0]])
    [L] = teacher_factors(P[None])
    assert np.allclose(L, [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.4, 0.0, np.sqrt(0.84)]], rtol=0, atol=1e-14)
    near = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    assert teacher_factors(near[None])[0, 1, 1] == pytest.approx(np.sqrt(2e-12), rel=1e-3)
    assert list(are_dependent(np.array([near, np.ones((2, 2)), np.zeros((2, 2))]))) == [False, True, True]


@pytest.mark.parametrize(
    "matrix", [[[1, 2], [3]], "a", [["x"]], [[10**400]], [[1 + 1j]], np.ones((1, 1), complex), [[np.nan]], None]
)
def test_what_is_no_matrix_of_numbers_is_refused_in_one_line(matrix):
    with pytest.raises(InputError, match="Q: not an overlap matrix"):
        Overlaps(matrix, [[1]], [[1]])
    with pytest.raises(InputError, match="W_star: no weights"):
        Overlaps.from_weights([[1.0, 2.0]], matrix)


def test_weights_of_no_inputs_and_overlaps_of_no_units_are_refused():
    with pytest.raises(InputError, match="W: weights of no inputs"):
        Overlaps.from_weights(np.ones((1, 0)), np.ones((1, 0)))
    with pytest.raises(InputError, match="M: overlaps of no units"):
        Overlaps(np.ones((0, 0)), np.ones((0, 0)), np.ones((0, 0)))
