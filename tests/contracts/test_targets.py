"""What every registered target keeps: its labels are those of its expectations, by Monte Carlo of both.

Of 4·10⁵ samples at fixed seeds, |z| < 5 for each of some 20 entries: beyond by chance with 10⁻⁵ for a fresh seed.
Risks are those of another rule, Gauss and Legendre's in panels, of functions of NumPy and SciPy, within their error.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from scipy.interpolate import make_interp_spline

from sweeplib import Problem, simulate
from sweeplib.contracts import targets as contract
from sweeplib.contracts.check import checks_of
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.maths.activations import ACTIVATIONS
from sweeplib.networks.maths.expectations import FAMILIES
from sweeplib.networks.maths.expectations.given_teacher import of_labels
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import call_by_address, over_arrays
from sweeplib.networks.problem import TARGETS, problem_expectations, target
from tests.plugged import nothing_left
from tests.tiers import slow_but

MEAN = Path(__file__).parents[1] / "workflow" / "own" / "mean_target.py"
FORMULAS = {
    "lam1*lam2": "square",
    "lam1 + lam1*lam2 + he3(lam3)": "erf",
    "0.5*erf(lam1) - 3*tanh(lam1 + lam2) + 1": "relu",
    "relu(2*lam2 + 0.5)": "erf",
}
"""Formulas and an activation of a student: closed forms, and quadrature of ridge functions."""
OTHERS = [
    "lam1 + lam1*lam2 + lam1*lam2*lam3",
    "lam3**2 + 1",
    "relu(lam1) - relu(-lam2)",
    "he4(lam1)",
]
LONG = [(name, student) for name in (*FORMULAS, *OTHERS) for student in ("erf", "square", "he3", "relu", "tanh")]
SMOOTH = ["erf(lam1)*lam2", "tanh(lam1*lam2)", "he5(lam1)*lam2**4/50"]
"""Formulas that are no sums of ridge functions: quadrature given the teacher's fields."""
LONG += [(name, student) for name in SMOOTH for student in ("erf", "square", "he3", "tanh")]
CASES = [(name, "square") for name in (*TARGETS, "mean")] + list(FORMULAS.items())
CASES += [pytest.param(*case, marks=pytest.mark.long) for case in LONG if case not in CASES]
SAMPLES = 400_000
A, DELTA = np.array([1.0, -0.7]), 0.3


@pytest.fixture(scope="module", autouse=True)
def plugin():
    with nothing_left():
        load_plugins([str(MEAN)])
        yield


def made(name, activation):
    """A problem of two students that has the target."""
    return Problem(gamma=0.1, p=2, k=target(name).k or 2, d=20, Delta=DELTA, activation=activation, target=name)


def overlaps(k):
    """Ω, Q, M and P of fields none of which is independent of another, nor of variance one."""
    scales = np.array([1.0, 0.9, 1.2, 0.8, 1.1])[: 2 + k, None]
    factor = np.random.default_rng(3).normal(size=(2 + k, 6)) * scales / math.sqrt(6)
    omega = factor @ factor.T
    return omega, *(np.ascontiguousarray(part) for part in (omega[:2, :2], omega[:2, 2:], omega[2:, 2:]))


def values(function, fields):
    out = np.empty(fields.size)
    call_by_address(over_arrays(function), np.ascontiguousarray(fields).ravel(), out)
    return out.reshape(fields.shape)


def samples(problem):
    """The risk, Ψ^M, Ψ^GF, Ψ^Var and Ψ^a of each sample, flat (entries, samples), label noise averaged."""
    omega, *_ = overlaps(problem.k)
    fields = np.linalg.cholesky(omega) @ np.random.default_rng(8).normal(size=(2 + problem.k, SAMPLES))
    lam, lam_star = fields[:2], fields[2:]
    activation = ACTIVATIONS[problem.activation]
    value, slope = values(activation.value, lam), values(activation.derivative, lam)
    error = labels(problem.target, problem.teacher, lam_star, np.ones(problem.k)) - A @ value / 2
    pull = A[:, None] * slope * error
    flow = pull[:, None] * lam
    square = (A[:, None] * slope)[:, None] * (A[:, None] * slope) * (error**2 + DELTA)
    parts = 0.5 * error**2, pull[:, None] * lam_star, flow + flow.swapaxes(0, 1), square, value * error
    return np.concatenate([part.reshape(-1, SAMPLES) for part in parts])


