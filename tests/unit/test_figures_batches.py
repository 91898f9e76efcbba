"""Figures of averages against steps and axes, and of the batch size: points, errors, fits, choices, refusals."""

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import label
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.labels import axis_label
from sweeplib.pictures.figures.kit.style import UNKNOWN
from sweeplib.pictures.report.overview import run_counts
from tests.datasets import giant_steps_dataset, with_outcome

line, tradeoff = FIGURES["line"], FIGURES["batch_tradeoff"]


@pytest.fixture(scope="module")
def ds():
    return giant_steps_dataset()


@pytest.fixture(scope="module")
def averages(ds):
    return {"averages": ANALYSES["averages"](ds)}


def heights(axes):
    return [container.lines[0].get_ydata() for container in axes.containers]


def texts(drawing):
    return [text.get_text() for text in drawing.findobj(lambda artist: hasattr(artist, "get_text"))]


def test_curves_are_the_averages_with_their_errors(ds, averages):
    drawing = line(ds, averages, x="steps", where={"batch_size": 10, "dynamics": "sgd"}, hue="teacher")
    [axes], mean = drawing.axes, averages["averages"].subspace_cosine.sel(batch_size=10, dynamics="sgd")
    np.testing.assert_allclose(heights(axes), mean.transpose("teacher", "time"))
    assert all(container.has_yerr for container in axes.containers)
    assert (axes.get_xscale(), axes.get_xlabel()) == ("linear", r"SGD steps $\nu$")


def test_dynamics_without_noise_are_crosses_without_lines(ds, averages):
    [axes] = line(ds, averages, x="steps", where={"batch_size": 10}, hue="teacher").axes
    looks = [container.lines[0] for container in axes.containers]
    assert [line.get_marker() for line in looks] == ["o", "x", "s", "x", "D", "x"]
    assert [line.get_linestyle() for line in looks] == ["-", "None"] * 3


@pytest.mark.rest
def test_a_direction_that_a_teacher_does_not_have_is_not_a_point_without_a_value():
    """k = 1 with a batch of one sample, k = 3 with ten; the third direction of the second has no value."""
    ds = giant_steps_dataset(batch_size=(1, 10), dynamics=["sgd"])
    ds = ds.assign_coords(k=xr.DataArray([1, 3], dims="batch_size", attrs=label("k")))
    ds["subspace_cosine"] = ds.subspace_cosine.where((ds.batch_size == 10) & (ds.teacher < 2) | (ds.teacher == 0))
    without = {batch: line(ds, x="steps", where={"batch_size": batch}, hue="teacher") for batch in (1, 10)}
    marks = {
        batch: [len(one.get_xdata()) for one in drawing.axes[0].lines if one.get_marker() == UNKNOWN["marker"]]
        for batch, drawing in without.items()
    }
    assert marks == {1: [], 10: [1]}, "one mark where values are missing at all times"
    counts = run_counts(ds, ANALYSES["averages"](ds)[["subspace_cosine"]])
    assert counts.squeeze().values.tolist() == [["8 ok", "none", "none"], ["8 ok"] * 3]


def test_an_axis_can_be_drawn_as_dashes(ds, averages):
    chosen = {"where": {"batch_size": [1, 100], "dynamics": "sgd"}, "hue": "teacher", "dash": "batch_size"}
    drawing = line(ds, averages, x="steps", **chosen)
    assert len(drawing.axes[0].containers) == 6
    assert {"$n_b$ = 1", "$n_b$ = 100"} <= set(texts(drawing))


def test_crosses_of_two_dashes_are_told_apart_by_their_lines(ds, averages):
    chosen = {"where": {"batch_size": [1, 100]}, "hue": "teacher", "dash": "batch_size"}
    [axes] = line(ds, averages, x="steps", **chosen).axes
    crosses = [each.lines[0] for each in axes.containers if each.lines[0].get_marker() == "x"]
    assert [cross.get_linestyle() for cross in crosses] == ["-", "--"] * 3
    assert {cross.get_linewidth() for cross in crosses} == {0.5}


