"""Deviations from the ODE: exact for known differences; power laws with intervals that cover."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm
from scipy.stats import t as student

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.dataset.folder import GroupWriter, written_dataset
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.statistics.bootstrap import Resampling, seed_weights
from sweeplib.statistics.fits import power_law
from sweeplib.statistics.seed_means import normal_scores
from tests.datasets import sweep_dataset

deviation, scaling = ANALYSES["deviation"], ANALYSES["deviation_scaling"]
TIMES = np.linspace(0.0, 2.0, 5)


def runs(risk, status=None, **others) -> xr.Dataset:
    """Return a dataset of an ODE and SGD with these risks (dynamics, seed, time)."""
    risk = np.asarray(risk, dtype=float)
    dims = ("dynamics", "seed", "time")
    labels = {"long_name": "population risk", "units": "1", "symbol": r"\mathcal{R}"}
    status = np.ones(risk.shape[:2]) if status is None else np.asarray(status)
    variables = {"risk": (dims, risk, labels), "status": (dims[:2], status.astype(np.uint8), STATUS_LABELS)}
    coords = {"dynamics": ["ode", "sgd"], "seed": np.arange(risk.shape[1]), "time": TIMES[: risk.shape[2]]}
    return xr.Dataset(variables | others, coords)


def test_deviations_of_known_differences():
    """The z-scores are exceeded as often by a normal number as t by scipy's Student's t of two degrees."""
    ode = np.array([[1.0, 0.5, 0.2], [1.0, 0.6, 0.3], [1.0, 0.7, 0.4]])
    found = deviation(runs([ode, np.add(ode, [[0.0, 0.1, -0.3], [0.0, 0.3, 0.1], [0.0, 0.2, -0.1]])])).squeeze()
    np.testing.assert_allclose(found.risk_deviation, [0.0, 0.2, -0.1])
    np.testing.assert_allclose(found.risk_deviation_error, [0.0, 0.1 / 3**0.5, 0.2 / 3**0.5])
    t = np.array([2.0 * 3**0.5, -0.5 * 3**0.5])
    np.testing.assert_allclose(found.risk_deviation_z, [np.nan, *norm.isf(student.sf(t, 2))])
    np.testing.assert_allclose(found.risk_sup_deviation, 0.8 / 3)
    assert found.seeds_paired == 3


@pytest.mark.parametrize("name", ["deviation", "deviation_scaling", "limits"])
def test_a_comparison_needs_a_time_after_the_start(name):
    """Of [0, 1] the deviations up to .5 were all 0, with an error of 0."""
    ds = sweep_dataset(seeds=3, dynamics=["sgd", "ode", "gradient_flow", "mean_field", "mean_field_hd"])
    first = float(ds.time[1])
    options = {} if name == "limits" else {"until": 0.5 * first}
    few = ds.isel(time=[0]) if name == "limits" else ds
    key = "times: no time after the start is compared; got" if name == "limits" else "until: no time after the start"
    with pytest.raises(InputError, match=rf"{key}.* a recorded time above 0"):
        ANALYSES[name](few, **options)


def test_points_and_a_fit_of_other_options_are_not_one_figure():
    ds = sweep_dataset(seeds=3, Delta=[0.0], dynamics=["sgd_chain", "ode"])
    results = {"deviation": deviation(ds, until=0.3), "deviation_scaling": scaling(ds, resamples=40)}
    with pytest.raises(InputError, match=r"until: its points and its fit are of other options; got \[0.3, "):
        FIGURES["deviation"](ds, results)


def test_two_pairs_have_neither_error_nor_z_score():
    found = deviation(runs([np.zeros((2, 3)), np.add(np.ones((2, 3)), [[0.0], [1.0]])])).squeeze()
    np.testing.assert_allclose(found.risk_deviation, 1.5)
    assert found.risk_deviation_error.isnull().all()
    assert found.risk_deviation_z.isnull().all()


def test_z_scores_of_tiny_probabilities_are_finite():
    """Student's t of 3000 at 99 degrees has a probability of 10⁻²³⁰ or so, at 10⁵ one that no float has."""
    found = normal_scores(xr.DataArray([-1e3, 3e3, 1e5, np.nan]), xr.DataArray([99.0] * 4)).values
    assert np.isfinite(found[:3]).all()
    assert (np.diff(found[:3]) > 0.0).all()
    assert np.isnan(found[3])