def expected(problem):
    """The same by the expectations."""
    _, Q, M, P = overlaps(problem.k)
    found, ones = problem_expectations(problem), np.ones(problem.k)
    risk = found.risks(*(part[None] for part in (Q, M, P, A, ones)))
    drifts = found.drifts_of(System(Q, M, P, A, ones, DELTA, 1.0))
    return np.concatenate([risk, *(part.ravel() for part in drifts)]), drifts


@pytest.mark.parametrize(("name", "activation"), CASES)
def test_expectations_are_the_means_of_its_labels(name, activation):
    problem = made(name, activation)
    taken, (found, _) = samples(problem), expected(problem)
    z = (taken.mean(axis=1) - found) / (taken.std(axis=1) / math.sqrt(SAMPLES))
    assert np.abs(z).max() < 5.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "activation"), CASES)
def test_drifts_of_many_systems_are_those_of_one(name, activation):
    problem = made(name, activation)
    _, Q, M, P = overlaps(problem.k)
    _, drifts = expected(problem)
    lanes = [np.repeat(part[..., None], 2, axis=-1) for part in (Q, M, P, A, np.ones(problem.k), np.full((), DELTA))]
    rules = problem_expectations(problem)
    for rule in rules, replace(rules, in_lanes=None):
        out = rule.drifts_of_many(System(*lanes, np.ones(2)))
        for one, many in zip(drifts, out, strict=True):
            np.testing.assert_allclose(many, one[..., None] * np.ones(2), rtol=1e-10, atol=1e-12)


def panels(knots, width=0.25):
    """Nodes and weights of E[f(g)], g ~ N(0, 1), between the knots."""
    x, weight = np.polynomial.legendre.leggauss(16)
    ends = np.unique(np.clip([*np.arange(-9.0, 9.1, width), *knots], -9.0, 9.0))
    nodes = (ends[:-1, None] + np.diff(ends)[:, None] * 0.5 * (1.0 + x)).ravel()
    shares = (np.diff(ends)[:, None] * 0.5 * weight).ravel()
    return nodes, shares * np.exp(-0.5 * nodes * nodes) / math.sqrt(2.0 * math.pi)


FUNCTIONS = {
    "tanh": np.tanh,
    "erf": lambda x: special.erf(x / math.sqrt(2.0)),
    "sigmoid": special.expit,
    "relu": lambda x: np.maximum(x, 0.0),
    "square": lambda x: x * x,
    "he3": lambda x: (x**3 - 3.0 * x) / math.sqrt(6.0),
    "step": lambda x: np.interp(x, [0.3, 0.301], [0.0, 1.0]),
}
STEP = "piecewise(0.3, 0, 0.301, 1)"


