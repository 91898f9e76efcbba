"""Piecewise linear activations: their values, their expectations by independent quadrature, and what they refuse."""

import math

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import lipschitz
from sweeplib.networks.maths.expectations import expectations, hinges, plane, relu
from sweeplib.networks.problem import problem_expectations
from tests.plain import plain
from tests.tiers import slow_but

RAMP, DIP = "piecewise(0.5, -2.5, 1.5, 7.5)", "piecewise(0, -2.5, 0.5, -4, 1.5, 7.5)"
KNOTS = {RAMP: (0.5, 1.5), DIP: (0.0, 0.5, 1.5), "relu": (0.0,)}
GOOD = {"gamma": 0.1, "p": 2, "k": 1, "d": 30, "Delta": 0.0}


def interpolated(name, z):
    """Return the activation by NumPy's interpolation."""
    if name == "relu":
        return np.maximum(z, 0.0)
    numbers = [float(part) for part in name.partition("(")[2].removesuffix(")").split(",")]
    return np.interp(z, numbers[::2], numbers[1::2])


@pytest.mark.parametrize("name", [RAMP, DIP])
def test_it_is_linear_between_its_knots_and_constant_outside(name):
    form, z = activation(name), np.linspace(-3.0, 3.0, 121)
    np.testing.assert_allclose([form.value(at) for at in z.tolist()], interpolated(name, z), rtol=0, atol=1e-14)
    assert math.isnan(form.value(math.nan))
    for knot in KNOTS[name]:
        assert form.derivative(knot) == pytest.approx(float(interpolated(name, knot + 0.1) - form.value(knot)) * 10)
    assert lipschitz(form) == pytest.approx(max(abs(form.derivative(at)) for at in z.tolist()))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("piecewise(1)", "expected 2 to 32 knots, each with its value: piecewise(x1, y1, x2, y2, ...)"),
        ("piecewise(0, 1, 2)", "expected 2 to 32 knots"),
        ("piecewise(0, 1, 0, 2)", "expected ascending knots"),
        ("piecewise(0, 1, 2, 1)", "expected values that differ"),
        ("piecewise(0, 1, 1e-320, 1e300)", "finite slopes"),
        ("piecewise(0, one)", "expected piecewise(x1, y1, x2, y2, ...) with finite numbers"),
        ("piecwise(0, 0, 1, 1)", "unknown activation"),
    ],
)
def test_numbers_that_make_none_are_refused_in_one_line(name, told):
    with pytest.raises(InputError) as caught:
        Problem(**GOOD, activation=name)
    assert str(caught.value).startswith("activation: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def product_mean(student, teacher, s, t, rho):
    """E[σ σ*] of fields of deviations s, t: panels over λ, and within each the mean of σ* given λ, over panels too.

    Panels end at the knots, and at distances from them in units of the deviation given the other field.
    """
    across, scaled = math.sqrt(max(1.0 - rho * rho, 0.0)), 40.0
    nodes, weights = np.polynomial.legendre.leggauss(24)

    def panels(ends):
        lengths = np.diff(np.unique(np.clip(ends, -12.0, 12.0)))[:, None]
        starts = np.unique(np.clip(ends, -12.0, 12.0))[:-1, None]
        x = (starts + 0.5 * lengths * (1.0 + nodes)).ravel()
        return x, (0.5 * lengths * weights).ravel() * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)

    near = [knot / (t * rho) + n * across / abs(rho) for knot in KNOTS[teacher] for n in range(-8, 9)] if rho else []
    u, share = panels([*range(-12, 13), *(knot / s for knot in KNOTS[student]), *near])
    total = 0.0
    for at, weight in zip(u, share, strict=True):
        knots = [(knot / t - rho * at) / across for knot in KNOTS[teacher]] if across > 1.0 / scaled**4 else []
        v, inner = panels([*range(-12, 13), *knots])
        total += weight * interpolated(student, s * at) * inner @ interpolated(teacher, t * (rho * at + across * v))
    return total


@pytest.mark.rest
@pytest.mark.parametrize("rho", slow_but([0.0, 0.1, -0.299, 0.31, 0.76, -0.95, 0.9999, 1.0, -1.0], 0.31, 0.9999, -1.0))
@pytest.mark.parametrize(
    "pair", [(DIP, RAMP), *(pytest.param(pair, marks=pytest.mark.slow) for pair in ((RAMP, "relu"), (RAMP, RAMP)))]
)
def test_means_of_products_are_those_of_another_quadrature(pair, rho):
    """By polarisation of the risk, R(a, a*) = ½ E[(a* σ* − a σ)²]."""
    for s, t in ((0.8, 0.8), (0.1, 1.2), (3.0, 0.5)):
        blocks = [np.array([[[value]]]) for value in (s * s, rho * s * t, t * t)]
        layers = np.array([[1.0], [0.0]])

        def risk(i, j, blocks=blocks, layers=layers):
            return expectations(*pair).risks(*blocks, layers[[i]], layers[[j]])[0]

        expected = product_mean(*pair, s, t, rho)
        assert risk(0, 1) + risk(1, 0) - risk(0, 0) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_the_hinge_of_relu_has_the_closed_form_of_relu():
    """Through the rule for piecewise linear functions, with a second knot that has no jump."""
    rng = np.random.default_rng(2)
    factor = rng.normal(size=(5, 6)) / 2.0
    omega, found = factor @ factor.T, np.empty((5, 5))
    plain(hinges.products)(np.tile([0.0, 0.0, 1.0, 0.7, 0.0], (5, 1)), omega, found)
    a, a_star, out = rng.normal(size=(3, 1)), rng.normal(size=(2, 1)), np.empty(1)
    arguments = (np.ascontiguousarray(part[:, :, None]) for part in (omega[:3, :3], omega[:3, 3:], omega[3:, 3:]))
    plain(relu.risk)(expectations("relu").pair, *arguments, a, a_star, out)
    weight = np.concatenate([-a[:, 0] / 3, a_star[:, 0] / 2])
    assert out[0] == pytest.approx(0.5 * weight @ found @ weight, rel=1e-12)


