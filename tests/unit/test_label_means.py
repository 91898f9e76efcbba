"""Mean losses and classification errors at given overlaps, against other rules and closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf, ndtr, ndtri
from scipy.stats import qmc

from sweeplib import Problem, simulate
from sweeplib.networks.dynamics.label_means import LabelMeans, mean_losses
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.problem import Criterion
from sweeplib.networks.views import OverlapView
from tests.tiers import slow_but

LARGER = [(1, 1, 0.1), (2, 1, 0.0), (2, 1, 0.1), (1, 2, 0.0), (3, 2, 0.0), (4, 2, 0.25), (8, 4, 0.1)]


def points_of_sobol(omega, a, Delta, k):
    """Return means over 2¹⁶ points of y and all fields, and their errors: of |y − f|, log(1 + e^{−yf}), and yf < 0.

    Eight randomisations by scipy; the sign of y is averaged given the fields in the last one.
    """
    means, factor = [], np.linalg.cholesky(omega)
    for random_seed in range(8):
        points = qmc.Sobol(len(omega) + 1, seed=random_seed).random_base2(16).T
        *z, noise = ndtri(np.clip(points, 1e-16, 1.0 - 1e-16))
        fields = factor @ np.array(z)
        y, f = erf(fields[:k] / np.sqrt(2)).mean(axis=0), a @ erf(fields[k:] / np.sqrt(2)) / len(a)
        plus = ndtr(y / np.sqrt(Delta)) if Delta else y > 0.0
        y = y + np.sqrt(Delta) * noise
        means.append([np.abs(y - f).mean(), np.logaddexp(0.0, -y * f).mean(), np.where(f > 0.0, 1 - plus, plus).mean()])
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(8)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("p", "k", "Delta"),
    slow_but([(1, 1, 0.0), (3, 2, 0.1), *LARGER], (1, 1, 0.1), (2, 1, 0.0)),
)
def test_means_over_labels_are_as_good_as_they_say(p, k, Delta):
    """Of three drawn Ω: the difference to randomised points of all fields is within the errors of both."""
    for random_seed in range(3):
        rng = np.random.default_rng(random_seed)
        factor = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k)
        omega, a = factor @ factor.T, rng.normal(size=p)
        now = OverlapView(
            *(part[None] for part in (omega[k:, k:], omega[k:, :k], omega[:k, :k], a)),
            np.ones((1, k)),
            np.full(1, Delta),
            expectations("erf"),
        )
        expected, errors = points_of_sobol(omega, a, Delta, k)
        shown = [mean_losses(means_of(loss), now) for loss in ("absolute", "logistic")]
        shown.append(means_of("square").classification_error(now))
        value, error = (np.array(part)[:, 0] for part in zip(*shown, strict=True))
        assert (np.abs(value - expected) < error + 5.0 * errors).all()
        assert (error < np.array([3e-3, 1e-3, 1e-2])).all()


def means_of(loss, labels="real"):
    """Return the means over labels of a committee of error functions that learns one."""
    return LabelMeans(Criterion(loss, (), labels == "sign"), "erf", "committee", "erf")


@pytest.mark.rest
@pytest.mark.parametrize("Delta", [0.04, 1e-6, 1e-8, 0.0])
@pytest.mark.parametrize("cosine", [0.003, 0.1, 0.7, 0.99])
def test_the_error_of_a_classification_error_is_that_of_arccos(cosine, Delta):
    """Of linear units: arccos(m/√(q (P + Δ)))/π; the stated error is no more than a hundred times the true one."""
    means = LabelMeans(Criterion("square", (), signs=False), "linear", "committee", "linear")
    one = np.ones((1, 1))
    now = OverlapView(one[None], cosine * one[None], one[None], one, one, np.full(1, Delta), expectations("linear"))
    [value], [error] = means.classification_error(now)
    true = abs(value - np.arccos(cosine / np.sqrt(1.0 + Delta)) / np.pi)
    assert true <= error < max(100.0 * true, 1e-5)
    assert error < 1e-3


def test_a_network_without_second_layer_classifies_by_chance():
    view = OverlapView(
        np.eye(2)[None], np.zeros((1, 2, 1)), np.eye(1)[None], np.zeros((1, 2)), np.ones((1, 1)), np.ones(1), None
    )
    means = LabelMeans(Criterion("square", (), signs=False), "erf", "committee", "erf")
    assert means.classification_error(view).value[0] == pytest.approx(0.5, abs=1e-9)


def below(*fields: int, omega: np.ndarray) -> float:
    """P(all of these Gaussian fields < 0), of one to three of them: an orthant."""
    pairs = [(i, j) for i in fields for j in fields if i < j]
    angles = sum(np.arcsin(omega[i, j] / np.sqrt(omega[i, i] * omega[j, j])) for i, j in pairs)
    return 2.0 ** -len(fields) + angles / (2.0 ** (len(fields) - 1) * np.pi)


@pytest.mark.rest
@pytest.mark.parametrize("Delta", [0.0, 0.02, 0.3])
@pytest.mark.parametrize(
    ("student", "teacher", "p"), [("relu", "linear", 2), ("relu", "relu", 1), ("linear", "relu", 2)]
)
def test_an_output_of_zero_is_half_an_error(student, teacher, p, Delta):
    """Hinges are zero for half of the inputs: by the orthants of f and f*, and of the label's field with its noise."""
    rng = np.random.default_rng(p)
    factor = rng.normal(size=(p + 1, p + 3)) / np.sqrt(p + 1)
    omega = factor @ factor.T
    parts = omega[1:, 1:], omega[1:, :1], omega[:1, :1], np.ones(p), np.ones(1)
    now = OverlapView(*(part[None] for part in parts), np.full(1, Delta), expectations(student, teacher))
    [value], [error] = LabelMeans(Criterion("square", (), False), student, "committee", teacher).classification_error(
        now
    )
    if teacher == "linear":
        omega[0, 0] += Delta
        none, units = below(1, 2, omega=omega), 0.5 - below(0, 1, 2, omega=omega)
        expected = units + 0.5 * none
    else:
        expected = of_relu_teacher(omega, student, Delta)
    assert abs(value - expected) < error < 2e-3


