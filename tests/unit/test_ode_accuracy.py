"""The ODE's risk at late times, where states are learned and stiff, against scipy's LSODA at its tightest.

The references integrate all of (Q, M, a), unpacked, with the projection of a NumPy right-hand side.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import LSODA, solve_ivp

from sweeplib import DYNAMICS, Overlaps, Problem, simulate
from sweeplib.engine.status import Status
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.integrators import stiff
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests.tiers import slow_but

LEARNED = Overlaps(
    [[1.0, -0.005092957541373029], [-0.005092957541373029, 1.0]],
    [[-0.01847867950364443], [0.02763064930477086]],
    [[1.0]],
)


class Setting(NamedTuple):
    """A problem, the dynamics, the recording times, and a start that replaces the problem's."""

    problem: Problem
    dynamics: str
    times: tuple[float, ...]
    start: Overlaps | None = None


def committee(activation: str, p: int, k: int, gamma: float, Delta: float, **more: object) -> Problem:
    return Problem(gamma=gamma, p=p, k=k, d=1000, Delta=Delta, activation=activation, **more)


SETTINGS = {
    "learned retrieval": Setting(
        Problem(gamma=0.1, p=2, k=1, d=3000, Delta=1e-4, activation="square", spherical=True),
        "ode",
        (5, 7, 10, 20, 50),
        LEARNED,
    ),
    "fast second layer": Setting(committee("erf", 2, 1, 0.5, 0.01, second_layer_rate=1e4), "ode", (1, 10, 100)),
    "linear": Setting(committee("linear", 4, 2, 0.5, 0.01), "ode", (10, 100, 1e4)),
    "plain square": Setting(committee("square", 2, 1, 0.05, 0.01), "ode", (1, 10, 100, 1000)),
    "flow to a power law": Setting(committee("erf", 2, 1, 0.5, 0.0), "gradient_flow", (10, 100, 1e4, 1e6)),
    "wide": Setting(committee("erf", 10, 3, 2.0, 0.01), "ode", (1, 10, 100)),
    "noiseless sphere": Setting(committee("erf", 3, 2, 0.5, 0.0, spherical=True), "ode", (1, 10, 100, 1000)),
    "slow second layer": Setting(committee("erf", 3, 1, 0.5, 0.1, second_layer_rate=1.0), "ode", (1, 10, 100, 1e4)),
    "rectified": Setting(committee("relu", 2, 1, 0.2, 0.01), "ode", (1, 10, 100, 1000)),
    "plateau": Setting(committee("he3", 1, 1, 0.02, 0.0, spherical=True, m0=0.2), "ode", (1, 10, 100, 1000)),
    "noise floor": Setting(committee("square", 1, 1, 0.1, 0.5, m0=0.1), "ode", (1, 10, 100, 1e6)),
    "wide flow": Setting(committee("square", 4, 2, 0.5, 0.0), "gradient_flow", (1, 10, 100, 1e6)),
}
STEEP = Problem(
    gamma=0.1, p=2, k=1, d=6, Delta=0.0, activation="tanh", target="tanh(5*lam1)", a=(1.0, -0.5), second_layer_rate=1.0
)
STIFF = ("fast second layer", "linear", "plain square", "flow to a power law")


@cache
def replicas(name):
    problem, dynamics, times, start = SETTINGS[name]
    return replicas_of([Case(problem, dynamics, 3, Recording(times))], start)


def parts(name, states):
    """Return Q, M and a of states (..., p² + pk + p), with the rows of spherical students normalised."""
    p, k = SETTINGS[name].problem.p, SETTINGS[name].problem.k
    Q, M, a = np.split(states, [p * p, p * (p + k)], axis=-1)
    Q, M = Q.reshape(*a.shape[:-1], p, p), M.reshape(*a.shape[:-1], p, k)
    if SETTINGS[name].problem.spherical:
        norm = np.sqrt(np.einsum("...ii->...i", Q))
        Q, M = Q / (norm[..., :, None] * norm[..., None, :]), M / norm[..., :, None]
    return np.ascontiguousarray(Q), np.ascontiguousarray(M), np.ascontiguousarray(a)


