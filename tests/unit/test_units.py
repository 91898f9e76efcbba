"""The units of students over overlap and norm: what is recorded, their distances, their density."""

import numpy as np
import pytest
import xarray as xr
from scipy.linalg import sqrtm

from sweeplib import InputError, Problem, simulate
from sweeplib.analysis import ANALYSES
from sweeplib.analysis.unit_distance import root_mean_square, wasserstein
from sweeplib.contracts.views import overlap_view
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.views import QUANTILES, OverlapView
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.report.plots import interactive_plot
from tests.datasets import units_dataset

distance, measure = ANALYSES["unit_distance"], ANALYSES["unit_measure"]


def test_w2_of_numbers_is_that_of_their_sorted_values():
    one, other = np.random.default_rng(1).normal(size=(2, 200, 1)) * np.array([1.0, 3.0])[:, None, None]
    by_quantiles = np.sqrt(((np.sort(one[:, 0]) - np.sort(other[:, 0])) ** 2).mean())
    assert wasserstein(one, other) == pytest.approx(by_quantiles, rel=1e-12)


@pytest.mark.parametrize("n", [250, pytest.param(1000, marks=pytest.mark.slow)])
def test_w2_of_gaussian_clouds_is_that_of_their_laws_within_sampling_error(n):
    """W₂² = |μ − μ'|² + tr(C + C' − 2 (C^½ C' C^½)^½) (Dowson and Landau 1982).

    The excess of two samples of n points is that of a law and itself, of order (log n/n)^½, measured on other samples.
    """
    rng = np.random.default_rng(2)
    C = np.array([[1.0, 0.6], [0.6, 0.8]])
    other = np.array([[0.3, -0.1], [-0.1, 1.5]])
    shift = np.array([1.0, -0.5])
    root = np.real(sqrtm(C))
    closed = shift @ shift + np.trace(C + other - 2.0 * np.real(sqrtm(root @ other @ root)))
    x, again = rng.multivariate_normal(np.zeros(2), C, size=(2, n))
    y = rng.multivariate_normal(shift, other, size=n)
    excess = wasserstein(x, again)
    assert 0.0 < excess < 3.0 * np.sqrt(np.log(n) / n)
    assert wasserstein(x, y) == pytest.approx(np.sqrt(closed), abs=excess)


def test_w2_is_below_the_synchronous_distance_and_ignores_the_order():
    x, y = np.random.default_rng(3).normal(size=(2, 50, 3))
    assert wasserstein(x, y) < root_mean_square(x, y)
    assert wasserstein(x, x[::-1]) == pytest.approx(0.0, abs=1e-12)
    assert root_mean_square(x, x[::-1]) > 1.0


def test_the_distance_of_shifted_units_is_the_shift():
    found = distance(units_dataset(shift=0.1, k=2))
    assert found.attrs["reference"] == "mean_field"
    for name in ("unit_distance", "unit_synchronous"):
        np.testing.assert_allclose(found[name].sel(dynamics="sgd"), 0.1, rtol=1e-9)
        np.testing.assert_allclose(found[f"{name}_error"].sel(dynamics="sgd"), 0.0, atol=1e-12)
        assert found[name].sel(dynamics="mean_field").isnull().all()
    moved = found.unit_moved.sel(dynamics="sgd")
    assert moved[0] == 0.0 and (moved.diff("time") > 0.0).all()


def test_without_a_record_at_zero_the_way_from_the_start_is_not_known():
    ds = units_dataset(p=8, shift=0.1)
    whole, late = distance(ds), distance(ds.isel(time=slice(1, None)))
    assert whole.unit_moved.sel(dynamics="sgd").notnull().all() and late.unit_moved.isnull().all()
    np.testing.assert_array_equal(late.unit_distance, whole.unit_distance[..., 1:])


def test_without_overlaps_it_is_the_distance_of_the_norms():
    """Students with norms at the levels of the quantiles, and no overlap: `norm_distance` from another observable."""
    ds = units_dataset(p=64)
    ds["overlap_M"] = 0.0 * ds.overlap_M
    norms = QUANTILES * np.array([1.0, 1.5])[:, None, None, None] + 0.0 * ds.self_overlap.values
    ds["self_overlap"] = ds.self_overlap.copy(data=np.random.default_rng(0).permuted(norms**2, axis=-1))
    ds["norm_quantiles"] = (("dynamics", "seed", "time", "quantile"), norms)
    ds["quantile"] = ("quantile", QUANTILES, {"long_name": "level", "units": "1"})
    found, other = distance(ds), ANALYSES["norm_distance"](ds)
    for one, two in (("unit_distance", "norm_distance"), ("unit_moved", "norm_moved")):
        np.testing.assert_allclose(found[one], other[two], rtol=1e-9, atol=1e-9)


