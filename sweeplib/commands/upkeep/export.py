"""The dataset and the analyses of a sweep in other formats: NetCDF, or tables by their axes in CSV or Parquet."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sweeplib.analysis.kit.headlines import interval_of
from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.analysis.kit.rows import rows_of
from sweeplib.analysis.write import analysis_failure
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.simulator import networks
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.engine.storage.records.artefacts import refuse_outdated
from sweeplib.engine.storage.records.files import partial, write_text
from sweeplib.errors import InputError

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
"""The formats by the values of --to."""


WHOLE, EVERY = "dataset", "all"
"""What is written by default, and the word for every analysis."""


class Table(NamedTuple):
    """A table: the end of its name, its rows, and what it is: a title, what intervals are, attributes of columns."""

    name: str
    frame: "pd.DataFrame"
    about: dict[str, Any]


def export(
    directory: Path, to: str, folder: Path, names: Sequence[str] = (WHOLE,), analyses: Sequence[str] = ()
) -> list[Path]:
    """Write the dataset of the results in `directory`, or `analyses` of it, into `folder`; return the paths.

    names : those of `analyses`, `all` of them, or the dataset.
    Names begin with that of the sweep. A table of the dataset has a row for each case, and those of variables over
    further axes, such as the time, one for each value along them: `scan.csv`, `scan_time.csv`. A run without an exit
    has a row without a value: means that leave it out are too low. A table of an analysis has a row for each point that
    was run (`rows_of`): `scan_exit_times.csv`. Beside each table, a file of JSON says what its columns are.
    InputError for an unknown format or name, without the packages of a format, for an analysis that failed or is of
    another dataset, and if there is such a file, or the folder cannot be written.
    """
    if to not in FORMATS:
        raise InputError("unknown format", key="--to", value=to, choices=list(FORMATS))
    suffix, packages = FORMATS[to]
    if missing := [package for package in packages if not find_spec(package)]:
        expected = f"the packages of formats: `pip install {' '.join(missing)}`"
        raise InputError(f"{to} cannot be written", key="--to", value=to, expected=expected)
    datasets = _datasets(directory, names, analyses)
    _make(folder)
    if to == "netcdf":
        files = {_new_file(folder / f"{_joined(directory.name, name)}{suffix}"): ds for name, ds in datasets.items()}
        for path, ds in files.items():
            with _whole_file(path) as file:
                ds.to_netcdf(file, engine="h5netcdf")
        return list(files)
    dataset = datasets[""] if "" in datasets else open_dataset(directory / "dataset.zarr")
    tables = [
        table
        for name, ds in datasets.items()
        for table in (_tables_of_analysis(name, ds, dataset) if name else _tables_of_cases(ds))
    ]
    # a file that is there already is refused before the first one is written
    stems = [_joined(directory.name, table.name) for table in tables]
    paths = [_new_file(folder / f"{stem}{end}") for stem in stems for end in (suffix, ".json")]
    for path, beside, table in zip(paths[::2], paths[1::2], tables, strict=True):
        with _whole_file(path) as file:
            if to == "csv":
                table.frame.to_csv(file, index=False)
            else:
                table.frame.to_parquet(file, index=False)
        write_text(beside, json.dumps({"table": path.name} | table.about, indent=1, ensure_ascii=False) + "\n")
    return paths


def _make(folder: Path) -> None:
    """Make a folder, if it is not there; InputError if nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # decisions: Limits are found by trying
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        expected = "a folder that you may write, which need not exist"
        problem = f"cannot be written ({error.strerror})"
        raise InputError(problem, key="--output", value=str(folder), expected=expected) from None


