"""Limits as d → ∞ from values at finite d: their intervals cover the truth, of synthetic values and of runs.

False alarms: bounds of coverage are .95 minus 4 standard errors of the number of experiments, 3e-5 a test; 4 standard
errors of a limit of runs, 6e-5.
"""

from collections.abc import Callable

import numpy as np
import pytest

from sweeplib import Overlaps, Problem, simulate
from sweeplib.statistics.extrapolation import FEW, MISFIT, TRUSTED, Limit, extrapolated
from tests.tiers import slow_but

Correction = Callable[[np.ndarray], np.ndarray]
CORRECTIONS: dict[str, Correction] = {
    "none": lambda u: 0.0 * u,
    "1/d": lambda u: 1.0 / u,
    "1/sqrt(d)": lambda u: u**-0.5,
    "d^-3/4": lambda u: u**-0.75,
    "a mixture": lambda u: 0.5 * u**-0.5 + 0.5 / u,
    "a mixture that cancels": lambda u: 2.0 * (u**-0.5 - 1.0 / u),
    "d^-2": lambda u: u**-2.0,
    "ln d/d": lambda u: (1.0 + np.log(u)) / u,
    "1/(d + d0)": lambda u: 1.5 / (u + 0.5),
}
HARD = {"a mixture that cancels": 0.88, "ln d/d": 0.82}
GRIDS = ([100, 300, 1000, 3000, 10000], [30, 100, 300, 1000, 3000, 10000, 30000, 100000])
SEEDS = 32


def experiment(law: str, d: np.ndarray, correction: np.ndarray, rng: np.random.Generator) -> Limit:
    """Return the limit of means of SEEDS seeds with errors of .1; the truth is 1."""
    mean = (1.0 if law == "constant" else np.log(d)) + correction
    values = mean + 0.1 * rng.standard_normal(len(d))
    errors = 0.1 * np.sqrt(rng.chisquare(SEEDS - 1, len(d)) / (SEEDS - 1))
    return extrapolated(d, values, errors, SEEDS - 1.0, law, 0.5, 0.95)


@pytest.mark.parametrize("size", slow_but([0.3, 1.0, 3.0, 10.0], 1.0))
@pytest.mark.parametrize("law", slow_but(["constant", "log"], "constant"))
@pytest.mark.parametrize("form", slow_but(CORRECTIONS, "a mixture"))
def test_intervals_cover_whatever_the_exponents_of_the_corrections(form: str, law: str, size: float) -> None:
    """Those of HARD forms may cover less: the terms of one nearly cancel, the other has a logarithm."""
    rng, count = np.random.default_rng(1), 60
    nominal = HARD.get(form, 0.95)
    for grid in GRIDS:
        d = np.array(grid, float)
        found = [experiment(law, d, size * CORRECTIONS[form](d / d[0]), rng) for _ in range(count)]
        trusted = [limit for limit in found if limit.verdict == TRUSTED]
        assert len(trusted) >= 0.95 * count
        covered = np.mean([limit.low <= 1.0 <= limit.high for limit in trusted])
        assert covered > nominal - 4.0 * np.sqrt(nominal * (1 - nominal) / count), (form, grid)


@pytest.mark.rest
@pytest.mark.parametrize(("seeds", "skewed"), [(3, False), (6, True)])
def test_few_seeds_give_neither_limits_that_are_too_small_nor_false_alarms(seeds: int, skewed: bool) -> None:
    """Weights 1/error² of 6 exponential values cover .76; a χ² of errors of 3 normal ones is "clear" in .17."""
    rng, d, count = np.random.default_rng(4), np.geomspace(100, 1e5, 12), 200
    draw = rng.exponential if skewed else lambda size: 1.0 + 0.3 * rng.standard_normal(size)
    found = []
    for sample in (draw(size=(12, seeds)) for _ in range(count)):
        errors = sample.std(axis=1, ddof=1) / np.sqrt(seeds)
        found.append(extrapolated(d, sample.mean(axis=1), errors, seeds - 1.0, "constant", 0.5, 0.95))
    trusted = [limit for limit in found if limit.verdict == TRUSTED]
    assert len(trusted) >= 0.97 * count
    assert np.mean([limit.low <= 1.0 <= limit.high for limit in trusted]) > 0.95 - 4.0 * np.sqrt(0.95 * 0.05 / count)