def slope(name):
    """Return the right-hand side on (Q, M, a), all entries, and a list with an item for each evaluation."""
    problem, dynamics, _, _ = SETTINGS[name]
    start, calls = replicas(name), []
    pair = expectations(problem.activation)
    noise = problem.gamma / problem.p if dynamics == "ode" else 0.0

    def right_hand_side(_, state):
        calls.append(None)
        Q, M, a = parts(name, state)
        drift_M, drift_Q, drift_Var, drift_a = pair.drifts_of(
            System(Q, M, start.P[0], a, start.a_star[0], problem.Delta, 1.0)
        )
        drift_Q = drift_Q + noise * drift_Var
        if problem.spherical:
            pull = 0.5 * np.diag(drift_Q)
            drift_Q, drift_M = drift_Q - Q * (pull[:, None] + pull), drift_M - M * pull[:, None]
        return np.concatenate([drift_Q.ravel(), drift_M.ravel(), problem.second_layer_rate * drift_a])

    return right_hand_side, calls


def first_state(name):
    start = replicas(name)
    state = np.concatenate([start.Q[0].ravel(), start.M[0].ravel(), start.a[0]])
    return np.concatenate([part.ravel() for part in parts(name, state)])


@cache
def reference(name):
    """Return the risks at the recording times."""
    problem, _, times, _ = SETTINGS[name]
    start, (right_hand_side, _) = replicas(name), slope(name)
    tightest = 1e-12 if name == "wide flow" else 1e-13
    found = solve_ivp(
        right_hand_side, (0, times[-1]), first_state(name), "LSODA", times, rtol=tightest, atol=1e-2 * tightest
    )
    Q, M, a = parts(name, found.y.T)
    P, a_star = (np.broadcast_to(part, (len(times), *part.shape[1:])) for part in (start.P, start.a_star))
    return expectations(problem.activation).risks(Q, M, P, a, a_star)


def recorded(name, **options):
    problem, dynamics, times, start = SETTINGS[name]
    run = simulate(problem, dynamics, times=times, seeds=[3], initial=start, options=options)
    return run.risk.values[0], run.risk_error.values[0]


COMPILED = ("learned retrieval", "rectified", "fast second layer", "linear")
"""Those whose kernels no other test of `make test` compiles."""
NAMES = {name: pytest.param(name, marks=pytest.mark.rest) for name in COMPILED}
NAMES["wide flow"] = pytest.param("wide flow", marks=pytest.mark.slow)


@pytest.mark.parametrize("rtol", slow_but([1e-4, 1e-6, 1e-8, 1e-10], 1e-6))
@pytest.mark.parametrize("name", [NAMES.get(name, name) for name in SETTINGS])
def test_every_recorded_risk_is_within_its_tolerance_and_its_error(name, rtol):
    risk, error = recorded(name, rtol=rtol)
    difference = np.abs(risk - reference(name))
    assert (difference <= 10 * rtol + 100 * rtol * reference(name)).all()
    assert (difference <= 3 * error).all()
    assert (risk >= 0).all() and ((risk > 0) | (error > 0)).all()
    assert (error <= 3e3 * rtol).all()


@pytest.mark.parametrize("name", ["plain square", "flow to a power law"])
def test_where_a_process_has_one_lsoda_at_a_time_stiff_solutions_are_right_whatever_is_solved_beside_them(
    name, monkeypatch
):
    """As before SciPy 1.17, whose integrators raise when others have taken steps."""
    monkeypatch.setattr(stiff, "has_one_memory", lambda: True)
    problem, dynamics, times, start = SETTINGS[name]
    options = {"rtol": 1e-6}
    alone, beside = (
        simulate(problem, dynamics, times=times, seeds=seeds, initial=start, options=options)
        for seeds in ([3], [2, 3, 4])
    )
    risk, error = alone.risk.values[0], alone.risk_error.values[0]
    assert (np.abs(risk - reference(name)) <= 3 * error).all() and (error <= 3e-3).all()
    np.testing.assert_array_equal(risk, beside.risk.sel(seed=3).values)


@pytest.mark.parametrize(("options", "relative"), [({}, 1e-6), ({"rtol": 1e-6}, 1e-3)])
def test_a_learned_state_is_told_in_relative_terms(options, relative):
    risk, _ = recorded("learned retrieval", **options)
    np.testing.assert_allclose(risk, reference("learned retrieval"), rtol=relative)
    assert reference("learned retrieval")[2] == pytest.approx(1.5915250e-4, rel=1e-7)


