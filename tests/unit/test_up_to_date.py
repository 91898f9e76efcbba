"""An unchanged sweep has nothing to do, and any change of what it is made from, or of its results, is noticed."""

import os

import pytest

from sweeplib import InputError
from sweeplib.commands import up_to_date
from sweeplib.commands.sweep import run_stages
from sweeplib.commands.up_to_date import made_from, record_complete_run, record_plan, undisturbed_run
from sweeplib.engine.storage.records.files import write_json


@pytest.fixture
def complete(tmp_path, monkeypatch):
    """A sweep that has run: its config, a plugin and a result."""
    monkeypatch.chdir(tmp_path)
    config, plugin, results = tmp_path / "scan.yaml", tmp_path / "own.py", tmp_path / "results"
    config.write_text("seeds: 4\n")
    plugin.write_text("FACTOR = 2\n")
    (results / "scan" / "dataset.zarr").mkdir(parents=True)
    (results / "scan" / "dataset.zarr" / "0").write_text("data")
    (results / "scan" / "stages").mkdir()
    (results / "scan" / "stages" / "finalise.done").write_text("digest")
    begun = made_from(config, ["seeds=8"], [plugin])
    record_complete_run(results / "scan", config, ["seeds=8"], [plugin], begun, {"summary": "all ok"})
    return config, plugin, results


def test_nothing_has_changed(complete):
    config, _, results = complete
    assert up_to_date.complete_run(config, ["seeds=8"], results)["summary"] == "all ok"
    (results / "scan" / "stages" / "plan.json").write_text("{}")  # no result
    assert up_to_date.complete_run(config, ["seeds=8"], results)["summary"] == "all ok"


@pytest.mark.parametrize("added", ["fast.py", "fast/__init__.py", None])
def test_what_would_be_found_now_is_noticed(complete, monkeypatch, tmp_path, added):
    """A module that a file tries to import, or another program of the PATH: old results were told to be up to date."""
    config, _, results = complete
    if added is None:
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    else:
        (tmp_path / added).parent.mkdir(exist_ok=True)
        (tmp_path / added).touch()
    assert up_to_date.complete_run(config, ["seeds=8"], results) is None


def test_a_file_whose_name_is_no_text_may_be_there(complete):
    """Any system but macOS has such files; status, summary and the end of a run were errors in sweeplib."""
    config, plugin, results = complete
    try:
        (results / "scan" / os.fsdecode(b"odd\xff.txt")).write_text("x")
    except OSError:
        pytest.skip("the file system takes names of Unicode alone")
    assert up_to_date.complete_run(config, ["seeds=8"], results) is None
    record_complete_run(results / "scan", config, ["seeds=8"], [plugin], made_from(config, ["seeds=8"], [plugin]), {})
    assert up_to_date.complete_run(config, ["seeds=8"], results)


def test_what_commands_show_is_known_until_the_store_or_a_job_changes(complete):
    config, _, results = complete
    folder = results / "scan"
    assert undisturbed_run(config, ["seeds=8"], results)["summary"] == "all ok"
    job = {"name": "plan", "host": "elsewhere", "ended": 2.0}
    write_json(folder / "stages" / "plan.json", job)
    assert undisturbed_run(config, ["seeds=8"], results)["summary"] == "all ok"
    write_json(folder / "stages" / "plan.json", job | {"problem": "no room"})
    assert undisturbed_run(config, ["seeds=8"], results) == {}
    write_json(folder / "stages" / "plan.json", job | {"ended": None})  # it runs
    assert undisturbed_run(config, ["seeds=8"], results) == {}
    (folder / "stages" / "plan.json").unlink()
    assert undisturbed_run(config, ["seeds=8"], results)
    write_json(folder / "runs" / "status.json", {})
    assert undisturbed_run(config, ["seeds=8"], results) == {}
    assert undisturbed_run(config, [], results) == {}


def test_a_name_that_is_an_override_is_that_of_the_folder(complete):
    config, plugin, results = complete
    (results / "scan").rename(results / "other")
    overrides = ["name=scan", "name=other"]
    record_complete_run(results / "other", config, overrides, [plugin], made_from(config, overrides, [plugin]), {})
    assert up_to_date.complete_run(config, overrides, results)["directory"] == results / "other"


def test_a_profile_is_refused_where_nothing_is_to_do(complete):
    config, _, results = complete
    with pytest.raises(InputError, match="--profile: no such profile; got 'nonsense'"):
        run_stages(config, ["seeds=8"], results=results, profile="nonsense")
    assert run_stages(config, ["seeds=8"], results=results) == 0


