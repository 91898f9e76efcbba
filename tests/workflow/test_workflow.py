"""The workflow, run for real on a tiny sweep; then what a dry run would do again after each kind of edit."""

import pytest
import xarray as xr

from sweeplib.figures import FIGURES
from tests.workflow.project import Project

ALWAYS = {"all", "report"}
DOWNSTREAM = ALWAYS | {"analyse", "figure"}
EVERYTHING = DOWNSTREAM | {"plan", "simulate", "finalise"}


def test_every_stage_leaves_its_results(finished: Project) -> None:
    results = finished.root / "results/tiny"
    dataset = xr.open_zarr(results / "dataset.zarr")
    assert dict(dataset.sizes) == {"dynamics": 1, "gamma": 2, "seed": 2, "threshold": 1, "time": 3}
    assert (dataset.status == 1).all()
    assert xr.open_zarr(results / "analysis/exit_times.zarr").sizes["gamma"] == 2
    assert (results / "figures/risk_curves.png").stat().st_size > 0
    assert "<html" in (results / "report/index.html").read_text()


def test_nothing_is_left_to_do_after_a_finished_run(finished: Project) -> None:
    assert "Nothing to be done" in finished.snakemake("--config", "sweep=tiny.yaml").stderr


@pytest.mark.parametrize(
    ("floor", "rerun"),
    [
        ("figures", ALWAYS | {"figure"}),
        ("analysis", DOWNSTREAM),
        ("dynamics", EVERYTHING),
        ("maths/activations", EVERYTHING),
    ],
)
def test_an_edit_of_a_floor_reruns_the_stages_that_call_it(finished: Project, floor: str, rerun: set[str]) -> None:
    finished.append(f"sweeplib/{floor}/__init__.py", "EDITED = True")
    assert set(finished.planned()) == rerun


@pytest.mark.parametrize(
    ("old", "new", "rerun"),
    [
        ("seeds: 2", "seeds: 3", EVERYTHING),
        ("figures: [risk_curves]", "figures: []", ALWAYS),
    ],
)
def test_an_edit_of_the_config_reruns_the_stages_that_read_it(
    finished: Project, old: str, new: str, rerun: set[str]
) -> None:
    finished.edit("tiny.yaml", old, new)
    assert set(finished.planned()) == rerun


def test_edits_that_change_no_result_rerun_nothing(finished: Project) -> None:
    finished.edit("tiny.yaml", "workers: 1", "workers: 2")
    finished.edit("tiny.yaml", "name: tiny", "name: tiny # a comment")
    finished.append("sweeplib/dynamics/__init__.py", "# a comment")
    finished.append("sweeplib/cli.py", "EDITED = True")
    assert finished.planned() == {}


def test_a_dataset_that_grew_reruns_what_reads_it(finished: Project) -> None:
    finished.edit("tiny.yaml", "seeds: 2", "seeds: 3")
    done = finished.snakemake("--config", "sweep=tiny.yaml", "--until", "finalise")
    assert done.returncode == 0, done.stderr
    assert xr.open_zarr(finished.root / "results/tiny/dataset.zarr").sizes["seed"] == 3
    assert set(finished.planned()) == DOWNSTREAM


def test_a_killed_snakemake_leaves_nothing_to_unlock(project: Project) -> None:
    killed = project.start("--config", "sweep=tiny.yaml", "--until", "plan")
    assert killed.stderr is not None
    assert any("rule plan" in line for line in killed.stderr)
    killed.kill()
    killed.communicate()
    done = project.snakemake("--config", "sweep=tiny.yaml", "--until", "plan")
    assert done.returncode == 0, done.stderr
    assert (project.root / "results/tiny/plan.json").exists()


def test_snakemake_makes_its_report_of_captioned_figures_and_the_page(finished: Project) -> None:
    done = finished.snakemake("--config", "sweep=tiny.yaml", "--report", "report.html")
    assert done.returncode == 0, done.stderr
    text = (finished.root / "report.html").read_text()
    for words in (
        "The sweep described by",
        FIGURES["risk_curves"].caption,
        '"labels": {"sweep": "tiny", "figure": "risk_curves"}',
        '"labels": {"sweep": "tiny", "page": "interactive"}',
    ):
        assert words in text