@pytest.mark.rest
@pytest.mark.parametrize("rtol", slow_but([1e-6, 1e-8, 1e-10], 1e-6))
@pytest.mark.parametrize("name", STIFF)
def test_stiff_solutions_take_few_right_hand_sides(name, rtol):
    """At most three times those of LSODA for one solution; both integrated solutions are counted."""
    problem, dynamics, times, _ = SETTINGS[name]
    case = Case(problem, dynamics, 3, Recording(times), options=(("rtol", rtol),))
    run = DYNAMICS[dynamics](replicas(name), case.numerical_options())
    for place in range(len(times)):
        run.advance(place)
    right_hand_side, calls = slope(name)
    theirs = LSODA(right_hand_side, 0, first_state(name), times[-1], rtol=rtol, atol=1e-12)
    while theirs.status == "running":
        theirs.step()
    assert run.evaluations[0] <= 3 * len(calls)


@pytest.mark.rest
@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.999])
def test_late_exits_are_found(threshold):
    problem, dynamics, _, start = SETTINGS["learned retrieval"]
    run = simulate(problem, dynamics, times=(50.0,), initial=start, thresholds=[threshold], options={"rtol": 1e-6})
    right_hand_side, _ = slope("learned retrieval")
    first = first_state("learned retrieval")

    def excess(time, state):
        Q, M, a = parts("learned retrieval", state[None])
        return expectations("square").risks(Q, M, np.ones((1, 1, 1)), a, np.ones((1, 1)))[0] - target

    target = 0.0
    target = (1 - threshold) * excess(0.0, first)
    excess.terminal = True
    found = solve_ivp(right_hand_side, (0, 50), first, "LSODA", events=excess, rtol=1e-12, atol=1e-14)
    assert run.exit_time.item() == pytest.approx(found.t_events[0][0], rel=1e-4)


@pytest.mark.long
def test_a_rectified_unit_that_shrinks_to_zero_stays_there():
    """At t = 29.9, where no integrator passes; SGD of short steps agrees before and after."""
    problem = Problem(gamma=0.5, p=4, k=1, d=6, Delta=0.0, activation="relu", teacher_start="gaussian")
    asked = {"times": [10.0, 25.0, 40.0], "observables": ["risk", "overlap_Q"]}
    flow = simulate(problem, "gradient_flow", **asked)
    assert (flow.status == 1).all() and (flow.risk_error < 1e-9).all()
    norms = flow.overlap_Q.values[0, :, 0, 0]
    assert norms[0] == pytest.approx(0.0267457, rel=1e-5) and norms[2] == 0.0
    assert (np.diag(flow.overlap_Q.values[0, 2])[1:] > 0.1).all()
    sgd = simulate(replace(problem, gamma=1e-3), "sgd", **asked)
    np.testing.assert_allclose(sgd.risk, flow.risk, rtol=0.02)
    assert (sgd.overlap_Q.values[0, 2, 0, 0] < 1e-5).all()


@pytest.mark.rest
@pytest.mark.timeout(60)
def test_a_linearised_flow_ends_at_the_last_time():
    """Rounding once left its end a bit before it, for some of these times, and no step led there."""
    problem, dynamics, _, start = SETTINGS["noise floor"]
    for end in np.linspace(0.9e6, 1.1e6, 15):
        run = simulate(problem, dynamics, times=(end,), initial=start, options={"rtol": 1e-10})
        assert run.risk.item() == pytest.approx(0.125, abs=1e-9)


@pytest.mark.rest
def test_a_state_that_rests_is_no_work():
    """A noiseless student that has learned up to rounding stays at rest: a longer time costs nothing."""
    problem = Problem(gamma=0.5, p=2, k=2, d=1000, Delta=0.0, activation="erf")
    evaluations = []
    for end in (3e3, 1e9):
        case = Case(problem, "gradient_flow", 3, Recording((end,)))
        run = DYNAMICS["gradient_flow"](replicas_of([case]), case.numerical_options())
        run.advance(0)
        evaluations.append(run.evaluations[0])
        assert run.end_time[0] == end and not run.timed_out.any()
    assert evaluations[1] <= 2 * evaluations[0]


