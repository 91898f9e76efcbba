"""With `finite_d` the ODE gives the means of SGD to first order in 1/d, which its limit d → ∞ neglects.

It is compared to the exact chain of overlaps from one fixed start; the seeds differ in their samples only.
"""

import numpy as np
import pytest

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.config import load
from sweeplib.engine.status import Status
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics.step_moments import StepMoments
from sweeplib.networks.simulation import Case, run_cases
from sweeplib.networks.simulation.cases import Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests.tiers import slow_but

FINITE = {"finite_d": True}
MEANS = ("risk", "overlap_M", "overlap_Q", "second_layer")

ONE = Overlaps([[1.0]], [[0.5]], [[1.0]])
TWO = Overlaps([[1.0, 0.1], [0.1, 1.0]], [[0.5], [0.4]], [[1.0]])
TWO_OF_TWO = Overlaps([[1.0, 0.1], [0.1, 1.0]], [[0.5, 0.1], [0.1, 0.4]], np.eye(2))
SQUARE = Problem(gamma=0.05, p=1, k=1, d=50, Delta=0.1, activation="square", spherical=True)
DECAY = {"weight_decay": 1.0, "second_layer_decay": 0.3}
SETTINGS = {
    "square, sphere": (SQUARE, ONE, 1.5),
    "square": (Problem(gamma=0.03, p=1, k=1, d=50, Delta=0.1, activation="square"), ONE, 1.5),
    "two squares, sphere": (
        Problem(gamma=0.1, p=2, k=1, d=50, Delta=0.1, activation="square", spherical=True),
        TWO,
        1.5,
    ),
    "two squares": (Problem(gamma=0.1, p=2, k=1, d=50, Delta=0.1, activation="square"), TWO, 1.5),
    "two erf of two": (Problem(gamma=1.0, p=2, k=2, d=50, Delta=0.5, activation="erf"), TWO_OF_TWO, 6.0),
    "two erf, both layers": (
        Problem(gamma=0.6, p=2, k=1, d=50, Delta=0.3, activation="erf", a=0.5, second_layer_rate=1.0),
        TWO,
        6.0,
    ),
    "decay, both layers": (
        Problem(gamma=1.0, p=2, k=1, d=50, Delta=0.3, activation="erf", a=0.5, second_layer_rate=1.0, **DECAY),
        TWO,
        4.5,
    ),
    "decay, sphere": (
        Problem(gamma=2.0, p=2, k=2, d=50, Delta=0.5, activation="erf", spherical=True, weight_decay=5.0),
        TWO_OF_TWO,
        3.0,
    ),
    "weight noise, decay": (
        Problem(gamma=1.0, p=2, k=2, d=50, Delta=0.3, activation="erf", temperature=0.3, weight_decay=0.5),
        TWO_OF_TWO,
        4.5,
    ),
    "weight noise, sphere": (
        Problem(gamma=1.0, p=2, k=2, d=50, Delta=0.3, activation="erf", temperature=0.3, spherical=True),
        TWO_OF_TWO,
        4.5,
    ),
    "batches": (Problem(gamma=0.4, p=2, k=1, d=50, Delta=0.1, activation="square", batch_size=7), TWO, 1.5),
    "batches, sphere": (
        Problem(gamma=0.2, p=1, k=1, d=50, Delta=0.1, activation="square", spherical=True, batch_size=7),
        ONE,
        1.5,
    ),
    "batches larger than d": (
        Problem(gamma=10.0, p=2, k=2, d=50, Delta=0.5, activation="erf", batch_size=100),
        TWO_OF_TWO,
        6.0,
    ),
}
"""Problem, start, and the last of 15 times, multiples of the time of a step."""
BIASED = ("square, sphere", "square", "two squares", "batches", "batches larger than d")
"""Where the ODE itself is off by more than ten standard errors of 4000 seeds; elsewhere by 5 to 10."""


LONG = ("batches, sphere", "batches larger than d")


def z_scores(problem, start, times, count, seed=0, options=FINITE):
    """Return the z-scores of the ODE against the mean of `count` seeds of the chain: largest over entries (times,)."""
    shown = {"times": times, "observables": MEANS, "initial": start, "root_seed": seed}
    chain = simulate(problem, "sgd_chain", seeds=range(count), **shown)
    ode = simulate(problem, "ode", seeds=[0], options=options, **shown).isel(seed=0)
    assert ode.status == Status.ok
    scores = {}
    for name in MEANS:
        samples = chain[name].values.reshape(count, len(times), -1)
        error = samples.std(axis=0, ddof=1) / np.sqrt(count)
        difference = ode[name].values.reshape(len(times), -1) - samples.mean(axis=0)
        scores[name] = np.abs(np.divide(difference, error, out=np.zeros_like(error), where=error > 1e-12)).max(axis=1)
    return scores


