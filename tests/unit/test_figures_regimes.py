"""The phase diagram draws every point, its interval and the boundaries; it refuses what it cannot draw."""

import numpy as np
import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.regimes import MEASURES
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.phase_diagram import LOOKS, _exponents

diagram = FIGURES["phase_diagram"]


@pytest.fixture(scope="module")
def ds():
    return regime_dataset(seeds=16)


@pytest.fixture(scope="module")
def found(ds):
    return ANALYSES["regimes"](ds, resamples=500)


@pytest.fixture(scope="module")
def drawing(ds, found):
    return diagram(ds, {"regimes": found})


def markers(axes):
    return [line for line in axes.lines if line.get_linestyle() == "None"]


@pytest.mark.rest
def test_every_point_has_the_marker_of_its_regime(drawing, found):
    drawn = {
        (line.get_xdata()[0], line.get_ydata()[0]): (line.get_marker(), line.get_markerfacecolor())
        for line in markers(drawing.axes[0])
    }
    assert len(drawn) == found.regime.size
    for (delta, kappa), (marker, colour) in drawn.items():
        point = found.sel(delta=delta, kappa=kappa)
        name = point.regime.attrs["flag_meanings"].split()[int(point.regime)]
        if name == "undecided":
            assert colour == "white"
        else:
            assert (marker, colour) == (LOOKS[name]["marker"], LOOKS[name]["color"])


def test_regimes_differ_in_marker_and_in_grey():
    from matplotlib.colors import to_rgb

    assert len({look["marker"] for look in LOOKS.values()}) == len(LOOKS)
    grey = sorted(float(np.dot(to_rgb(look["color"]), (0.299, 0.587, 0.114))) for look in LOOKS.values())
    assert np.diff(grey).min() > 0.05


def test_the_boundaries_are_where_theory_has_them(drawing):
    lines = [line for line in drawing.axes[0].lines if len(line.get_xdata()) == 2]
    sums = [np.unique(np.round(line.get_xdata() + line.get_ydata(), 9)).tolist() for line in lines]
    assert sums == [[0.0], [-0.5]]


def test_every_exponent_has_its_interval(drawing, found):
    for axes, name in zip(drawing.axes[1:], MEASURES, strict=True):
        assert len(axes.containers) == found.regime.size
        assert all(container.has_yerr for container in axes.containers)
        assert f"x_{found[f'{name}_exponent'].attrs['symbol'][-1]}" in axes.get_ylabel()


@pytest.mark.rest
def test_other_axes_need_a_value(ds):
    wider = ds.expand_dims(Delta=[0.1, 0.5])
    with pytest.raises(InputError, match="where: too many axes for one figure"):
        diagram(wider)
    assert diagram(wider, where={"Delta": 0.5}).axes


def test_without_the_exponents_there_is_no_diagram(ds):
    with pytest.raises(InputError, match="not an axis of this sweep; got 'delta'"):
        diagram(ds.rename(delta="first"))


def test_measured_exponents_lie_within_the_axes(found):
    """Those far below all of theory were outside, in silence."""
    name = next(iter(MEASURES))
    exponents = found[f"{name}_exponent"]
    low = found.assign({f"{name}_exponent": exponents.where(exponents > exponents.min(), -3.0)})
    assert _exponents(low.assign_attrs(found.attrs), name).limits[0] < -3.0
    assert _exponents(found, name).limits[0] > -1.0
