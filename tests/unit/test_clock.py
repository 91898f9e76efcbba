"""Recording times in steps and samples: what a config may say, where runs are recorded, what their time is called."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import sweeplib
from sweeplib import analysis
from sweeplib.commands.cli import app
from sweeplib.commands.upkeep.export import export
from sweeplib.config import from_mapping
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution import work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.files.strict_yaml import written as yaml_text
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import time_attributes, time_text
from sweeplib.pictures.figures.kit.labels import axis_label, value_label
from tests.in_process import Here, computed

EPOCHS = {"p": 1, "k": 1, "activation": "square", "Delta": 0, "samples": 7, "sampling": "epochs"}


def config(times: Any, **others: Any) -> dict[str, Any]:
    return {
        "name": "clocked",
        "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "Delta": 0},
        "grid": {"d": [20, 30], "batch_size": [1, 5]},
        "derive": {"gamma": "0.05*batch_size"},
        "seeds": 3,
        "dynamics": ["sgd_chain"],
        "times": times,
        "figures": [],
    } | others


def steps_of(design: Design, place: int = -1) -> list[float]:
    """Return the SGD steps to a recording time at each point."""
    cases = design.points("sgd_chain").cases
    return [case.clock * case.recording.times[place] / case.problem.step_time() for case in cases]


@pytest.mark.rest
@pytest.mark.parametrize(
    ("times", "recorded", "steps"),
    [
        ({"samples": "50*d"}, (50.0,), [1000, 200, 1500, 300]),
        ({"samples": ["10*d", "50*d"]}, (10.0, 50.0), [1000, 200, 1500, 300]),
        ({"samples": [0, 10, 50], "scale": "d"}, (0.0, 10.0, 50.0), [1000, 200, 1500, 300]),
        ({"samples": {"linspace": [0, 50, 3]}, "scale": "d"}, (0.0, 25.0, 50.0), [1000, 200, 1500, 300]),
        ({"samples": 600}, (600.0,), [600, 120, 600, 120]),
        ({"samples": [0, 600]}, (0.0, 600.0), [600, 120, 600, 120]),
        ({"samples": "batch_size*round(d**1.5/batch_size)"}, (1.0,), [89, 18, 164, 33]),
        ({"samples": "3*d/2 + 20"}, (1.0,), [50, 10, 65, 13]),
        ({"steps": [0, 7]}, (0.0, 7.0), [7, 7, 7, 7]),
        ({"steps": "2*d"}, (2.0,), [40, 40, 60, 60]),
        ({"steps": {"geomspace": [1, 10, 6]}}, (1.0, 2.0, 3.0, 4.0, 6.0, 10.0), [10, 10, 10, 10]),
    ],
)
def test_times_in_steps_and_samples(times: Any, recorded: tuple[float, ...], steps: list[int]) -> None:
    design = from_mapping(config(times))
    assert design.recording.times == recorded
    assert steps_of(design) == pytest.approx(steps, rel=1e-12)
    again = from_mapping(parsed(design.source))
    assert again.source == design.source and again.numerics("sgd_chain") == design.numerics("sgd_chain")


def test_each_use_of_a_batch_is_a_step_and_its_samples_are_drawn_once() -> None:
    design = from_mapping(config({"samples": "10*d"}, grid={"d": [20, 30], "batch_size": [1, 5], "repeats": [3]}))
    assert steps_of(design) == pytest.approx([600, 120, 900, 180], rel=1e-12)


def test_a_horizon_is_in_the_unit_of_the_times() -> None:
    assert from_mapping(config({"samples": "50*d"}, horizon=80)).recording.times == (50.0, 80.0)
    longer = from_mapping(config({"steps": {"geomspace": [1, 10, 6]}}, horizon=20)).recording.times
    assert longer == (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 16.0, 20.0)


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"times": {"samples": "d**1.5"}}, "times.samples", "89.4427 steps of 1 sample at batch_size=1, d=20"),
        ({"times": {"samples": [0, 12]}}, "times.samples", "2.4 steps of 5 samples at batch_size=5"),
        ({"times": {"samples": {"linspace": [0, 12, 4]}}}, "times.samples", "2.4 steps of 5 samples"),
        ({"times": {"steps": [0, 2.5]}}, "times.steps", "whole steps, as of `round(EXPRESSION)`"),
        ({"times": {"samples": "50*q"}}, "times.samples", "unknown name in q"),
        ({"times": {"samples": "50*d", "scale": "d"}}, "times.samples", "numbers, in units of `scale: d`"),
        ({"times": {"samples": ["10*d", "5*p"]}}, "times.samples", "no common unit"),
        ({"times": {"samples": "50*d", "steps": [1]}}, "times.samples", "one of `values`, `steps` and `samples`"),
        ({"times": {"samples": "-50*d"}}, "times.samples", "not positive"),
        ({"times": {"samples": []}}, "times.samples", "at least one"),
        ({"times": {"scale": "d"}}, "times", "no times"),
        ({"times": {"sample": "50*d"}}, "times", "did you mean 'samples'"),
        ({"times": {"steps": [1]}, "dynamics": ["sgd_chain", "gradient_flow"]}, "times.steps", "in gradient_flow"),
        ({"times": {"samples": [5]}, "dynamics": ["mean_field"]}, "times.samples", "no samples in mean_field"),
        ({"times": {"samples": "50*d"}, "derive": {"samples_drawn": "2*d", "gamma": "samples_drawn/d"}},
         "derive.samples_drawn", "the name of a result"),
        ({"times": {"samples": [70]}, "dynamics": ["sgd"], "problem": EPOCHS}, "times.samples", "a pass has 2 of 5"),
    ],
)  # fmt: skip
def test_what_is_no_such_time_is_refused_at_its_key(change: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        from_mapping(config(**({"times": [0, 1]} | change)))
    assert error.value.key == key
    assert words in str(error.value)


@pytest.mark.rest
def test_records_are_those_of_a_run_to_that_step() -> None:
    """The bits of a run in ODE time that is recorded at the same steps."""
    design = from_mapping(config({"samples": [0, 40, 600]}))
    for case in design.points("sgd_chain").cases:
        n, T = case.problem.batch_size, case.problem.step_time()
        [record] = sweeplib.networks.simulation.run_cases([case]).data["risk"]
        plain = sweeplib.simulate(case.problem, "sgd_chain", times=[0.0, 40 / n * T, 600 / n * T], seeds=1)
        assert record.tolist() == plain.risk.values[0].tolist()


def test_a_time_is_called_by_its_unit() -> None:
    at = {"samples": time_attributes("samples", "d"), "steps": time_attributes("steps", None)}
    at |= {"scaled": time_attributes(None, "p/gamma"), "sum": time_attributes("steps", "d + 1"), "ODE": {}}
    words = {name: time_text(50.0, attributes) for name, attributes in at.items()}
    assert words == {
        "samples": "50 d samples",
        "steps": "50 steps",
        "scaled": "50 in units of p/gamma",
        "sum": "50 * (d + 1) steps",
        "ODE": "50",
    }
    assert time_text(1.0, at["steps"]) == "1 step"

    def titled(value: float, name: str) -> str:
        return value_label(xr.DataArray(value, name="time", attrs=at[name]))

    assert titled(50.0, "samples") == r"after $50\,d$ samples" and titled(1.0, "samples") == "after $d$ samples"
    assert titled(50.0, "steps") == "after 50 steps" and titled(0.0, "scaled") == "$t$ = 0"
    assert titled(2.0, "scaled") == r"$t$ = $2\,(p/\gamma)$" and titled(1.0, "scaled") == r"$t$ = $p/\gamma$"
    assert axis_label(xr.DataArray([1.0], name="time", attrs=at["samples"])) == "samples in units of $d$"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a sweep over 20 d samples with exits, of which some are late."""
    directory: Path = tmp_path_factory.mktemp("clocked") / "clocked"
    (directory.parent / "clocked.yaml").write_text(yaml_text(exits()), encoding="utf-8")
    design = replace(from_mapping(exits()), cluster=Here(block_size=8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "dispatched", computed)
        run_sweep(design, directory, progress=False)
    finalise(design, directory)
    return directory


def exits() -> dict[str, Any]:
    return config({"samples": ["5*d", "20*d"]}, thresholds=[0.1, 0.9], seeds=8)


@pytest.mark.rest
def test_a_dataset_says_how_many_samples_were_drawn(folder: Path, tmp_path: Path) -> None:
    """Beside the times in units of d, which mean nothing without it in a table."""
    ds = open_dataset(folder / "dataset.zarr").load()
    assert ds.time.values.tolist() == [5.0, 20.0] and ds.time.attrs["long_name"] == "samples in units of d"
    assert ds.samples_drawn.transpose("d", "time").values.tolist() == [[100.0, 400.0], [150.0, 600.0]]
    means = analysis.ANALYSES["averages"](ds)
    assert (means.steps * means.batch_size == means.samples_drawn).all()
    export(folder, "csv", tmp_path)
    rows = pd.read_csv(tmp_path / "clocked_time.csv")
    assert (rows.samples_drawn == rows.time * rows.d).all() and len(rows) == 2 * 2 * 2 * 8


@pytest.mark.rest
def test_the_end_of_a_sweep_says_how_many_runs_exited(folder: Path) -> None:
    ds = open_dataset(folder / "dataset.zarr").load()
    total, numbers = (
        ds.status.size,
        ds.exit_steps.notnull().sum(["dynamics", "d", "batch_size", "seed"]).values.tolist(),
    )
    assert 0 < numbers[1] < numbers[0], "or the test says nothing"
    shown = CliRunner().invoke(app, ["summary", str(folder.parent / "clocked.yaml"), "--results", str(folder.parent)])
    assert shown.exit_code == 0, shown.output
    [line] = [line for line in shown.output.splitlines() if line.startswith("sgd_chain: runs exit by the horizon")]
    assert line.startswith("sgd_chain: runs exit by the horizon 20 d samples: ")
    for number, level in zip(numbers, (0.1, 0.9), strict=True):
        assert f"{f'all {total}' if number == total else f'{number} of {total}'} at T = {level}" in line
    told = CliRunner().invoke(
        app, ["status", "--json", str(folder.parent / "clocked.yaml"), "--results", str(folder.parent)]
    )
    assert [count["exited"] for count in json.loads(told.output)["exits"]] == numbers
    half = np.sort((ds.exit_steps * ds.batch_size / ds.d).isel(threshold=0).values.ravel())[total // 2 - 1]
    assert f"half by {half:.4g}" in line
