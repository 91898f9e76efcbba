"""The overlap chain has the law of SGD on the weights with noise: dropout, of inputs, weights and labels.

Kolmogorov-Smirnov p-values at 1e-4; some 400 of them, so one false alarm in 25 changes of the random numbers.
"""

import pytest

from sweeplib import Problem
from tests.laws.test_chain_of_updates import BOTH, COMMON, agree_in_law
from tests.losses import with_loss
from tests.tiers import slow_but

DISTURBED = {"keep_probability": 0.6, "input_noise": 0.8}
PROBLEMS = {
    "dropout, both layers": {"keep_probability": 0.6, **BOTH},
    "dropout, decay, sphere": {"keep_probability": 0.6, "weight_decay": 0.5, "spherical": True, "gamma": 3.0},
    "dropout, six units": {"keep_probability": 0.3, "p": 6, "a": 1.0},
    "input noise": {"input_noise": 0.4},
    "input noise, both layers": {"input_noise": 1.5, **BOTH},
    "input noise, sphere": {"input_noise": 0.4, "spherical": True, "gamma": 3.0},
    "input noise, few dimensions": {"input_noise": 1.5, "d": 6},
    "dropout, huber, both layers": {"keep_probability": 0.6, **with_loss("huber"), **BOTH},
    "input noise, logistic": {"input_noise": 0.8, **with_loss("logistic", "sign")},
    "dropout and input noise, clipped": {**DISTURBED, "update": "clipped", "clip_norm": 0.3},
    "dropout and input noise, adagrad_norm": {**DISTURBED, "update": "adagrad_norm", "adagrad_start": 0.3},
    "dropout and input noise, momentum": {**DISTURBED, "update": "heavy_ball", "momentum": 0.8, "gamma": 0.3},
    "dropout and input noise, tangent": {**DISTURBED, "update": "tangent", "spherical": True, "gamma": 3.0},
    "dropout and input noise, ridge": {**DISTURBED, "update": "spectral", "spectral_ridge": 0.3, "gamma": 0.7},
    "dropout and input noise, replay": {**DISTURBED, **BOTH, "tasks": "in_turn", "switch_time": 0.3, "replay": 0.3},
    "annealed labels": {"noise_schedule": "4*exp(-3*t)"},
    "annealed labels, adagrad_norm": {
        "noise_schedule": "4*exp(-3*t)",
        "update": "adagrad_norm",
        "adagrad_start": 0.3,
    },
    "annealed labels, reused batches": {"noise_schedule": "4*exp(-3*t)", "batch_size": 3, "repeats": 3},
    "annealed labels, large batches": {"noise_schedule": "40*exp(-3*t)", "batch_size": 40},
    "annealed labels, spectrum": {"noise_schedule": "4*exp(-3*t)", "data": "two_level", "level_ratio": 4.0},
    "weight noise": {"temperature": 0.3},
    "weight noise, both layers, decay": {"temperature": 0.3, "weight_decay": 1.0, **BOTH},
    "weight noise, sphere": {"temperature": 0.3, "spherical": True},
    "weight noise, fewest dimensions": {"temperature": 0.3, "d": 4},
    "weight noise, one dimension out of the span": {"temperature": 0.3, "p": 3, "a": 1.0, "d": 6},
    "weight noise, dropout": {"temperature": 0.3, "keep_probability": 0.6, "p": 3, "a": 1.0},
    "weight noise, clipped": {"temperature": 0.3, "update": "clipped", "clip_norm": 0.3},
    "weight noise, momentum": {"temperature": 0.3, "update": "heavy_ball", "momentum": 0.8, "gamma": 0.3},
    "weight noise, small batches": {"temperature": 0.3, "batch_size": 3, "schedule": "1/(1 + t)"},
    "weight noise, large batches, sphere": {"temperature": 0.3, "batch_size": 40, "spherical": True, "gamma": 3.0},
    "weight noise, muon": {"temperature": 0.3, "update": "muon", "momentum": 0.8, "batch_size": 3, "gamma": 0.5},
    "tails": {"noise_tail": 0.3},
    "outliers, huber, small batches": {"outlier_share": 0.1, "loss": "huber", "huber_delta": 0.3, "batch_size": 3},
    "tails and outliers, large batches": {"noise_tail": 0.3, "outlier_share": 0.1, "batch_size": 40},
    "tails, reused batches": {"noise_tail": 0.3, "batch_size": 3, "repeats": 3},
    "outliers, spectrum": {"outlier_share": 0.1, "data": "two_level", "level_ratio": 4.0},
    "all, three units": {"keep_probability": 0.6, "input_noise": 0.4, "noise_schedule": "exp(-t)", "p": 3, "a": 1.0},
}


@pytest.mark.parametrize("name", slow_but(PROBLEMS, "dropout, both layers", "input noise, both layers", "weight noise"))
def test_overlaps_with_noise_agree_in_law(name):
    agree_in_law(Problem(**COMMON | PROBLEMS[name]))
