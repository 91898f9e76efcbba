"""Formulas of the teacher's fields: their meaning and spelling, what is refused, and their ridge functions."""

import contextlib
import dataclasses
import itertools
import math
import random

import numpy as np
import pytest
import xarray as xr

from sweeplib import Problem, simulate
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.language import Expression, schedule
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.errors import InputError
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.maths.formulas import exponents, formula, ridges
from sweeplib.networks.maths.formulas.exponents import coefficients, information_exponent, leap_exponent
from sweeplib.networks.maths.hermite import hermite_polynomials
from sweeplib.networks.problem import problem_expectations, target
from sweeplib.pictures.figures.kit.labels import target_label
from tests.in_process import InProcess

MEANINGS = {
    "lam1*lam2": lambda x, y, z: x * y,
    "lam1 + lam1*lam2 + he3(lam3)": lambda x, y, z: x + x * y + (z**3 - 3 * z) / math.sqrt(6),
    "lam1 - 2*(lam2 - lam3)**3/4": lambda x, y, z: x - (y - z) ** 3 / 2,
    "-lam1**2*lam2 + 2**0.5": lambda x, y, z: -(x**2) * y + math.sqrt(2),
    "square(lam1 + lam2)*lam3": lambda x, y, z: (x + y) ** 2 * z,
    "hermite(0.5, 0, 1)(lam3 - 1)": lambda x, y, z: 0.5 + ((z - 1) ** 2 - 1) / math.sqrt(2),
    "3*tanh(lam1 + 2*lam2) - relu(-lam3)": lambda x, y, z: 3 * np.tanh(x + 2 * y) - np.maximum(-z, 0),
    "he2(he2(lam1))": lambda x, y, z: hermite_polynomials(hermite_polynomials(x, 2)[2], 2)[2],
}
FIELDS = np.random.default_rng(1).normal(size=(3, 200))


@pytest.mark.rest
@pytest.mark.parametrize("text", MEANINGS)
def test_labels_are_the_formulas_values(text):
    k = target(text).k
    expected = MEANINGS[text](*FIELDS)
    np.testing.assert_allclose(labels(text, "erf", FIELDS[:k], np.ones(k)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", MEANINGS)
def test_ridge_functions_add_up_to_the_formula(text):
    """Values of each ridge function by its plain Python."""
    found = ridges(formula(text))
    k = formula(text).width
    for fields, expected in zip(FIELDS.T[:40], MEANINGS[text](*FIELDS)[:40], strict=True):
        total = sum(ridge.weight * ridge.function.value(np.dot(ridge.direction, fields[:k])) for ridge in found)
        assert total == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert all(math.hypot(*ridge.direction) == pytest.approx(1.0) for ridge in found)


@pytest.mark.parametrize("text", ["tanh(lam1*lam2)", "tanh(lam1)*lam2", "erf(lam1)**2", "he5(lam1)*lam2**4"])
def test_other_formulas_have_no_ridge_functions(text):
    assert ridges(formula(text)) is None


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("lam1 *  lam2", "lam1*lam2"),
        ("(lam1)*(2*lam2)", "2*lam1*lam2"),
        ("1 + lam1 + 2", "lam1 + 3"),
        ("lam2/4 - -lam1", "0.25*lam2 + lam1"),
        ("he3( lam1 )", "he3(lam1)"),
        ("hermite(0,1,.50)(lam1)", "hermite(0, 1, 0.5)(lam1)"),
        ("-(lam1 + lam2)", "-(lam1 + lam2)"),
        ("(lam1**2)**3", "(lam1**2)**3"),
        ("sqrt(4)*lam1 + max(1, 3)", "2*lam1 + 3"),
    ],
)
def test_it_has_one_spelling(text, spelling):
    """Texts of one meaning are one target, and the spelling is read as what it spells."""
    assert str(formula(text)) == spelling
    assert str(formula(spelling)) == spelling
    assert target(text) is target(spelling)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("lam1 +", ["not a formula", "got 'lam1 +'"]),
        ("lam1 + foo(lam2)", ["unknown activation at character 8", "got 'foo'"]),
        ("he33(lam1)", ["did you mean 'he3'?"]),
        ("lam0", ["unknown name: `lam0` at character 1", "lam1 to lam16"]),
        ("lam1 + x", ["unknown name: `x` at character 8"]),
        ("lam1/lam2", ["not a divisor: `lam2` at character 6"]),
        ("lam1/0", ["not a divisor: `0` at character 6"]),
        ("lam1**0.5", ["not an exponent: `0.5` at character 7", "from 0 to 12"]),
        ("lam1**lam2", ["not an exponent: `lam2`"]),
        ("lam1.real", ["not allowed in a formula: `lam1.real`"]),
        ("log(lam1)", ["not a number: `lam1` at character 5", "an activation"]),
        ("sqrt(-2)*lam1", ["not a finite number: `sqrt(-2)` at character 1"]),
        ("__import__('os')", ["unknown activation", "__import__"]),
        ("[lam1 for lam1 in (1,)]", ["not allowed in a formula"]),
        ("lam1 if lam2 else 1", ["not allowed in a formula"]),
        ("2 + 2", ["a constant is no target"]),
        ("lam1**2 - lam1**2", ["a constant is no target"]),
        ("(lam1 + 1)**2 - lam1**2 - 2*lam1", ["a constant is no target"]),
        ("1e999*lam1", ["not a finite number: `1e999` at character 1"]),
        ("lam2 + 0**-1*lam1", ["not a finite number: `0**-1` at character 8"]),
        ("lam1/1e-320", ["not a finite number: `lam1/1e-320`"]),
        ("1e200*(1e200*lam1)", ["not a finite number"]),
        ("1e308 + lam1 + 1e308", ["not a finite number"]),
        (f"lam1 + 1{'0' * 400}", ["not a finite number"]),
        ("(1e300*lam1)**2", ["not a target: too large"]),
        ("1-(" * 60 + "lam1" + ")" * 60, ["too deep", "at most 50 levels"]),
        ("lam1" + " + lam1" * 1000, ["formula too long"]),
        ("commitee", ["unknown target", "did you mean 'committee'?"]),
    ],
)
def test_what_is_no_formula_is_refused_with_its_position(text, parts):
    with pytest.raises(InputError) as refused:
        Problem(gamma=0.1, p=1, k=1, d=10, Delta=0, activation="erf", target=text)
    assert refused.value.key == "target"
    for part in parts:
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("student", "text", "expected"),
    [
        ("relu", "piecewise(1, 0, 2, 1)(lam1)", "target: kinks off zero have no drifts"),
        ("erf", "tanh(lam1*lam2*lam3*lam4*lam5*lam6*lam7)", "at most 6 fields in it"),
    ],
)
def test_targets_without_expectations_are_refused_before_a_run(student, text, expected):
    problem = Problem(gamma=0.1, p=2, k=target(text).k, d=20, Delta=0, activation=student, target=text)
    with pytest.raises(InputError, match=expected):
        simulate(problem, "ode", times=[1.0])


