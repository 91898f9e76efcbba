"""The overlap chain has exactly the law of SGD on the weights: two simulators, one law.

Kolmogorov-Smirnov p-values at 1e-4; some 50 of them, so one false alarm in 200 changes of the random numbers.
"""

import numpy as np
import pytest
from scipy import stats

from sweeplib import Problem, simulate

LEVEL = 1e-4

PROBLEMS = {
    "erf p=3 k=2 d=30": Problem(gamma=1.0, p=3, k=2, d=30, Delta=0.1, activation="erf"),
    "square p=2 d=50": Problem(gamma=0.3, p=2, k=1, d=50, Delta=0.1, activation="square", spherical=True),
    "square p=4 d=200": Problem(gamma=0.4, p=4, k=1, d=200, Delta=0.5, activation="square", spherical=True),
    "plain square": Problem(gamma=0.05, p=2, k=2, d=40, Delta=0.1, activation="square"),
    "no room outside the span": Problem(gamma=0.5, p=1, k=1, d=2, Delta=0.1, activation="erf"),
    "one dimension outside": Problem(gamma=0.3, p=2, k=1, d=4, Delta=0.1, activation="square", spherical=True),
    "second layers": Problem(gamma=0.5, p=2, k=2, d=30, Delta=0.1, activation="erf", a=(1.0, -0.5), a_star=(2.0, 1.0)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_overlaps_agree_in_law(name):
    problem = PROBLEMS[name]
    common = {"times": [0.0, 0.7], "observables": ["overlap_Q", "overlap_M", "risk"], "root_seed": 7}
    weights = simulate(problem, "sgd", seeds=range(1200), **common).isel(time=-1)
    chain = simulate(problem, "sgd_chain", seeds=range(1200, 2400), **common).isel(time=-1)
    columns = [
        (name, *(ds[name].values.reshape(1200, -1) for ds in (weights, chain))) for name in common["observables"]
    ]
    for variable, of_weights, of_chain in columns:
        for x, y in zip(of_weights.T, of_chain.T, strict=True):
            if np.ptp(x) > 1e-9:
                assert stats.ks_2samp(x, y).pvalue > LEVEL, variable


def test_exit_steps_agree_in_law():
    """Phase retrieval at d = 300, γ near the optimum: the check that the quick start draws."""
    problem = Problem(gamma=0.08, p=1, k=1, d=300, Delta=0.5, activation="square", spherical=True)
    common = {"times": [0.0, 12.0], "thresholds": [0.01, 0.5], "stop": "exit", "root_seed": 3}
    weights = simulate(problem, "sgd", seeds=range(400), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(400, 3000), **common)
    assert weights.exit_steps.notnull().all()
    for threshold in (0.01, 0.5):
        x, y = (ds.exit_steps.sel(threshold=threshold).values for ds in (weights, chain))
        assert stats.ks_2samp(x, y).pvalue > LEVEL
