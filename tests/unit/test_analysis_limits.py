"""Which limit describes SGD: the simplest whose bias is hidden by the runs' scatter, none if they scatter too much."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.limits import limits_expected
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.errors import InputError

analysis = ANALYSES["limits"]


def runs(flow_bias: float, ode_bias: float, spread: float, *, seeds: int = 64, random_seed: int = 0) -> xr.Dataset:
    """Return a risk that falls by .2; SGD has this spread, gradient flow and the ODE these biases."""
    noise = spread * np.random.default_rng(random_seed).standard_normal((seeds, 1))
    time = np.array([0.0, 0.5, 1.0])
    sgd = 0.3 - 0.2 * time + noise * time
    ode, flow = (np.tile(0.3 - (0.2 + bias) * time, (seeds, 1)) for bias in (ode_bias, flow_bias))
    status = xr.Variable(("dynamics", "seed"), np.ones((3, seeds), np.uint8), STATUS_LABELS)
    return xr.Dataset(
        {"risk": (("dynamics", "seed", "time"), np.stack([sgd, ode, flow])), "status": status},
        {"dynamics": ["sgd_chain", "ode", "gradient_flow"], "seed": np.arange(seeds), "time": time},
        {"gamma": 0.1, "p": 10, "d": 10_000},
    )


def name(ds: xr.Dataset, **options) -> str:
    limit = analysis(ds, **options)["limit"]
    return limit.attrs["flag_meanings"].split()[int(limit)]


@pytest.mark.rest
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


@pytest.mark.rest
def test_no_seeds_decide_where_the_limit_that_would_has_not_been_run():
    ds = runs(0.03, 0.0, 0.01)
    without = ds.assign(status=ds.status.where(ds.dynamics != "ode", 0).astype(np.uint8).assign_attrs(STATUS_LABELS))
    assert (name(without), float(analysis(without)["decidable"])) == ("undecided", 0.0)
    near = runs(0.03, 0.01, 0.01)
    assert (name(near), float(analysis(near)["decidable"])) == ("undecided", 1.0)
    flow = runs(0.0, 0.0, 0.01)
    unneeded = flow.assign(
        status=flow.status.where(ds.dynamics != "ode", 0).astype(np.uint8).assign_attrs(STATUS_LABELS)
    )
    assert (name(unneeded), float(analysis(unneeded)["decidable"])) == ("gradient_flow", 1.0)


@pytest.mark.rest
def test_false_alarms_where_the_bias_is_the_seed_error():
    """200 experiments at the edge: each of two sides has at most 2.5 %, more than 15 of them once in 10⁴."""
    experiments = xr.concat([runs(0.01, 0.0, 0.01, random_seed=seed) for seed in range(200)], "experiment")
    limit = analysis(experiments)["limit"]
    for decision in (1, 2):
        assert (limit == decision).sum() <= 15


def test_a_bias_that_is_the_same_at_many_times_is_not_above_its_interval_more_often():
    """400 experiments, each with the chance .025: more than 24 once in 10⁴. That of the largest alone was in .30."""
    generator = np.random.default_rng(0)
    values = np.stack([0.8 + generator.standard_normal((400, 16, 20)), np.zeros((400, 16, 20))])
    risk = np.concatenate([np.zeros((2, 400, 16, 1)), values], axis=-1)
    dims = ("dynamics", "experiment", "seed")
    status = xr.Variable(dims, np.ones(risk.shape[:-1], np.uint8), STATUS_LABELS)
    ds = xr.Dataset({"risk": ((*dims, "time"), risk), "status": status}, {"gamma": 0.1, "p": 10, "d": 10_000})
    ds = ds.assign_coords(dynamics=["sgd_chain", "ode"], seed=np.arange(16), time=np.arange(21.0))
    found = analysis(ds, candidates=["ode"])
    assert (found["bias_low"] > 0.8).sum() <= 24
    assert (found["bias_high"] < 0.8).sum() == 0


def test_a_spread_near_the_most_is_undecided() -> None:
    """400 experiments, each with the chance .025: more than 24 once in 10⁴. "none" was said in .8 of them."""
    scatter = 0.45 * np.random.default_rng(0).standard_normal((400, 16, 4))
    risk = np.stack([scatter, np.zeros_like(scatter)])
    risk = np.concatenate([np.ones((*risk.shape[:-1], 1)), risk], axis=-1)
    dims = ("dynamics", "experiment", "seed")
    status = xr.Variable(dims, np.ones(risk.shape[:-1], np.uint8), STATUS_LABELS)
    ds = xr.Dataset({"risk": ((*dims, "time"), risk), "status": status}, {"gamma": 0.1, "p": 10, "d": 10_000})
    ds = ds.assign_coords(dynamics=["sgd_chain", "ode"], seed=np.arange(16), time=np.arange(5.0))
    found = analysis(ds, candidates=["ode"])
    assert (found["limit"] == 2).sum() <= 24
    assert (found["spread_low"] > 0.45).sum() <= 24 and (found["spread_high"] < 0.45).sum() <= 24
    assert (analysis(ds, candidates=["ode"], most_spread=0.2)["limit"] == 2).mean() > 0.95


@pytest.mark.parametrize("seeds", [16, 64])
def test_a_spread_is_known_as_its_change_is(seeds: int) -> None:
    """Half of the runs leave the plateau: .73 to .80 of the intervals held. 400 experiments: below .91 once in 10⁴."""
    generator = np.random.default_rng(seeds)
    limit = (generator.random((400, seeds)) < 0.5).astype(float)
    risk = np.stack([limit + 0.2 * generator.standard_normal(limit.shape), limit])
    risk = np.stack([np.zeros_like(risk), risk], axis=-1)
    dims = ("dynamics", "experiment", "seed")
    status = xr.Variable(dims, np.ones(risk.shape[:-1], np.uint8), STATUS_LABELS)
    ds = xr.Dataset({"risk": ((*dims, "time"), risk), "status": status}, {"gamma": 0.1, "p": 10, "d": 10_000})
    ds = ds.assign_coords(dynamics=["sgd_chain", "ode"], seed=np.arange(seeds), time=np.arange(2.0))
    found = analysis(ds, candidates=["ode"])
    assert ((found["spread_low"] <= 0.4) & (found["spread_high"] >= 0.4)).mean() > 0.91


def test_an_infinite_spread_is_refused() -> None:
    """It would be an attribute of the result, and JSON has no infinite number."""
    with pytest.raises(InputError, match="most_spread"):
        analysis.check({"most_spread": np.inf})


def test_a_dynamics_of_ones_own_can_be_a_limit():
    ds = runs(0.03, 0.03, 0.01)
    mean_field = ds.sel(dynamics=["ode"]).assign_coords(dynamics=["mean_field"])
    mean_field["risk"] = mean_field.risk + 0.03 * ds.time
    ds = xr.concat([ds, mean_field], "dynamics")
    assert name(ds, candidates=["gradient_flow", "ode", "mean_field"]) == "mean_field"


def test_what_was_not_run_is_undecided_or_refused():
    ds = runs(0.0, 0.0, 0.01)
    assert name(ds.assign(status=xr.zeros_like(ds.status).assign_attrs(STATUS_LABELS))) == "undecided"
    with pytest.raises(InputError, match=r"candidates: not among the dynamics that were run.*hdmf"):
        analysis(ds, candidates=["hdmf"])
    with pytest.raises(InputError, match=r"times: the start is not recorded; got 0\.5"):
        analysis(ds.isel(time=slice(1, None)))


@pytest.mark.rest
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


ORDERED = ("mean_field_hd", "mean_field", "gradient_flow", "ode")


@pytest.mark.parametrize(
    ("ratio", "p", "d", "expected"),
    [
        (1e-5, 10, 1000, "gradient_flow"),  # scatter 1e-4, above r
        (1e-2, 10, 1000, "ode"),  # scatter .003, below r and 1/p
        (10.0, 10, 10_000, "ode"),  # scatter 10/√d = .1
        (100.0, 10, 1000, "none"),
        (1e-3, 1000, 30, "mean_field"),  # scatter .006, above 1/p and r, below 1/d
        (1e-5, 1000, 1000, "gradient_flow"),  # scatter 1e-4, below 1/p
        (3e-3, 1000, 30, "mean_field"),
        (1e-4, 10_000, 5000, "undecided"),  # scatter 1.4e-4, near 1/p, 1/d and r
        (1e-2, 10, 100, "undecided"),  # scatter r
        (1.0, 1000, 5, "undecided"),  # scatter near ½
    ],
)
def test_what_theory_expects_follows_from_orders_of_magnitude(ratio, p, d, expected):
    ds = xr.Dataset(attrs={"gamma": ratio * p, "p": p, "d": d})
    found = limits_expected(ds, ORDERED, 0.5, 1.5)
    assert ("undecided", *ORDERED, "none")[int(found)] == expected


@pytest.mark.parametrize("fields", [{"spherical": True}, {"second_layer_rate": 1.0}, {"batch_size": 4}])
def test_theory_is_silent_elsewhere(fields):
    assert limits_expected(xr.Dataset(attrs={"gamma": 1e-4, "p": 10, "d": 1000} | fields), ORDERED, 0.5, 2.0) == 0


def test_theory_is_silent_from_an_unknown_candidate_on():
    for candidates, expected in ((("gradient_flow", "mine"), 1), (("mine", "gradient_flow"), 0)):
        assert limits_expected(xr.Dataset(attrs={"gamma": 1e-4, "p": 10, "d": 1000}), candidates, 0.5, 2.0) == expected


def test_the_margin_silences_theory_near_a_boundary_only():
    """Decided points shrink with the margin, and no decision changes."""
    ratio, d = np.geomspace(1e-4, 100.0, 40), np.geomspace(3.0, 1e4, 30)
    ds = xr.Dataset(coords={"gamma": ("rate", 50.0 * ratio), "d": d}, attrs={"p": 50})
    one, two, ten = (limits_expected(ds, ORDERED, 0.5, margin) for margin in (1.0, 2.0, 10.0))
    assert (one > 0).all()
    assert set(np.unique(one)) == {2, 3, 4, 5}  # √(r/d) > 1/d only where r > √(r/d): nothing is left to d → ∞
    assert 1.0 > (two > 0).mean() > (ten > 0).mean() > 0.0
    for fewer, more in ((two, one), (ten, two)):
        assert ((fewer == more) | (fewer == 0)).all()


def test_agreement_is_counted_over_the_points_that_both_decide():
    """Ten experiments: theory says the ODE at r = .01, d = 10⁴, p = 10 and gradient flow at 10⁻⁶; runs say the ODE."""
    ode, flow = (runs(0.03, 0.0, 0.01, random_seed=seed).assign_coords(gamma=10 * r)
                 for seed, r in ((0, 1e-2), (1, 1e-6)))  # fmt: skip
    unsure = runs(0.03, 0.01, 0.01).assign_coords(gamma=0.1)
    found = analysis(xr.concat([ode, ode, ode, flow, unsure], "experiment", combine_attrs="override"))
    assert found.limit.values.tolist() == [2, 2, 2, 2, 0]
    assert found.limit_theory.values.tolist() == [2, 2, 2, 1, 2]
    assert (found.agreement.item(), found.points_compared.item()) == (0.75, 4)
    assert found.agreement_low.item() == pytest.approx(0.1941, abs=1e-4)
    assert found.agreement_high.item() == pytest.approx(0.9937, abs=1e-4)


def test_agreement_is_unknown_where_theory_is_silent():
    found = analysis(runs(0.03, 0.0, 0.01).assign_attrs(spherical=True))
    assert np.isnan(found.agreement)
    assert found.points_compared == 0