def risk_in_panels(name, knots, student, Q, M, P, a):
    """The risk of a formula whose kinks are at the knots of each field; of students with smoothed or smooth values.

    λ* = L z in panels that end at the knots, given which λ_i has the mean A_i z and the variance C_ii.
    """
    k, p, value = len(P), len(Q), FUNCTIONS[student]
    L = np.linalg.cholesky(P)
    A = np.linalg.solve(L, M.T).T
    scales = np.sqrt(np.diag(Q - A @ A.T))
    u, share = panels([])

    def smoothed(mean, scale):
        if student == "relu":
            return mean * special.ndtr(mean / scale) + scale * np.exp(-0.5 * (mean / scale) ** 2) / math.sqrt(math.tau)
        return np.array([share @ value(part + scale * u) for part in mean.ravel()]).reshape(mean.shape)

    tables = []
    for row, scale in zip(A, scales, strict=True):
        places = np.linspace(-1.0, 1.0, 1201) * (9.0 * np.abs(row).sum() + 0.1)
        tables.append(make_interp_spline(places, smoothed(places, scale), k=7))
    text = compile(name.replace(STEP, "step"), "formula", "eval")

    def sums(z, weight):
        """E f*² and E[f* σ_i] over the axes that are left."""
        s = len(z)
        before = L[: s + 1, :s] @ z
        values = [knot(*before[:s]) if callable(knot) else knot for knot in knots[s]]
        places = [(knot - before[s]) / L[s, s] for knot in values]
        x, shares = panels(places, 0.25 if k < 3 else 1.0)
        if s == k - 1:
            nodes = np.array([*(np.full(len(x), at) for at in z), x])
            fields = {f"lam{r + 1}": field for r, field in enumerate(L @ nodes)}
            labels = eval(text, {**FUNCTIONS, **fields}) * np.ones(len(x))
            weighed = weight * shares * labels
            return np.array(
                [weighed @ labels, *(weighed @ table(row @ nodes) for table, row in zip(tables, A, strict=True))]
            )
        return sum(sums([*z, at], weight * part) for at, part in zip(x, shares, strict=True) if weight * part > 1e-13)

    square, *products = sums([], 1.0)
    own = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            along = Q[i, j] / math.sqrt(Q[i, i])
            across = math.sqrt(max(Q[j, j] - along**2, 0.0))
            other = value(along * u) if i == j else smoothed(along * u, across)
            own[i, j] = share @ (value(math.sqrt(Q[i, i]) * u) * other)
    return 0.5 * square - a @ np.array(products) / p + 0.5 * a @ own @ a / p**2


STEEP = {
    "tanh(2*lam1)**2 + 0.2*lam1": [()],
    "tanh(10*lam1)**2 + tanh(lam1 - 1)": [()],
    "relu(lam1 - 2)": [(2.0,)],
    "tanh(20*lam1 - 10)": [()],
    "erf(6*lam1 - 2)": [()],
    "tanh(lam1**2 - 1) + 0.2*lam1": [()],
    "relu(2*lam1 + 1) - relu(lam1 - 1)": [(-0.5, 1.0)],
    "tanh(3*lam1 - 1) + relu(lam2)": [(), (0.0,)],
    f"{STEP}(lam1) + 0.2*lam2": [(0.3, 0.301), ()],
    "tanh(5*lam1)*lam2 + 0.5": [(), ()],
    "tanh(lam1 + lam2**3 - 3*lam2 + 0.5)": [(), ()],
    "relu(lam1)*lam2 - 0.3989422804014327*lam2 + 0.1*lam1": [(0.0,), ()],
    "relu(lam1 - 2)*lam2 + lam1": [(2.0,), ()],
    "sigmoid(3*lam1)*erf(lam2 - 0.5)": [(), ()],
    "relu(lam1)*relu(lam2 - 0.3)": [(0.0,), (0.3,)],
    f"{STEP}(lam1)*tanh(lam2)": [(0.3, 0.301), ()],
    "erf(lam1*lam2) + 0.2*lam2": [(), ()],
    "tanh(lam1)*tanh(2*lam2 - 0.4)": [(), ()],
    "he3(lam1)*tanh(lam2)/3 + lam1": [(), ()],
    "tanh(lam1 + 0.5)*lam2**2/2": [(), ()],
    "sigmoid(8*lam1)*lam2**2": [(), ()],
    "tanh(4*lam1 - 2)*tanh(lam2 + 0.3)": [(), ()],
    "relu(tanh(lam1) - 0.2)": [(math.atanh(0.2),)],
    "relu(lam1 + lam2)*tanh(lam1)": [(), (lambda lam1: -lam1,)],
    "relu(lam1*lam2 - 0.3)": [(), (lambda lam1: 0.3 / lam1,)],
    "tanh(lam1)*tanh(lam2)*tanh(lam3) + 0.3*lam1": [(), (), ()],
    "erf(3*lam1 + 1)*erf(2*lam2 - 1)*tanh(lam3)": [(), (), ()],
    "sigmoid(lam1*lam2*lam3) + lam1": [(), (), ()],
    "tanh(lam1 + lam2 + lam3 - 0.5)*lam1": [(), (), ()],
    "relu(lam1 - 0.5)*relu(lam2 + 0.5)*tanh(lam3)": [(0.5,), (-0.5,), ()],
}
"""Formulas, smooth, steep, with kinks and nearly jumps, most neither odd nor even, and the knots of each field, some of
which depend on the fields before.
"""
BY_PANELS = [(name, student) for name in STEEP for student in ("erf", "tanh", "relu", "square")]


