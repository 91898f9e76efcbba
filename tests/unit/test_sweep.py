"""A sweep that Python code describes and runs."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xarray as xr
import yaml

import sweeplib
from sweeplib import InputError, Sweep
from sweeplib.config.values import plain

if TYPE_CHECKING:
    from distributed import Client

CONFIG: dict[str, Any] = {
    "name": "scan",
    "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "Delta": 0},
    "grid": {"gamma": np.linspace(0.06, 0.14, 3, dtype="f4"), "d": range(100, 300, 100)},
    "seeds": np.int64(4),
    "dynamics": ["sgd_chain", "ode"],
    "times": (0, 1, 2),
    "thresholds": [0.01],
}
PLAIN = CONFIG | {"grid": {"gamma": [0.06, 0.1, 0.14], "d": [100, 200]}, "seeds": 4, "times": [0, 1, 2]}


@pytest.fixture(scope="module")
def client() -> Iterator["Client"]:
    from distributed import Client, LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def swept(client: "Client", tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    sweep = Sweep(results=tmp_path_factory.mktemp("python"), **CONFIG)
    assert "sgd_chain" in repr(sweep.plan())
    sweep.run(client, progress=False)
    assert client.status == "running"
    return sweep


@pytest.mark.slow
def test_it_is_the_sweep_of_a_file_with_the_same_content(swept: Sweep, client: "Client", tmp_path: Path) -> None:
    path = tmp_path / "scan.yaml"
    path.write_text(yaml.safe_dump(PLAIN, sort_keys=False))
    other = Sweep.from_yaml(path, results=swept.directory.parent)
    assert other.design.source == swept.design.source
    assert all(counts["missing"] == 0 for counts in other.status.values())
    assert other.dataset.identical(swept.dataset)
    assert other.dataset.sel(gamma=0.06).sizes["d"] == 2
    smaller = Sweep.from_yaml(path, "seeds=2", "grid.d=[100]", results=swept.directory.parent)
    assert smaller.dataset.sizes["seed"] == 4  # until it runs
    assert smaller.run(client, progress=False).sizes["seed"] == 2
    assert swept.run(client, progress=False).sizes["seed"] == 4
    with pytest.raises(InputError, match=r"has the results of .*scan.yaml; got 'scan'; expected this file \(in Python"):
        Sweep(results=swept.directory.parent, **CONFIG)
    path.unlink()
    assert Sweep(results=swept.directory.parent, **CONFIG).dataset.identical(swept.dataset)


SPACINGS = [("linspace", 0.01, 0.1, 10), ("linspace", 0, 1, 4), ("geomspace", 0.1, 10, 9), ("logspace", -6, 2, 33)]


@pytest.mark.rest
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("kind", "first", "last", "count"), SPACINGS)
def test_a_spacing_of_numpy_is_that_of_a_file(
    kind: str, first: float, last: float, count: int, dtype: str, tmp_path: Path
) -> None:
    """To the last bit, for axes and times, so that the cases are the same."""
    spacing, path = {kind: [first, last, count]}, tmp_path / "scan.yaml"
    values = getattr(np, kind)(first, last, count, dtype=dtype)
    problem = {"p": 1, "k": 1, "d": 100, "gamma": 0.1, "activation": "square"}
    content = PLAIN | {"problem": problem, "grid": {"Delta": values}, "times": values}
    path.write_text(yaml.safe_dump(content | {"grid": {"Delta": spacing}, "times": spacing}))
    here, there = (sweep.design for sweep in (Sweep(results=tmp_path, **content), Sweep.from_yaml(path)))
    assert (here.grid.axes, here.recording) == (there.grid.axes, there.recording)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float32(0.1), 0.1),
        (np.float16(0.3), 0.3),
        (np.float64(0.1) * 3, 0.3),
        (np.arange(0.1, 0.7, 0.1), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        (np.array([0.1, 0.3 - 0.1, 0.7]), [0.1, 0.2, 0.7]),
        (np.float64(2) / 3, 2 / 3),
        (np.array([[0.5, np.nan], [1e300, -0.0]]), [[0.5, np.nan], [1e300, -0.0]]),
        (xr.DataArray([0.1, 0.3 - 0.1, 0.7]), [0.1, 0.2, 0.7]),
        ((0.1 * 3, np.int64(4), np.bool_(True), "erf"), [0.1 * 3, 4, True, "erf"]),
    ],
)
def test_numbers_of_numpy_are_taken_without_rounding_errors(given: Any, expected: Any) -> None:
    assert repr(plain(given)) == repr(expected)


@pytest.mark.rest
def test_its_dataset_analyses_figures_and_report(swept: Sweep) -> None:
    assert dict(swept.dataset.sizes) == {"dynamics": 2, "gamma": 3, "d": 2, "seed": 4, "time": 3, "threshold": 1}
    exits = swept.analyse("exit_times")
    assert exits.exit_steps_mean.dims == ("dynamics", "gamma", "d", "threshold")
    assert swept.analyse("exit_times", confidence=np.float64(0.5)).confidence == 0.5
    [axes, *_] = swept.figure("risk_curves", hue="gamma", where={"d": 100}).axes
    assert axes.get_xlabel()
    with pytest.raises(InputError, match="confidenc"):
        swept.analyse("exit_times", confidenc=0.5)
    with pytest.raises(InputError, match=r"unknown figure; got 'risk_curve'; .* did you mean 'risk_curves'"):
        swept.figure("risk_curve")
    assert "scan" in swept.report().read_text()


def test_what_it_shows(swept: Sweep) -> None:
    assert repr(swept).splitlines()[1:] == [
        "  gamma = 0.06, 0.1, 0.14",
        "  d = 100, 200",
        "  seeds: 4",
        "  dynamics: sgd_chain, ode",
        "  times: 0, 1, 2",
    ]
    shown = repr(swept.plan())
    assert "scan: 0 s of one processor" in shown and max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nme": 1}, "nme: unknown key; got 'nme'"),
        ({"seeds": 0}, "seeds: not a number of seeds; got 0; expected 1 or more"),
        ({"grid": {"gama": np.arange(2)}}, "grid.gama: unknown name"),
        ({"dynamics": ["sdg"]}, "dynamics.sdg: unknown dynamics; got 'sdg'"),
        ({"times": np.array([0.0, np.nan])}, r"times\[1\]"),
        ({"figures": {"risk_curves": {"hue": "q"}}}, "figures.risk_curves.hue"),
        ({"plugins": ["none.py"]}, "plugins"),
    ],
)
def test_what_is_wrong_with_it_is_said_in_one_line(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as refused:
        Sweep(results=tmp_path, folder=tmp_path, **CONFIG | changes)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_nothing_is_there_before_it_has_run(tmp_path: Path) -> None:
    sweep = Sweep(results=tmp_path, **CONFIG)
    with pytest.raises(InputError, match=r"no dataset yet; .* expected a sweep that has run"):
        sweep.figure("risk_curves")
    assert sweep.status["ode"]["missing"] == 24


SCRIPT = """
import sweeplib

print("begun")
sweep = sweeplib.Sweep(
    name="one", problem={"p": 1, "k": 1, "d": 10, "gamma": 1, "Delta": 0, "activation": "square"}, seeds=2,
    dynamics=["sgd_chain"], times=[0, 1], cluster={"kind": "local", "workers": 1, "block_size": 1},
)
print(sweep.run(progress=False).sizes["seed"], __file__ is not None)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """Its workers are processes of their own, which do not import it."""
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.splitlines() == ["begun", "2 True"]


def test_it_is_public() -> None:
    assert "Sweep" in dir(sweeplib)
