"""The dataset in other formats: the numbers are those of the dataset, a row a case, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import sweeplib
from sweeplib.commands.cli import app
from sweeplib.commands.upkeep.export import _columns_of, export
from sweeplib.errors import InputError

CONFIG = {
    "problem": {"p": 2, "k": 1, "d": 40, "Delta": 0, "activation": "square"},
    "grid": {"gamma": [0.05, 0.1]},
    "seeds": 2,
    "dynamics": {"sgd_chain": {}, "ode": {"where": {"gamma": [0.1]}}},
    "times": [0, 1],
    "thresholds": [0.1, 0.9999],
    "observables": ["risk", "overlap_M"],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep of which the ODE runs at one of two learning rates."""
    folder = tmp_path_factory.mktemp("results")
    sweep = sweeplib.Sweep(name="scan", results=folder, cluster={"kind": "local", "workers": 1}, **CONFIG)
    sweep.run(progress=False)
    return folder / "scan"


@pytest.mark.rest
def test_a_plan_as_json_has_each_case(results: Path, tmp_path: Path) -> None:
    """Cases that exist with their status, those that do not as missing, with whole identities."""
    lines = (results / "config.yaml").read_text().replace("seeds: 2", "seeds: 3")
    (tmp_path / "more.yaml").write_text(lines.replace("name: scan", "name: scan2"))
    command = ["plan", str(tmp_path / "more.yaml"), "--json", "--results", str(results.parent)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["dynamics"]["sgd_chain"]["cases"] == 6
    rows = plan["rows"]["sgd_chain"]
    assert rows["gamma"] == [0.05] * 3 + [0.1] * 3 and rows["seed"] == [0, 1, 2] * 2
    assert rows["status"] == ["missing"] * 6
    assert {len(identity) for identity in rows["identity"]} == {32}
    assert plan["rows"]["ode"]["gamma"] == [0.1] * 3


@pytest.mark.rest
def test_tables_have_a_row_a_case_and_a_value(results: Path, tmp_path: Path) -> None:
    paths = export(results, "csv", tmp_path)
    assert {path.suffix for path in paths[1::2]} == {".json"}
    paths = paths[::2]
    names = ["scan.csv", "scan_threshold.csv", "scan_time.csv", "scan_time_student_teacher.csv"]
    assert [path.name for path in paths] == names
    ds = sweeplib.open(results).load()
    cases, times = pd.read_csv(paths[0]), pd.read_csv(paths[2], float_precision="round_trip")
    assert len(cases) == 6, "cases that the config does not ask for have no row"
    assert list(cases.columns[:5]) == ["dynamics", "gamma", "seed", "status", "end_steps"]
    assert set(cases.status) == {"ok"}
    assert len(times) == 12
    for row in times.itertuples():
        at = {name: getattr(row, name) for name in ("dynamics", "gamma", "seed", "time")}
        assert ds.risk.sel(at).item() == row.risk
    exits = pd.read_csv(paths[1])
    assert len(exits) == 12 and exits.exit_steps.isna().any(), "runs without an exit are rows, as they are censored"
    overlaps = pd.read_csv(paths[3])
    assert len(overlaps) == 24 and np.isfinite(overlaps.overlap_M).all()


@pytest.mark.rest
def test_netcdf_is_the_dataset(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    [path] = export(results, "netcdf", tmp_path / "new")
    ds = sweeplib.open(results)
    with xr.open_dataset(path, engine="h5netcdf") as written:
        xr.testing.assert_equal(written[list(ds.data_vars)].load(), ds.load())
        assert written.attrs["config"] == ds.attrs["config"] and written.risk.attrs == ds.risk.attrs
        assert "overlap_M" in written


@pytest.mark.rest
def test_parquet_has_the_numbers_of_csv(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    tables, texts = export(results, "parquet", tmp_path / "parquet"), export(results, "csv", tmp_path)
    for table, text in zip(tables[::2], texts[::2], strict=True):
        frame, read = pd.read_parquet(table), pd.read_csv(text)
        assert list(frame) == list(read)
        pd.testing.assert_frame_equal(frame, read, check_dtype=False, rtol=0)


def test_what_cannot_be_written_is_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "scan_time.csv").write_text("mine")
    for to, said in (("csv", "there is such a file; got "), ("xls", "unknown format; got 'xls'")):
        with pytest.raises(InputError, match=said):
            export(results, to, tmp_path)
    with pytest.raises(InputError, match=r"--output: cannot be written \(File exists\); .*expected a folder"):
        export(results, "csv", tmp_path / "scan_time.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["scan_time.csv"]


def test_constants_of_a_function_have_no_labels_of_networks() -> None:
    ds, frame = xr.Dataset(), pd.DataFrame({"p": [3]})
    assert _columns_of(ds, frame, ds.assign_attrs(function="f")) == {"p": {"long_name": "p", "units": "1"}}
    assert _columns_of(ds, frame, ds)["p"]["long_name"] == "student width"


def test_a_sweep_that_has_not_run_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("problem: {p: 1, k: 1, d: 9, Delta: 0, gamma: .1, activation: erf}\n"
                                        "dynamics: [ode]\ntimes: [1]\n")  # fmt: skip
    command = ["export", str(tmp_path / "mine.yaml"), "--to", "csv", "--results", str(tmp_path / "results")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2 and len(result.output.strip().splitlines()) == 1, result.output


def test_a_format_whose_packages_are_missing_is_refused(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """h5netcdf is there without h5py, which it does not ask for."""
    monkeypatch.setattr("sweeplib.commands.upkeep.export.find_spec", lambda name: name != "h5py")
    with pytest.raises(InputError, match=r"netcdf cannot be written.*pip install h5py"):
        export(results, "netcdf", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_could_not_be_written_to_its_end_is_not_there(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(frame: pd.DataFrame, path: Path, **_: object) -> None:
        Path(path).write_text("dynamics,gam")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match="No space left"):
        export(results, "csv", tmp_path)
    assert not list(tmp_path.iterdir())