@pytest.mark.parametrize(("name", "student"), slow_but(BY_PANELS, ("relu(lam1 - 2)", "relu")))
def test_risks_are_those_of_another_rule_within_their_error(name, student):
    """Below 10⁻⁸ or the stated error, which is at most ten times as large as the true one where this counts."""
    k = len(STEEP[name])
    found = target(name).expectations(student, "erf")
    Q, P = np.array([[1.1, 0.3], [0.3, 0.8]]), (0.8 * np.eye(3) + 0.2)[:k, :k]
    M = np.array([[0.4, 0.2, 0.1], [-0.1, 0.5, 0.2]])[:, :k]
    for a in (np.zeros(2), np.array([1.0, -0.7])):
        system = Q[None], M[None], P[None], a[None], np.ones((1, k))
        risks, true = found.risks(*system), risk_in_panels(name, STEEP[name], student, Q, M, P, a)
        stated, error = found.risk_errors(risks, *system)[0], abs(risks[0] - true)
        assert error <= max(stated, 1e-8)
        assert error <= 1e-7 or stated <= 10.0 * error


@pytest.mark.slow  # the rule for kinks is a kernel of its own
@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("tanh(lam1 + lam2**2 - 1 + 0.5*lam1*lam2)", "piecewise(-0.5, -0.4, 1, 1.2)"),
        ("tanh(lam1 + lam2**3 - 3*lam2 + 0.5)", "relu"),
    ],
)
@pytest.mark.parametrize("width", [0.5, 0.02, 1e-3, 1e-6, 0.0])
def test_bends_of_any_width_are_resolved(name, student, width):
    """Of students that are nearly functions of the teacher's fields, which bend within the width."""
    M, P = np.array([[0.6, 0.3], [-0.2, 0.7]]), np.array([[1.0, 0.2], [0.2, 1.0]])
    Q = M @ np.linalg.solve(P, M.T) + width**2 * np.array([[1.0, 0.2], [0.2, 0.8]])
    found, ones = target(name).expectations(student, "erf"), np.ones(2)
    systems = Q[None], M[None], P[None], np.array([[1.0, -0.7]]), ones[None]
    risks = found.risks(*systems)
    assert risks[0] == pytest.approx(risk_given_fields(name, student, Q, M, P), abs=1e-9)
    assert found.risk_errors(risks, *systems)[0] < 1e-9


def risk_given_fields(name, student, Q, M, P):
    """The risk for a = (1, -.7), by panels of each student's field that end at its kinks, and λ* given that field."""
    knots = [0.0] if student == "relu" else [-0.5, 1.0]
    value = FUNCTIONS["relu"] if student == "relu" else (lambda x: np.interp(x, knots, [-0.4, 1.2]))
    text, x = compile(name, "formula", "eval"), 0.1 * np.arange(-85, 86)
    share = 0.1 * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    weight = np.outer(share, share).ravel()

    def labels(mean, cov):
        fields = mean[:, :, None] + (
            np.linalg.cholesky(cov) @ np.array(np.meshgrid(x, x, indexing="ij")).reshape(2, -1)
        )
        return eval(text, {**FUNCTIONS, "lam1": fields[:, 0], "lam2": fields[:, 1]})

    risk = 0.5 * weight @ labels(np.zeros((1, 2)), P)[0] ** 2
    a = np.array([1.0, -0.7])
    for i in range(2):
        s = math.sqrt(Q[i, i])
        z, shares = panels([knot / s for knot in knots])
        rest = P - np.outer(M[i], M[i]) / Q[i, i]
        risk -= 0.5 * a[i] * (shares * value(s * z)) @ (labels(z[:, None] * M[i] / s, rest) @ weight)
        for j in range(2):
            across = math.sqrt(max(Q[j, j] - Q[i, j] ** 2 / Q[i, i], 0.0))
            means = [inner_mean(value, knots, Q[i, j] / s * at, across) for at in z] if i != j else value(s * z)
            risk += 0.125 * a[i] * a[j] * (shares * value(s * z)) @ means
    return risk