@pytest.mark.parametrize(("number", "marked"), [(30, 30), (60, 30)])
def test_every_point_along_a_parameter_is_marked_unless_marks_would_touch(number, marked):
    """Each has runs of its own: where a line bends, its bar tells noise from signal."""
    sizes = tuple(range(1, number + 1))
    [axes] = line(giant_steps_dataset(batch_size=sizes, dynamics=["sgd"]), x="batch_size", where={"teacher": 1}).axes
    [curve] = [each.lines[0] for each in axes.containers]
    assert len(curve.get_xdata()) == number
    assert -(-number // (curve.get_markevery() or 1)) == marked


@pytest.mark.rest
def test_a_scan_is_at_the_last_time_unless_told(ds, averages):
    mean = averages["averages"].subspace_cosine.sel(dynamics="sgd").transpose("teacher", "batch_size", "time")
    drawing = line(ds, averages, where={"dynamics": "sgd"})
    np.testing.assert_allclose(heights(drawing.axes[0]), mean.isel(time=-1))
    assert drawing.get_suptitle().splitlines()[0] == "after 6 steps"
    early = line(ds, averages, where={"dynamics": "sgd", "time": 1})
    np.testing.assert_allclose(heights(early.axes[0]), mean.sel(time=1))
    panels = line(ds, averages, where={"time": [0, 2]}, panel="time").axes
    assert len(panels) == 2
    assert panels[0].get_xscale() == "log"


def test_a_guide_has_its_slope():
    ds = giant_steps_dataset(dynamics=["sgd"])
    ds["risk"] = ds.risk.copy(data=np.broadcast_to(3.0 / ds.batch_size.values[:, None, None], ds.risk.shape))
    [axes] = line(ds, y="risk", guide=-1).axes
    [guide] = [one for one in axes.lines if one.get_linestyle() not in ("-", "None") and len(one.get_xdata()) == 4]
    np.testing.assert_allclose(np.diff(np.log(guide.get_ydata())) / np.diff(np.log(guide.get_xdata())), -1.0)
    assert (guide.get_ydata() < 3.0 / ds.batch_size.values).all()


@pytest.mark.rest
def test_points_without_enough_runs_are_left_out(ds):
    lost = with_outcome(ds, "diverged", ds.batch_size == 10)
    lost = lost.assign(subspace_cosine=ds.subspace_cosine.where((ds.batch_size != 10) | (ds.time < 3)))
    [axes] = line(lost, x="steps", where={"batch_size": 10, "dynamics": "sgd"}, hue="teacher").axes
    assert [len(line) for line in heights(axes)] == [3, 3, 3]
    [axes] = line(
        with_outcome(ds, "failed", ds.batch_size == 10), x="steps", where={"batch_size": 10}, hue="teacher"
    ).axes
    assert not axes.containers


@pytest.mark.rest
def test_the_batch_size_has_steps_above_and_samples_below(ds):
    drawing, found = tradeoff(ds), ANALYSES["batch_tradeoff"](ds)
    steps, samples = drawing.axes
    np.testing.assert_allclose(heights(steps)[0], found.steps.sel(dynamics="sgd").values.ravel())
    np.testing.assert_allclose(heights(samples)[0], found.samples.sel(dynamics="sgd").values.ravel())
    assert any(text.startswith(("slope −0.9", "slope −1.0")) for text in texts(drawing))
    one = tradeoff(giant_steps_dataset(seeds=1))
    assert not any(text.startswith("slope") for text in texts(one))
    nothing = tradeoff(ds.assign(exit_steps=ds.exit_steps.where(False)))
    assert not nothing.axes[0].containers


def test_a_number_of_the_user_is_named_once():
    named = (xr.DataArray(1.0, name=name, attrs=label(name)) for name in ("passes", "gamma_ratio", "alpha"))
    expected = ["passes", r"$\gamma_{\mathrm{ratio}}$", r"samples over the dimension $\alpha$"]
    assert [axis_label(one) for one in named] == expected


STEPS = {"x": "steps"}
REFUSED = [
    (line, STEPS | {"y": "rsik"}, "y: no such quantity; got 'rsik'; .*did you mean 'risk'"),
    (line, STEPS | {"dash": "seed"}, "dash: no such axis to draw; got 'seed'"),
    (line, STEPS | {"dash": "batch_size"}, "dash: too many values of batch_size; got 4; expected at most 3"),
    (line, STEPS | {"where": {"time": 2}}, "x: no such axis of numbers; got 'steps'"),
    (line, STEPS | {"y": "risk", "hue": "teacher"}, "hue: no such axis to draw; got 'teacher'"),
    (line, {"x": "dynamics"}, "x: no such axis of numbers; got 'dynamics'"),
    (line, {"x": "batch_size", "where": {"batch_size": 10}}, "x: no such axis of numbers; got 'batch_size'"),
    (tradeoff, {"hue": "teacher"}, "hue: no such axis to draw"),
]


@pytest.mark.rest
@pytest.mark.parametrize(("figure", "options", "message"), REFUSED)
def test_wrong_choices_are_refused_before_anything_runs(ds, figure, options, message):
    outlines = {need: ANALYSES[need].outlined(outline_of(with_constants(ds)), {}) for need in figure.needed(options)}
    with pytest.raises(InputError, match=message) as foreseen:
        figure.check_fit(outline_of(with_constants(ds)), outlines, options)
    with pytest.raises(InputError) as drawn:
        figure(ds, **options)
    assert str(drawn.value) == str(foreseen.value)