def of_relu_teacher(omega, student, Delta):
    """½ E[1 − sign f sign y] by integration over the first field, that of the labels; f is the others, or is zero."""
    scale, along = np.sqrt(omega[0, 0]), omega[0, 1:].sum() / np.sqrt(omega[0, 0] * omega[1:, 1:].sum())

    def mean(z):
        y = max(scale * z, 0.0)
        plus = ndtr(y / np.sqrt(Delta)) if Delta else 0.5 + 0.5 * np.sign(y)
        positive = ndtr(along * z / np.sqrt(1.0 - along**2))
        sign = positive if student == "relu" else 2.0 * positive - 1.0
        return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * (0.5 - (plus - 0.5) * sign)

    return quad(mean, -9.0, 9.0, points=[0.0], epsabs=1e-11, limit=200)[0]


@pytest.mark.slow
@pytest.mark.parametrize("dynamics", ["sgd_chain", "sgd"])
def test_labels_of_zero_without_noise_are_of_either_sign(dynamics):
    """M of a linear unit moves by (γ/d) E[λ* y] a step, of which inputs with relu(λ*) = 0 have no part."""
    names = {"activation": "linear", "teacher_activation": "relu", "labels": "sign", "loss": "correlation"}
    problem = Problem(gamma=0.5, p=1, k=1, d=20, Delta=0.0, m0=0.0, **names)
    ds = simulate(problem, dynamics, times=[20 * problem.step_time()], seeds=2000, observables=["overlap_M"])
    found = ds.overlap_M.values.ravel()
    assert abs(found.mean() - 0.5 / np.sqrt(2.0 * np.pi)) < 4.0 * found.std() / np.sqrt(2000)
