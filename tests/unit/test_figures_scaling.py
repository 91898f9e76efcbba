"""Figures of the deviation from the ODE and of the sample complexity: every point, its error, and the fitted law."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.labels import dynamics_order, number
from sweeplib.pictures.figures.kit.style import dynamics_look
from tests.datasets import sweep_dataset
from tests.unit.test_analysis_deviation import scaling_dataset
from tests.unit.test_analysis_sample_complexity import DIMENSIONS, exits

deviation, complexity = FIGURES["deviation"], FIGURES["sample_complexity"]
LABELS = {
    "gamma": {"long_name": "learning rate", "symbol": r"\gamma"},
    "d": {"long_name": "input dimension", "symbol": "d"},
    "p": {"long_name": "student width", "symbol": "p"},
}


@pytest.fixture(scope="module")
def ds():
    data = scaling_dataset({"gamma": 0.5, "d": -0.5}, noise=0.1)
    return data.assign_coords({name: data[name].assign_attrs(attrs) for name, attrs in LABELS.items()})


def texts(drawing):
    """Return all texts of a figure."""
    return [text.get_text() for text in drawing.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.rest
def test_deviation_has_a_point_with_its_error_for_each_problem(ds):
    axes = deviation(ds).axes[0]
    assert len(axes.containers) == ds.sizes["d"]
    for container, d in zip(axes.containers, ds.d.values, strict=True):
        assert container.has_yerr
        np.testing.assert_allclose(np.sort(container.lines[0].get_xdata()), np.sort(ds.gamma.values) / d)


@pytest.mark.rest
def test_deviation_says_the_fitted_exponent_beside_a_slope_of_one_half(ds):
    drawing = deviation(ds)
    assert any(text.startswith("exponent 0.5") for text in texts(drawing))
    fit, guide = (line for line in drawing.axes[0].lines if len(line.get_xdata()) == 200)
    slope = np.diff(np.log(guide.get_ydata())) / np.diff(np.log(guide.get_xdata()))
    np.testing.assert_allclose(slope[np.isfinite(slope)], 0.5)
    assert (guide.get_ydata() < fit.get_ydata()).all()


def test_deviation_of_what_was_not_measured_is_refused(ds):
    with pytest.raises(InputError, match="observable: no deviation of it was measured"):
        deviation(ds, observable="overlaps")


def test_deviation_of_the_ode_alone_is_refused(ds):
    swapped = ds.assign_coords(dynamics=["sgd", "ode"])
    with pytest.raises(InputError, match="no stochastic dynamics to draw"):
        deviation(swapped, {name: analysis(swapped, reference="sgd") for name, analysis in needed().items()})


def needed():
    return {name: ANALYSES[name] for name in deviation.needs}


@pytest.mark.rest
def test_complexity_draws_the_law_of_the_information_exponent():
    data = exits(2, -4.0, 1.5, seeds=256)
    drawing = complexity(data)
    axes = drawing.axes[0]
    assert axes.get_xscale() == "log"
    curve = next(line for line in axes.lines if len(line.get_xdata()) == 200)
    np.testing.assert_allclose(curve.get_ydata(), -4.0 + 1.5 * np.log(curve.get_xdata()), rtol=0.1)
    np.testing.assert_allclose(np.asarray(axes.containers[0].lines[0].get_xdata(), float), DIMENSIONS)
    assert any(r"\log d" in text for text in texts(drawing))


def test_complexity_of_an_unknown_teacher_has_no_curve():
    drawing = complexity(exits(2, -4.0, 1.5).assign_coords(teacher_activation="unknown"))
    assert not any(len(line.get_xdata()) == 200 for line in drawing.axes[0].lines)


@pytest.mark.rest
def test_theory_is_smooth_where_a_derived_number_does_not_vary_along_the_axis():
    """A width ⌈d^.01⌉ is 2 at each d: its three values were broadcast against the 200 places of the curve."""
    data = sweep_dataset(ratios=[0.5], d=[64, 128, 256], Delta=[0.5], seeds=4, dynamics=["sgd_chain"])
    width = xr.full_like(data["d"], 2).assign_attrs(LABELS["p"])
    data = data.assign_coords(p=width)
    del data.attrs["p"]
    drawing = FIGURES["exit_time_scaling"](data, {"exit_times": ANALYSES["exit_times"](data)})
    assert any(len(line.get_xdata()) == 200 for line in drawing.axes[0].lines)


@pytest.mark.rest
def test_a_wide_range_of_steps_is_drawn_logarithmic():
    assert complexity(exits(1, 7.0, 0.0)).axes[0].get_yscale() == "linear"
    assert complexity(exits(3, 0.0, 0.05)).axes[0].get_yscale() == "log"


def test_stochastic_dynamics_come_first_in_the_order_they_were_asked_for():
    assert dynamics_order(["ode", "sgd_chain", "sgd"]) == ["sgd_chain", "sgd", "ode"]
    shown = ["sgd_chain", "ode", "gradient_flow"]
    markers = [dynamics_look(name, shown, {"marker": "o", "color": "k"})["marker"] for name in shown[:2]]
    assert markers == ["o", "x"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-5, "$10^{-5}$"), (3e-4, r"$3\times 10^{-4}$"), (0.001, "0.001"), (0.0, "0"), (123456, "123456")],
)
def test_small_numbers_as_one_writes_them(value, text):
    assert number(value) == text
