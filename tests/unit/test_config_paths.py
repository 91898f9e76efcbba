"""Paths in a config are relative to its file, and the complete config beside the results describes the same sweep."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeplib.config import load
from sweeplib.config.models import SweepConfig
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.networks.maths.activations import ACTIVATIONS
from tests.plugged import activation, nothing_left

SWEEP = """\
problem: {p: 1, k: 1, d: 50, gamma: 0.1, Delta: 0}
dynamics: [ode]
times: [0, 1]
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with nothing_left():
        yield


def project(folder: Path, name: str) -> Path:
    """Return the path of a sweep's file in a folder, with a plugin in another folder below it."""
    activation(folder / "parts" / f"{name}.py", name)
    path = folder / "sweep.yaml"
    path.write_text(SWEEP + f"grid: {{activation: [{name}]}}\nplugins: [parts/{name}.py]\n")
    return path


def test_the_path_of_a_plugin_is_relative_to_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "project", "plugged_here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sweep = load("../project/sweep.yaml")
    assert sweep.plugins == (str(tmp_path / "project/parts/plugged_here.py"),)
    assert str(tmp_path) not in sweep.source


def test_the_config_beside_the_results_is_the_same_sweep_wherever_the_project_lies(tmp_path: Path) -> None:
    results = Path("results/sweep")
    sweep = load(project(tmp_path / "here", "plugged_there"))
    assert load(write_complete_config(sweep, tmp_path / "here" / results)) == sweep
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = SweepConfig.model_validate(parsed((tmp_path / "there" / results / "config.yaml").read_text()))
    assert moved.plugins == ["../../parts/plugged_there.py"]
    assert (tmp_path / "there" / results / moved.plugins[0]).exists()


def test_what_a_dataset_says_of_its_config_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    """Nor does it depend on absolute paths of plugins, or on whether the complete config was read."""
    path = project(tmp_path / "here", "plugged_twice")
    first = load(path)
    case = next(case for _, case in first.cases("ode"))
    again = load(write_complete_config(first, tmp_path / "here/results/sweep"))
    shutil.copytree(tmp_path / "here", tmp_path / "there", ignore=shutil.ignore_patterns("__pycache__"))
    there = tmp_path / "there/sweep.yaml"
    there.write_text(there.read_text().replace("[parts/", f"[{tmp_path}/there/parts/"))
    ACTIVATIONS._things.pop("plugged_twice")
    del sys.modules["plugged_twice"]
    moved = load(there)
    assert first.source == again.source == moved.source
    assert next(case for _, case in moved.cases("ode")).identity() == case.identity()


def test_the_config_beside_the_results_keeps_words_that_look_like_numbers(tmp_path: Path) -> None:
    path = project(tmp_path, "plugged_words")
    path.write_text(path.read_text().replace("gamma: 0.1, ", "") + "derive: {gamma: '1e-3'}\n")
    sweep = load(path)
    assert load(write_complete_config(sweep, tmp_path / "results")) == sweep


def test_the_path_of_a_scheduler_file_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(
        SWEEP + "grid: {activation: [erf]}\ncluster: {kind: scheduler_file, path: cluster/scheduler.json}\n"
    )
    sweep = load(path)
    assert sweep.cluster.model_dump()["path"] == tmp_path / "cluster/scheduler.json"
    assert load(write_complete_config(sweep, tmp_path / "results")) == sweep
