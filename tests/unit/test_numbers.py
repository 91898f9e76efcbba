"""The numbers of replicas: parameters of a problem that kernels read by their own names."""

import math

import numpy as np
import pytest

from sweeplib import Problem
from sweeplib.networks.kernels.numbers import COUNT, REAL, Numbers, numbers_of_rows
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.problem.base_parameters import CORE, CORE_DEFAULTS, TAILS
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of

COMMON = {"k": 1, "activation": "square"}
PROBLEMS = (
    Problem(gamma=0.2, p=2, d=40, Delta=0.1, weight_decay=0.3, batch_size=4, **COMMON),
    Problem(gamma=0.7, p=2, d=60, Delta=0.0, second_layer_rate=0.5, second_layer_decay=0.2, batch_size=4, **COMMON),
)


def test_numbers_are_the_real_parameters_of_problems_and_what_follows_from_them():
    """Widths, counts, names and second layers are none; those of the law of labels are an array of their own."""
    replicas = replicas_of([Case(problem, "sgd", 0, Recording((0.0,))) for problem in PROBLEMS])
    for i, problem in enumerate(PROBLEMS):
        found = replicas.numbers_of(i)._asdict()
        assert [found.pop(name) for name in ("d", "T")] == [problem.d, problem.gamma / (2 * problem.d)]
        assert found.pop("noise") == problem.gamma / 8
        assert found.pop("deviation") == math.sqrt(problem.Delta)
        assert found == {name: getattr(problem, name) for name in REAL}
    of_a_default = {name for name, value in CORE_DEFAULTS.items() if isinstance(value, float)}
    assert set(REAL) == of_a_default - {"a", "a_star"} - TAILS | {"gamma", "Delta"}
    assert set(REAL) <= set(CORE)


@pytest.mark.rest
def test_kernels_make_numbers_of_the_rows_of_an_array():
    """Row n is field n."""
    rows = np.arange(3.0 * COUNT).reshape(COUNT, 3)
    made = specialised(_made)(rows)
    assert type(made) is Numbers
    np.testing.assert_array_equal(np.array(made), rows)


def _made(rows):  # type: ignore[no-untyped-def]
    return numbers_of_rows(rows)
