"""Plain xarray, without warnings, can select, reduce, join and write a dataset."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import xarray as xr
from matplotlib.text import Text
from packaging.version import Version
from zarr.storage import MemoryStore

import sweeplib
import sweeplib.accessor
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.language import Expression
from sweeplib.engine.storage.dataset import folder as storage
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.networks.simulation import Recording
from tests.in_process import InProcess
from tests.tiers import slow_among, slow_but

Operation = Callable[[xr.Dataset, xr.Dataset], "xr.Dataset | xr.DataArray"]
OPERATIONS: dict[str, Operation] = {
    "copy": lambda ds, _: ds,
    "sel": lambda ds, _: ds.sel(d=40),
    "sel of some": lambda ds, _: ds.sel(d=[10, 40]),
    "sel of a dynamics": lambda ds, _: ds.sel(dynamics="ode"),
    "isel": lambda ds, _: ds.isel(time=-1, seed=0),
    "isel of a range": lambda ds, _: ds.isel(seed=slice(1, 4), d=slice(1, None)),
    "isel with a step": lambda ds, _: ds.isel(seed=slice(1, None, 2), Delta=slice(None, None, -1)),
    "where": lambda ds, _: ds.where(ds.d > 10, drop=True),
    "mean": lambda ds, _: ds.mean("seed"),
    "mean of a variable": lambda ds, _: ds.risk.mean("seed"),
    "concat along a new axis": lambda ds, _: xr.concat([ds, ds + 0], "sweep", join="exact"),
    "concat of more seeds": lambda ds, _: xr.concat([ds, ds.assign_coords(seed=ds.seed + 100)], "seed"),
    "concat with another sweep": lambda ds, other: xr.concat([ds, other], "d", combine_attrs="drop_conflicts"),
    "concat before another sweep": lambda ds, other: xr.concat([other, ds], "d", combine_attrs="drop_conflicts"),
    "merge": lambda ds, _: xr.merge([ds, ds.risk.mean("seed").rename("mean_risk")]),
}

PLOTS: dict[str, Callable[[xr.Dataset], object]] = {
    "curve": lambda ds: ds.risk.sel(dynamics="ode", gamma=0.1, d=20, Delta=0, seed=0).plot(),
    "curves": lambda ds: ds.risk.sel(dynamics="ode", d=20, Delta=0).mean("seed").plot(hue="gamma"),
    "plane": lambda ds: ds.exit_steps.sel(dynamics="sgd_chain", d=20, threshold=0.1).mean("seed").plot(),
    "facets": lambda ds: ds.risk.sel(dynamics="ode").mean("seed").plot(x="time", hue="gamma", col="d", row="Delta"),
    "statuses": lambda ds: ds.status.sel(dynamics="ode", d=20, seed=0).plot(),
    "histogram": lambda ds: ds.exit_steps.plot.hist(),
    "points": lambda ds: ds.isel(threshold=0, dynamics=0, time=-1).plot.scatter(x="exit_steps", y="risk", hue="gamma"),
}
USES: dict[str, Callable[[xr.Dataset, xr.Dataset], object]] = {
    "groups": lambda ds, _: ds.groupby("gamma").mean(),
    "groups of two": lambda ds, _: ds.risk.groupby(["gamma", "d"]).mean(),
    "groups by status": lambda ds, _: ds.exit_steps.groupby(ds.status.load()).mean(),
    "bins": lambda ds, _: ds.groupby_bins("gamma", [0.0, 0.15, 0.4]).mean(),
    "combine_by_coords": lambda ds, _: xr.combine_by_coords([ds.sel(d=[40]), ds.sel(d=[10, 20])]),
    "combine_nested": lambda ds, other: xr.combine_nested([ds, other], "d", combine_attrs="drop_conflicts"),
    "sweeplib.combine": lambda ds, other: sweeplib.combine(ds, other).to_zarr(MemoryStore()),
    "merge of parts": lambda ds, _: xr.merge([ds.isel(seed=[0, 1]), ds.isel(seed=[2, 3])], "no_conflicts", "outer"),
    "concat": lambda ds, other: xr.concat([ds, other], "d"),
    "align": lambda ds, other: xr.align(ds, other, join="outer"),
    "interpolation": lambda ds, _: ds.risk.interp(gamma=0.15),
    "nearest": lambda ds, _: ds.sel(gamma=0.11, method="nearest"),
    "table": lambda ds, _: ds.to_dataframe(),
    "stack": lambda ds, _: ds.stack(point=("gamma", "d")).unstack("point"),
    "quantiles": lambda ds, _: ds.risk.quantile([0.1, 0.9], "seed"),
    "slope": lambda ds, _: ds.risk.load().polyfit("time", 1),
    "differences": lambda ds, _: ds.sel(dynamics="ode", drop=True) - ds.sel(dynamics="sgd_chain", drop=True),
    "analysis": lambda ds, _: ds.sweep.exit_times().to_zarr(MemoryStore()),
    "file": lambda ds, _: ds.mean("seed").to_zarr(MemoryStore()),
}


def finalised(directory: Path, d: tuple[int, ...]) -> Path:
    """Return the dataset of a sweep over these dimensions."""
    axes = (Axis("gamma", (0.1, 0.2, 0.3)), Axis("d", d), Axis("Delta", (0.0, 1.0)))
    sweep = Design(
        "read",
        Grid(axes, {"k": 1, "activation": "square", "spherical": True}, {"p": Expression("d / 10")}),
        tuple(range(4)),
        {"sgd_chain": Run("sgd_chain"), "ode": Run("ode")},
        Recording(times=(0.0, 0.5, 1.0), thresholds=(0.1,), observables=("risk", "overlap_M")),
        cluster=InProcess(block_size=24),
        source="name: read\n",
    )
    run_sweep(sweep, directory, progress=False)
    return finalise(sweep, directory)


@pytest.fixture(scope="module", params=slow_but([storage.CHUNK_BYTES, 4096], 4096), ids=["one chunk", "many chunks"])
def paths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Return two sweeps, with arrays in one chunk each, or in many as those of large sweeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "CHUNK_BYTES", request.param)
        patch.setattr(storage, "FILE_BYTES", request.param // 16)
        yield tuple(finalised(tmp_path_factory.mktemp(str(d[0])), d) for d in ((10, 20, 40), (30, 60, 80)))


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Treat warnings as errors, except the one that xarray gives for every file in zarr's third format."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Consolidated metadata is currently not part in the Zarr format 3")
        yield


OTHERS = ("sel of some", "isel with a step", "mean of a variable", "sel of a dynamics", "concat before another sweep")


@pytest.mark.parametrize("name", slow_among(OPERATIONS, *OTHERS))
def test_what_a_reader_makes_of_it_can_be_written_and_read(name: str, paths: tuple[Path, Path], tmp_path: Path) -> None:
    made = OPERATIONS[name](*map(xr.open_zarr, paths))
    made.to_zarr(tmp_path / "made.zarr")
    again = xr.open_zarr(tmp_path / "made.zarr")
    wanted = made if isinstance(made, xr.Dataset) else made.to_dataset()
    xr.testing.assert_identical(again.load(), wanted.load())


BY_ITSELF = pytest.param(
    xr.open_zarr,
    marks=pytest.mark.xfail(
        Version(xr.__version__) < Version("2026"),
        reason=f"xarray {xr.__version__} writes no strings of zarr as NetCDF",
        strict=False,
    ),
)


@pytest.mark.parametrize("opened", [BY_ITSELF, storage.open_dataset])
@pytest.mark.parametrize("name", ["copy", "sel", "isel of a range", "mean"])
def test_and_as_netcdf(
    name: str, opened: Callable[[Path], xr.Dataset], paths: tuple[Path, Path], tmp_path: Path
) -> None:
    """By scipy, in the oldest format, which has no booleans and no long integers."""
    made = OPERATIONS[name](*map(opened, paths))
    made.to_netcdf(tmp_path / "made.nc", engine="scipy")
    again = xr.open_dataset(tmp_path / "made.nc", engine="scipy")
    wanted = made if isinstance(made, xr.Dataset) else made.to_dataset()
    xr.testing.assert_allclose(again.load(), wanted.load())
    assert set(again.attrs) == set(wanted.attrs)


def test_matrices_of_a_shape_can_be_written_too(paths: tuple[Path, Path], tmp_path: Path) -> None:
    xr.open_zarr(paths[0], group="p4_k1").sel(d=40).to_zarr(tmp_path / "made.zarr")
    assert xr.open_zarr(tmp_path / "made.zarr").overlap_M.sizes["student"] == 4


def test_many_chunks_are_many(paths: tuple[Path, Path]) -> None:
    chunks = xr.open_zarr(paths[0]).risk.data.numblocks
    assert chunks[0] == (1 if max(chunks) == 1 else 2)


@pytest.mark.parametrize("opened", slow_among([xr.open_zarr, sweeplib.open], xr.open_zarr))
def test_no_use_of_a_dataset_warns_and_no_plot_has_a_unit_of_one(
    opened: Callable[[Path], xr.Dataset], paths: tuple[Path, Path]
) -> None:
    one, other = map(opened, paths)
    for name, use in USES.items():
        assert use(one, other) is not None, name
    for name, plot in PLOTS.items():
        plot(one)
        drawn = plt.gcf()
        texts = [text.get_text() for text in drawn.findobj(Text)]
        plt.close(drawn)
        assert any(texts) and not any("[1]" in text for text in texts), name
    xr.open_mfdataset(paths, engine="zarr", concat_dim="d", combine="nested", combine_attrs="drop_conflicts").close()
    assert xr.open_groups(paths[0], engine="zarr")["/p2_k1"].overlap_M.dims[-2:] == ("student", "teacher")
