"""Quantiles of the norms of the students, their distances and their densities."""

import numpy as np
import pytest

from sweeplib import OBSERVABLES, InputError, Problem, simulate
from sweeplib.analysis import ANALYSES
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.views import QUANTILES, OverlapView, ParticleView
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.style import DASHES
from sweeplib.pictures.figures.norm_density import FILL, _look
from tests.datasets import norms_dataset, sweep_dataset

quantiles, distance, density = OBSERVABLES["norm_quantiles"], ANALYSES["norm_distance"], FIGURES["norm_density"]


def particles(q, weight):
    q, weight = np.array([q], float), np.array([weight], float)
    empty = np.empty((1, q.shape[1], 0))
    return ParticleView(empty, q, np.ones_like(q), weight, np.empty((1, 0, 0)), np.empty((1, 0)), np.zeros(1))


def test_equal_particles_are_those_of_the_students():
    q = np.random.default_rng(0).uniform(size=(1, 64))
    Q, M, one = q[:, :, None] * np.eye(64), np.zeros((1, 64, 1)), np.ones((1, 1, 1))
    view = OverlapView(Q, M, one, np.ones((1, 64)), np.ones((1, 1)), np.zeros(1), expectations("erf"))
    found = quantiles.function_of(OverlapView)(view)
    np.testing.assert_array_equal(found[0], np.sort(np.sqrt(q[0])))
    other = quantiles.function_of(ParticleView)(particles(q[0], np.full(64, 1 / 64)))
    np.testing.assert_array_equal(other, found)


def test_a_particle_has_as_many_levels_as_its_weight():
    found = quantiles.function_of(ParticleView)(particles([4.0, 1.0], [0.75, 0.25]))[0]
    assert (found == 1.0).mean() == 0.25
    assert (found == 2.0).mean() == 0.75


@pytest.mark.rest
def test_they_are_recorded_with_their_levels():
    problem = Problem(gamma=0.1, p=5, k=1, d=6, Delta=0.0, activation="square")
    found = simulate(problem, "mean_field", times=[0.0, 0.1], seeds=range(2), observables=["norm_quantiles"])
    assert found.norm_quantiles.dims == ("seed", "time", "quantile")
    np.testing.assert_array_equal(found["quantile"], QUANTILES)
    other = simulate(problem, "sgd", times=[0.0, 0.1], seeds=range(2), observables=["norm_quantiles"])
    np.testing.assert_allclose(found.norm_quantiles[:, 0], other.norm_quantiles[:, 0], rtol=1e-12)


def test_the_distance_of_shifted_laws_is_the_shift():
    found = distance(norms_dataset())
    np.testing.assert_allclose(found.norm_distance.sel(dynamics="sgd"), 0.1, rtol=1e-12)
    moved = found.norm_moved.sel(dynamics="mean_field", p=50)
    np.testing.assert_allclose(moved, found.time * np.sqrt((QUANTILES**2).mean()), rtol=1e-12)


def test_without_a_record_of_the_start_nothing_has_a_distance_from_it():
    """It was the distance from the first record, and 0 there."""
    found = distance(norms_dataset().isel(time=slice(1, None)))
    assert found.norm_moved.isnull().all()
    np.testing.assert_allclose(found.norm_distance.sel(dynamics="sgd"), 0.1, rtol=1e-12)


def test_datasets_without_norms_are_refused():
    with pytest.raises(InputError, match="norm_quantiles"):
        distance(sweep_dataset(seeds=2))
    with pytest.raises(InputError, match="norm_quantiles"):
        density(sweep_dataset(seeds=2), {})


def test_a_panel_for_each_time():
    drawing = density(norms_dataset(), {}, where={"p": 800, "time": [0.5, 4.0]})
    assert [axes.get_title() for axes in drawing.axes] == ["$t$ = 0.5", "$t$ = 4"]
    line = drawing.axes[1].lines[-1]
    width = np.diff(line.get_xdata()).mean()
    assert (line.get_ydata().sum() * width) == pytest.approx(1.0, rel=0.02)


def test_a_list_of_one_time_is_that_time():
    """It was refused as an axis that nothing draws."""
    one, listed = (density(norms_dataset(), {}, where={"p": 800, "time": time}) for time in (0.5, [0.5]))
    assert len(one.axes) == len(listed.axes) == 1
    for line, other in zip(one.axes[0].lines, listed.axes[0].lines, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), other.get_xydata())


def test_each_dynamics_has_a_look_of_its_own():
    """All with noise had one opaque fill, so that one histogram was seen of three; the fifth dash was the first."""
    names = ["sgd_chain", "sgd", "sde", "ode", "gradient_flow"]
    looks = [_look(name, names, {}) for name in names]
    assert [look["color"] == FILL for look in looks] == [True, False, False, False, False]
    assert len({str(look) for look in looks}) == len({str(dashes) for dashes in DASHES[:5]}) == 5
