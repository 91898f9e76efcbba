"""An unchanged sweep has nothing to do, and any change of what it is made from, or of its results, is noticed."""

import os

import pytest

from sweeplib.front import repeated
from sweeplib.front.repeated import made_from, remember, summary_of_repeated


@pytest.fixture
def complete(tmp_path, monkeypatch):
    """A sweep that has run: its config, a plugin and a result."""
    monkeypatch.chdir(tmp_path)
    config, plugin, results = tmp_path / "scan.yaml", tmp_path / "own.py", tmp_path / "results"
    config.write_text("seeds: 4\n")
    plugin.write_text("FACTOR = 2\n")
    (results / "scan" / "dataset.zarr").mkdir(parents=True)
    (results / "scan" / "dataset.zarr" / "0").write_text("data")
    begun = made_from(config, ["seeds=8"], [plugin])
    remember(results / "scan", config, ["seeds=8"], [plugin], begun, "all ok")
    return config, plugin, results


def test_nothing_has_changed(complete):
    config, _, results = complete
    assert summary_of_repeated(config, ["seeds=8"], results) == "all ok"
    (results / "scan" / "jobs").mkdir()
    (results / "scan" / "jobs" / "plan.json").write_text("{}")  # no result
    assert summary_of_repeated(config, ["seeds=8"], results) == "all ok"


@pytest.mark.parametrize(
    "change",
    [
        lambda config, plugin, results: config.write_text("seeds: 4 \n"),
        lambda config, plugin, results: plugin.write_text("FACTOR = 3\n"),
        lambda config, plugin, results: plugin.unlink(),
        lambda config, plugin, results: (results / "scan/dataset.zarr/0").unlink(),
        lambda config, plugin, results: os.utime(results / "scan/dataset.zarr/0", ns=(1, 1)),
        lambda config, plugin, results: (results / "scan/journal/complete.json").write_text("{"),
        lambda config, plugin, results: (results / "scan/journal/complete.json").write_text("[]"),
        lambda config, plugin, results: (results / "scan/dataset.done.json").write_text("{}"),
    ],
)
def test_a_change_is_noticed(complete, change):
    config, plugin, results = complete
    change(config, plugin, results)
    assert summary_of_repeated(config, ["seeds=8"], results) is None


def test_other_overrides_files_and_libraries_are_noticed(complete, tmp_path, monkeypatch):
    config, _, results = complete
    assert summary_of_repeated(config, [], results) is None
    assert summary_of_repeated(config, ["seeds=8"], tmp_path / "elsewhere") is None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "scan.yaml").write_text("seeds: 4\n")
    assert summary_of_repeated(tmp_path / "other" / "scan.yaml", ["seeds=8"], results) is None
    monkeypatch.setattr(repeated, "package_digest", lambda: "another library")
    assert summary_of_repeated(config, ["seeds=8"], results) is None


def test_what_changed_during_the_run_is_not_remembered(complete):
    config, plugin, results = complete
    begun = made_from(config, [], [plugin])
    plugin.write_text("FACTOR = 3\n")
    remember(results / "scan", config, [], [plugin], begun, "all ok")
    assert summary_of_repeated(config, [], results) is None
