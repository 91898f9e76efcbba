"""Problem: equality, defaults and refused values."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeplib.errors import InputError
from sweeplib.networks.problem import Problem

GOOD = {"gamma": 0.1, "p": 2, "k": 1, "d": 50, "Delta": 0.5, "activation": "square"}


@pytest.mark.parametrize(
    ("changes", "key", "expected"),
    [
        ({"gamma": -1.0}, "gamma", "greater than 0"),
        ({"gamma": float("nan")}, "gamma", "finite"),
        ({"p": 0}, "p", "a number of at least 1"),
        ({"d": 1.5}, "d", "a whole number"),
        ({"Delta": -0.1}, "Delta", "a number of at least 0"),
        ({"activation": "sqaure"}, "activation", "did you mean 'square'"),
        ({"teacher_activation": "erff"}, "teacher_activation", "did you mean 'erf'"),
        ({"gama": 1.0}, "gama", "did you mean 'gamma'"),
        ({"a": (1.0, 2.0, 3.0)}, "a", "2 numbers"),
        ({"a_star": (1.0, 2.0)}, "a_star", "1 numbers"),
        ({"spherical": True, "start": "gaussian"}, "start", "sphere"),
        ({"k": 51}, "k", "at most d = 50"),
    ],
)
def test_what_is_no_problem_is_refused_in_one_line(changes, key, expected):
    with pytest.raises(InputError) as caught:
        Problem(**{**GOOD, **changes})
    message = str(caught.value)
    assert key in message
    assert expected in message
    assert "\n" not in message


@given(gamma=st.floats(1e-12, 1e3), Delta=st.floats(0, 1e3), d=st.integers(1, 10**7))
def test_digests_differ_exactly_when_fields_do(gamma, Delta, d):
    problem = Problem(**{**GOOD, "gamma": gamma, "Delta": Delta, "d": d})
    assert problem.text == dataclasses.replace(problem).text
    assert problem.text != dataclasses.replace(problem, gamma=gamma * (1 + 1e-12)).text


@pytest.mark.parametrize(
    "same",
    [
        {"teacher_activation": "square"},
        {"a": (1.0, 1.0)},
        {"a": 1},
        {"start": "gaussian"},
        {"teacher_start": "orthogonal"},
    ],
)
def test_a_default_said_aloud_is_the_same_problem(same):
    assert Problem(**{**GOOD, **same}).text == Problem(**GOOD).text


def test_step_time():
    assert Problem(**GOOD).step_time() == 0.1 / (2 * 50)