def test_units_beyond_the_width_of_a_point_do_not_count():
    ds = units_dataset(p=32)
    padded = ds.pad(student=(0, 9)).assign_attrs(p=32)
    xr.testing.assert_allclose(distance(padded), distance(ds))


def test_lost_runs_leave_no_distance():
    """However many may be lost, none may have diverged: the mean would come back."""
    ds = units_dataset(seeds=3)
    ds["overlap_M"][0, 1, 2:], ds["self_overlap"][0, 1, 2:], ds["status"][0, 1] = np.nan, np.nan, 5
    diverged = ds.assign(status=ds.status.where(ds.status != 5, 2).assign_attrs(ds.status.attrs))
    few, many, none = (
        distance(runs, max_lost=part).unit_distance.sel(dynamics="sgd")
        for runs, part in ((ds, 0.02), (ds, 0.5), (diverged, 0.5))
    )
    assert few.notnull().values.tolist() == [True, True, False] and many.notnull().all()
    assert none.notnull().values.tolist() == [True, True, False]
    density = measure(ds).unit_density.sel(dynamics="sgd").isnull().any(["overlap_bin", "norm_bin"])
    assert density.squeeze().values.tolist() == [False, False, True]


def test_squares_of_units_that_run_away_do_not_overflow():
    ds = units_dataset(seeds=1)
    far = xr.where(ds.dynamics == "sgd", 1e308, ds.self_overlap).transpose(*ds.self_overlap.dims)
    overlap = (far / 5e153).broadcast_like(ds.overlap_M).transpose(*ds.overlap_M.dims)
    found = distance(ds.assign(self_overlap=far, overlap_M=overlap))
    for name in ("unit_distance", "unit_synchronous"):
        np.testing.assert_allclose(found[name].sel(dynamics="sgd"), np.sqrt(5.0) * 1e154, rtol=1e-9)


def test_a_state_with_a_unit_of_infinite_norm_has_no_distance():
    """The unit is not left out of the assignment."""
    ds = units_dataset(seeds=1)
    ds["self_overlap"].loc[{"dynamics": "sgd", "time": ds.time[-1], "student": ds.student[0]}] = np.inf
    found = distance(ds)
    for name in ("unit_distance", "unit_synchronous", "unit_moved"):
        lost = found[name].sel(dynamics="sgd").isnull().squeeze().values
        assert lost.tolist() == [*[False] * (ds.sizes["time"] - 1), True]


def test_wide_students_need_a_number_of_units():
    ds = units_dataset(p=1200, seeds=2, times=2)
    with pytest.raises(InputError, match="1200 units takes long; got None; expected a number of units"):
        distance(ds)
    found = distance(ds, units=50)
    np.testing.assert_allclose(found.unit_distance.sel(dynamics="sgd"), 0.1, rtol=1e-9)
    assert found.attrs["units"] == 50


def test_different_numbers_of_units_are_refused():
    ds = units_dataset(p=8)
    ds["self_overlap"][0, ..., 6:] = np.nan
    with pytest.raises(InputError, match="different numbers of units"):
        distance(ds)


def test_only_stochastic_dynamics_are_refused():
    with pytest.raises(InputError, match="no deterministic dynamics"):
        distance(units_dataset().assign_coords(dynamics=["sgd", "sgd_chain"]))


def test_the_density_has_the_units_of_all_seeds():
    ds = units_dataset(shift=0.0, k=2)
    found = measure(ds, bins=20)
    area = found.overlap_bin.diff("overlap_bin")[0] * found.norm_bin.diff("norm_bin")[0]
    np.testing.assert_allclose(found.unit_density.sum(["overlap_bin", "norm_bin"]) * area, 1.0, rtol=1e-9)
    width = float(found.overlap_bin.diff("overlap_bin")[0])
    mean = (found.unit_density * found.overlap_bin).sum(["overlap_bin", "norm_bin"]) * area
    np.testing.assert_allclose(mean, ds.overlap_M.mean(["seed", "student"]), atol=width)
    assert found.teacher.values.tolist() == [1, 2]


