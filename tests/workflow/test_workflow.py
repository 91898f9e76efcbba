"""The workflow, run for real on a tiny sweep; then what a dry run would do again after each kind of edit."""

import pytest
import xarray as xr

from tests.workflow.project import Project

DOWNSTREAM = {"all", "finalise", "analyse", "figure", "report"}


def test_every_stage_leaves_its_results(finished: Project) -> None:
    results = finished.root / "results/tiny"
    dataset = xr.open_zarr(results / "dataset.zarr")
    assert dataset.sizes["gamma"] == 2 and dataset.sizes["seed"] == 2
    assert set(dataset.dynamics.values) == {"ode", "sgd_chain"}
    assert (dataset.status == 1).all()
    assert (results / "figures/learning_rate_scan.png").stat().st_size > 0
    assert "<html" in (results / "report/index.html").read_text()


def test_nothing_is_left_to_do_after_a_finished_run(finished: Project) -> None:
    assert "Nothing to be done" in finished.snakemake("--config", "sweep=tiny.yaml").stderr


@pytest.mark.parametrize(
    ("path", "line", "rerun"),
    [
        ("sweeplib/figures/__init__.py", "EDITED = True", {"all", "figure", "report"}),
        ("sweeplib/report/__init__.py", "EDITED = True", {"all", "report"}),
        ("sweeplib/analysis/__init__.py", "EDITED = True", {"all", "analyse", "figure", "report"}),
        ("sweeplib/dynamics/__init__.py", "EDITED = True", {"plan", "simulate"} | DOWNSTREAM),
        ("sweeplib/maths/activations/square.py", "EDITED = True", {"plan", "simulate"} | DOWNSTREAM),
        ("sweeplib/figures/__init__.py", "# a comment", set()),
        ("sweeplib/cli.py", "EDITED = True", set()),
    ],
)
def test_an_edit_of_the_library_reruns_the_stages_that_call_it(
    finished: Project, path: str, line: str, rerun: set[str]
) -> None:
    finished.append(path, line)
    assert set(finished.planned()) == rerun


@pytest.mark.parametrize(
    ("old", "new", "rerun"),
    [
        ("gamma: [0.05, 0.08]", "gamma: [0.05, 0.06, 0.08]", {"plan", "simulate"} | DOWNSTREAM),
        ("seeds: 2", "seeds: 3", {"plan", "simulate"} | DOWNSTREAM),
        ("figures: [learning_rate_scan]", "figures: []", {"all", "report"}),
        ("workers: 1", "workers: 2", set()),
        ("name: tiny", "name: tiny  # a comment", set()),
    ],
)
def test_an_edit_of_the_config_reruns_the_stages_that_read_it(
    finished: Project, old: str, new: str, rerun: set[str]
) -> None:
    finished.edit("tiny.yaml", old, new)
    assert set(finished.planned()) == rerun


def test_results_that_come_out_the_same_rerun_nothing_further(finished: Project) -> None:
    finished.snakemake("--config", "sweep=tiny.yaml", "--forcerun", "finalise", "--until", "finalise")
    assert finished.planned() == {}


def test_results_that_change_reach_the_report(finished: Project) -> None:
    finished.edit("tiny.yaml", "seeds: 2", "seeds: 3")
    done = finished.snakemake("--config", "sweep=tiny.yaml")
    assert done.returncode == 0, done.stderr
    assert xr.open_zarr(finished.root / "results/tiny/dataset.zarr").sizes["seed"] == 3
    assert finished.planned() == {}