ATOMS = ("lam1", "lam2", "t", "0", "1", "2.5", "1e308", "1e-320", "1e999", "12", "13", "True", "1j", "'x'", "0x10", "x")
CALLS = (
    "erf",
    "he3",
    "he33",
    "relu",
    "hermite(1, 1e308)",
    "hermite()",
    "piecewise(0, 0, 1, 1)",
    "exp",
    "log",
    "min",
    "foo",
)
SIGNS = ("+", "-", "*", "/", "**", "//", "%", "@", "<", "if 1 else", "or", ",", ":=")


def random_text(rng, levels):
    """A text that resembles a formula."""
    kind = rng.random() if levels else 0.0
    if kind < 0.25:
        return rng.choice(ATOMS)
    if kind < 0.7:
        sign = rng.choice(SIGNS[:5] if rng.random() < 0.9 else SIGNS)
        return f"{random_text(rng, levels - 1)} {sign} {random_text(rng, levels - 1)}"
    if kind < 0.85:
        return f"{rng.choice(('-', '+', 'not ', '~'))}({random_text(rng, levels - 1)})"
    return f"{rng.choice(CALLS)}({random_text(rng, levels - 1)})"


@pytest.mark.rest
@pytest.mark.parametrize("read", [target, schedule, Expression])
def test_any_text_is_read_or_refused_by_an_input_error(read):
    """By the readers of targets, schedules and the expressions of a grid; what is read can be used and read again."""
    rng, read_ones = random.Random(7), 0
    for _ in range(2000):
        text = random_text(rng, rng.randrange(1, 5))
        if rng.random() < 0.3:
            place = rng.randrange(len(text))
            text = text[:place] + rng.choice("()[]{}+-*/.,'\"\n #:=@?;_eJ0\\") + text[place + 1 :]
        try:
            found = read(text)
        except InputError:
            continue
        read_ones += 1
        if read is target:
            assert target(found.name) is found
            found.exponents()
            assert ridges(formula(text)) != ()
        elif read is schedule:
            assert schedule(found.text) is found
            assert found.first_refused(0.0, 1.0) is None or found.first_refused(0.0, 1.0) >= 0.0
        else:
            with contextlib.suppress(InputError):
                found.evaluated({name: [0, 2.5, -3] for name in found.names}, 3)
    assert read_ones > 50


