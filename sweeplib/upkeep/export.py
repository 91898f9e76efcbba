"""The dataset of a sweep in other formats: one NetCDF file, or a table for each set of axes in CSV or Parquet."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.errors import InputError
from sweeplib.late_modules import xarray as xr
from sweeplib.simulation import Status
from sweeplib.storage.records.files import partial

if TYPE_CHECKING:
    import pandas as pd


class Format(NamedTuple):
    """A format: the suffix of its files, and the packages that write it, beside those of sweeplib."""

    suffix: str
    packages: tuple[str, ...] = ()


FORMATS = {
    "netcdf": Format(".nc", ("h5netcdf", "h5py")),
    "csv": Format(".csv"),
    "parquet": Format(".parquet", ("pyarrow",)),
}


def export(directory: Path, to: str, folder: Path) -> list[Path]:
    """Write the dataset of the results in `directory` into `folder`; return the paths of the files.

    Names begin with that of the sweep. A table has a row for each case, and those of variables over further axes, such
    as the time, one for each value along them: `scan.csv`, `scan_time.csv`. A run without an exit has a row without a
    value: means that leave it out are too low. InputError for an unknown format, without the packages of a format, and
    if there is such a file, or one in place of the folder.
    """
    if to not in FORMATS:
        raise InputError("unknown format", key="--to", value=to, choices=list(FORMATS))
    if folder.exists() and not folder.is_dir():
        raise InputError("a file", key="--output", value=str(folder), expected="a folder, which need not exist")
    suffix, packages = FORMATS[to]
    if missing := [package for package in packages if not find_spec(package)]:
        expected = f"the packages of formats: `pip install {' '.join(missing)}`"
        raise InputError(f"{to} cannot be written", key="--to", value=to, expected=expected)
    ds = open_with_overlaps(directory / "dataset.zarr")
    if to == "netcdf":
        path = _new_file(folder / f"{directory.name}{suffix}")
        with _whole_file(path) as file:
            ds.to_netcdf(file, engine="h5netcdf")
        return [path]
    groups = _variables_by_axes(ds)
    paths = [_new_file(folder / f"{'_'.join((directory.name, *axes))}{suffix}") for axes in groups]
    for path, names in zip(paths, groups.values(), strict=True):
        frame = _table(ds[[*names, "status"]])
        with _whole_file(path) as file:
            if to == "csv":
                frame.to_csv(file, index=False)
            else:
                frame.to_parquet(file, index=False)
    return paths


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """Yield a name to write a file under that becomes `path` when it is complete, and is removed otherwise."""
    beside = partial(path)
    try:
        yield beside
        beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)


def _new_file(path: Path) -> Path:
    if path.exists():
        raise InputError("there is such a file", value=str(path), expected="a new file: delete it, or name a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _variables_by_axes(ds: "xr.Dataset") -> dict[tuple[str, ...], list[str]]:
    """Return the names of the variables by the axes that they have beside those of a case."""
    groups: dict[tuple[str, ...], list[str]] = {(): []}
    for name, variable in ds.data_vars.items():
        axes = tuple(str(dim) for dim in variable.dims if dim not in ds.status.dims)
        groups.setdefault(axes, []).append(str(name))
    return groups


def _table(ds: "xr.Dataset") -> "pd.DataFrame":
    """Return a row for each case that has run, or for each value of it, with the name of its status."""
    frame = ds.to_dataframe().reset_index()
    values = [name for name in map(str, ds.data_vars) if name != "status"]
    frame = frame[frame["status"] != Status.missing]
    if set(ds.dims) - set(ds.status.dims) and "exit_steps" not in values:
        frame = frame.dropna(subset=values, how="all")
    return frame.assign(status=[Status(code).name for code in frame["status"]])[list(_columns(frame, values))]


def _columns(frame: "pd.DataFrame", values: list[str]) -> Iterator[str]:
    """Yield the names of the columns: labels, the status, the values."""
    yield from (str(name) for name in frame.columns if name not in (*values, "status"))
    yield "status"
    yield from values