def test_the_folder_of_a_complete_run_says_what_it_was_run_for(complete):
    config, _, results = complete
    folder = results / "scan"
    assert undisturbed_run(folder, [], results) == undisturbed_run(config, ["seeds=8"], results) != {}
    assert undisturbed_run(folder, ["seeds=8"], results) == {}, "a folder has its own config"
    config.write_text("seeds: 5\n")
    assert undisturbed_run(folder, [], results) == {}
    config.write_text("seeds: 4\n")
    (folder / "dataset.zarr" / "0").write_text("other data")
    assert undisturbed_run(folder, [], results) == {}
    assert undisturbed_run(results, [], results) == {}, "of no sweep"


def test_a_plan_that_finds_nothing_to_do_is_remembered(complete):
    config, _, results = complete
    left = undisturbed_run(config, ["seeds=8"], results)
    assert "plan" not in left
    record_plan(left, {"title": "0 s"}, ["answered"])
    again = undisturbed_run(config, ["seeds=8"], results)
    assert again == left | {"plan": {"title": "0 s"}, "answers": ["answered"]}
    assert up_to_date.complete_run(config, ["seeds=8"], results) == again


def test_a_plan_hides_no_change_that_came_before_it_was_written(complete):
    config, _, results = complete
    left = undisturbed_run(config, ["seeds=8"], results)
    write_json(results / "scan" / "runs" / "status.json", {})  # while the plan was made
    record_plan(left, {"title": "0 s"}, [])
    assert undisturbed_run(config, ["seeds=8"], results) == {}


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda config, plugin, results: config.write_text("seeds: 4 \n"),
        lambda config, plugin, results: plugin.write_text("FACTOR = 3\n"),
        lambda config, plugin, results: plugin.unlink(),
        lambda config, plugin, results: (results / "scan/dataset.zarr/0").unlink(),
        lambda config, plugin, results: os.utime(results / "scan/dataset.zarr/0", ns=(1, 1)),
        lambda config, plugin, results: (results / "scan/stages/sweep.json").write_text("{"),
        lambda config, plugin, results: (results / "scan/stages/sweep.json").write_text("[]"),
        lambda config, plugin, results: (results / "scan/stages/finalise.done").write_text("other"),
    ],
)
def test_a_change_is_noticed(complete, change, planned):
    config, plugin, results = complete
    if planned:
        record_plan(undisturbed_run(config, ["seeds=8"], results), {"title": "0 s"}, [])
    change(config, plugin, results)
    assert up_to_date.complete_run(config, ["seeds=8"], results) is None
    assert undisturbed_run(config, ["seeds=8"], results) == {}


def test_other_overrides_files_and_libraries_are_noticed(complete, tmp_path, monkeypatch):
    config, _, results = complete
    assert up_to_date.complete_run(config, [], results) is None
    assert up_to_date.complete_run(config, ["seeds=8"], tmp_path / "elsewhere") is None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "scan.yaml").write_text("seeds: 4\n")
    assert up_to_date.complete_run(tmp_path / "other" / "scan.yaml", ["seeds=8"], results) is None
    monkeypatch.setattr(up_to_date, "package_digest", lambda: "another library")
    assert up_to_date.complete_run(config, ["seeds=8"], results) is None


def test_what_changed_during_the_run_is_not_remembered(complete):
    config, plugin, results = complete
    begun = made_from(config, [], [plugin])
    plugin.write_text("FACTOR = 3\n")
    record_complete_run(results / "scan", config, [], [plugin], begun, {"summary": "all ok"})
    assert up_to_date.complete_run(config, [], results) is None


def test_plugins_in_any_order_are_known_before_and_after_they_are_loaded(complete, monkeypatch):
    config, plugin, _ = complete
    (other := plugin.with_name("earlier.py")).touch()
    before = made_from(config, [], [plugin, other])
    monkeypatch.syspath_prepend(str(plugin.parent))
    assert made_from(config, [], [other, plugin]) == before


def test_a_file_that_changes_or_goes_while_a_sweep_runs_is_noticed(complete):
    config, plugin, _ = complete
    begun = made_from(config, [], [plugin])
    assert not up_to_date.is_changed(config, [], [plugin], begun)
    config.write_text("seeds: 6\n")
    assert up_to_date.is_changed(config, [], [plugin], begun)
    config.unlink()
    assert up_to_date.is_changed(config, [], [plugin], begun)