@pytest.mark.parametrize(
    "name",
    [
        *slow_but([name for name in SETTINGS if name not in LONG], "two erf, both layers"),
        *(pytest.param(name, marks=pytest.mark.long) for name in LONG),
    ],
)
def test_it_gives_the_means_of_sgd(name):
    """4000 seeds at d = 50: |z| < 4.5 at all of 15 times, for all means.

    False alarms: 7·10⁻⁶ a score, fewer than 600 scores, most of them correlated: below 4·10⁻³ in all.
    """
    problem, start, last = SETTINGS[name]
    times = np.linspace(last / 15, last, 15)
    for scores in z_scores(problem, start, times, 4000).values():
        assert scores.max() < 4.5
    if name in BIASED:
        assert z_scores(problem, start, times, 4000, options={})["risk"].max() > 10


def test_drift_and_covariance_are_those_of_a_step():
    """10⁶ exact steps of one square unit on the sphere at d = 10⁴, with a normal ‖x‖²: |z| < 4.5 (10⁻⁵ in total).

    The drift beyond that of the ODE is estimated by the difference of each step to its own first order, of known mean.
    """
    m, d, count = 0.4, 10_000, 1_000_000
    problem = Problem(gamma=0.05, p=1, k=1, d=d, Delta=0.1, activation="square", spherical=True)
    replicas = replicas_of([Case(problem, "ode", 0, Recording((1.0,)))], Overlaps([[1.0]], [[m]], [[1.0]]))
    drift, covariance = StepMoments(replicas, 0, trained=False).at(np.eye(1), np.array([[m]]), np.ones(1))
    rng = np.random.default_rng(1)
    u, w, z = rng.standard_normal((3, count))
    lam, norm, step = m * u + np.sqrt(1 - m**2) * w, u**2 + w**2 - 2, problem.step_time()
    c = 2 * lam * (u**2 - lam**2 + np.sqrt(0.1) * z)
    X_M, X_Q = c * u, 2 * c * lam + 0.05 * c**2
    first = X_M - 0.5 * m * X_Q
    beyond = ((m + step * X_M) / np.sqrt(1 + step * (X_Q + 0.05 * c**2 * norm / d)) - m) / step - first
    assert abs(beyond.mean() / step - drift[0]) < 4.5 * beyond.std() / step / np.sqrt(count)
    squares = (first - first.mean()) ** 2
    assert abs(squares.mean() - covariance[0, 0]) < 4.5 * squares.std() / np.sqrt(count)


def errors(problem, time, count):
    """Return the error of the mean risk by the ODE and by its correction, and the standard error by the chain."""
    common = {"times": [time], "initial": ONE}
    parts = [range(first, first + 20_000) for first in range(0, count, 20_000)]
    risks = np.concatenate([simulate(problem, "sgd_chain", seeds=part, **common).risk.values for part in parts])
    limit, finite = (simulate(problem, "ode", seeds=[0], options=one, **common).risk.item() for one in ({}, FINITE))
    return limit - risks.mean(), finite - risks.mean(), risks.std() / np.sqrt(count)


@pytest.mark.long
def test_its_error_is_of_second_order():
    """At d = 25, 50, 100 by 10⁵ seeds: the error of the ODE falls as d^−1 (± .1) at t = .4, that of the correction as
    d^−2 or faster at t = .8.

    The standard errors of the exponents are .02 and .1.
    """
    widths = (25, 50, 100)
    problems = [Problem(gamma=0.05, p=1, k=1, d=d, Delta=0.1, activation="square", spherical=True) for d in widths]

    def exponent(time, which):
        found = np.abs([errors(problem, time, 100_000) for problem in problems])
        return -np.polyfit(np.log(widths), np.log(found[:, which]), 1, w=found[:, which] / found[:, 2])[0]

    assert abs(exponent(0.4, 0) - 1.0) < 0.1
    assert exponent(0.8, 1) > 1.8


def test_observables_are_means():
    """E[R] = 2 (1 − E[m²]), not 2 (1 − E[m]²), for one unit; the variance of m by 4000 seeds, |z| < 4.5 (10⁻⁵).

    At d = 1000, where the error of the variance beyond first order is of the size of its standard error.
    """
    problem = Problem(gamma=0.05, p=1, k=1, d=1000, Delta=0.1, activation="square", spherical=True)
    shown = {"times": [0.3], "initial": ONE, "observables": ("risk", "test_error", "overlap_M", "overlap_Q")}
    ode = simulate(problem, "ode", seeds=[0], options=FINITE, **shown)
    m = simulate(problem, "sgd_chain", seeds=range(4000), **shown).overlap_M.values.ravel()
    variance, squares = 1.0 - ode.risk.item() / 2 - ode.overlap_M.item() ** 2, (m - m.mean()) ** 2
    assert abs(variance - squares.mean()) < 4.5 * squares.std() / np.sqrt(len(m))
    assert ode.test_error.item() == pytest.approx(ode.risk.item() + 0.05, abs=1e-12)
    assert ode.overlap_Q.item() == pytest.approx(1.0, abs=1e-12)