def test_deep_nesting_is_refused_not_a_crash():
    with pytest.raises(InputError):
        target("-(" * 240 + "lam1" + ")" * 10)


@pytest.mark.parametrize(
    ("text", "information", "leap"),
    [
        ("lam1 + lam1*lam2 + lam1*lam2*lam3", 1, 1),
        ("lam1*lam2", 2, 2),
        ("he3(lam1)", 3, 3),
        ("lam1 + he3(lam2)", 1, 3),
        ("lam1*lam2 + lam1*lam2*lam3", 2, 2),
        ("lam1 + lam1*lam2*lam3", 1, 2),
        ("lam1**2*lam2 + he2(lam1)", 1, 2),
        ("tanh(lam1)*he2(lam2) + relu(lam1)", 1, 2),
        ("he4(lam1) + 3", 4, 4),
        ("lam1*lam2*lam3*lam4", 4, 4),
        ("lam1 + lam2 + lam3 + lam4 + lam5", None, None),
        ("relu(lam1)*lam2 - 0.3989422804014327*lam2", 2, 2),
        ("relu(lam1)*lam2 - 0.39894228*lam2", 1, 1),
        ("relu(lam1 - 1)*lam2 - 0.08331547058768668*lam2", 2, 2),
        ("relu(lam1) + relu(-lam1)", 2, 2),
        ("relu(lam1) - relu(-lam1) - lam1 + he3(lam2)", 3, 3),
        ("relu(lam1 + lam2) - 0.5*lam1 - 0.5*lam2", 2, 2),
        ("relu(lam1*lam1 - 2)*lam2 - 0.2578082903703096*lam2", 3, 3),
        ("tanh(lam1) + 1e-9*lam2 - tanh(lam1)", 1, 1),
        ("erf(2)*lam1*lam2", 2, 2),
        ("tanh(lam1*lam2*lam3)", 3, 3),
    ],
)
def test_exponents_are_those_of_the_terms(text, information, leap):
    """By hand from the Hermite terms; λ1² λ2 = √2 h2(λ1) h1(λ2) + h1(λ2).

    E max(λ, 0) = 1/√(2π), E max(λ − 1, 0) = φ(1) − Φ(−1) and E max(λ² − 2, 0) = 2√2 φ(√2) − 2 Φ(−√2).
    """
    assert information_exponent(formula(text)) == information
    assert leap_exponent(formula(text)) == leap


@pytest.mark.rest
@pytest.mark.parametrize(
    "text", ["relu(lam1 + 2*lam2 - 1)", "relu(lam1 - lam2)*lam1**2", "tanh(lam1)*relu(lam2 + 0.5)"]
)
def test_coefficients_are_expectations_within_their_errors(text):
    """Against the midpoint rule with steps of 1/128, whose error at a kink is below 1e-4."""
    found = coefficients(formula(text))
    x = np.arange(-8, 8, 1 / 128) + 1 / 256
    one, other = np.meshgrid(x, x, indexing="ij")
    values = labels(text, "erf", np.array([one.ravel(), other.ravel()]), np.ones(2)).reshape(one.shape)
    basis = hermite_polynomials(x, 4) * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / 128
    expected = basis @ values @ basis.T
    for n, m in itertools.product(range(5), range(5)):
        assert found.values[n, m] == pytest.approx(expected[n, m], abs=1e-4 + found.errors[n, m])
        assert found.errors[n, m] < 1e-3


def test_exponents_that_errors_leave_open_are_unknown():
    """Coefficients of λ1 and λ2 that the quadrature does not tell from zero; and one too large for numbers."""
    kinked = "relu(lam1 + lam2)*tanh(lam1 - 1)"
    for digits, expected in (("0.226989*lam1 + 0.146246*lam2", None), ("0.22*lam1 + 0.14*lam2", 1)):
        found = formula(f"{kinked} - {digits}")
        assert (information_exponent(found), leap_exponent(found)) == (expected, expected)
    assert information_exponent(formula("((lam1**12)**12)**4 * tanh(lam1)")) is None


CONFIG = """
name: formulas
problem: {p: 2, k: 2, d: 20, Delta: 0, activation: square}
grid: {gamma: [0.01], target: [committee, "lam1 *lam2"]}
seeds: 2
times: [0, 0.1]
thresholds: [0.01]
dynamics: [sgd_chain, sgd]
"""