def _datasets(directory: Path, entries: Sequence[str], analyses: Sequence[str]) -> dict[str, "xr.Dataset"]:
    """Return what is to be written: the dataset, under the name "", and analyses by their names."""
    names = list(dict.fromkeys(name for entry in entries for name in (analyses if entry == EVERY else [entry])))
    choices = [WHOLE, EVERY, *analyses]
    for name in names:
        if name not in choices:
            raise InputError("no such analysis in this sweep", key="--what", value=name, choices=choices)
    if not names:
        raise InputError("the sweep has no analyses", key="--what", value=EVERY, expected=WHOLE)
    wanted = [name for name in names if name != WHOLE]
    refuse_outdated(directory, wanted, ())
    for name in wanted:
        if problem := analysis_failure(directory, name):
            raise InputError(f"this analysis failed: {problem}", key="--what", value=name, expected="another one")
    for name in names:
        if not (directory / ("dataset.zarr" if name == WHOLE else f"analysis/{name}.zarr")).exists():
            expected = f"`sweeplib {'sweep' if name == WHOLE else 'analyse'}` of this sweep before"
            raise InputError("not written yet", file=directory, key="--what", value=name, expected=expected)
    return {
        "" if name == WHOLE else name: open_with_overlaps(directory / "dataset.zarr")
        if name == WHOLE
        else open_dataset(directory / "analysis" / f"{name}.zarr").load()
        for name in names
    }


def _joined(*names: str) -> str:
    """Return names, without empty ones, with underscores between them."""
    return "_".join(filter(None, names))


def _tables_of_cases(ds: "xr.Dataset") -> Iterator[Table]:
    """Yield the tables of a dataset: one for each set of axes that variables have beside those of a case."""
    for axes, names in _variables_by_axes(ds).items():
        frame = _table(ds[[*names, "status"]])
        title = "a row a case" if not axes else f"a row a case and a value of {', '.join(axes)}"
        yield Table("_".join(axes), frame, {"title": title, "columns": _columns_of(ds, frame, ds)})


def _tables_of_analysis(name: str, analysis: "xr.Dataset", dataset: "xr.Dataset") -> Iterator[Table]:
    """Yield the tables of an analysis of a dataset, whose runs are counted (`rows_of`)."""
    import pandas as pd

    about = {"title": analysis.attrs.get("title", name), "intervals": interval_of(analysis)}
    for rows in rows_of(name, analysis, dataset):
        names = (*rows.dims, *rows.parameters, *rows.variables, *rows.runs)
        frame = pd.DataFrame({column: rows.column(column) for column in names}).assign(**rows.constants)
        yield Table(rows.name, frame, about | {"columns": _columns_of(rows.data, frame, dataset)})


def _columns_of(ds: "xr.Dataset", frame: "pd.DataFrame", dataset: "xr.Dataset") -> dict[str, dict[str, Any]]:
    """Return, by column of a table of `ds`, its long name, its units and its symbol in LaTeX.

    dataset : that of the cases. Of constants of a function it has the values alone.
    """
    of_others = networks().label if "function" not in dataset.attrs else lambda name: {}
    attrs = {str(name): ds[str(name)].attrs if name in ds.variables else of_others(str(name)) for name in frame}
    return {
        name: {"long_name": labels.get("long_name", name), "units": labels.get("units", "1")}
        | ({"symbol": labels["symbol"]} if labels.get("symbol") else {})
        for name, labels in attrs.items()
    }


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
    """Return a path; InputError if there is a file."""
    if path.exists():
        raise InputError("there is such a file", value=str(path), expected="a new file: delete it, or name a folder")
    return path


def _variables_by_axes(ds: "xr.Dataset") -> dict[tuple[str, ...], list[str]]:
    """Return the names of the variables by the axes that they have beside those of a case, few axes first.

    Releases of zarr list the variables of a dataset in orders of their own.
    """
    groups: dict[tuple[str, ...], list[str]] = {(): []}
    for name in sorted(map(str, ds.data_vars)):
        axes = tuple(str(dim) for dim in ds[name].dims if dim not in ds.status.dims)
        groups.setdefault(axes, []).append(name)
    return {axes: groups[axes] for axes in sorted(groups, key=lambda axes: (len(axes), axes))}


def _table(ds: "xr.Dataset") -> "pd.DataFrame":
    """Return a table with a row for each case that has run, or for each value of it, with the name of its status."""
    frame = ds.to_dataframe().reset_index()
    values = [name for name in map(str, ds.data_vars) if name != "status"]
    frame = frame[frame["status"] != Status.missing]
    # rows without a value are padding or times after the end of a run; a run without an exit keeps its row
    if set(ds.dims) - set(ds.status.dims) and "exit_steps" not in values:
        frame = frame.dropna(subset=values, how="all")
    labels = [name for name in frame.columns if name not in (*values, "status")]
    return frame.assign(status=[Status(code).name for code in frame["status"]])[[*labels, "status", *values]]