def test_the_units_that_are_drawn_keep_their_motion():
    ds = units_dataset(shift=0.1)
    found = measure(ds, sample=50)
    assert found.sizes["unit"] == 50
    m = found.unit_overlap.isel(teacher=0).transpose("dynamics", "time", "unit")
    np.testing.assert_allclose(m[0, 1], 2.0 * m[0, 0], rtol=1e-12)
    np.testing.assert_allclose(m[1] - m[0], 0.1, rtol=1e-9)
    known = np.isin(m[0, 0], ds.overlap_M[0, :, 0, :, 0])
    assert known.all() and len(np.unique(m[0, 0])) == 50


def test_the_figure_has_the_teacher_that_is_asked_for():
    ds = units_dataset(shift=0.5, k=2)
    analyses = {"unit_measure": measure(ds)}
    for where, teacher, shift in (({}, 0, 0.5), ({"teacher": 2}, 1, 0.0)):
        drawing = FIGURES["unit_clouds"](ds, analyses, where={"time": [0.0, 2.0], **where})
        assert [axes.get_title() for axes in drawing.axes] == ["$t$ = 0", "$t$ = 2"]
        dots, markers = drawing.axes[1].lines
        assert np.isin(dots.get_xdata(), ds.overlap_M[0, :, 2, :, teacher]).all()
        np.testing.assert_allclose(markers.get_xdata(), dots.get_xdata()[:30] + shift, rtol=1e-9)
    with pytest.raises(InputError, match="teacher"):
        FIGURES["unit_clouds"](ds, analyses, where={"teacher": 3})
    with pytest.raises(InputError, match=r"where\.time: too many times; got 7; expected at most 6, a panel each"):
        FIGURES["unit_clouds"](ds, analyses, where={"time": [0.1 * time for time in range(7)]})


def test_the_report_has_only_dynamics_with_units():
    ds = units_dataset()
    ds = xr.concat([ds, ds.sel(dynamics=["sgd"]).assign_coords(dynamics=["ode"])], "dynamics")
    gone = ds.where(ds["dynamics"] != "ode").assign(status=ds.status.where(ds["dynamics"] != "ode", 0).astype(np.uint8))
    analyses, figure = {"unit_measure": measure(gone)}, FIGURES["unit_clouds"]
    declared = figure.interactive(gone, analyses, **figure.check({}))
    plot = interactive_plot("unit_clouds", declared, gone, analyses, {})
    labels = {control.column: control.labels for control in plot.controls}
    assert labels["dynamics"] == ["SGD", "mean field"]
    assert [control.column for control in plot.controls if control.slider] == ["time"]


@pytest.mark.rest
def test_units_of_weights_and_of_particles_are_recorded_alike():
    problem = Problem(gamma=0.1, p=5, k=1, d=6, Delta=0.0, activation="square")
    names = ["overlap_M", "self_overlap"]
    sgd, field = (
        simulate(problem, dynamics, times=[0.0, 0.1], seeds=range(2), observables=names)
        for dynamics in ("sgd", "mean_field")
    )
    for name in names:
        assert sgd[name].dims == field[name].dims
        np.testing.assert_allclose(sgd[name][:, 0], field[name][:, 0], rtol=1e-9)
    assert (field.self_overlap > 0.0).all()


def test_self_overlaps_are_the_diagonal_of_q():
    now = overlap_view()
    found = OBSERVABLES["self_overlap"].function_of(OverlapView)(now)
    np.testing.assert_array_equal(found, np.einsum("nii->ni", now.Q))


@pytest.mark.rest
def test_axes_name_the_reference_as_legends_do():
    ds = units_dataset()
    assert distance(ds).unit_distance.attrs["long_name"] == "Wasserstein distance of the units from the mean field"
    assert distance(ds).unit_synchronous.attrs["long_name"].endswith("each unit from itself in the mean field")
    by_sgd = distance(ds, reference="sgd")
    assert by_sgd.unit_distance.attrs["long_name"] == "Wasserstein distance of the units from SGD"
    deviation = ANALYSES["deviation"](ds, reference="mean_field")
    assert deviation.self_overlap_deviation.attrs["long_name"].endswith("from the mean field")
