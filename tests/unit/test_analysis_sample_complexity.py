"""Sample complexity: exponent and law of known growths, and undecidable cases."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import activation
from sweeplib.statistics.bootstrap import Resampling, seed_weights
from sweeplib.statistics.growth_laws import growth, growth_of, rate_exponent
from tests.datasets import sweep_dataset

analysis = ANALYSES["sample_complexity"]
DIMENSIONS = [100, 300, 1000, 3000, 10_000, 30_000, 100_000]


def exits(law: int, offset: float, amplitude: float, *, d=DIMENSIONS, seeds=64, random_seed=0) -> xr.Dataset:
    """Return runs whose mean exit steps are d (offset + amplitude g(d)), with a scatter of a third."""
    ds = sweep_dataset(ratios=[1.0], d=d, Delta=[0.0], seeds=seeds, dynamics=["sgd_chain"])
    steps = ds.d * (offset + amplitude * xr.DataArray(growth(law, np.array(d, float)), dims="d"))
    rng = np.random.default_rng(random_seed)
    scatter = rng.gamma(9.0, 1 / 9.0, size=ds.exit_steps.shape)
    ds["exit_steps"] = (xr.ones_like(ds.exit_steps) * scatter * steps).assign_attrs(ds.exit_steps.attrs)
    ds["end_steps"] = ds.exit_steps.isel(threshold=0, drop=True)
    return ds


@pytest.mark.slow
@pytest.mark.parametrize(("law", "offset", "amplitude"), [(1, 7.0, 0.0), (2, -4.0, 1.5), (3, 2.0, 0.05)])
def test_the_law_of_a_known_growth_is_found(law, offset, amplitude):
    """Ten samples each: a constant is classified as a law of two parameters in 16 % of cases, 6 times once in 300."""
    found = [
        analysis(exits(law, offset, amplitude, random_seed=seed), resamples=40).squeeze().best_law for seed in range(10)
    ]
    assert np.sum(np.array(found) == law) > 4
    fitted = analysis(exits(law, offset, amplitude), resamples=40).squeeze().sel(law=law)
    last = float(growth(law, np.array([1e5]))[0])
    assert float(fitted.law_offset + fitted.law_amplitude * last) == pytest.approx(offset + amplitude * last, rel=0.15)


def test_the_exponent_of_a_power_and_its_interval():
    found = analysis(exits(3, 0.0, 0.05)).squeeze()
    assert found.exponent == pytest.approx(2.0, abs=0.05)
    assert found.exponent_low < 2.0 < found.exponent_high
    flat = analysis(exits(1, 7.0, 0.0)).squeeze()
    assert flat.exponent_low < 1.0 < flat.exponent_high


@pytest.mark.rest
def test_intervals_of_the_exponent_cover():
    """300 experiments of 48 seeds: of 95 % intervals fewer than 89 % cover once in 10⁴."""
    rng, draws = np.random.default_rng(4), seed_weights(48, 300, 0)
    covered = 0
    for _ in range(300):
        ratio, d = rng.gamma(9.0, size=(48, 4)), np.array(DIMENSIONS[:4], float)
        found = growth_of(ratio, d, Resampling(draws, rng, 0.95), 0.02, (1,))
        covered += found.low <= 1.0 <= found.high
    assert covered / 300 > 0.89


def test_steps_over_d_are_the_means():
    ds = exits(1, 7.0, 0.0)
    found = analysis(ds, resamples=40).squeeze()
    np.testing.assert_allclose(found.steps_over_d, (ds.exit_steps / ds.d).mean("seed").squeeze())
    np.testing.assert_allclose(found.steps_over_d_error, (ds.exit_steps / ds.d).std("seed", ddof=1).squeeze() / 8)


def test_censored_dimensions_are_left_out():
    ds = exits(1, 7.0, 0.0)
    late = ds.d == 100_000
    ds["exit_steps"] = ds.exit_steps.where(~late | (ds.seed > 10))
    ds["end_steps"] = ds.end_steps.where(~late | (ds.seed > 10), 5e5)
    found = analysis(ds, resamples=40).squeeze()
    assert found.steps_over_d.sel(d=100_000).isnull()
    assert found.steps_over_d.sel(d=30_000).notnull()
    assert found.exponent.notnull()


def test_two_dimensions_tell_an_exponent_but_no_law():
    found = analysis(exits(3, 0.0, 0.05, d=[100, 10_000])).squeeze()
    assert found.exponent == pytest.approx(2.0, abs=0.1)
    assert found.best_law.isnull()
    assert found.law_chi2.isnull().all()


PAIRS = [
    ("square", None, 2),
    ("erf", None, 1),
    ("he4", None, 4),
    ("hermite(0, 0, 0, 1, 0.5)", "he4", 4),
    ("hermite(0, 1, 0, 0, 0.5)", "he4", 4),
    ("erf", "he3", 3),
    ("he3", "erf", 3),
    ("erf", "hermite(0, 0, 1, 1)", 3),
    ("relu", "he3", np.nan),
    ("relu", "he4", 4),
    ("relu", "erf", 1),
    ("square", "erf", np.nan),
    ("square", "something of a plugin", np.nan),
]


@pytest.mark.rest
@pytest.mark.parametrize(("student", "teacher", "expected"), PAIRS)
def test_the_information_exponent_is_that_of_the_pair(student, teacher, expected):
    """The exponent is not the teacher's: for h₂ + h₃ an odd student has 3, not 2; for erf a cubic one has 3, not 1."""
    fields = {"activation": student} | ({"teacher_activation": teacher} if teacher else {})
    found = analysis(exits(2, 1.0, 1.0, d=DIMENSIONS[:3], seeds=4).assign_coords(fields), resamples=40)
    np.testing.assert_equal(found.information_exponent.item(), expected)


