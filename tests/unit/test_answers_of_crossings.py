"""Crossings of a level to a precision: values are added where the crossing lies, within the bounds alone."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from sweeplib.analysis.answers import State
from sweeplib.engine.design.questions import Question
from tests.scans import SyntheticSweep

HORIZON, SIGMA = 2000.0, 0.45
SCAN = dict.fromkeys((0.05, 0.2, 0.5, 0.9, 1.2), 16)


def falling(gamma: float) -> float:
    """Return mean steps 1000/γ, so that runs are faster at larger rates."""
    return 1000.0 / gamma


def fraction(gamma: float) -> float:
    """Return the probability that a run of `falling` exits by HORIZON."""
    return float(stats.norm.cdf((np.log(HORIZON / falling(gamma)) + SIGMA**2 / 2) / SIGMA))


HALF = 1000.0 / HORIZON * np.exp(-(SIGMA**2) / 2)
"""The rate at which half of the runs of `falling` exit by HORIZON."""


def crossing(to: float = 0.05, bounds: tuple[float, float] | None = (0.02, 1.9), **options: Any) -> Question:
    along = {"gamma": bounds} if bounds else {}
    return Question("crossing", "crossing", to, bounds=along, options={"along": "gamma"} | options)


def sweep(asked: Question, rows: dict[float, int] = SCAN, **others: Any) -> SyntheticSweep:
    return SyntheticSweep(falling, rows, asked, horizon=HORIZON, **others)


@pytest.mark.rest
def test_rows_are_added_where_the_fraction_of_exits_passes_a_half() -> None:
    """The rows of the config alone do not tell the form of the curve near the crossing: no number of seeds would do."""
    assert fraction(HALF) == pytest.approx(0.5)
    near, everywhere = sweep(crossing()), sweep(crossing(bounds=None))
    [answer], [other] = near.answered(), everywhere.answered()
    assert answer.state is State.given, answer.why
    assert answer.low <= HALF <= answer.high
    assert answer.half_width <= 0.05 * answer.value
    assert sum(near.rows.values()) < 4000
    assert other.state is State.none


@pytest.mark.rest
def test_a_crossing_beyond_the_rows_is_found() -> None:
    far = sweep(crossing(), dict.fromkeys((0.05, 0.07, 0.09, 0.12), 16), seed=2)
    [answer] = far.answered()
    assert answer.state is State.given, answer.why
    assert answer.low <= HALF <= answer.high
    assert max(far.rows) < 1.2


def test_a_level_that_is_not_passed_between_the_bounds_is_no_answer() -> None:
    [answer] = sweep(crossing(bounds=(0.02, 0.3)), dict.fromkeys((0.05, 0.1, 0.15), 16)).answered()
    assert answer.state is State.none
    assert "not passed between the bounds" in answer.why


@pytest.mark.rest
@pytest.mark.parametrize("seed", range(4))
def test_a_level_that_is_passed_twice_is_no_answer(seed: int) -> None:
    """The second time just beyond the rows: the last one is not clearly below the level."""
    twice = SyntheticSweep(lambda g: 1000.0 * (g + 1 / g), SCAN | dict.fromkeys((1.5, 1.9), 16),
                           crossing(of="exit_steps", level=2500.0, bounds=(0.02, 4)), seed=seed)  # fmt: skip
    [answer] = twice.answered()
    assert answer.state is State.none
    assert "passed more than once, near" in answer.why


@pytest.mark.rest
def test_a_jump_over_a_level_between_clear_ends_is_found() -> None:
    """No smooth curve through few values has a jump, so that its interval is open; more values close it."""
    rows = dict.fromkeys((0.1, 0.27, 0.43, 0.6, 0.77, 0.93, 1.1), 16)
    jump = SyntheticSweep(lambda g: 2000.0 + 1000.0 * np.tanh(50.0 * (g - 0.53)), rows,
                          crossing(of="exit_steps", level=2500.0, bounds=(0.1, 1.1)))  # fmt: skip
    [answer] = jump.answered()
    assert answer.state is State.given, answer.why
    assert answer.low <= 0.53 + np.arctanh(0.5) / 50.0 <= answer.high


def test_means_that_all_runs_share_have_a_crossing_that_more_values_tell() -> None:
    """As those of a deterministic dynamics at a given start."""
    exact = SyntheticSweep(falling, SCAN, crossing(to=1e-3, of="exit_steps", level=1500.0),
                           noise=lambda _, count: np.ones(count))  # fmt: skip
    [answer] = exact.answered()
    assert answer.state is State.given, answer.why
    assert answer.low <= 2 / 3 <= answer.high
    assert max(exact.rows.values()) <= 64
    whole = SyntheticSweep(lambda x: 1000.0 * x, dict.fromkeys((1, 2, 3, 4, 5, 6), 64),
                           crossing(to=1e-6, of="exit_steps", level=3500.0, bounds=(1, 6)),
                           noise=lambda _, count: np.ones(count))  # fmt: skip
    [none] = whole.answered()
    assert none.state is State.none
    assert "do not tell the form of the curve as precisely" in none.why


def test_an_axis_of_whole_numbers_gets_whole_numbers() -> None:
    rows = dict.fromkeys((4, 20, 60), 16)
    whole = SyntheticSweep(lambda x: 1000.0 * x / 30, rows, crossing(to=0.1, bounds=(1, 80)), horizon=1000.0)
    [answer] = whole.answered()
    assert answer.state is State.given, answer.why
    assert answer.low <= 30.0 * np.exp(SIGMA**2 / 2) <= answer.high
    assert all(isinstance(x, int) for x in whole.rows)


@pytest.mark.slow
def test_intervals_cover() -> None:
    """.88 is .95 less 4 standard errors of 150 sweeps."""
    answers = [sweep(crossing(), seed=seed).answered()[0] for seed in range(150)]
    given = [answer for answer in answers if answer.state is State.given]
    assert len(given) > 140
    assert np.mean([answer.low <= HALF <= answer.high for answer in given]) > 0.88