@cache
def descent():
    """The risks of STEEP after the times 50 and 100, by its weights in R³ in the frame of the teacher, on a grid."""
    start = replicas_of([Case(STEEP, "gradient_flow", 0, Recording((0.0,)))])
    Q, M = start.Q[0], start.M[0, :, 0]
    W = np.column_stack([M, np.linalg.cholesky(Q - np.outer(M, M))])
    grids = np.arange(-70, 71) * 0.1, np.arange(-14, 15) * 0.5, np.arange(-14, 15) * 0.5
    x = np.stack([axis.ravel() for axis in np.meshgrid(*grids, indexing="ij")])
    weight = np.exp(-0.5 * (x**2).sum(axis=0))
    weight, label = weight / weight.sum(), np.tanh(5 * x[0])

    def parts(state):
        value = np.tanh(state[:6].reshape(2, 3) @ x)
        return value, label - state[6:] @ value / 2

    def right_hand_side(_, state):
        value, displacement = parts(state)
        pull = state[6:, None] * (1 - value**2) * displacement * weight
        return np.concatenate([(pull @ x.T).ravel(), value @ (displacement * weight)])

    found = solve_ivp(right_hand_side, (0, 100), [*W.ravel(), 1.0, -0.5], "LSODA", (50, 100), rtol=1e-8, atol=1e-10)
    return [0.5 * float(parts(state)[1] ** 2 @ weight) for state in found.y.T]


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-9])
def test_a_flow_to_dependent_units_descends(rtol):
    """The units' parts beside the teacher become parallel; states with Ω ≥ 0 to the tolerance once raised the risk."""
    run = simulate(STEEP, "gradient_flow", times=(0, 50, 70, 100), options={"rtol": rtol})
    risk = run.risk.values[0]
    assert run.status.item() == Status.ok and (np.diff(risk) < 0).all()
    np.testing.assert_allclose(risk[[1, 3]], descent(), rtol=0.05)  # of the nodes for the target
    assert (run.risk_error < 0.1 * rtol + 1e-8).all() or rtol > 1e-4


@pytest.mark.rest
def test_a_flow_to_the_teacher_on_the_sphere_rests_there():
    """Beyond M = -1, where no weights are, the second layer once grew until the risk rose."""
    problem = replace(STEEP, p=1, a=-1.11, activation="hermite(0,1,.5,.2)", target="tanh(3*lam1)", spherical=True)
    run = simulate(problem, "gradient_flow", times=(30, 100, 1000), seeds=2, options={"rtol": 1e-5})
    assert (run.status == Status.ok).all() and (run.risk_error < 1e-6).all()
    np.testing.assert_allclose(run.risk, run.risk.values[0, 0], rtol=1e-5)


def beyond(kind, risks, others, **options):
    """Return by recording time whether a replica with these risks, and those of the companion, is beyond its bounds."""
    problem = Problem(gamma=0.1, p=1, k=1, d=20, Delta=0.0, activation="erf")
    case = Case(problem, kind, 0, Recording(tuple(np.arange(len(risks)) * 1e-9)), options=tuple(options.items()))
    run = DYNAMICS[kind](replicas_of([case]), case.numerical_options())
    found = []
    for place, risk in enumerate(risks):
        run._recorded_risks = lambda risk=risk: np.array([risk])
        run._risks_of = lambda *_, other=others[place]: np.array([other])
        run.advance(place)
        found.append(any(value[0] > largest[0] for _, value, largest in run.bounds()))
    return found


@pytest.mark.parametrize(
    ("kind", "risks", "others", "expected"),
    [
        ("ode", (0.1, 0.2), (0.1, 0.2), (False, False)),
        ("ode", (0.1, 1e-15), (0.1, 3e-12), (False, False)),
        ("ode", (-1e-16,), (1e-16,), (False,)),
        ("ode", (-1e-3,), (-1e-3,), (True,)),
        ("ode", (1e-3,), (3e-3,), (True,)),
        ("ode", (3e-3, 19.0), (2.9e-3, 1e-3), (False, True)),
        ("gradient_flow", (0.1, 0.1001, 0.11), (0.1, 0.1001, 0.11), (False, True, True)),
        ("gradient_flow", (0.1, 0.09, 0.11), (0.1, 0.08, 0.10), (False, False, False)),
        ("gradient_flow", (0.1, 0.09, 0.11), (0.1, 0.09, 0.11), (False, False, True)),
    ],
)
def test_what_no_risk_can_be_is_inaccurate(kind, risks, others, expected):
    """Below zero, below an error that is no rounding, or rising under gradient flow, each by more than its error."""
    assert beyond(kind, risks, others) == list(expected)


def test_a_requested_tolerance_explains_its_error():
    assert beyond("ode", (1e-5,), (2e-4,)) == [True]
    assert beyond("ode", (1e-5,), (2e-4,), rtol=1e-2) == [False]
