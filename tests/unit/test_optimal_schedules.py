"""Schedules that minimise the ODE's risk at the end: known optima, gradients, runs by SGD, what refuses them."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import brentq

from sweeplib import InputError, Problem, simulate
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.language import OptimalSchedule, schedule
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics import optimal_schedule
from sweeplib.networks.dynamics.optimal_schedule import RiskAtEnd
from sweeplib.networks.maths.overlaps import Overlaps
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulation.driver import replicas_of
from tests.in_process import InProcess
from tests.tiers import slow_among, slow_but

UNIT = Problem(gamma=1.0, p=1, k=1, d=1000, Delta=0.1, activation="linear", m0=0.0)
"""Its risk r follows dr/dα = −2ηr + ½η²(2r + Δ), so that the optimal rate is 2r/(2r + Δ)."""
COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=1000, Delta=0.1, activation="erf", a=(1.0, -0.7))
OVERLAPS = Overlaps(Q=np.array([[1.0, 0.2], [0.2, 0.8]]), M=np.array([[0.3, 0.1], [0.0, 0.4]]), P=np.eye(2))
ON_SPHERE = Overlaps(Q=np.array([[1.0, 0.2], [0.2, 1.0]]), M=OVERLAPS.M, P=np.eye(2))
RATES = np.array([1.1, 0.8, 0.5, 0.9])
LAST = 5.0


def risk_of(problem, last, initial=None):
    return RiskAtEnd(replicas_of([Case(problem, "ode", 0, Recording((last,)))], initial))


def with_schedule(problem, text):
    return dataclasses.replace(problem, schedule=text)


@pytest.mark.parametrize(
    ("knots", "risk"),
    slow_but(
        [(1, 0.0360224815), (2, 0.0314639421), (3, 0.0314587375), (6, 0.0314403216), (11, 0.0314400766)],
        (1, 0.0360224815),
        (3, 0.0314587375),
    ),
)
def test_the_optimum_of_a_linear_unit_is_the_known_one(knots, risk):
    ds = simulate(with_schedule(UNIT, f"optimal({knots})"), "ode", times=[LAST])
    assert ds.schedule_risk.item() == pytest.approx(risk, abs=2e-10)
    assert ds.risk.item() == pytest.approx(risk, abs=1e-9)
    assert ds.schedule_gradient.item() < 1e-5
    if knots == 1:
        assert ds.schedule_rate.item() == pytest.approx(0.61937421, abs=1e-8)


@pytest.mark.slow
def test_many_knots_approach_the_optimal_rate_at_every_time():
    """With y = Δ/(2r), y + ln y grows as α; no schedule has a lower risk."""

    def risk_at(alpha):
        y_0 = UNIT.Delta / 2
        return UNIT.Delta / 2 / brentq(lambda y: y + np.log(y) - y_0 - np.log(y_0) - alpha, y_0, 10.0, xtol=1e-14)

    ds = simulate(with_schedule(UNIT, "optimal(21)"), "ode", times=[LAST])
    risks = np.array([risk_at(alpha) for alpha in np.linspace(0.0, LAST, 21)])
    assert risks[-1] == pytest.approx(0.0314400619, abs=1e-10)
    assert 0.0 < ds.schedule_risk.item() - risks[-1] < 2e-9
    np.testing.assert_allclose(ds.schedule_rate[0], 2 * risks / (2 * risks + UNIT.Delta), atol=2e-3)


@pytest.mark.parametrize(
    ("problem", "initial", "last", "rates", "risk", "slope"),
    [
        (
            UNIT,
            None,
            LAST,
            (0.9, 0.8, 0.6, 0.5, 0.3, 0.2),
            0.03708948105,
            (-0.00174402, -0.00584592, -0.01145615, -0.01564909, -0.02749211, -0.01770053),
        ),
        (COMMITTEE, OVERLAPS, 2.0, (1.0, 0.8, 0.5), 0.064553609, (-0.01143511, -0.0238475, -0.01254726)),
    ],
)
def test_the_gradient_has_the_numbers_of_another_code(problem, initial, last, rates, risk, slope):
    value, found = risk_of(problem, last, initial).gradient(np.array(rates))
    assert value == pytest.approx(risk, abs=1e-9)
    np.testing.assert_allclose(found, slope, atol=1e-8)


@pytest.mark.parametrize(
    ("changes", "initial"),
    [
        ({"second_layer_rate": 0.7}, OVERLAPS),
        ({"temperature": 0.3, "weight_decay": 0.5}, OVERLAPS),
        ({"second_layer_rate": 0.7, "activation": "relu"}, OVERLAPS),
        ({"spherical": True}, ON_SPHERE),
        ({"spherical": True, "activation": "relu", "second_layer_rate": 0.4}, ON_SPHERE),
        ({"weight_decay": 0.2, "second_layer_rate": 0.5, "second_layer_decay": 0.1, "batch_size": 3}, OVERLAPS),
        ({"loss": "correlation", "spherical": True}, ON_SPHERE),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_the_gradient_is_that_of_the_ode_with_the_schedule_as_a_formula(changes, initial):
    """By differences of the risks of `ode`, which knows nothing of knots."""
    problem, last, step = dataclasses.replace(COMMITTEE, **changes), 3.0, 1e-4

    def risk(rates):
        text = OptimalSchedule(len(rates)).through(rates, last)
        return simulate(
            with_schedule(problem, text), "ode", times=[last], initial=initial, options={"rtol": 1e-12}
        ).risk.item()

    value, slope = risk_of(problem, last, initial).gradient(RATES)
    assert value == pytest.approx(risk(RATES), rel=1e-7)
    for knot in (0, 2):
        change = step * (np.arange(len(RATES)) == knot)
        assert slope[knot] == pytest.approx((risk(RATES + change) - risk(RATES - change)) / (2 * step), rel=2e-4)


def test_the_mean_over_starts_is_descended():
    """Its gradient is the mean of theirs; starts that are the same are taken once."""
    random = dataclasses.replace(COMMITTEE, d=50)
    alone = [RiskAtEnd(replicas_of([Case(random, "ode", seed, Recording((2.0,)))])).gradient(RATES) for seed in (0, 1)]
    both = RiskAtEnd(replicas_of([Case(random, "ode", seed, Recording((2.0,))) for seed in (0, 1)])).gradient(RATES)
    assert both[0] == pytest.approx(np.mean([value for value, _ in alone]), rel=1e-9)
    np.testing.assert_allclose(both[1], np.mean([slope for _, slope in alone], axis=0), rtol=1e-6)
    one, four = (simulate(with_schedule(UNIT, f"optimal(2, {n})"), "ode", times=[1.0]) for n in (1, 4))
    assert (one.schedule_rate == four.schedule_rate).all()


def test_starts_that_differ_in_their_second_layers_alone_are_not_taken_for_one():
    """The stated risk is the mean over the four starts of which the schedule is optimal."""
    drawn = dataclasses.replace(UNIT, m0=0.3, a="normal", schedule="optimal(1)")
    ds = simulate(drawn, "ode", times=[0.5], seeds=4)
    assert ds.risk.std("seed") > 0.01
    assert ds.schedule_risk.values == pytest.approx(ds.risk.mean("seed").item(), rel=1e-6)


@pytest.mark.parametrize(("dynamics", "runs"), slow_among([("sgd_chain", 400), ("sgd", 100)], ("sgd", 100)))
def test_sgd_with_the_schedule_has_the_risk_of_the_ode(dynamics, runs):
    risks, schedules = {}, ("optimal(1)", "optimal(4)")
    for text in schedules:
        problem = with_schedule(dataclasses.replace(UNIT, d=1500), text)
        ds = simulate(problem, dynamics, times=[0.0, 2.0, LAST], seeds=runs)
        theory = simulate(problem, "ode", times=[0.0, 2.0, LAST]).risk[0]
        risks[text] = ds.risk[:, -1].values
        error = ds.risk.std("seed", ddof=1) / np.sqrt(runs)
        assert (abs(ds.risk.mean("seed") - theory)[1:] < 4 * error[1:]).all()
    better = risks[schedules[0]].mean() - risks[schedules[1]].mean()
    assert better > 3 * np.hypot(*(values.std() / np.sqrt(runs) for values in risks.values()))


def test_a_case_has_the_same_bits_alone_and_beside_others():
    """Cases of one shape have different optima, of their own γ and horizon."""
    recording = Recording((1.0,))
    problems = [with_schedule(dataclasses.replace(UNIT, gamma=gamma, d=50), "optimal(2)") for gamma in (0.5, 1.0)]
    cases = [
        Case(problem, "sgd_chain", seed, recording, clock=clock)
        for problem in problems
        for clock in (1.0, 2.0)
        for seed in (0, 1)
    ]
    together = run_cases(cases)
    rates = together.data["schedule_rate"]
    assert len(np.unique(rates.round(6), axis=0)) == 4
    for place in (1, 6):
        alone = run_cases(cases[place : place + 1])
        assert all((alone.data[name][0] == values[place]).all() for name, values in together.data.items())


def test_what_a_schedule_depends_on_is_in_the_identity():
    def identity(text="optimal(3)", last=1.0, **changes):
        problem = with_schedule(dataclasses.replace(COMMITTEE, **changes), text)
        return Case(problem, "sgd_chain", 0, Recording((last,))).identity()

    others = [
        identity("optimal(4)"),
        identity("optimal(3, 2)"),
        identity(last=2.0),
        identity(Delta=0.2),
        identity("1/(1 + t)"),
    ]
    assert identity() == identity(" optimal( 3.0,4 )")
    assert len({identity(), *others}) == 6


@pytest.mark.parametrize("knots", [1, 2, 5, 32])
def test_its_formula_goes_through_its_knots_and_never_below_zero(knots):
    rates, times = np.random.default_rng(1).uniform(0, 2, knots), np.linspace(0, 7.0, knots)
    rates[::3] = 0.0
    formula = OptimalSchedule(knots).through(rates, 7.0)
    function = schedule(formula).function
    np.testing.assert_allclose([function(time) for time in times], rates, atol=1e-12)
    middle = (times[1:] + times[:-1]) / 2
    np.testing.assert_allclose([function(time) for time in middle], (rates[1:] + rates[:-1]) / 2, atol=1e-12)
    assert schedule(formula).first_refused(0.0, 7.0) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("optimal()", ["not an optimal schedule", "as in `optimal(6)`"]),
        ("optimal(0)", ["not a number of knots: `0` at character 9", "from 1 to 32"]),
        ("optimal(33)", ["not a number of knots", "from 1 to 32"]),
        ("optimal(2.5)", ["not a number of knots"]),
        ("optimal(t)", ["not a number of knots: `t`"]),
        ("optimal(True)", ["not a number of knots"]),
        ("optimal(6, 0)", ["not a number of starts: `0` at character 12", "from 1 to 1000"]),
        ("optimal(6, 2, 3)", ["not an optimal schedule"]),
        ("optimal(6)/2", ["not an optimal schedule"]),
        ("optimal(6", ["not a schedule"]),
        ("optimum(6)", ["unknown function"]),
    ],
)
def test_what_is_no_optimal_schedule_is_refused_with_its_position(text, parts):
    with pytest.raises(InputError) as refused:
        with_schedule(UNIT, text)
    assert refused.value.key == "schedule"
    assert all(part in str(refused.value) for part in parts), str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "times", "parts"),
    [
        ({"samples": 100}, [1.0], ["samples: optimal(2) minimises the risk of the ODE: ode does not act on samples"]),
        ({"offset_scale": 1.0}, [1.0], ["offset_scale: optimal(2) minimises the risk of the ODE"]),
        (
            {"data": "two_level", "level_ratio": 4.0},
            [1.0],
            [
                "data: optimal(2) minimises the risk of the ODE: no derivatives by the rate; got 'two_level'",
                "expected teacher_student",
            ],
        ),
        ({}, [0.0], ["times: optimal(2) minimises the risk of the ODE: no time passes"]),
    ],
)
def test_problems_without_an_ode_have_no_optimal_schedule(changes, times, parts):
    with pytest.raises(InputError) as refused:
        simulate(with_schedule(dataclasses.replace(UNIT, **changes), "optimal(2)"), "sgd", times=times)
    assert all(part in str(refused.value) for part in parts), str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_descent_that_does_not_come_to_a_minimum_is_an_error(monkeypatch):
    monkeypatch.setattr(optimal_schedule, "GOAL", 1.0)
    with pytest.raises(SweeplibError, match=r"no optimal schedule of 2 knots: .* changes ln R by .*, more than 0.0001"):
        optimal_schedule.optimal_schedule(replicas_of([Case(UNIT, "ode", 0, Recording((LAST,)))]), 2)


def test_a_rate_that_only_does_harm_is_zero():
    """A student that has learned, with noisy labels: nothing is better than to stand still."""
    learned = Overlaps(Q=np.eye(1), M=np.eye(1), P=np.eye(1))
    ds = simulate(with_schedule(dataclasses.replace(UNIT, m0=None), "optimal(3)"), "ode", times=[LAST], initial=learned)
    np.testing.assert_array_less(ds.schedule_rate[0], 1e-3)
    assert ds.risk.item() < 1e-6


@pytest.mark.slow
def test_a_sweep_that_grew_has_the_bits_of_one_that_did_not(tmp_path):
    """The number of knots is an axis; each point has the optimum of its own horizon."""
    (tmp_path / "sweep.yaml").write_text("""
problem: {p: 1, k: 1, d: 50, Delta: 0.1, gamma: 1, activation: linear, m0: 0, schedule: optimal(knots)}
grid: {knots: [1, 3], horizon: [1, 4]}
seeds: 3
dynamics: [sgd_chain, ode]
times: {values: [0, 1], scale: horizon}
""")

    def dataset(folder, *overrides):
        sweep = dataclasses.replace(load(tmp_path / "sweep.yaml", overrides), cluster=InProcess())
        run_sweep(sweep, tmp_path / folder, progress=False)
        return open_dataset(finalise(sweep, tmp_path / folder)).load()

    dataset("grown", "seeds=1", "grid.knots=[3]")
    grown, whole = dataset("grown"), dataset("whole")
    assert grown.equals(whole)
    assert whole.schedule_rate.sizes["knot"] == 3
    assert (whole.schedule_rate.notnull().all(("dynamics", "seed", "horizon")).sum("knot") == [1, 3]).all()
    found, given = whole.schedule_risk.isel(seed=0), whole.risk.isel(time=-1, seed=0)
    np.testing.assert_allclose(given.sel(dynamics="ode"), found.sel(dynamics="ode"), rtol=1e-7)
    assert (found.sel(knots=3) < found.sel(knots=1)).all()