def inner_mean(value, knots, mean, across):
    """E[σ(mean + across·v)]."""
    v, share = panels([(knot - mean) / across for knot in knots])
    return share @ value(mean + across * v)


@pytest.mark.slow  # the drifts of students with kinks are a kernel of their own
def test_drifts_of_kinks_and_a_formula_are_those_of_polar_coordinates():
    """relu units: Monte Carlo of 4·10⁷ samples, and a rule that has the kinks as limits of integration."""
    Q, M, P = (
        np.array(part) for part in ([[1.1, 0.3], [0.3, 0.8]], [[0.4, 0.2], [-0.1, 0.5]], [[1.0, 0.2], [0.2, 1.0]])
    )
    rules, a, ones = (
        target("tanh(lam1 + lam2**3 - 3*lam2 + 0.5)").expectations("relu", "erf"),
        np.array([1.0, -0.7]),
        np.ones(2),
    )
    drifts = rules.drifts_of(System(Q, M, P, a, ones, 0.1, 1.0))
    np.testing.assert_allclose(drifts.M, [[0.09586599, -0.08472108], [-0.06567465, 0.05332783]], atol=6e-9)
    half = np.array([[-0.06862951, -0.04874489], [0.04479371, 0.00700406]])
    np.testing.assert_allclose(drifts.GF, half + half.T, atol=1.1e-8)
    np.testing.assert_allclose(drifts.Var, [[0.32452457, -0.14561158], [-0.14561158, 0.1659958]], atol=6e-9)
    assert rules.drift_errors(*(part[None] for part in (Q, M, P, a, ones)), np.array([0.1]))[0] < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize(("width", "expected"), [(0.02, 0.13757111), (0.001, 0.13750576), (0.0, 0.13750560)], ids=str)
def test_drifts_of_nearly_sharp_bends_are_exact(width, expected):
    """E[σ'_1 σ'_2 f*²], from small second layers, whose terms with f are taken off."""
    M = np.array([[0.6, 0.3], [-0.2, 0.7]])
    Q = M @ M.T + width**2 * np.array([[1.0, 0.2], [0.2, 0.8]])
    rules, ones = target("tanh(lam1 + lam2**2 - 1 + 0.5*lam1*lam2)").expectations("relu", "erf"), np.ones(2)
    found = rules.drifts_of(System(Q, M, np.eye(2), 1e-9 * ones, ones, 0.0, 1.0)).Var[0, 1] / 1e-18
    error = rules.drift_errors(*(part[None] for part in (Q, M, np.eye(2), ones, ones)), np.zeros(1))[0]
    assert abs(found - expected) < 6e-9
    assert error < 1e-9


@pytest.mark.rest  # two formulas to compile
def test_the_error_of_drifts_by_few_nodes_is_stated():
    """Of four fields, of which the fourth counts for nothing: without it there are as many nodes as it takes."""
    steep, M = "erf(4*lam1)*lam2", np.array([[0.6, 0.5, 0.0, 0.0]])
    found = {}
    for k, name in ((2, steep), (4, f"{steep} + 1e-9*lam4")):
        rules, one = target(name).expectations("erf", "erf"), np.ones((1, 1))
        system = System(one, M[:, :k].copy(), np.eye(k), one[0], np.ones(k), 0.0, 1.0)
        stated = rules.drift_errors(*(np.asarray(part)[None] for part in system[:6]))[0]
        drifts = rules.drifts_of(system)
        found[k] = np.concatenate([part.ravel() for part in (drifts.M[:, :2], drifts.GF, drifts.Var, drifts.a)]), stated
    (right, _), (few, stated) = found[2], found[4]
    assert 0.1 < np.abs(few - right).max() / np.abs(right).max() < stated < 0.5


