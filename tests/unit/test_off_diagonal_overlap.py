"""The largest overlap of two students outside of the teacher's span: by weights, at the start, and along runs."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import norm

from sweeplib import Overlaps, Problem, simulate

NAME = "off_diagonal_overlap"


def values(problem: Problem, dynamics: str, **asked) -> np.ndarray:  # type: ignore[no-untyped-def]
    return np.asarray(simulate(problem, dynamics, observables=[NAME], **{"times": [0.0]} | asked)[NAME])


def test_it_is_that_of_the_weights_beside_the_rows_of_the_teacher() -> None:
    """Of three rows in a plane, so that P has no inverse; W⊥ by an orthonormal basis of the plane."""
    rng, p, d = np.random.default_rng(0), 5, 40
    W, W_star = rng.standard_normal((p, d)), rng.standard_normal((3, d))
    W_star[2] = W_star[0] - 2.0 * W_star[1]
    W += rng.standard_normal((p, 3)) @ W_star
    basis = np.linalg.qr(W_star[:2].T)[0]
    outside = W - W @ basis @ basis.T
    expected = np.abs(outside @ outside.T / d)[np.triu_indices(p, 1)].max()
    problem = Problem(p=p, k=3, d=d, gamma=1.0, Delta=0.0, activation="erf")
    assert values(problem, "sgd", initial=(W, W_star)) == pytest.approx(expected, rel=1e-10)
    alone = Problem(p=1, k=3, d=d, gamma=1.0, Delta=0.0, activation="erf")
    assert values(alone, "sgd", initial=(W[:1], W_star)).item() == 0.0


@pytest.mark.rest
def test_two_students_start_with_the_mean_of_a_product_of_gaussian_directions() -> None:
    """E|w⊥·w'⊥|/d = √(2/π) E|w⊥|/d, |w⊥| of d − k coordinates; four standard errors of 400 starts."""
    k, d = 2, 30
    of_starts = values(Problem(p=2, k=k, d=d, gamma=1.0, Delta=0.0, activation="erf"), "sgd_chain", seeds=range(400))
    length = np.sqrt(2.0) * np.exp(gammaln((d - k + 1) / 2) - gammaln((d - k) / 2))
    assert abs(of_starts.mean() - np.sqrt(2 / np.pi) * length / d) < 4 * of_starts.std() / 20


def test_many_students_start_with_the_largest_of_as_many_pairs() -> None:
    """Of p (p − 1)/2 numbers of N(0, 1/d), nearly independent for d ≫ p; that of one pair is four times smaller."""
    p, d = 48, 4000
    of_starts = values(Problem(p=p, k=1, d=d, gamma=1.0, Delta=0.0, activation="erf"), "sgd_chain", seeds=range(24))
    largest = quad(lambda x: 1.0 - (2.0 * norm.cdf(x) - 1.0) ** (p * (p - 1) // 2), 0.0, 10.0)[0]
    error = of_starts.std() / np.sqrt(len(of_starts))
    assert abs(of_starts.mean() * np.sqrt(d) - largest) < 4 * error * np.sqrt(d) + 0.02 * largest


@pytest.mark.slow
@pytest.mark.parametrize("p", [2, 8])
def test_students_repel_each_other_at_first_order_in_one_over_p(p: int) -> None:
    """From Q = I, M = 0: Q̇⊥_ij = −(2/p) E[σ'σ'] = −2/(πp) under gradient flow of erf, whatever the teacher."""
    problem, t = Problem(p=p, k=1, d=10**6, gamma=1.0, Delta=0.0, activation="erf"), 1e-4
    start = Overlaps(np.eye(p), np.zeros((p, 1)), np.eye(1))
    moved = values(problem, "gradient_flow", times=[0.0, t], initial=start).ravel()
    assert moved[0] == 0.0
    assert moved[1] == pytest.approx(2 * t / (np.pi * p), rel=1e-3)


@pytest.mark.slow
def test_the_weights_and_the_chain_of_overlaps_have_one_law_of_it() -> None:
    """Means along a run by Welch's z; three times, four standard errors: one false alarm in 5000 runs."""
    problem = Problem(p=4, k=2, d=20, gamma=2.0, Delta=0.1, activation="erf")
    asked = {"times": [0.5, 2.0, 5.0], "seeds": range(256)}
    one, other = (values(problem, name, **asked) for name in ("sgd", "sgd_chain"))
    error = np.hypot(one.std(axis=0), other.std(axis=0)) / 16
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error).all()
    assert (error < 0.05 * one.mean(axis=0)).all()
