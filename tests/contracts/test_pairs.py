"""Features of problems beside each other: a dynamics acts on all that it takes, and leaves none out in silence."""

import dataclasses
import itertools

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate
from sweeplib.networks.simulation import Case, Recording
from tests.numpy_sgd import takes_the_steps_of_numpy

PLAIN = Problem(gamma=0.5, p=2, k=2, d=30, Delta=0.1, activation="erf", a=(1.0, -0.7))
TASKS = {"tasks": "in_turn", "switch_time": 0.1}
FEATURES = {
    "sphere": {"spherical": True},
    "second layer": {"second_layer_rate": 0.5, "second_layer_decay": 0.5},
    "decay": {"weight_decay": 0.5},
    "huber": {"loss": "huber", "huber_delta": 0.2},
    "sign labels": {"labels": "sign"},
    "clipped": {"update": "clipped", "clip_norm": 0.2},
    "adagrad_norm": {"update": "adagrad_norm", "adagrad_start": 0.3},
    "momentum": {"update": "heavy_ball", "momentum": 0.5},
    "tangent": {"update": "tangent", "spherical": True},
    "muon": {"update": "muon", "momentum": 0.5},
    "ridge": {"update": "spectral", "spectral_ridge": 0.3},
    "signs": {"update": "sign"},
    "spectrum": {"data": "two_level", "level_ratio": 4.0},
    "tasks": TASKS,
    "replay": {**TASKS, "replay": 0.4},
    "heads": {**TASKS, "heads": "separate", "second_layer_rate": 0.5, "second_layer_decay": 0.5},
    "batches": {"batch_size": 3},
    "repeats": {"repeats": 2},
    "training set": {"samples": 20, "batch_size": 3},
    "schedule": {"schedule": "1/(1 + 5*t)"},
    "noise schedule": {"noise_schedule": "exp(-3*t)"},
    "dropout": {"keep_probability": 0.6},
    "input noise": {"input_noise": 0.5},
    "weight noise": {"temperature": 0.3},
    "outliers": {"outlier_share": 0.2},
    "averages": {"averaging_rate": 3.0},
    "offsets": {"offset_scale": 0.7, "offset_rate": 1.5},
    "two Gaussians": {"data": "two_gaussians", "k": 0, "contrast": 0.4},
}
"""Names of features, and the parameters that make them."""
NOTHING = {
    ("sphere", "tangent", "sphere"): "tangent steps are on the sphere",
    ("huber", "signs", "huber"): "a force that is cut off has the same sign",
    ("tasks", "replay", "tasks"): "replay is one of tasks",
    ("tasks", "heads", "tasks"): "heads are those of tasks",
    ("second layer", "heads", "second layer"): "heads are second layers",
    ("batches", "training set", "batches"): "the training set has these batches",
}
"""Pairs, and of them the feature that changes nothing, with the reason."""
OF_FLOWS = {
    ("sphere", "decay", "decay"): "decay is along the rows, whose norms stay",
    ("sphere", "dropout", "dropout"): "the penalty is one of norms alone, where the second layer is fixed",
}
"""Those of gradient flow beside others."""


def results(dynamics, fields, known):
    """Return what a run with some fields records at two times, by name; None for one that is refused."""
    key = tuple(sorted(fields.items()))
    if key not in known:
        known[key] = None
        try:
            problem = dataclasses.replace(PLAIN, **fields)
            shown = ["risk", "second_layer", *(["risk_of_average"] if problem.has_averages else [])]
            times, options = [20 * PLAIN.step_time(), 0.3], {"delocalised": True} if dynamics == "sgd_chain" else None
            given = {"times": times, "seeds": range(2), "observables": shown, "pair_by": ["d"], "options": options}
            ds = simulate(problem, dynamics, **given)
        except InputError:
            return None
        assert (ds.status == 1).all(), fields
        known[key] = {name: ds[name].values for name in shown}
    return known[key]


@pytest.mark.slow
def test_sets_of_features_take_the_steps_of_numpy():
    """Of 150 sets of three to seven features, drawn at random, those that SGD takes."""
    rng, count = np.random.default_rng(5), 0
    # NumPy has δ = .3 for Huber; averages change no step
    features = FEATURES | {"huber": {"loss": "huber", "huber_delta": 0.3}}
    names = [name for name in features if name != "averages"]
    for _ in range(150):
        chosen = rng.choice(names, rng.integers(3, 8), replace=False)
        fields = {key: value for name in chosen for key, value in features[name].items()}
        try:
            problem = dataclasses.replace(PLAIN, **fields)
            Case(problem, "sgd", 0, Recording((1.0,))).check()
        except InputError:
            continue
        takes_the_steps_of_numpy(problem, 1e-7)
        count += 1
    assert count > 60


def agree(one, other):
    """Return whether results are the same, of what both recorded."""
    return one.keys() == other.keys() and all(np.allclose(one[name], other[name], rtol=1e-9) for name in one)


@pytest.mark.slow
@pytest.mark.parametrize(("dynamics", "least"), [("sgd", 330), ("sgd_chain", 210), ("gradient_flow", 50)])
def test_no_feature_is_left_out_beside_another(dynamics, least):
    """Of all pairs that run, at `least` so many, each feature changes the numbers; the others are refused."""
    known, count, left_out = {}, 0, []
    for one, other in itertools.combinations(FEATURES, 2):
        first, second = FEATURES[one], FEATURES[other]
        if any(first[key] != second[key] for key in first.keys() & second.keys()):
            continue
        both = results(dynamics, first | second, known)
        if both is None:
            continue
        count += 1
        for feature, without in ((one, second), (other, first)):
            alone = results(dynamics, without, known)
            if alone is not None and agree(both, alone):
                left_out.append((one, other, feature))
    expected = set(NOTHING) | (set(OF_FLOWS) if dynamics == "gradient_flow" else set())
    assert set(left_out) <= expected
    assert count >= least