def test_what_is_rounding_at_a_point_is_none_of_its_neighbour():
    """Beside a point of risks of 10¹², a deviation of .1 was taken for a rounding error, and set to 0."""
    small = runs([np.ones((3, 2)), np.full((3, 2), 1.1)])
    large = small.assign(risk=1e12 * small.risk)
    found = deviation(xr.concat([small, large], xr.DataArray([1.0, 1e6], dims="a_star"), combine_attrs="override"))
    np.testing.assert_allclose(found.risk_sup_deviation.squeeze(), [0.1, 1e11])


def test_rounding_is_no_deviation():
    ode = np.full((4, 3), 0.7)
    found = deviation(runs([ode, ode + 1e-16 * np.arange(12).reshape(4, 3)])).squeeze()
    assert found.risk_deviation_z.isnull().all()
    assert found.risk_sup_deviation == 0.0


def test_pairs_need_both_runs_and_count_as_far_as_both_went():
    """A run stopped at its exit, one diverged, one without its ODE: none has values up to the end, all up to .6."""
    risk = np.ones((2, 3, 4))
    risk[1] = [[1, 1.1, 1.2, np.nan], [1, 1, 5, np.nan], [1, 9, 9, 9]]
    ds = runs(risk, status=[[1, 1, 3], [1, 2, 1]])
    found = deviation(ds, max_lost=0.7).squeeze()
    assert found.seeds_paired == 0
    assert found.seeds_lost == 3
    assert found.risk_sup_deviation.isnull()
    np.testing.assert_allclose(found.risk_deviation, [0.0, 0.05, 2.1, np.nan])
    refused = deviation(ds).squeeze()
    assert refused.risk_sup_deviation.isnull()
    assert refused.risk_deviation.isnull().all()
    assert deviation(runs(risk, status=[[1, 1, 1], [1, 1, 1]]), until=0.6).squeeze().risk_sup_deviation == (
        pytest.approx((0.1 + 0.0 + 8.0) / 3)
    )


def test_a_mean_over_pairs_is_refused_where_runs_have_stopped_at_their_exits():
    risk = np.ones((2, 3, 3))
    risk[1] = [[1, 1.1, np.nan], [1, 1.3, 1.5], [1, 1.2, 1.2]]
    np.testing.assert_allclose(deviation(runs(risk)).squeeze().risk_deviation, [0.0, 0.2, np.nan])