@pytest.mark.slow  # the rule by quadrature, and that of a kink with a smooth rest, are kernels of their own
def test_drifts_of_a_kink_with_a_smooth_rest_given_the_teacher_are_those_of_quadrature():
    bent, teacher = (
        replace(ACTIVATIONS["relu"], name="bent", value=bent_value, derivative=bent_slope, hinges=None),
        "erf",
    )
    given = of_labels("bent|erf", bent, target("erf(lam1)").labels(teacher), [()])
    other = FAMILIES["quadrature"].pair_expectations(bent, ACTIVATIONS[teacher])
    factor = np.random.default_rng(2).normal(size=(3, 5)) / math.sqrt(5)
    omega = factor @ factor.T
    system = System(*map(np.ascontiguousarray, (omega[:2, :2], omega[:2, 2:], omega[2:, 2:])), A, np.ones(1), 0.1, 1.0)
    drifts = zip(given.drifts_of(system), other.drifts_of(system), strict=True)
    assert max(np.abs(one - other).max() for one, other in drifts) < 1e-6


def bent_value(x):
    return (0.0 if x < 0.0 else x) + 0.3 * math.tanh(x)


def bent_slope(x):
    return (1.0 if x > 0.0 else 0.0) + 0.3 * (1.0 - math.tanh(x) ** 2)


@pytest.mark.slow  # two kernels a student
@pytest.mark.parametrize("student", ["relu", "tanh"])
@pytest.mark.parametrize("k", [1, 2])
def test_drifts_of_three_students_given_the_teacher_are_those_of_ridge_functions(student, k):
    """Terms of three students at once: a target that is a sum of ridge functions, whose drifts have another rule."""
    name = "0.5*erf(lam1) + lam1 + 0.3" if k == 1 else "0.5*erf(lam1 - 0.4*lam2) + lam2 + 0.3"
    given = of_labels(name, ACTIVATIONS[student], target(name).labels("erf"), [()] * k)
    factor = np.random.default_rng(k).normal(size=(3 + k, 5)) / math.sqrt(5)
    omega, a, ones = factor @ factor.T, np.array([1.0, -0.7, 1.3]), np.ones(k)
    system = System(*map(np.ascontiguousarray, (omega[:3, :3], omega[:3, 3:], omega[3:, 3:])), a, ones, 0.1, 1.0)
    rules = given, given.finer, target(name).expectations(student, "erf")
    usual, finer, ridges = (np.concatenate([part.ravel() for part in rule.drifts_of(system)]) for rule in rules)
    stated = given.drift_errors(*(np.asarray(part)[None] for part in system[:6]))[0]
    assert np.abs(usual - ridges).max() < max(1e-8, 3.0 * stated * np.abs(ridges).max())
    assert np.abs(finer - ridges).max() < 1e-8


@pytest.fixture(scope="module")
def weights():
    """W, W* at d = 50, and the fields of 4·10⁶ inputs."""
    rng = np.random.default_rng(50)
    W, W_star = rng.normal(size=(2, 50)), rng.normal(size=(3, 50)) + 0.4
    both = np.concatenate([W, W_star]) / math.sqrt(50.0)
    return W, W_star, np.concatenate([both @ rng.standard_normal((50, 100_000)) for _ in range(40)], axis=1)


@pytest.mark.long
@pytest.mark.parametrize(("name", "student"), BY_PANELS)
def test_the_risk_of_sgd_is_a_mean_over_inputs(weights, name, student):
    """|z| < 4 in both risks of a pair, beyond by chance once in 8000."""
    W, W_star, fields = weights
    k = len(STEEP[name])
    problem = Problem(gamma=0.1, p=2, k=k, d=50, Delta=0.0, activation=student, target=name)
    named = {f"lam{row + 1}": field for row, field in enumerate(fields[2:])}
    labels = eval(name.replace(STEP, "step"), {**FUNCTIONS, **named})
    for a in (0.0, 1.0):
        run = simulate(replace(problem, a=a), "sgd", times=[0.0], initial=(W, W_star[:k]), observables=["risk"])
        losses = 0.5 * (labels - 0.5 * a * FUNCTIONS[student](fields[:2]).sum(axis=0)) ** 2
        z = (losses.mean() - run.risk.item()) / (losses.std() / math.sqrt(losses.size))
        assert abs(z) < 4.0
        assert run.risk_error.item() < 3e-3 * run.risk.item()


