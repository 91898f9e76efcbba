"""The exponent of a mean in time: by NumPy's fit of the mean, coverage of its interval, what is refused."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import InputError
from sweeplib.analysis import ANALYSES
from tests.tiers import slow_but

time_exponent = ANALYSES["time_exponent"]
FLAGS = {"flag_values": [0, 1, 2], "flag_meanings": "missing ok diverged"}
TIMES = np.geomspace(0.01, 1.0, 12)
FACTORS = {
    "normal": lambda rng, shape: 1.0 + 0.3 * rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "growing": lambda rng, shape: 1.0 + 0.1 * np.cumsum(rng.normal(size=shape), axis=-1),
    "multiplied": lambda rng, shape: np.exp(np.cumsum(rng.normal(-0.02, 0.2, shape), axis=-1)),
}
"""Laws of factors of mean 1; the scatter of the last two grows with time."""


def sweep(risks, times=TIMES):
    """Return a sweep with these risks (..., seeds, times), and a record at time 0."""
    names = (*(f"axis_{n}" for n in range(risks.ndim - 2)), "seed")
    risks = np.concatenate([np.ones_like(risks[..., :1]), risks], axis=-1)
    ds = xr.Dataset({"risk": ((*names, "time"), risks, {"long_name": "risk"})})
    ds["status"] = (names, np.ones(risks.shape[:-1], np.uint8), FLAGS)
    coords = {"time": [0.0, *times], "seed": np.arange(risks.shape[-2])}
    return ds.expand_dims(dynamics=["sgd"]).assign_coords(coords)


def runs(law, rng, experiments, seeds, exponent=-0.5):
    """Return risks whose mean is t^exponent; half of each run's factor is the same at all times."""
    same, fresh = FACTORS[law](rng, (experiments, seeds, 1)), FACTORS[law](rng, (experiments, seeds, len(TIMES)))
    return TIMES**exponent * (same + fresh) / 2.0


def test_it_is_the_slope_of_the_mean():
    risks = runs("normal", np.random.default_rng(1), 1, 9)
    risks[..., 10:] *= 1.5
    by_fit = np.polyfit(np.log(TIMES[3:10]), np.log(risks[0].mean(axis=0)[3:10]), 1)[0]
    found = time_exponent(sweep(risks), first=TIMES[3], last=TIMES[9]).squeeze()
    resampled = [risks[0, np.arange(9) != n].mean(axis=0)[3:10] for n in range(9)]
    jackknife = np.polyfit(np.log(TIMES[3:10]), np.log(resampled).T, 1)[0]
    half = 2.53467 * np.std(jackknife) * np.sqrt(8)  # Student's t of 8 degrees of freedom at .9825
    assert float(found.time_exponent) == pytest.approx(by_fit, abs=0.02)  # less the bias of a logarithm
    ends = found.time_exponent - found.time_exponent_low, found.time_exponent_high - found.time_exponent
    assert float(min(ends)) == pytest.approx(half, rel=1e-6)
    assert float(max(ends)) > half  # by the skewness
    assert float(found.seeds_used) == 9


def test_a_power_has_no_change_and_a_bend_has_its_own():
    bent = np.minimum(TIMES**-0.5, TIMES**-1.0 * TIMES[5] ** 0.5)
    risks = np.stack([np.broadcast_to(curve, (4, len(TIMES))) for curve in (TIMES**-0.5, bent)])
    found = time_exponent(sweep(risks), last=TIMES[10]).squeeze()
    np.testing.assert_allclose(found.exponent_change, [0.0, -0.5], atol=1e-12)
    np.testing.assert_allclose(found.time_exponent[0], -0.5, rtol=1e-12)
    np.testing.assert_allclose(found.time_exponent_high - found.time_exponent_low, 0.0, atol=1e-9)


@pytest.mark.rest
@pytest.mark.parametrize("law", FACTORS)
@pytest.mark.parametrize("seeds", slow_but([3, 8, 32], 3))
def test_intervals_cover(law, seeds):
    """2000 experiments, coverage known to .005, .89 by pooled scatter that grows, .91 by Student's t where factors
    multiply; of three exponential runs a mean is measured in 30 %."""
    found = time_exponent(sweep(runs(law, np.random.default_rng(seeds), 2000, seeds)))
    for name, truth in (("time_exponent", -0.5), ("exponent_change", 0.0)):
        known = found[name].notnull()
        covered = ((found[f"{name}_low"] <= truth) & (found[f"{name}_high"] >= truth)).where(known).mean()
        assert 0.935 < float(covered) < 0.99
        assert float(known.mean()) > (0.25 if law == "exponential" and seeds == 3 else 0.98)


def test_what_is_not_measured_is_missing():
    risks = runs("normal", np.random.default_rng(2), 2, 8)
    risks[1, :, 6] -= risks[1, :, 6].mean()
    ds = sweep(risks)
    np.testing.assert_array_equal(time_exponent(ds).squeeze().time_exponent.isnull(), [False, True])
    assert time_exponent(ds, last=TIMES[5]).time_exponent.notnull().all()
    ds["risk"][0, 0, 3, 5] = np.nan
    assert bool(time_exponent(ds).squeeze().time_exponent[0].isnull())
    found = time_exponent(ds, max_lost=0.2).squeeze()
    assert float(found.seeds_used[0]) == 7
    assert bool(found.time_exponent[0].notnull())
    assert time_exponent(ds.isel(seed=[0, 1])).time_exponent.isnull().all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"of": "risks"}, "of: not recorded as numbers over time; got 'risks'.*risk"),
        ({"first": 0.5}, "first: too few times for an exponent"),
        ({"last": 0.01}, "last: too few times for an exponent; got '1 times'"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(options, said):
    with pytest.raises(InputError, match=said):
        time_exponent(sweep(runs("normal", np.random.default_rng(2), 1, 3)), **options)


def test_chunks_of_dask_have_the_same_exponents():
    ds = sweep(runs("normal", np.random.default_rng(2), 2, 8))
    xr.testing.assert_identical(time_exponent(ds.chunk(axis_0=1)).compute(), time_exponent(ds))
