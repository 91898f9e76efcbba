"""The accessor `ds.sweep`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib import InputError, Sweep
from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.overlaps import open_with_overlaps
from tests.datasets import sweep_dataset
from tests.in_process import InProcess


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=4)


def test_every_analysis_is_a_method_of_the_dataset_and_of_its_parts(ds: xr.Dataset) -> None:
    assert ds.sweep.exit_times().identical(ANALYSES["exit_times"](ds))
    assert ds.sweep.exit_times(confidence=0.5).attrs["confidence"] == 0.5
    part = ds.sel(d=300, Delta=[0.0])
    assert part.sweep.exit_times().identical(ANALYSES["exit_times"](part))
    assert {"exit_times", "analyse", "figure"} <= set(dir(ds.sweep))
    with pytest.raises(AttributeError, match="no analysis 'exit_tims'; known are averages"):
        _ = ds.sweep.exit_tims


def test_it_says_what_there_is_and_how_the_runs_ended(ds: xr.Dataset) -> None:
    text = repr(ds.sweep)
    assert text.startswith(f"Sweep {ds.attrs['title']}: ")
    assert f"{ds.status.size:,} runs" in text and "exit_times" in text and "ds.sweep.explore()" in text
    part = ds.isel(seed=slice(2)).assign(status=ds.status.where(ds.seed > 0, 2).astype("uint8"))
    counts = part.sweep.status["ode"]
    assert counts["diverged"] == part.sel(dynamics="ode").status[..., 0].size and counts["killed"] == 0
    assert sum(counts.values()) == part.sel(dynamics="ode").status.size
    assert f"{counts['diverged']:,} diverged" in repr(part.sweep) and "killed" not in repr(part.sweep)


def test_figures_are_of_the_dataset(ds: xr.Dataset) -> None:
    [axes] = ds.sel(d=3000, Delta=0.0).sweep.figure("line", y="exit_steps", x="gamma_ratio").axes
    assert axes.get_xlabel() == r"$\gamma_{\mathrm{ratio}}$"
    with pytest.raises(InputError, match=r"unknown figure; got 'lin'.*did you mean 'line'"):
        ds.sweep.figure("lin")


def test_one_dynamics_or_one_seed_can_be_selected(ds: xr.Dataset) -> None:
    alone = ds.sel(dynamics="ode")
    assert alone.sweep.exit_times().identical(ANALYSES["exit_times"](ds.sel(dynamics=["ode"])))
    for name, options in (("line", {"y": "risk"}), ("distribution", {}), ("trajectories", {})):
        for part in (alone, ds.isel(seed=0)):
            assert part.sweep.figure(name, **options).axes


def test_values_of_the_dataset_select_values(ds: xr.Dataset) -> None:
    whole = {"y": "exit_steps", "x": "gamma_ratio", "hue": "d"}
    for values in (ds.d, ds.d.values, list(ds.d.values)):
        drawing = ds.sweep.figure("line", where={"d": values, "Delta": ds.Delta[0], "dynamics": "ode"}, **whole)
        assert len(drawing.axes[0].containers) == 2


@pytest.mark.parametrize("change", [lambda ds: ds[["risk"]], lambda ds: ds.isel(seed=[]), lambda ds: ds.mean("seed")])
def test_other_datasets_are_refused(ds: xr.Dataset, change: Callable[[xr.Dataset], xr.Dataset]) -> None:
    for ask in (lambda part: part.sweep.figure("line"), lambda part: part.sweep.exit_times()):
        with pytest.raises(InputError, match=r"dataset: (not the dataset of a sweep|no values along an axis)"):
            ask(change(ds))


SHELL = """\
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure
from sweeplib.pictures.figures.notebook import shown_in_notebooks

shell = InteractiveShell.instance()
shell.display_formatter.active_types = shell.display_formatter.format_types
drawing = Figure()
drawing.subplots()
plain, _ = shell.display_formatter.format(drawing)
shown, _ = shell.display_formatter.format(shown_in_notebooks(drawing))
print("image/png" in plain, "image/png" in shown)
"""


def test_a_notebook_shows_a_figure_as_a_picture() -> None:
    shown = subprocess.run([sys.executable, "-c", SHELL], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "True"]


@pytest.mark.slow
def test_files_without_overlaps_are_no_matter(tmp_path: Path) -> None:
    """The analyses and figures that read overlaps, where none is recorded."""
    problem = {"p": 1, "k": 1, "d": 40, "Delta": 0, "activation": "square", "spherical": True}
    sweep = Sweep(
        name="none", problem=problem, grid={"gamma": [0.1, 0.2]}, seeds=2, dynamics=["ode"], times=[0, 1],
        results=tmp_path,
    )  # fmt: skip
    sweep.run()
    ds = sweeplib.open(tmp_path / "none" / "dataset.zarr")
    for part in (ds, ds.sel(gamma=0.1), ds.isel(gamma=[1])):
        assert part.sweep.averages().risk.notnull().all()
    assert ds.sweep.figure("line", y="risk", x="gamma").axes


def test_overlaps_are_read_from_the_files(tmp_path: Path) -> None:
    """The analyses of a stored sweep, with and without a selection, are those that the sweep computes."""
    content = {"p": 2, "k": 1, "d": 40, "Delta": 0, "activation": "erf"}
    sweep = Sweep(
        name="small", results=tmp_path, problem=content, grid={"gamma": [0.1, 0.2], "spherical": [True, False]},
        seeds=6, dynamics=["sgd_chain", "ode"], times=[0, 1], observables=["overlap_M", "subspace_cosine"],
        thresholds=[0.01],
    )  # fmt: skip
    with InProcess().client() as client:
        ds = sweep.run(client, progress=False)
    whole = ds.sweep.deviation()
    assert whole.identical(sweep.analyse("deviation"))
    assert "overlap_M_deviation" in whole
    with_dask = xr.open_zarr(tmp_path / "small" / "dataset.zarr")
    assert with_dask.sweep.deviation().identical(whole)
    part = with_dask.sel(gamma=0.2, spherical=True).sweep.deviation()
    xr.testing.assert_allclose(part.overlap_M_deviation, whole.overlap_M_deviation.sel(gamma=0.2, spherical=True))
    ds = ds.sel(spherical=True)
    _, lower = ds.sweep.figure("ratio", y="subspace_cosine", x="gamma").axes
    cosine = open_with_overlaps(tmp_path / "small" / "dataset.zarr").subspace_cosine.isel(
        time=-1, teacher=0, gamma=0, spherical=0
    )
    relative = cosine / cosine.mean("seed")
    spread = (relative.sel(dynamics="sgd_chain") - relative.sel(dynamics="ode")).std("seed", ddof=1) / 6**0.5
    value = cosine.sel(dynamics="sgd_chain").mean() / cosine.sel(dynamics="ode").mean()
    low, high = lower.containers[0].lines[2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose([0.5 * (low + high), 0.5 * (high - low)], [value, value * spread])
