"""Which limit describes SGD: the simplest whose bias is hidden by the runs' scatter, none if they scatter too much."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from tests.datasets import FLAGS

analysis = ANALYSES["limits"]


def runs(flow_bias: float, ode_bias: float, spread: float, *, seeds: int = 64, random_seed: int = 0) -> xr.Dataset:
    """Return a risk that falls by .2; SGD has this spread, gradient flow and the ODE these biases."""
    noise = spread * np.random.default_rng(random_seed).standard_normal((seeds, 1))
    time = np.array([0.0, 0.5, 1.0])
    sgd = 0.3 - 0.2 * time + noise * time
    ode, flow = (np.tile(0.3 - (0.2 + bias) * time, (seeds, 1)) for bias in (ode_bias, flow_bias))
    status = xr.Variable(("dynamics", "seed"), np.ones((3, seeds), np.uint8), FLAGS)
    return xr.Dataset(
        {"risk": (("dynamics", "seed", "time"), np.stack([sgd, ode, flow])), "status": status},
        {"dynamics": ["sgd_chain", "ode", "gradient_flow"], "seed": np.arange(seeds), "time": time},
    )


def name(ds: xr.Dataset, **options) -> str:
    limit = analysis(ds, **options)["limit"]
    return limit.attrs["flag_meanings"].split()[int(limit)]


@pytest.mark.parametrize(
    ("flow_bias", "ode_bias", "spread", "expected"),
    [
        (0.0, 0.0, 0.01, "gradient_flow"),
        (0.003, 0.0, 0.01, "gradient_flow"),
        (0.03, 0.0, 0.01, "ode"),
        (0.03, 0.03, 0.01, "none"),
        (0.0, 0.0, 0.3, "none"),
        (0.01, 0.0, 0.01, "undecided"),
        (0.03, 0.01, 0.01, "undecided"),
    ],
)
def test_the_simplest_limit_within_the_seed_error(flow_bias, ode_bias, spread, expected):
    """Three decisions of 95 %, the others sure, at one fixed draw: wrong for 15 % of random seeds at most."""
    assert name(runs(flow_bias, ode_bias, spread)) == expected


def test_false_alarms_where_the_bias_is_the_seed_error():
    """200 experiments at the edge: each of two sides has at most 2.5 %, more than 15 of them once in 10⁴."""
    experiments = xr.concat([runs(0.01, 0.0, 0.01, random_seed=seed) for seed in range(200)], "experiment")
    limit = analysis(experiments)["limit"]
    for decision in (1, 2):
        assert (limit == decision).sum() <= 15


def test_a_dynamics_of_ones_own_can_be_a_limit():
    ds = runs(0.03, 0.03, 0.01)
    mean_field = ds.sel(dynamics=["ode"]).assign_coords(dynamics=["mean_field"])
    mean_field["risk"] = mean_field.risk + 0.03 * ds.time
    ds = xr.concat([ds, mean_field], "dynamics")
    assert name(ds, candidates=["gradient_flow", "ode", "mean_field"]) == "mean_field"


def test_what_was_not_run_is_undecided_or_refused():
    ds = runs(0.0, 0.0, 0.01)
    assert name(ds.assign(status=xr.zeros_like(ds.status).assign_attrs(FLAGS))) == "undecided"
    with pytest.raises(InputError, match=r"candidates: not among the dynamics that were run.*hdmf"):
        analysis(ds, candidates=["hdmf"])


@pytest.mark.parametrize(("scatter", "expected"), [(0.003, "mean_field"), (0.03, "ode")])
def test_a_limit_that_deviates_differently_at_each_start_does_not_describe_them(scatter, expected):
    """Its mean over the starts is right; what counts is its deviation at each of them."""
    ds = runs(0.03, 0.0, 0.01)
    mean_field = ds.sel(dynamics=["ode"]).assign_coords(dynamics=["mean_field"])
    starts = xr.DataArray(scatter * np.random.default_rng(1).standard_normal(ds.sizes["seed"]), dims="seed")
    mean_field["risk"] = mean_field.risk + starts * ds.time
    ds = xr.concat([ds, mean_field], "dynamics")
    assert name(ds, candidates=["mean_field", "gradient_flow", "ode"]) == expected
    found = analysis(ds, candidates=["mean_field", "gradient_flow", "ode"])
    assert found["describes"].values.tolist() == [int(expected == "mean_field"), 0, 1]