def test_it_is_the_ode_at_large_d():
    """At d = 10⁹ the corrections are of order 10⁻⁸."""
    problem = Problem(gamma=0.3, p=2, k=2, d=10**9, Delta=0.1, activation="erf")
    one, other = (
        simulate(problem, "ode", times=[1.0, 5.0], seeds=[0], initial=TWO_OF_TWO, options=options, observables=MEANS)
        for options in ({}, FINITE)
    )
    for name in MEANS:
        np.testing.assert_allclose(other[name], one[name], atol=2e-7)


def test_an_exit_is_where_the_mean_risk_comes_to_its_target():
    run = simulate(SQUARE, "ode", times=[2.0], seeds=[0], initial=ONE, thresholds=[0.3], options=FINITE)
    time = run.exit_time.item()
    there = simulate(SQUARE, "ode", times=[0.0, time], seeds=[0], initial=ONE, options=FINITE).risk.values[0]
    assert there[1] == pytest.approx(0.7 * there[0], rel=1e-6)
    limit = simulate(SQUARE, "ode", times=[2.0], seeds=[0], initial=ONE, thresholds=[0.3]).exit_time.item()
    assert abs(time / limit - 1.0) > 0.01


def test_the_mean_risk_of_what_is_learned_is_that_of_its_exit():
    """Members of its ensemble have risks below zero, which were once cut off one by one: the mean was twice this."""
    learned = Problem(gamma=0.2, p=1, k=1, d=100, Delta=0.0, activation="erf", m0=0.3)
    time = simulate(learned, "ode", times=[60.0], thresholds=[1.0 - 1e-7], options=FINITE).exit_time.item()
    there = simulate(learned, "ode", times=[0.0, time], options=FINITE)
    risk, error = there.risk.values[0], there.risk_error.values[0]
    assert abs(risk[1] - 1e-7 * risk[0]) < error[1] < 0.5 * risk[1]


def test_its_error_is_estimated():
    """The recorded error is at least the difference to a more accurate solution, and small."""
    runs = [
        simulate(SQUARE, "ode", times=[1.0], seeds=[0], initial=ONE, options=FINITE | one)
        for one in ({"rtol": 1e-4}, {})
    ]
    assert abs(runs[0].risk.item() - runs[1].risk.item()) < runs[0].risk_error.item() < 1e-3
    assert runs[1].risk_error.item() < 1e-5


def test_fluctuations_that_are_too_large_are_a_divergence():
    """Escape from m0 = .1 at d = 50: the expansion would give a negative mean risk. None is recorded, and no exit."""
    start = Overlaps([[1.0]], [[0.1]], [[1.0]])
    common = {"times": np.linspace(0.1, 3.0, 12), "seeds": [0], "initial": start, "options": FINITE}
    run = simulate(SQUARE, "ode", thresholds=[0.9, 0.999], **common).isel(seed=0)
    assert run.status == Status.diverged
    assert run.end_time < 3.0
    risk = run.risk.values
    assert (risk[np.isfinite(risk)] > 0).all()
    assert np.isnan(risk[-1])
    assert np.isnan(run.exit_time.sel(threshold=0.999))


def test_limits_of_steps_and_of_time_are_kept():
    with pytest.raises(SweeplibError, match="max_steps"):
        simulate(SQUARE, "ode", times=[2.0], seeds=[0], initial=ONE, options=FINITE | {"max_steps": 3})
    run = simulate(SQUARE, "ode", times=[2.0], seeds=[0], initial=ONE, options=FINITE, timeout=1e-9)
    assert run.status.item() == Status.timeout


CONFIG = """\
problem: {p: 1, k: 1, d: 50, Delta: 0.1, activation: square, spherical: true, m0: 0.5}
grid: {gamma: [0.05]}
times: [0, 1]
dynamics: {%s: {finite_d: true}}
"""


def test_a_sweep_takes_it_for_the_ode_alone(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(CONFIG % "ode")
    (_, case), *_ = load(path).cases("ode")
    assert case.numerical_options().finite_d
    expected = simulate(case.problem, "ode", times=[0, 1], seeds=[0], options=FINITE).risk.values[0]
    np.testing.assert_array_equal(run_cases([case]).data["risk"][0], expected)
    path.write_text(CONFIG % "gradient_flow")
    with pytest.raises(InputError, match=r"dynamics\.gradient_flow\.finite_d") as refusal:
        load(path)
    assert "\n" not in str(refusal.value)


def test_dependent_teacher_rows_are_refused():
    """P is singular: its equations did not end. More teacher rows than dimensions are refused before any start."""
    start = Overlaps([[1.0]], [[0.2, 0.2]], np.ones((2, 2)))
    problem = Problem(gamma=0.5, p=1, k=2, d=50, Delta=0.1, activation="erf")
    with pytest.raises(InputError, match="as P is singular; expected independent teacher rows with finite_d"):
        simulate(problem, "ode", times=[0, 1], initial=start, options=FINITE)
    many = Problem(gamma=0.05, p=1, k=3, d=2, Delta=0.1, activation="erf", teacher_start="gaussian")
    with pytest.raises(InputError, match="k: no equations at finite d; got 3; expected at most d = 2"):
        simulate(many, "ode", times=[0, 1], options=FINITE)
