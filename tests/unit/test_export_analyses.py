"""Analyses as tables: read back with pandas they are the stored analyses to the bit, a row for each point that ran."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from click.testing import CliRunner

import sweeplib
from sweeplib.analysis.kit.rows import rows_of
from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from tests.datasets import sweep_dataset, with_outcome
from tests.in_process import InProcess

PROBLEM = {"p": 2, "k": 1, "d": 40, "Delta": 0, "activation": "square"}
RUNS = {"seeds": 3, "times": [0, 1], "thresholds": [0.3, 0.9999]}
ROWS = [
    {"gamma": 0.05, "d": 40, "n": 3, "k": 1},
    {"gamma": 0.1, "d": 40, "n": 2, "k": 2},
    {"gamma": 0.1, "d": 60, "n": 4, "k": 1},
]
CONFIGS: dict[str, dict[str, Any]] = {
    "table": {
        "problem": {name: value for name, value in PROBLEM.items() if name not in ("d", "k")},
        "points": ROWS,
        **RUNS,
        "seeds": "n",
        "dynamics": {"sgd_chain": {}, "ode": {"when": "gamma > 0.07"}},
        "observables": ["risk", "subspace_cosine"],
        "analyses": {"exit_times": {}, "averages": {}},
    },
    "axes": {
        "problem": {"k": 1, "Delta": 0, "activation": "square"},
        "grid": {"zip": [{"p": [1, 2], "d": [40, 60]}], "rate": [0.1, 0.2, 0.3]},
        "derive": {"gamma": "rate/p"},
        **RUNS,
        "dynamics": {"sgd_chain": {}, "ode": {"when": "rate > 0.15"}},
        "analyses": {"exit_times": {}, "averages": {}},
    },
    "tasks": {
        "problem": {"p": 2, "k": 2, "d": 40, "gamma": 0.1, "Delta": 0, "activation": "erf", "tasks": "in_turn"},
        "grid": {"task_overlap": [0, 0.5], "switch_time": [1, 2]},
        "seeds": 2,
        "times": [0, 1, 2, 3],
        "dynamics": ["ode"],
        "observables": ["risk_of_task"],
        "analyses": {"forgetting": {}, "averages": {}},
    },
}


@pytest.fixture(scope="module", params=CONFIGS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the results of a sweep, run by the commands, and the folder of the tables of all of its analyses."""
    folder = tmp_path_factory.mktemp(request.param)
    path, results = folder / f"{request.param}.yaml", folder / "results"
    path.write_text(yaml.safe_dump(CONFIGS[request.param]))
    run_sweep(replace(load(path), cluster=InProcess(block_size=64)), results / path.stem, progress=False)
    for command in (["finalise"], ["analyse"], ["export", "--what", "all", "--output", str(folder / "tables")]):
        done = CliRunner().invoke(app, [command[0], str(path), "--results", str(results), *command[1:]])
        assert done.exit_code == 0, done.output
    return results / path.stem, folder / "tables"


def read(path: Path) -> pd.DataFrame:
    """Return a table as docs/how-to/reading.md reads it."""
    return pd.read_csv(path, float_precision="round_trip")


def tables(folder: Path, name: str) -> dict[str, pd.DataFrame]:
    return {path.stem: read(path) for path in sorted(folder.glob(f"{name}*.csv"))}


def test_read_back_they_are_the_stored_analyses_to_the_bit(exported: tuple[Path, Path]) -> None:
    directory, folder = exported
    dataset = sweeplib.open(directory).load()
    for name in CONFIGS[directory.name]["analyses"]:
        stored = sweeplib.open(directory / "analysis" / f"{name}.zarr").load()
        columns: list[str] = []
        for frame in tables(folder, f"{directory.name}_{name}").values():
            dims = [str(dim) for dim in stored.dims if dim in frame]
            assert not frame.duplicated(dims).any()
            assert len(frame) == len(points(dataset, stored, dims)), "a row for each point with runs, and no other"
            held = [str(variable) for variable in stored.variables if variable in frame]
            columns += [column for column in held if column in stored.data_vars]
            for row in frame.to_dict("records"):
                point = stored.sel({dim: row[dim] for dim in dims})
                for column in held:
                    same(row[column], point[column].item())
        assert {*columns} == {*map(str, stored.data_vars)}
        assert [column for column in columns if columns.count(column) > 1] in ([], ["runs", "runs"])


def same(cell: Any, value: Any) -> None:
    assert cell == value or (np.isnan(cell) and np.isnan(value)), (cell, value)


def points(dataset: xr.Dataset, stored: xr.Dataset, dims: list[str]) -> list[tuple[Any, ...]]:
    """Return the points of some axes at which some run was made, one by one."""
    there = []
    for values in product(*(stored[dim].values.tolist() for dim in dims)):
        point = dict(zip(dims, values, strict=True))
        cases = dataset.sel({dim: value for dim, value in point.items() if dim in dataset.status.dims})
        if bool((cases.status != 0).any()) and point.get("teacher", 1) <= np.max(cases.get("k", 2)):
            there.append(values)
    return there