@pytest.mark.slow  # drifts of such formulas are a kernel of their own
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tanh(lam1)*tanh(lam2)*tanh(lam3)", 0.5 * (panels([])[1] @ np.tanh(panels([])[0]) ** 2) ** 3),
        ("tanh(5*lam1)*lam2", 0.5 * panels([])[1] @ np.tanh(5.0 * panels([])[0]) ** 2),
        ("tanh(10*lam1)**2", 0.5 * panels([])[1] @ np.tanh(10.0 * panels([])[0]) ** 4),
    ],
)
def test_every_dynamics_records_the_risk_of_a_formula_and_its_error(name, expected):
    """At a = 0 and orthonormal teachers it is ½ E f*², one integral."""
    given = {"activation": "tanh", "target": name, "k": target(name).k, "a": 0.0, "gamma": 0.1, "p": 1, "d": 60}
    problem = Problem(**given, Delta=0.0, start="sphere", batch_size=1)
    for dynamics in ("sgd", "sgd_chain", "ode", "overlap_map"):
        run = simulate(problem, dynamics, times=[0.0], observables=["risk"])
        assert abs(run.risk.item() - expected) < min(max(run.risk_error.item(), 1e-8), 1e-6)


@pytest.mark.parametrize("check", checks_of(contract))
@pytest.mark.parametrize("name", [*TARGETS, "mean"])
def test_target(name, check):
    check(name)


def test_it_is_labelled():
    for name in (*TARGETS, *FORMULAS):
        assert target(name).name == name
        assert target(name).label


@pytest.mark.parametrize(
    ("name", "power"), slow_but([("tanh(20*lam1)", 0), ("tanh(20*lam1)*lam1", 1)], ("tanh(20*lam1)", 0))
)
def test_slopes_beyond_the_most_nodes_are_told_by_the_error(name, power):
    """½ E f*² at P = 30: finer rules that end at as many nodes as the usual one would agree with it."""
    problem = Problem(gamma=0.1, p=1, k=1, d=20, Delta=0.0, activation="erf", target=name)
    rules = problem_expectations(problem)
    x, weight = panels([sign * 10.0**n for n in np.arange(-4.0, -0.5, 0.1) for sign in (-1.0, 1.0)])
    field = math.sqrt(30.0) * x
    true = 0.5 * weight @ (np.tanh(20.0 * field) * field**power) ** 2
    systems = [np.array(part, dtype=float) for part in ([[[1.0]]], [[[0.0]]], [[[30.0]]], [[0.0]], [[1.0]])]
    found = rules.risks(*systems)
    assert abs(found[0] - true) <= max(rules.risk_errors(found, *systems)[0], 1e-10)


@pytest.mark.parametrize("P", [0.9, 1.0, 1.1])
def test_small_errors_of_smooth_functions_are_as_large_as_stated(P):
    """½ E tanh(20 λ*)², which very short equal steps have to rounding."""
    found = problem_expectations(
        Problem(gamma=0.1, p=1, k=1, d=20, Delta=0.0, activation="erf", target="tanh(20*lam1)")
    )
    systems = [np.array(part, dtype=float) for part in ([[[1.0]]], [[[0.0]]], [[[P]]], [[0.0]], [[1.0]])]
    x = np.linspace(-9.0, 9.0, 72001)
    density, risks = np.exp(-0.5 * x * x), found.risks(*systems)
    error = abs(risks[0] - 0.5 * density @ np.tanh(20.0 * math.sqrt(P) * x) ** 2 / density.sum())
    assert 3e-11 < error <= found.risk_errors(risks, *systems)[0] <= 10.0 * error < 1e-8