def test_units_without_weights_and_diverged_ones():
    of_pair = expectations(RAMP)
    M, P, layers = np.zeros((1, 1, 1)), np.ones((1, 1, 1)), (np.ones((1, 1)), np.zeros((1, 1)))
    assert of_pair.risks(np.zeros((1, 1, 1)), M, P, *layers) == pytest.approx(0.5 * 2.5**2)
    assert of_pair.risks(np.full((1, 1, 1), 1e-300), M, P, *layers) == pytest.approx(0.5 * 2.5**2)
    assert np.isnan(of_pair.risks(np.full((1, 1, 1), np.nan), M, P, *layers)).all()


@pytest.mark.rest
@pytest.mark.parametrize(
    ("fields", "dynamics", "observables", "said"),
    [
        ({"activation": "relu", "teacher_activation": RAMP}, "sde", ["risk"], "teacher_activation: kinks off zero"),
        ({"activation": RAMP}, "sgd", ["noise_trace"], "an observable that does not use the drifts"),
        ({"activation": RAMP, "teacher_activation": "erf"}, "ode", ["risk"], "a dynamics that does not use drifts"),
        ({"activation": RAMP, "target": "lam1"}, "ode", ["risk"], "a dynamics that does not use drifts"),
        ({"activation": RAMP, "target": "erf(lam1)*lam2", "k": 2}, "ode", ["risk"], "activation: kinks off zero"),
    ],
)
def test_what_has_no_accurate_expectations_is_refused(fields, dynamics, observables, said):
    with pytest.raises(InputError) as caught:
        simulate(Problem(**(GOOD | fields)), dynamics, times=[0.0], observables=observables)
    assert said in str(caught.value)


@pytest.mark.rest
@pytest.mark.parametrize("teacher", ["erf", "tanh", "he3"])
def test_the_risk_beside_a_smooth_activation_is_that_of_another_quadrature(teacher):
    """E[(σ − σ*)²] of fields of deviations .9, 1.2 and correlation .6, the teacher's mean given the student's field."""
    x = np.arange(-10.0, 10.01, 0.05)
    weight, value = 0.05 * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi), np.vectorize(activation(teacher).value)
    u, shares = np.polynomial.legendre.leggauss(40)
    ends = np.unique([*np.linspace(-9.0, 9.0, 37), 0.5 / 0.9, 1.5 / 0.9])
    z = (ends[:-1, None] + np.diff(ends)[:, None] * 0.5 * (1.0 + u)).ravel()
    share = (np.diff(ends)[:, None] * 0.5 * shares).ravel() * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    given = value(1.2 * (0.6 * z[:, None] + 0.8 * x)) @ weight
    own = interpolated(RAMP, 0.9 * z)
    expected = 0.5 * (share @ own**2 - 2.0 * share @ (own * given) + weight @ value(1.2 * x) ** 2)
    system = (np.full((1, 1, 1), part) for part in (0.81, 0.6 * 0.9 * 1.2, 1.44))
    assert expectations(RAMP, teacher).risks(*system, np.ones((1, 1)), np.ones((1, 1))) == pytest.approx(
        expected, abs=1e-8
    )


def test_a_dynamics_that_needs_drifts_is_refused_and_the_others_are_named():
    with pytest.raises(InputError) as caught:
        simulate(Problem(**GOOD, activation=RAMP), "ode", times=[0.0], observables=["risk"])
    named = str(caught.value).partition("does not use drifts: ")[2].partition(";")[0].split(", ")
    assert {"mean_field", "mean_field_hd", "sgd", "sgd_chain", "weight_flow"} <= set(named)
    assert {"ode", "sde", "gradient_flow"}.isdisjoint(named)


@pytest.mark.rest
def test_sgd_and_its_chain_run_and_start_at_the_same_risk():
    problem = Problem(**GOOD | {"p": 4, "k": 2}, activation=DIP)
    runs = [simulate(problem, name, times=[0.0, 0.01], observables=["risk"]) for name in ("sgd", "sgd_chain")]
    first, other = (run.risk.isel(seed=0, time=0).item() for run in runs)
    assert first == pytest.approx(other, rel=1e-12)
    assert problem_expectations(problem).name == f"{DIP}|{DIP}"


def test_two_equal_fields_have_one_step_whatever_the_rounding_of_their_norms():
    """E[σ'(z) u σ(z)] is s E[θθ'] = s/2 also where √q √q is not q: there it was off by the root of the last digit."""
    row, slopes = np.array([0.0, 0.0, 1.0]), plain(hinges.hinge_slopes)
    for q in np.linspace(0.5, 3.0, 20).tolist():
        scale = math.sqrt(q)
        assert slopes(row, row, scale, scale, q)[0] == pytest.approx(0.5 * scale, abs=1e-13)


def test_panels_end_around_bends_that_are_far_narrower_than_the_nodes_are_apart():
    """As of two students of a correlation of 1 − 10⁻¹⁴: a bend without panels is off by a share of its width."""
    axis = plane.Axis(np.empty(0), np.empty(0), np.empty(plane.ENDS_OF_A_BEND))
    for width in (1e-7, 1.5e-8):
        count = plain(plane.add_bend)(axis, 0, 0.3, width, 3.0, 8.5)
        assert np.sort(np.abs(axis.ends[:count] - 0.3))[:3] == pytest.approx([0.0, 2 * width, 2 * width])