@pytest.mark.rest
@pytest.mark.parametrize("seeds", [3, 8, 50])
def test_z_scores_are_standard_normal_where_nothing_deviates(seeds):
    """4000 times: the variance is 1 ± .022, and |z| > 1.96 in .05 ± .0034 of them; each is missed once in 10⁴."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, seeds, 4000))
    ds = runs(noise[:, :, :1]).isel(time=0, drop=True)
    ds = ds.assign(risk=(("dynamics", "seed", "time"), noise, ds.risk.attrs), time=np.arange(4000.0))
    z = deviation(ds).risk_deviation_z
    assert float(z.var()) == pytest.approx(1.0, abs=4 * 0.022)
    assert float((abs(z) > 1.96).mean()) == pytest.approx(0.05, abs=4 * 0.0034)
    assert abs(float(z.mean())) < 4 / np.sqrt(4000)


def test_overlaps_deviate_by_their_largest_entry():
    Q, M = np.zeros((2, 3, 2, 2, 2)), np.zeros((2, 3, 2, 2, 1))
    Q[1, :, 1, 0, 1], M[1, :, 0, 1, 0] = -0.4, [0.1, 0.5, 0.2]
    labels = {"long_name": "overlap", "units": "1", "symbol": "M"}
    dims = ("dynamics", "seed", "time", "student")
    ds = runs(
        np.ones((2, 3, 2)), overlap_Q=((*dims, "student_2"), Q, labels), overlap_M=((*dims, "teacher"), M, labels)
    )
    found = deviation(ds).squeeze()
    assert found.overlap_M_sup_deviation == pytest.approx(0.8 / 3)
    assert found.overlaps_sup_deviation == pytest.approx((0.4 + 0.5 + 0.4) / 3)
    assert found.overlap_Q_deviation.sizes == {"time": 2, "student": 2, "student_2": 2}


@pytest.mark.rest
def test_overlaps_of_all_shapes_are_read_together(tmp_path):
    """p = 1 and p = 2 are in separate groups: entries beyond p are NaN, and no deviation."""
    labels = {"long_name": "student-student overlap", "units": "1", "symbol": "Q"}
    dims = ("dynamics", "p", "seed", "time", "student", "student_2")
    whole = runs(np.ones((2, 3, 2))).expand_dims(p=[1, 2]).assign_coords(k=1)
    with written_dataset(tmp_path / "dataset.zarr") as root:
        write(GroupWriter(root), whole)
        for p in (1, 2):
            overlap = np.zeros((2, 1, 3, 2, p, p))
            overlap[1, ..., 0, 0] = 0.25 * p
            part = xr.Dataset({"overlap_Q": (dims, overlap, labels)}, whole.sel(p=[p]).coords)
            write(GroupWriter(root.create_group(f"p{p}_k1")), part)
    ds = open_with_overlaps(tmp_path / "dataset.zarr")
    assert ds.overlap_Q.sizes["student"] == 2
    assert ds.overlap_Q.sel(p=1).isel(student=1).isnull().all()
    np.testing.assert_allclose(deviation(ds).squeeze().overlaps_sup_deviation, [0.25, 0.5])


def write(writer: GroupWriter, ds: xr.Dataset) -> None:
    for name, variable in ds.coords.items():
        writer.coordinate(name, variable.dims, variable.values, variable.attrs)
    for name, variable in ds.data_vars.items():
        writer.variable(name, variable.dims, variable.shape, variable.dtype, variable.attrs)[...] = variable.values
    writer.finish({})


def scaling_dataset(exponents, seeds=64, noise=0.3, **axes) -> xr.Dataset:
    """Return runs whose largest deviations are γ^a d^b p^c times log-normal noise."""
    rng = np.random.default_rng(1)
    axes = {"gamma": [0.05, 0.1, 0.2], "d": [100, 400, 1600], "p": [1]} | axes
    arrays = {name: xr.DataArray(values, dims=name) for name, values in axes.items()}
    size = xr.ones_like(sum(arrays.values()), dtype=float)
    for name, power in exponents.items():
        size = size * arrays[name].astype(float) ** power
    shape = (*size.shape, seeds)
    kicks = xr.DataArray(np.exp(noise * rng.normal(size=shape)), dims=(*size.dims, "seed"))
    shown = xr.DataArray([0.0, 1.0], dims="time") * xr.DataArray([0.0, 1.0], dims="dynamics")
    labels = {"long_name": "population risk", "units": "1", "symbol": r"\mathcal{R}"}
    ds = xr.Dataset({"risk": (2.0 + size * kicks * shown).assign_attrs(labels)})
    ds["status"] = xr.ones_like(ds.risk.isel(time=0, drop=True), dtype=np.uint8).assign_attrs(STATUS_LABELS)
    return ds.assign_coords(arrays | {"dynamics": ["ode", "sgd"], "seed": np.arange(seeds), "time": [0.0, 1.0]})


def test_exponents_are_found_in_each_variable():
    ds = scaling_dataset({"gamma": 0.5, "d": -0.4, "p": -1.0}, noise=0.0, p=[1, 2, 4])
    found = scaling(ds, resamples=100).squeeze()
    np.testing.assert_allclose(found.risk_exponent.sel(variable=["gamma", "d", "p"]), [0.5, -0.4, -1.0], rtol=1e-9)
    assert (found.risk_points == 27).all()
    np.testing.assert_allclose(found.exponent_theory.sel(variable=["coupling", "gamma", "d"]), [0.5, 0.5, -0.5])


def test_what_does_not_vary_has_no_exponent():
    found = scaling(scaling_dataset({"gamma": 0.5, "d": -0.5}), resamples=100).squeeze()
    assert list(found["variable"].values) == ["coupling", "gamma", "d", "p"]
    assert found.risk_exponent.sel(variable="p").isnull()
    assert found.risk_exponent.sel(variable=["coupling", "gamma", "d"]).notnull().all()
    with pytest.raises(InputError, match="nothing that the deviation scales with"):
        scaling(scaling_dataset({"gamma": 0.5}, gamma=[0.1], d=[100]))


def test_learning_rates_tied_to_the_dimension_leave_one_exponent():
    """γ = 10/d: the exponent of the coupling is determined, those of γ and d are not."""
    ds = scaling_dataset({"d": -1.0}, gamma=[1.0]).squeeze("gamma", drop=True)
    ds = ds.assign_coords(gamma=10.0 / ds.d)
    found = scaling(ds, resamples=100).squeeze()
    assert float(found.risk_exponent.sel(variable="coupling")) == pytest.approx(0.5, abs=0.05)
    assert found.risk_exponent.sel(variable=["gamma", "d"]).isnull().all()


def test_exponents_are_found_in_a_table_of_points():
    """The dimension of the points of a fit had the name of that of the rows of a table."""
    ds = scaling_dataset({"gamma": 0.5, "d": -0.4}, noise=0.0, p=[2]).squeeze("p")
    rows = ds.stack(point=("gamma", "d"), create_index=False).isel(point=[0, 1, 3, 5, 7]).transpose("point", ...)
    found = scaling(rows, resamples=50).squeeze()
    np.testing.assert_allclose(found.risk_exponent.sel(variable=["gamma", "d"]), [0.5, -0.4], rtol=1e-9)
    assert (found.risk_points.dropna("variable") == 5).all()


def test_exponents_are_found_where_some_numbers_are_axes_and_others_derived():
    """p and γ = p/20 are functions of an exponent and of d, which is an axis; γ/(pd) does not depend on p."""
    ds = scaling_dataset({"d": -0.5}, noise=0.0, gamma=[1.0], p=[1, 2, 4]).isel(gamma=0, drop=True)
    ds = ds.rename(p="kappa").assign_coords(kappa=[0.0, 0.1, 0.2])
    width = xr.DataArray([[1, 1, 1], [1, 2, 4], [2, 4, 8]], dims=("kappa", "d"))
    found = scaling(ds.assign_coords(p=width, gamma=0.05 * width), resamples=50).squeeze()
    np.testing.assert_allclose(found.risk_exponent.sel(variable="coupling"), 0.5, rtol=1e-9)


def test_other_axes_are_fitted_apart():
    one = scaling_dataset({"gamma": 0.5, "d": -0.5}, noise=0.0)
    two = scaling_dataset({"gamma": 0.25, "d": -0.25}, noise=0.0)
    both = xr.concat([one, two], xr.DataArray([0.0, 1.0], dims="Delta", name="Delta"))
    found = scaling(both, resamples=50).squeeze()
    np.testing.assert_allclose(found.risk_exponent.sel(variable="coupling"), [0.5, 0.25], rtol=1e-9)


@pytest.mark.rest
def test_intervals_of_the_exponent_cover():
    """300 experiments of 24 seeds and 6 points: of 95 % intervals fewer than 89 % cover once in 10⁴."""
    rng, log_x = np.random.default_rng(2), np.linspace(-6, -2, 6)
    draws = seed_weights(24, 300, 0)
    covered = 0
    for _ in range(300):
        values = np.exp(0.5 * log_x + 0.4 * rng.normal(size=(24, 6)))
        fit = power_law(values, log_x[None], Resampling(draws, rng, 0.95))
        covered += fit.low[0] <= 0.5 <= fit.high[0]
    assert covered / 300 > 0.89


def test_the_fit_says_when_it_is_no_power_law():
    rng, log_x = np.random.default_rng(3), np.linspace(-3, 3, 8)
    bent = np.exp(0.5 * log_x + 0.3 * log_x**2 + 0.1 * rng.normal(size=(40, 8)))
    assert power_law(bent, log_x[None], Resampling(seed_weights(40, 50, 0), rng, 0.95)).reduced_chi2 > 100


@pytest.mark.parametrize("analysis", [deviation, scaling, ANALYSES["law_agreement"]])
def test_a_reference_must_have_been_run(analysis):
    ds = scaling_dataset({"gamma": 0.5})
    with pytest.raises(InputError, match="reference: not among the dynamics that were run"):
        analysis(ds, reference="odee")
    with pytest.raises(InputError, match="nothing to compare with"):
        analysis(ds.sel(dynamics=["sgd"]), reference="sgd")
