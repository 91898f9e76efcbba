"""Second layers of teachers that are power laws: their numbers, in configs, and what is learned of them."""

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.config import load
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.system import System

ONE = {"gamma": 0.5, "p": 2, "k": 4, "d": 50, "Delta": 0.1, "activation": "he2", "spherical": True}
CONFIG = """
problem: {p: 2, k: 4, d: 50, gamma: 0.5, Delta: 0.1, activation: he2, spherical: true, a_star: power(beta)}
grid: {beta: [0, 1.5]}
dynamics: [ode]
times: [0, 0.1]
"""


def alpha(beta: float, k: int) -> np.ndarray:
    """Return α_r ∝ r^−β with Σ α² = 1."""
    powers = np.arange(1, k + 1) ** -beta
    return powers / sqrt((powers**2).sum())


def read(tmp_path: Path, text: str):  # type: ignore[no-untyped-def]
    (tmp_path / "sweep.yaml").write_text(text, encoding="utf-8")
    return load(tmp_path / "sweep.yaml")


@pytest.mark.parametrize("beta", [0.0, 0.75, 2.0, -1.0, 400.0])
def test_the_rows_are_a_power_law(beta: float) -> None:
    """Also a law that is steeper than numbers are small; the problem is that of the list, to the bit."""
    problem = Problem(**ONE, a_star=f"power( {beta} )")
    [layer] = problem.course.a_star
    np.testing.assert_allclose(layer, 4 * alpha(beta, 4), rtol=1e-13)
    listed = Problem(**ONE, a_star=list(layer))
    assert problem.text == listed.text
    for dynamics in ("sgd", "sgd_chain", "ode"):
        run, same = (simulate(item, dynamics, times=[0.1], observables=["risk"]) for item in (problem, listed))
        assert run.risk.item() == same.risk.item()


@pytest.mark.parametrize(
    "text", ["power", "power(x)", "power(1 5)", "power(1_0)", "power(٣)", "zeta(2)", "power(inf)", "power(1, 2)", ""]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"power\(beta\)") as refused:
        Problem(**ONE, a_star=text)
    assert refused.value.key == "a_star"


def test_the_exponent_is_an_axis_of_a_config(tmp_path: Path) -> None:
    sweep = read(tmp_path, CONFIG)
    layers = [case.problem.course.a_star[0] for _, case in sweep.cases("ode")]
    np.testing.assert_allclose(layers, [4 * alpha(beta, 4) for beta in (0.0, 1.5)])


def test_one_number_for_all_rows_is_not_derived_in_silence(tmp_path: Path) -> None:
    """An expression for a* gives all rows the same, also where a power law was meant."""
    text = CONFIG.replace(", a_star: power(beta)", "") + "derive: {a_star: k**-beta}\n"
    with pytest.raises(InputError, match=r"one number for all rows.*power\(beta\)") as refused:
        read(tmp_path, text)
    assert refused.value.key == "derive.a_star"
    single = read(tmp_path, text.replace("k: 4", "k: 1"))
    assert {case.problem.a_star for _, case in single.cases("ode")} == {1.0}


@pytest.mark.parametrize("order", [2, 3])
def test_drifts_of_hermite_units_are_in_closed_form(order: int) -> None:
    """Ψ^M_ir = n a_i [Σ_s α_s M_is^(n−1) P_sr − (1/p) Σ_l a_l Q_il^(n−1) M_lr], Ψ^a and R, for rows of unit norm."""
    rng, n, p, k = np.random.default_rng(order), order, 3, 4
    rows = rng.normal(size=(p + k, 9))
    rows *= 3.0 / np.linalg.norm(rows, axis=1)[:, None]
    overlaps, a, weights = Overlaps.from_weights(rows[:p], rows[p:]), rng.normal(size=p), alpha(1.0, k)
    Q, M, P = overlaps.Q, overlaps.M, overlaps.P
    rule = expectations(f"he{n}")
    drifts = rule.drifts_of(System(Q, M, P, a, k * weights, np.float64(0.0), np.float64(1.0), rule.pair, None))
    drift_M = n * a[:, None] * ((weights * M ** (n - 1)) @ P - (a / p * Q ** (n - 1)) @ M)
    gradient = n * a[:, None] * ((weights * M ** (n - 1)) @ M.T - (a / p * Q ** (n - 1)) @ Q)
    np.testing.assert_allclose(drifts.M, drift_M, atol=1e-12)
    np.testing.assert_allclose(drifts.GF, gradient + gradient.T, atol=1e-12)
    np.testing.assert_allclose(drifts.a, (M**n) @ weights - (Q**n) @ a / p, atol=1e-12)
    risk = 0.5 * (weights @ P**n @ weights - 2 / p * a @ M**n @ weights + a @ Q**n @ a / p**2)
    assert rule.risks(Q[None], M[None], P[None], a[None], k * weights[None])[0] == pytest.approx(risk, rel=1e-12)


def test_a_single_unit_is_learned_in_the_known_time() -> None:
    """t = ∫ dm/(3 α m² (1 − m²)) of he3, from m = .1 to .6, α = 2."""
    problem = Problem(gamma=0.1, p=1, k=1, d=1000, Delta=0.0, activation="he3", spherical=True, a_star=2.0)

    def primitive(m: float) -> float:
        return -1 / m + 0.5 * log((1 + m) / (1 - m))

    time = (primitive(0.6) - primitive(0.1)) / 6.0
    start = Overlaps([[1]], [[0.1]], [[1]])
    run = simulate(problem, "gradient_flow", times=[0, time], initial=start, observables=["overlap_M"])
    assert run.overlap_M.values.ravel()[-1] == pytest.approx(0.6, abs=1e-6)


@pytest.mark.slow
def test_directions_emerge_in_turn_and_the_risk_is_that_of_those_to_come() -> None:
    """he2, k = 16, p = 48, β = 1: R at t = 5, 10, 20 of another code and start, half of Σ α² that is not learned."""
    values = {"gamma": 0.1, "p": 48, "k": 16, "d": 1000, "Delta": 0.0, "activation": "he2", "spherical": True}
    problem = Problem(**values, second_layer_rate=1.0, a_star="power(1)")
    times = np.concatenate([[0.0], np.geomspace(1.0, 40.0, 100), [5.0, 10.0, 20.0]])
    run = simulate(problem, "gradient_flow", times=np.unique(times), observables=["risk", "overlap_M", "second_layer"])
    at = run.sel(time=[5.0, 10.0, 20.0])
    np.testing.assert_allclose(at.risk.values.ravel(), [0.102, 0.0432, 0.0157], rtol=0.1)
    a, M = run.second_layer.squeeze().values, run.overlap_M.squeeze().values
    learned = np.einsum("ti,tir->tr", a, M**2) / 48 / alpha(1.0, 16)
    first = run.time.values[(learned >= 0.5).argmax(axis=0)]
    slope = np.polyfit(np.log(alpha(1.0, 16)[:12]), np.log(first[:12]), 1)[0]
    assert -1.15 < slope < -0.9
    assert first[0] == pytest.approx(2.64, rel=0.08)
