"""The overlap chain has the law of SGD on the weights where inputs have several eigenvalues.

Kolmogorov-Smirnov p-values at 1e-4; some 210 of them, so one false alarm in 48 changes of the random numbers.
"""

import numpy as np
import pytest
from scipy import stats

from sweeplib import Problem, simulate
from tests.tiers import slow_but

LEVEL = 1e-4
SHOWN = ("overlap_Q", "overlap_M", "cosine_of_block", "second_layer", "risk")
COMMON = {"gamma": 1.0, "p": 2, "k": 2, "d": 30, "Delta": 0.1, "activation": "erf", "a": (1.0, -0.7)}
TWO = {"data": "two_level", "level_ratio": 5.0, "level_fraction": 0.3}

PROBLEMS = {
    "two levels": COMMON | TWO,
    "both layers": COMMON | TWO | {"second_layer_rate": 0.5, "second_layer_decay": 0.2, "weight_decay": 0.3},
    "sphere": COMMON | TWO | {"spherical": True},
    "blocks with few coordinates": COMMON | {"data": "power_law", "exponent": 0.5, "bins": 6},
    "teacher in two blocks": COMMON | TWO | {"teacher_block": (2, 1), "teacher_start": "gaussian"},
    "three units": COMMON | TWO | {"p": 3, "a": (1.0, -0.7, 0.5)},
    "three units, three blocks, both layers": COMMON
    | {"p": 3, "a": (1.0, -0.7, 0.5), "second_layer_rate": 0.5}
    | {"data": "spectrum", "eigenvalues": (1.0, 4.0, 0.2), "fractions": (4.0, 11.0, 15.0)},
    "weight noise": COMMON | TWO | {"temperature": 0.3, "weight_decay": 1.0},
    "weight noise, blocks with few coordinates, sphere": COMMON
    | {"data": "power_law", "exponent": 0.5, "bins": 6, "temperature": 0.3, "spherical": True},
    "logistic loss": COMMON | TWO | {"loss": "logistic", "labels": "sign"},
}


def columns(run):
    """Return all recorded numbers of the last time, of all seeds, as columns."""
    last = run.isel(time=-1)
    return np.hstack([last[name].values.reshape(len(run.seed), -1) for name in SHOWN]).T


@pytest.mark.parametrize("name", slow_but(PROBLEMS, "blocks with few coordinates"))
def test_overlaps_of_blocks_agree_in_law(name):
    problem, common = Problem(**PROBLEMS[name]), {"times": [0.0, 0.7], "observables": SHOWN, "root_seed": 7}
    weights = simulate(problem, "sgd", seeds=range(1000), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(1000, 2000), **common)
    for x, y in zip(columns(weights), columns(chain), strict=True):
        if np.ptp(x) > 1e-9:
            assert stats.ks_2samp(x, y).pvalue > LEVEL