@pytest.mark.parametrize(("student", "teacher", "expected"), [pair for pair in PAIRS if "plugin" not in str(pair[1])])
def test_the_exponent_is_the_power_of_the_drift(student, teacher, expected):
    """E[σ'(λ) σ*'(λ*)] by Gauss-Hermite quadrature falls as m^(κ−1) for κ, and is 0 where there is none."""
    one, other = (activation(name or student) for name in (student, teacher))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def drift(m):
        z, across = nodes[:, None], nodes[None, :]
        slopes = np.vectorize(one.derivative)(z) * np.vectorize(other.derivative)(m * z + np.sqrt(1 - m**2) * across)
        return weights @ slopes @ weights

    if np.isnan(expected):
        assert abs(drift(0.1)) < 1e-12
        return
    power = np.log(drift(0.02) / drift(0.01)) / np.log(2.0)
    assert power == pytest.approx(expected - 1, abs=0.02)


@pytest.mark.rest
def test_units_off_the_sphere_see_lower_orders():
    """h₃(√q z) has a linear part at q ≠ 1; a teacher of norm √d has none, and one of Gaussian weights a small one."""
    ds = exits(2, 1.0, 1.0, d=DIMENSIONS[:3], seeds=4)

    def exponent(**fields):
        return analysis(ds.assign_coords(fields), resamples=40).information_exponent.item()

    assert exponent(activation="he3", teacher_activation="erf", spherical=True) == 3
    assert exponent(activation="he3", teacher_activation="erf", spherical=False) == 1
    assert exponent(activation="he3", spherical=False) == 3
    assert exponent(activation="erf", teacher_activation="he3", teacher_start="orthogonal") == 3
    assert np.isnan(exponent(activation="erf", teacher_activation="he3", teacher_start="gaussian"))
    assert exponent(activation="square", teacher_start="gaussian") == 2


SCALED = {"activation": "he4", "gamma": lambda d: 0.05 * d**-1.0, "m0": lambda d: 2 * d**-0.5}


@pytest.mark.rest
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 4),
        ({"m0": None}, 4),
        ({"m0": lambda d: 0.0 * d + 0.3}, np.nan),
        ({"gamma": lambda d: 0.05 * d**-0.5}, np.nan),
        ({"activation": "square"}, np.nan),
        ({"activation": "square", "gamma": lambda d: 0.0 * d + 0.05}, 2),
        ({"p": lambda d: d // 100}, np.nan),
    ],
    ids=["he4", "random start", "fixed start", "rate of he3", "square", "square at its rate", "growing width"],
)
def test_a_law_is_expected_where_starts_widths_and_rates_scale(change, expected):
    ds = exits(2, 1.0, 1.0, d=DIMENSIONS[:3], seeds=4)
    fields = {name: value for name, value in (SCALED | change).items() if value is not None}
    ds = ds.squeeze("gamma_ratio", drop=True).assign_coords(
        {name: value(ds.d.astype(float)) if callable(value) else value for name, value in fields.items()}
    )
    found = analysis(ds, resamples=40)
    np.testing.assert_equal(found.expected_law.item(), expected)
    assert {1, 2, 3, 4} <= set(found["law"].values.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("law", [4, 5, 6])
def test_laws_of_high_information_exponents_are_found(law):
    """Amplitudes with equal contributions of both terms at d = 1000; ten samples, as above."""
    teacher = {"activation": f"he{law}"}
    found = [
        analysis(exits(law, 5.0, 5.0 / 1000.0 ** (law - 2), random_seed=seed).assign_coords(teacher), resamples=40)
        for seed in range(10)
    ]
    assert sum(int(one.best_law.item() == law) for one in found) == 10
    last = analysis(exits(law, 0.0, 1e-9).assign_coords(teacher)).squeeze()
    assert last.exponent_low < law - 1
    assert last.exponent_high > law - 1
    assert float(rate_exponent(np.array(float(law)))) == (law - 2) / 2


@pytest.mark.rest
def test_points_that_fit_no_law_choose_none_for_sure():
    """100 scans with 20 % scatter around a constant: the constant is chosen in most, and exponents cover 1."""
    rng, fields = np.random.default_rng(5), {"Delta": np.arange(100.0)}
    ds = exits(1, 7.0, 0.0).isel(Delta=0, drop=True).expand_dims(fields)
    scatter = xr.DataArray(np.exp(0.2 * rng.standard_normal((100, len(DIMENSIONS)))), dims=("Delta", "d"))
    ds["exit_steps"] = (ds.exit_steps * scatter).transpose(*ds.exit_steps.dims)
    ds["end_steps"] = ds.exit_steps.isel(threshold=0, drop=True)
    found = analysis(ds, resamples=200).squeeze()
    assert (found.best_law == 1).mean() > 0.5
    covered = (found.exponent_low <= 1.0) & (found.exponent_high >= 1.0)
    assert covered.mean() > 0.86  # of 95 % once in 10⁴


def test_the_dimension_must_vary():
    with pytest.raises(InputError, match="the input dimension does not vary"):
        analysis(sweep_dataset(d=[300], seeds=2))