def test_few_values_and_values_near_each_other_have_no_limit() -> None:
    rng = np.random.default_rng(2)
    for grid in ([100, 1000], [100, 200, 300, 400]):
        limit = experiment("constant", np.array(grid, float), np.zeros(len(grid)), rng)
        assert limit.verdict == FEW
        assert np.isnan([limit.value, limit.low, limit.high]).all()


def test_points_of_another_form_have_no_limit() -> None:
    """A quantity that grows like ln d has no constant limit; a jump is no correction."""
    d, rng = np.geomspace(10, 1e5, 9), np.random.default_rng(3)
    assert experiment("constant", d, 100.0 * np.log(d), rng).verdict == MISFIT
    assert experiment("constant", d, np.where(d > 900, 5.0, 0.0), rng).verdict == MISFIT


@pytest.mark.rest
def test_the_limit_of_mean_risks_of_sgd_is_the_risk_of_the_ode() -> None:
    """The bias at d = 4 is about 13 standard errors."""
    start = Overlaps(Q=np.eye(1), M=np.full((1, 1), 0.3), P=np.eye(1))
    d, time = np.array([4, 10, 20, 50, 100, 300]), 2.0
    runs = [
        simulate(
            Problem(gamma=3.0, p=1, k=1, d=int(one), Delta=0.1, activation="erf"), "sgd_chain", times=[0.0, time],
            seeds=2000, initial=start,
        ).risk.isel(time=-1).values for one in d
    ]  # fmt: skip
    problem = Problem(gamma=3.0, p=1, k=1, d=100, Delta=0.1, activation="erf")
    truth = simulate(problem, "ode", times=[0.0, time], initial=start).risk.isel(time=-1).item()
    values, errors = np.array([(run.mean(), run.std(ddof=1) / np.sqrt(len(run))) for run in runs]).T
    assert abs(values[0] - truth) > 6.0 * errors[0]
    limit = extrapolated(d.astype(float), values, errors, 1999.0, "constant", 1.0, 0.95)
    half = limit.high - limit.value
    assert abs(limit.value - truth) < 4.0 / 1.96 * half
    assert half < 0.5 * abs(values[0] - truth)


@pytest.mark.slow
def test_exit_steps_of_phase_retrieval_grow_as_the_escape_rate_says() -> None:
    """Steps over d are ln d/(2 γ ω_M) + O(1), 2 ω_M = 8 (1 − 6γ) at p = 1 and Δ = 0 [arXiv 2305.18502]."""
    d, gamma = np.array([20, 40, 80, 200, 500, 1500]), 1.0 / 12.0
    means = []
    for one, seeds in zip(d, (6000, 5000, 4000, 2000, 800, 200), strict=True):
        problem = Problem(gamma=gamma, p=1, k=1, d=int(one), Delta=0.0, activation="square", spherical=True)
        steps = simulate(
            problem, "sgd_chain", times=[0.0, 40.0], seeds=seeds, thresholds=[0.1], stop="exit"
        ).exit_steps.values.ravel()
        assert np.isfinite(steps).all()
        means.append((steps.mean() / one, steps.std(ddof=1) / np.sqrt(seeds) / one))
    values, errors = np.array(means).T
    limit = extrapolated(d.astype(float), values, errors, 199.0, "log", 1.0, 0.95)
    truth = 1.0 / (8.0 * gamma * (1.0 - 6.0 * gamma))
    half = limit.high - limit.value
    assert abs(limit.value - truth) < 4.0 / 1.96 * half
    assert half < 0.15 * truth
