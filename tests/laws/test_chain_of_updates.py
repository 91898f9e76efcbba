"""The overlap chain has the law of SGD on the weights for steps other than plain ones.

Kolmogorov-Smirnov p-values at 1e-4; some 400 of them, so one false alarm in 25 changes of the random numbers.
"""

import numpy as np
import pytest
from scipy import stats

from sweeplib import Problem, simulate
from tests.tiers import slow_but

LEVEL = 1e-4
SHOWN = ("overlap_Q", "overlap_M", "second_layer", "risk")
COMMON = {"gamma": 1.0, "p": 2, "k": 2, "d": 30, "Delta": 0.1, "activation": "erf", "a": (1.0, -0.7)}
BOTH = {"second_layer_rate": 0.5}

PROBLEMS = {
    "normalised": {"update": "normalised", "gamma": 0.5},
    "normalised, sphere": {"update": "normalised", "gamma": 0.5, "spherical": True},
    "clipped, both layers": {"update": "clipped", "clip_norm": 0.3, **BOTH},
    "clipped, decay": {"update": "clipped", "clip_norm": 0.3, "weight_decay": 0.3, **BOTH},
    "clipped, correlation": {"update": "clipped", "clip_norm": 0.5, "loss": "correlation", "spherical": True},
    "adagrad_norm": {"update": "adagrad_norm", "adagrad_start": 0.3, **BOTH},
    "adagrad_norm, three units": {"update": "adagrad_norm", "adagrad_start": 0.3, "p": 3, "a": 1.0},
    "heavy_ball": {"update": "heavy_ball", "momentum": 0.8, "gamma": 0.3},
    "momentum, both layers": {"update": "heavy_ball", "momentum": 0.5, **BOTH},
    "momentum, three units": {"update": "heavy_ball", "momentum": 0.8, "gamma": 0.3, "p": 3, "a": 1.0},
    "momentum, logistic": {"update": "heavy_ball", "momentum": 0.8, "gamma": 0.3, "loss": "logistic", "labels": "sign"},
    "momentum, few dimensions": {"update": "heavy_ball", "momentum": 0.6, "gamma": 0.3, "d": 6},
    "momentum, sphere": {"update": "heavy_ball", "momentum": 0.8, "gamma": 0.6, "spherical": True},
    "momentum, sphere, batches": {
        "update": "heavy_ball",
        "momentum": 0.8,
        "gamma": 2.0,
        "spherical": True,
        "batch_size": 7,
        **BOTH,
    },
    "tangent": {"update": "tangent", "spherical": True, "gamma": 3.0},
    "tangent, both layers": {"update": "tangent", "spherical": True, "gamma": 3.0, **BOTH},
    "tangent, far in few dimensions": {"update": "tangent", "spherical": True, "gamma": 40.0, "d": 6, "Delta": 2.0},
    "normalised, batches": {"update": "normalised", "gamma": 2.0, "batch_size": 7},
    "normalised, batches larger than d": {"update": "normalised", "gamma": 2.0, "batch_size": 12, "d": 5},
    "clipped, batches, sphere": {
        "update": "clipped",
        "clip_norm": 0.05,
        "gamma": 20.0,
        "batch_size": 40,
        "spherical": True,
    },
    "adagrad_norm, batches, both layers": {
        "update": "adagrad_norm",
        "adagrad_start": 0.01,
        "gamma": 3.0,
        "batch_size": 2,
        "p": 3,
        "a": 1.0,
        "weight_decay": 0.5,
        **BOTH,
    },
    "tangent, batches": {"update": "tangent", "spherical": True, "gamma": 20.0, "batch_size": 7},
    "momentum, batches": {"update": "heavy_ball", "momentum": 0.8, "gamma": 0.5, "batch_size": 7},
    "momentum, large batches": {"update": "heavy_ball", "momentum": 0.8, "batch_size": 40, "p": 3, "a": 1.0, **BOTH},
    "spectral, batches": {"update": "spectral", "gamma": 1.0, "batch_size": 7, **BOTH},
    "spectral, fewer samples than units": {"update": "spectral", "gamma": 1.5, "batch_size": 2, "p": 3, "a": 1.0},
    "spectral, fewest dimensions": {"update": "spectral", "gamma": 0.3, "batch_size": 6, "d": 4},
    "ridge, decay": {"update": "spectral", "spectral_ridge": 0.3, "batch_size": 5, "weight_decay": 2.0, "gamma": 0.7},
    "ridge, one sample": {"update": "spectral", "spectral_ridge": 0.3, "gamma": 0.7},
    "newton_schulz, large batches, sphere": {"update": "newton_schulz", "batch_size": 40, "spherical": True},
    "spectral momentum": {"update": "spectral_momentum", "momentum": 0.8, "batch_size": 5, "gamma": 0.5, **BOTH},
    "spectral momentum, fewest dimensions": {
        "update": "spectral_momentum",
        "momentum": 0.6,
        "spectral_ridge": 0.1,
        "batch_size": 40,
        "gamma": 0.3,
        "d": 6,
    },
    "muon, decay": {"update": "muon", "momentum": 0.8, "batch_size": 3, "weight_decay": 3.0, "gamma": 0.5},
    "muon, one sample, sphere": {"update": "muon", "momentum": 0.8, "spherical": True, "gamma": 0.5},
    "muon, logistic": {
        "update": "muon",
        "momentum": 0.8,
        "gamma": 0.5,
        "batch_size": 4,
        "loss": "logistic",
        "labels": "sign",
    },
}


def columns(run, shown):
    """Return all recorded numbers of the two last times, of all seeds, as columns."""
    return np.hstack([run[name].isel(time=[1, 2]).values.reshape(len(run.seed), -1) for name in shown]).T


@pytest.mark.parametrize("name", slow_but(PROBLEMS, "momentum, three units", "normalised, batches"))
def test_overlaps_of_other_steps_agree_in_law(name):
    agree_in_law(Problem(**COMMON | PROBLEMS[name]))


def agree_in_law(problem):
    """Compare all overlaps at two times, of 1500 runs on weights and 3000 of the chain."""
    steps = np.array([0, 12, 45])
    shown = (*SHOWN, "average_Q", "average_M", "risk_of_average") if problem.has_averages else SHOWN
    common = {"times": steps * problem.step_time(), "observables": shown, "root_seed": 7}
    weights = simulate(problem, "sgd", seeds=range(1500), **common)
    chain = simulate(problem, "sgd_chain", seeds=range(1500, 4500), **common)
    for x, y in zip(columns(weights, shown), columns(chain, shown), strict=True):
        if np.ptp(x) > 1e-9:
            assert stats.ks_2samp(x, y).pvalue > LEVEL