def test_every_row_has_all_parameters_and_a_number_of_runs(exported: tuple[Path, Path]) -> None:
    directory, folder = exported
    dataset = sweeplib.open(directory).load()
    for name, frame in tables(folder, directory.name).items():
        assert {"p", "k", "d", "gamma", "Delta", "activation", "batch_size"} <= {*frame}
        assert frame.runs.dtype == np.int64 and (frame.runs >= ("averages" not in name)).all()
        assert not frame[["p", "d", "gamma", "activation"]].isna().to_numpy().any()
    if directory.name == "table":
        rows = read(folder / "table_exit_times.csv")
        for row in rows.to_dict("records"):
            assert {name: row[name] for name in ROWS[0]} == ROWS[row["point"]]
            run = dataset.status.sel(dynamics=row["dynamics"], point=row["point"]) != 0
            assert row["runs"] == int(run.sum())
        assert len(rows) == 2 * (3 + 2), "of the ODE two points have a run"
    if directory.name == "axes":
        rows = read(folder / "axes_exit_times.csv")
        assert (rows.gamma == rows.rate / rows.p).all()
        assert {*zip(rows.p, rows.d, strict=True)} == {(1, 40), (2, 60)}


def test_a_file_beside_a_table_says_what_its_columns_are(exported: tuple[Path, Path]) -> None:
    directory, folder = exported
    files = sorted(folder.glob("*.csv"))
    assert files and sorted(folder.glob("*.json")) == [path.with_suffix(".json") for path in files]
    for path in files:
        about = json.loads(path.with_suffix(".json").read_text())
        assert about["table"] == path.name and about["title"]
        assert list(about["columns"]) == list(read(path))
        assert all(column["units"] and column["long_name"] for column in about["columns"].values())
    if directory.name == "table":
        about = json.loads((folder / "table_exit_times.json").read_text())
        assert about["intervals"] == "95 % interval"
        assert about["columns"]["gamma"] == {"long_name": "learning rate", "units": "1", "symbol": r"\gamma"}


def test_flags_are_words_and_ends_of_runs_are_counted() -> None:
    ds = with_outcome(sweep_dataset(seeds=6), "diverged", xr.DataArray(np.arange(6) < 2, dims="seed"))
    flags = {"flag_values": [0, 1], "flag_meanings": "undecided no_ode"}
    kind = (ds.d > 1000).astype(np.int8).assign_attrs(flags)
    [rows] = rows_of("kinds", xr.Dataset({"kind": kind, "kind_share": kind * 0.5, "kind_share_low": kind * 0.1}), ds)
    assert rows.variables == ("kind", "kind_share", "kind_share_low")
    assert rows.column("kind").tolist() == ["undecided", "no_ode"]
    total = int((ds.status != 0).sum(["seed", "dynamics", "Delta", "gamma_ratio"]).isel(d=1))
    assert rows.column("runs")[1] == total and rows.column("runs_diverged")[1] == 96


def test_what_is_not_there_is_refused_before_anything_is_written(exported: tuple[Path, Path], tmp_path: Path) -> None:
    directory, _ = exported
    if directory.name != "table":
        return
    command = ["export", str(directory), "--output", str(tmp_path), "--what"]
    done = CliRunner().invoke(app, [*command, "exit_tims,averages"])
    assert done.exit_code == 2 and "--what: no such analysis in this sweep; got 'exit_tims'" in done.output
    assert "did you mean 'exit_times'?" in done.output.replace("\n", " ")
    kept = directory / "analysis" / "exit_times.zarr"
    kept.rename(hidden := kept.with_name("elsewhere"))
    done = CliRunner().invoke(app, [*command, "exit_times"])
    hidden.rename(kept)
    assert done.exit_code == 2 and "--what: not written yet; got 'exit_times'" in done.output
    (tmp_path / "table_averages_teacher.csv").write_text("mine")
    done = CliRunner().invoke(app, [*command, "exit_times", "--what", "averages"])
    assert done.exit_code == 2 and "there is such a file" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["table_averages_teacher.csv"]


def test_netcdf_and_parquet_hold_them_too(exported: tuple[Path, Path], tmp_path: Path) -> None:
    directory, folder = exported
    pytest.importorskip("h5netcdf")
    pytest.importorskip("pyarrow")
    for to in ("netcdf", "parquet"):
        options = ["--what", "dataset,averages", "--to", to, "--output", str(tmp_path)]
        done = CliRunner().invoke(app, ["export", str(directory), *options])
        assert done.exit_code == 0, done.output
    stored = sweeplib.open(directory / "analysis" / "averages.zarr").load()
    with xr.open_dataset(tmp_path / f"{directory.name}_averages.nc", engine="h5netcdf") as written:
        xr.testing.assert_equal(written.load(), stored)
    for path in folder.glob(f"{directory.name}_averages*.csv"):
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / path.with_suffix(".parquet").name), read(path), check_dtype=False, rtol=0
        )