@pytest.mark.rest
def test_formulas_are_values_of_an_axis(tmp_path):
    """The dataset has their one spelling, and their exponents as coordinates; the committee has none.

    Its labels are those of a run that is not in a sweep.
    """
    path = tmp_path / "sweep.yaml"
    path.write_text(CONFIG)
    sweep = dataclasses.replace(load(path), cluster=InProcess())
    run_sweep(sweep, tmp_path, progress=False)
    ds = xr.open_zarr(finalise(sweep, tmp_path), chunks=None)
    assert ds.target.values.tolist() == ["committee", "lam1*lam2"]
    assert ds.target_information_exponent.dims == ("target",)
    np.testing.assert_array_equal(ds.target_information_exponent, [np.nan, 2.0])
    np.testing.assert_array_equal(ds.target_leap_exponent, [np.nan, 2.0])
    assert (ds.risk.isel(time=0).sel(dynamics="sgd") > 0.0).all()
    problem = Problem(p=2, k=2, d=20, Delta=0, activation="square", gamma=0.01)
    alone = simulate(problem, "sgd", times=[0.0, 0.1], seeds=2, thresholds=[0.01])
    for name in ("time", "seed", "threshold"):
        assert alone[name].attrs == ds[name].attrs
    for name in ("risk", "exit_steps", "end_time", "status"):
        assert alone[name].attrs.items() <= ds[name].attrs.items()


def test_a_wrong_formula_of_a_config_is_refused_with_its_place(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(CONFIG.replace("lam1 *lam2", "lam1*lam3"))
    with pytest.raises(InputError, match=r"sweep\.yaml:3: problem\.k: .*another teacher width.*got 2; expected 3"):
        load(path)
    path.write_text(CONFIG.replace("lam1 *lam2", "lam1*mal2"))
    with pytest.raises(InputError, match=r"sweep\.yaml:4: grid\.target\[1\]: unknown name: `mal2` at character 6"):
        load(path)


def test_labels_are_in_mathematics():
    """In titles and legends; names of other targets, and formulas of plugins that are not loaded, stay text."""
    assert target("2*lam1 - lam2**2*he3(lam1)").label == (
        r"2\,\lambda^*_{1} - (\lambda^*_{2})^{2}\,h_{3}(\lambda^*_{1})"
    )
    assert target_label("tanh(lam1)") == r"$\mathrm{tanh}(\lambda^*_{1})$"
    assert [target_label(name) for name in ("committee", "bent(lam1)")] == ["committee", "bent(lam1)"]


@pytest.mark.rest
def test_a_field_beside_a_much_longer_one_keeps_its_nodes() -> None:
    problem = Problem(gamma=0.1, p=1, k=2, d=50, Delta=0, activation="tanh", target="relu(lam1)*lam2")
    P = np.diag([1e12, 1.0])[None]
    [risk] = problem_expectations(problem).risks(
        np.ones((1, 1, 1)), np.zeros((1, 1, 2)), P, np.zeros((1, 1)), np.ones((1, 2))
    )
    assert risk == pytest.approx(2.5e11, rel=1e-6)  # ½ E[relu(λ*_1)²] E[λ*_2²]


@pytest.mark.parametrize(
    ("open_terms", "leap"),
    [([], 1), ([(0, 1)], 1), ([(1, 1), (2, 1)], 1), ([(0, 3)], None), ([(0, 3), (1, 1)], None)],
)
def test_terms_that_may_be_zero_leave_the_leap_open_only_if_it_depends_on_them(open_terms, leap, monkeypatch):
    """With λ1 sure: λ2³ alone is a leap of 3, and of 1 beside λ1 λ2, so that none and all of them agree."""
    sure = frozenset({(1, 0)})
    monkeypatch.setattr(exponents, "terms", lambda _: (sure, sure.union(open_terms)))
    assert leap_exponent(formula("lam1")) == leap


def test_a_way_that_may_exist_leaves_the_leap_open(monkeypatch):
    """λ2³ is sure: by λ1 λ2 it is reached in steps of 1, whatever else there is."""
    sure = frozenset({(1, 0), (0, 3)})
    monkeypatch.setattr(exponents, "terms", lambda _: (sure, sure | {(1, 1)}))
    assert leap_exponent(formula("lam1")) is None


def test_a_constant_has_no_exponents():
    constant = formula("3")
    assert information_exponent(constant) is None and leap_exponent(constant) is None
