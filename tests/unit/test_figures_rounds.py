"""Points that rounds have added are seen as such: small in the diagrams, with their round under the mouse."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.engine.status import Status
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.quantities import ADDED_SIZE, is_added, with_rounds
from sweeplib.pictures.report.plots import interactive_plot
from tests.datasets import sweep_dataset, with_outcome


def grown() -> xr.Dataset:
    """Return a dataset of regimes whose point δ = 0 was asked for by round 2, in its larger d by round 3."""
    ds = regime_dataset((-1.0, 0.0, 1.0), (0.0, 0.5), (100, 1000), seeds=6)
    rounds = xr.zeros_like(ds.status.isel(dynamics=0, seed=0, drop=True), int)
    later = (ds.delta == 0.0) & (rounds == 0)
    rounds = rounds.where(~later, xr.where(ds.d > 500, 3, 2))
    return ds.assign_coords(round=rounds)


def test_points_have_the_round_that_asked_for_them_first() -> None:
    ds = grown()
    found = with_rounds(analysis.regimes(ds), ds, "regime")
    assert found["round"].sel(delta=0.0).values.tolist() == [2, 2]
    assert found["round"].drop_sel(delta=0.0).max() == 0
    assert is_added(found, found["regime"]).sum() == 2
    plain = ds.drop_vars("round")
    assert "round" not in with_rounds(analysis.regimes(plain), plain, "regime")


def test_added_points_are_small_in_the_picture_and_named_in_the_plot() -> None:
    ds = with_constants(grown())
    made = {"regimes": with_constants(analysis.regimes(ds))}
    plane = FIGURES["phase_diagram"](ds, made).axes[0]
    points = [line for line in plane.lines if line.get_zorder() == 4]
    sizes = {float(np.ravel(line.get_xdata())[0]): line.get_markersize() for line in points}
    assert sizes[0.0] < 1.3 * ADDED_SIZE * sizes[1.0]
    declared = FIGURES["phase_diagram"].interactive
    assert declared is not None
    plot = interactive_plot("phase_diagram", declared(ds, made), ds, made, {})
    assert "round" in [column.name for column in plot.table.columns]
    assert "round" in str(plot.spec["shown"])


@pytest.mark.rest
def test_points_without_runs_and_names_of_regions_beyond_the_plane_are_not_drawn() -> None:
    ds = with_constants(grown()).sel(delta=[0.0, 1.0])
    missing = (ds.delta == 1.0) & (ds.kappa == 0.5) & (ds.status >= 0)
    ds = ds.assign(
        status=ds.status.where(~missing, Status.missing).astype(ds.status.dtype).assign_attrs(ds.status.attrs)
    )
    made = {"regimes": with_constants(analysis.regimes(ds))}
    declared = FIGURES["phase_diagram"].interactive
    assert declared is not None
    assert interactive_plot("phase_diagram", declared(ds, made), ds, made, {}).table.rows == 3
    plane = FIGURES["phase_diagram"](ds, made).axes[0]
    places = {
        (float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in plane.lines if line.get_zorder() == 4
    }
    assert places == {(0.0, 0.0), (0.0, 0.5), (1.0, 0.0)}
    (left, right), names = plane.get_xlim(), plane.texts
    assert names
    assert all(left <= name.get_position()[0] <= right for name in names)


@pytest.mark.rest
def test_points_left_out_are_drawn_as_such_and_points_nobody_asked_for_are_not() -> None:
    ds = sweep_dataset(seeds=6, derived=False, Delta=(0.0,), dynamics=("ode", "gradient_flow", "sgd_chain"))
    rates = ds.gamma.values
    ds = with_outcome(ds, "missing", ds.gamma.isin(rates[2:4]) & ds.status.notnull())
    rounds = xr.zeros_like(ds.status.isel(dynamics=0, seed=0, drop=True), int)
    rounds = rounds.where(ds.gamma != rates[2], -1).where(ds.gamma != rates[4], 1)
    drawing = FIGURES["limits_diagram"](ds.assign_coords(round=rounds))
    [legend] = drawing.legends
    assert "not run" in [text.get_text() for text in legend.get_texts()]
    dots = [line for line in drawing.axes[0].lines if line.get_marker() == "."]
    assert sum(len(line.get_xdata()) for line in dots) == ds.sizes["d"]
