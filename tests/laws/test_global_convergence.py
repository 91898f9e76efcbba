"""Gradient flow of 2-homogeneous networks: from all directions it learns, from one sign of a it cannot."""

import numpy as np
import pytest

import sweeplib

pytestmark = pytest.mark.slow
P = 8


def run_of(a, root_seed):
    problem = sweeplib.Problem(
        p=P, k=2, d=4, gamma=1.0, Delta=0.0, activation="relu", a=a, a_star=[1.0, -1.0], second_layer_rate=1.0,
        start="sphere",
    )  # fmt: skip
    seen = ["risk", "second_layer", "self_overlap"]
    times = [0.0, 10.0, 300.0]
    return sweeplib.simulate(problem, "gradient_flow", times=times, observables=seen, root_seed=root_seed)


@pytest.mark.parametrize("root_seed", [0, 1])
def test_relu_networks_converge_from_full_support_and_not_from_one_sign(root_seed):
    """f ≥ 0 leaves at least ½ E[(f*)²; f* < 0], half of R at f = 0 as f* is odd under an exchange of the fields."""
    least_of_positive = 0.5 * 0.5 * 0.25 * (1.0 - 1.0 / np.pi)
    both = run_of([1.0, -1.0] * (P // 2), root_seed)
    one = run_of(1.0, root_seed)
    assert float(both.risk[..., -1].item()) < 1e-4
    assert least_of_positive < float(one.risk[..., -1].item()) < 1.2 * least_of_positive
    for run in (both, one):
        kept = run.second_layer**2 - run.self_overlap
        assert np.abs(kept).max() < 1e-6
        assert (np.sign(run.second_layer).isel(time=-1) == np.sign(run.second_layer).isel(time=0)).all()
