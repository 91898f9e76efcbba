"""The real workflow on a tiny sweep with plugins, from a folder other than the project's.

Then the jobs that a dry run would run again after each kind of edit.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.engine.storage.records.stage_records import stage_record, stage_records
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.pictures.figures.write import REPRODUCE
from tests.faults.sweeps import files
from tests.tiers import slow_but
from tests.workflow.project import Project

ALWAYS = {"all", "report"}
DOWNSTREAM = ALWAYS | {"analyse", "figure"}
EVERYTHING = DOWNSTREAM | {"plan", "simulate", "finalise"}
LAST = 4.0  # the last recording time
EXITS = (
    "sgd_chain: 4 of 6 runs exit by the horizon 4, half by 0",
    "read_off: 0 of 6 runs exit by the horizon 4",
    "cloud: 0 of 6 runs exit by the horizon 4",
)
"""What the summary says of three seeds."""
HOLD = """
import pathlib, sys
from sweeplib.engine.storage.records.locks import part_lock
with part_lock(pathlib.Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_every_stage_leaves_its_results(finished: Project) -> None:
    dataset = xr.open_zarr(finished.results / "dataset.zarr")
    sizes = {"dynamics": 3, "gamma": 2, "activation": 2, "seed": 2, "threshold": 1, "time": 3}
    assert dict(dataset.sizes) == sizes
    assert int((dataset.status == 1).sum()) == 12
    assert xr.open_zarr(finished.results / "analysis/exit_times.zarr").sizes["gamma"] == 2
    assert (finished.results / "figures/last_overlaps.png").stat().st_size > 0
    assert "<html" in (finished.results / "report/index.html").read_text()
    last = stage_records(finished.results)["report"].at_the_end  # what `sweep` says and records at the end
    assert last["summary"].startswith("tiny: all 12 cases ended ok\n")
    assert last.items() <= stage_record(finished.results, "sweep").complete.items()
    logs = {path.stem: path.read_text() for path in finished.results.glob("journal/*.log")}
    stages = {"plan", "simulate", "finalise", "report", "figure.last_overlaps"}
    stages |= {"analyse.exit_times", "analyse.last_overlap"}
    assert logs.keys() == stages | {"snakemake"}, "Snakemake makes those that a rule names and its stage does not write"
    assert logs["plan"] in logs["snakemake"] and "read_off" in logs["plan"]


@pytest.mark.slow
def test_the_code_of_a_figure_writes_the_files_of_the_report_again(finished: Project) -> None:
    code = REPRODUCE.format(name="last_overlaps")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=finished.results)
    for name in ("last_overlaps.pdf", "last_overlaps.png"):
        assert (finished.results / name).read_bytes() == (finished.results / "figures" / name).read_bytes(), name


@pytest.mark.rest
def test_what_plugins_register_works_in_every_stage(finished: Project) -> None:
    """One plugin of each kind: particles with their own state and view, a target, a start, an observable."""
    assert last_overlaps(finished) == {2.0 * LAST}
    overlaps = open_with_overlaps(finished.results / "dataset.zarr")
    cloud = overlaps.sel(dynamics="cloud", activation="square").isel(teacher=0)
    assert overlaps.sel(activation="scaled").target == "mean" and overlaps.attrs["start"] == "opposed"
    assert cloud.mean_overlap.isel(time=0).values == pytest.approx(-1.0), "opposite to the teacher"
    assert cloud.mean_overlap.isel(time=-1).values == pytest.approx(1.0 - 2.0 * np.exp(-LAST))
    assert cloud.largest_m.dims == ("gamma", "seed", "time", "student") and cloud.sizes["student"] == 5
    page = (finished.results / "report/index.html").read_text()
    assert "The last overlaps." in page
    assert 'data-name="overlaps"' in page
    assert not any(record.failures for record in stage_records(finished.results).values())


@contextmanager
def held(project: Project) -> Iterator[int]:
    """Do a part of the sweep by itself; yield the process id."""
    command = [sys.executable, "-c", HOLD, str(project.results), "simulates"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    yield holder.pid
    holder.communicate("")


@pytest.mark.slow
def test_a_second_driver_is_refused_in_one_line_before_it_writes(finished: Project) -> None:
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    before = (finished.results / "command.yaml").read_bytes()
    with held(finished) as pid:
        done = finished.snakemake("--config", "sweep=tiny.yaml")
    assert done.returncode == 1
    profile, refused = [line for line in done.stderr.splitlines() if line.strip()]
    assert profile.startswith("Using profile ")
    assert f"process {pid} of " in refused and "simulates here since" in refused and "results/tiny" in refused
    assert (finished.results / "command.yaml").read_bytes() == before


@pytest.mark.slow
def test_more_seeds_other_code_beside_a_plugin_and_a_figure_that_fails(finished: Project) -> None:
    """All edits in one run: the dataset grows, changed code is run again, and a failed figure stops nothing."""
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    finished.edit("desk/own/constants.py", "2.0", "3.0")
    finished.edit("desk/own/figures.py", "drawing = Drawing()", "drawing = Drawing(1 / 0)")
    done = finished.snakemake("--config", "sweep=tiny.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "tiny: all 18 cases ended ok",
        *EXITS,
        "dataset: results/tiny/dataset.zarr",
        "report: results/tiny/report/index.html",
        "failed, each with a card in the report; the same command tries again:",
        "  figure last_overlaps: ZeroDivisionError: division by zero",
    ]
    assert xr.open_zarr(finished.results / "dataset.zarr").sizes["seed"] == 3
    assert last_overlaps(finished) == {3.0 * LAST}
    assert computed(finished, "read_off") == 10, "all of these again"
    assert computed(finished, "sgd_chain") == computed(finished, "cloud") == 6, "only the new seed's: other files"
    [card] = stage_record(finished.results, "figure.last_overlaps").failures
    assert "figures.py" in card["traceback"]
    assert 'id="failed-figure-last_overlaps"' in (finished.results / "report/index.html").read_text()
    assert set(finished.planned()) == ALWAYS | {"figure"}

    finished.edit("desk/own/figures.py", "Drawing(1 / 0)", "Drawing()")
    assert finished.snakemake("--config", "sweep=tiny.yaml").returncode == 0
    assert not stage_record(finished.results, "figure.last_overlaps").failures
    assert finished.planned() == {}


def computed(project: Project, dynamics: str) -> int:
    """Return the number of cases of a dynamics that were computed so far."""
    return sum(map(len, RunStore(project.results, dynamics).segments))


def last_overlaps(project: Project) -> set[float]:
    """Return the values of the plugin's analysis, computed from its dynamics, activation and observable."""
    analysis = xr.open_zarr(project.results / "analysis/last_overlap.zarr")
    return set(analysis.mean_overlap.values.ravel().tolist())


@pytest.mark.slow
def test_a_deleted_dataset_is_made_again(finished: Project) -> None:
    before = files(finished.results / "dataset.zarr")
    shutil.rmtree(finished.results / "dataset.zarr")
    assert set(finished.planned()) == DOWNSTREAM | {"finalise"}
    done = finished.snakemake("--config", "sweep=tiny.yaml", "--until", "finalise")
    assert done.returncode == 0, done.stderr
    assert files(finished.results / "dataset.zarr") == before


@pytest.mark.rest
def test_after_a_finished_run_nothing_is_left_to_do_and_make_says_what_became_of_the_sweep(finished: Project) -> None:
    """Nothing runs again, not even here, in a copy of the project."""
    done = finished.make("sweep", "CONFIG=desk/tiny.yaml", "RESULTS=desk/results")
    assert done.returncode == 0, done.stderr
    assert "nothing to compute: all is up to date" in done.stderr
    first, *exits, dataset, report = done.stdout.splitlines()
    assert first == "tiny: all 12 cases ended ok"
    assert len(exits) == 3
    assert all(" of 4 runs exit by the horizon 4" in line for line in exits)
    assert dataset == "dataset: desk/results/tiny/dataset.zarr"
    assert report == "report: desk/results/tiny/report/index.html"
    assert shown_at_once(finished, "summary") == done.stdout
    assert shown_at_once(finished, "status").startswith("tiny: finished; 12 of 12 cases, ")
    plan = shown(finished, "plan").stdout  # which looks at stored runs, as some have not exited
    assert re.findall(r"read_off +2 +4 +4 +0 +0", plan) and "did not exit by the horizon" in plan


def shown_at_once(project: Project, command: str) -> str:
    """Return what a command shows, which imports none of the libraries that take long."""
    done = shown(project, command)
    assert not re.findall(r"\| +(numpy|numba|zarr|xarray|dask)\n", done.stderr)
    return done.stdout


def shown(project: Project, command: str) -> subprocess.CompletedProcess[str]:
    """Return a finished command, whose imports are on standard error."""
    words = ["-X", "importtime", f"{sys.prefix}/bin/sweeplib", command, "desk/tiny.yaml", "--results", "desk/results"]
    environment = os.environ | {"PYTHONPATH": str(project.root)}
    options = {"cwd": project.root, "env": environment, "capture_output": True, "text": True}
    return subprocess.run([sys.executable, *words], check=True, **options)


@pytest.mark.slow
def test_a_sweep_with_overrides_and_a_figure_that_fails(finished: Project) -> None:
    """Its config is in its folder, plain lines are on standard error, and the summary is on standard output."""
    finished.edit("desk/own/figures.py", "drawing = Drawing()", "drawing = Drawing(1 / 0)")
    done = finished.ended("sweeplib", "sweep", "tiny.yaml", "seeds=3", "dynamics.cloud.particles=5")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "tiny: all 18 cases ended ok",
        *EXITS,
        "dataset: results/tiny/dataset.zarr",
        "report: results/tiny/report/index.html",
        "failed, each with a card in the report; the same command tries again:",
        "  figure last_overlaps: ZeroDivisionError: division by zero",
    ]
    assert not re.search("[\u2500-\u257f\x1b]", done.stderr), "no box art, no colours"
    lines = done.stderr.splitlines()
    advice = [line for line in lines if ": " in line and not line.startswith("tiny: ")]
    assert advice and all(re.match("(cloud|read_off|sgd_chain): ", line) for line in advice), "the plan's, on horizons"
    titles = [line.split(": ")[1] for line in lines if line.startswith("tiny: ")]
    *made, first, second, last = [title for title in titles if "processor" not in title]
    assert made == ["started; log", "plan", "simulations", "dataset"] and last == "report"
    assert {first, second} == {"analyses", "figures"}, "this figure does not draw all analyses, and may come first"
    [failed] = [line for line in lines if "failed after" in line]
    assert failed.startswith("tiny: figures") and "ZeroDivisionError: division by zero" in failed
    assert "Job 1: tiny: report" in (finished.results / "journal/snakemake.log").read_text()
    assert set(finished.planned("results/tiny/command.yaml")) == ALWAYS | {"figure"}
    status = finished.ended("sweeplib", "status", "tiny.yaml", "seeds=3", "--json")
    found = json.loads(status.stdout)
    assert found["state"] == "failed" and found["cases"]["sgd_chain"]["ok"] == 6
    assert found["last_error"] == "figure.last_overlaps: ZeroDivisionError: division by zero"


@pytest.mark.slow
@pytest.mark.parametrize("program", ["sweeplib", "snakemake"])
def test_an_edit_while_a_sweep_runs_waits_for_the_next_command(finished: Project, program: str) -> None:
    """The figure that it removes is drawn, as the config was read once; the command of sweeplib says so in a line."""
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    command = ("sweeplib", "sweep", "tiny.yaml")
    process = finished._started(*command) if program == "sweeplib" else finished.start("--config", "sweep=tiny.yaml")
    read = finished.results / "command.yaml"
    while not (read.exists() and "seeds: 3\n" in read.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    finished.edit("desk/tiny.yaml", "figures: [last_overlaps]", "figures: []")
    output, errors = process.communicate()
    assert process.returncode == 0 and "tiny: all 18 cases ended ok" in output, errors
    if program == "sweeplib":
        assert errors.splitlines()[-1].startswith("tiny.yaml, or a file that it names, was changed during the run")
    assert (finished.results / "figures/last_overlaps.png").exists()
    assert "report" in finished.planned()


@pytest.mark.slow
def test_a_sweep_whose_stage_fails_names_the_problem_and_the_log(finished: Project) -> None:
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    (finished.results / "inventory").unlink(missing_ok=True)
    shutil.rmtree(finished.results / "runs")
    (finished.results / "runs").touch()
    done = finished.ended("sweeplib", "sweep", "tiny.yaml")
    assert done.returncode == 1 and not done.stdout
    problem, log = done.stderr.splitlines()[-2:]
    assert problem.startswith("simulations: ") and "tiny/runs" in problem
    assert log == "the log: results/tiny/journal/snakemake.log"
    assert "tiny/runs" in (finished.desk / log.partition(": ")[2]).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["touch: true", "dry-run: true\nexecutor: absent"])
def test_a_user_has_settings_of_snakemake_that_would_change_the_result(
    finished: Project, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the working folder, in that of the Snakefile, and in the home folder, named by the environment."""
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    home = finished.root / "home" / "snakemake"
    for profile in (
        finished.desk / "profiles/default",
        finished.root / "profiles/default",
        home / "default",
        home / "mine",
    ):
        profile.mkdir(parents=True)
        (profile / "config.yaml").write_text(f"{setting}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.parent))
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "mine")
    done = finished.ended("sweeplib", "sweep", "tiny.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tiny: all 18 cases ended ok\n")
    assert xr.open_zarr(finished.results / "dataset.zarr").sizes["seed"] == 3


@pytest.mark.rest
@pytest.mark.parametrize("setting", slow_but(["dry-run", "touch"], "touch"))
def test_a_sweep_whose_profile_asks_for_less_has_not_succeeded(finished: Project, setting: str) -> None:
    """A pipe is read once: the stages read its complete config."""
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    (finished.desk / "mine").mkdir()
    (finished.desk / "mine" / "config.yaml").write_text(f"cores: 1\n{setting}: true\n")
    command = ["bash", "-c", f"{sys.executable} -m sweeplib sweep <(sed s/tiny/piped/ tiny.yaml) --profile mine"]
    environment = os.environ | {"PYTHONPATH": str(finished.root)}
    done = subprocess.run(command, cwd=finished.desk, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not done.stdout
    assert "Snakemake was told to do less than all, as by `dry-run` in a profile; not done: " in done.stderr
    assert "results/piped/stages/finalise.done" in done.stderr and "up to date" not in done.stderr


MODULES = {
    "pictures/figures/write": DOWNSTREAM,  # the plugin's analysis is in the file of its figure
    "pictures/report/tables": ALWAYS,
    "analysis/exit_times": ALWAYS | {"analyse"},
    "pictures/figures/risk_curves": set(),
    "networks/maths/activations/__init__": EVERYTHING,
}


@pytest.mark.rest
@pytest.mark.parametrize("module", slow_but(MODULES, "networks/maths/activations/__init__"))
def test_an_edit_of_a_module_reruns_the_stages_that_import_it(finished: Project, module: str) -> None:
    finished.append(f"sweeplib/{module}.py", "EDITED = True")
    assert set(finished.planned()) == MODULES[module]


EDITS = [
    ("desk/tiny.yaml", "seeds: 2", "seeds: 3", EVERYTHING),
    # drawn by no figure
    ("desk/tiny.yaml", "[exit_times]", "{exit_times: {confidence: 0.9}}", ALWAYS | {"analyse"}),
    ("desk/own/figures.py", "drawing.subplots()", "drawing.subplots(1)", DOWNSTREAM),
    ("desk/own/dynamics.py", "", "", set()),
]


@pytest.mark.rest
@pytest.mark.parametrize(("path", "old", "new", "rerun"), slow_but(EDITS, EDITS[2]))
def test_edits_are_noticed_from_another_folder(
    finished: Project, path: str, old: str, new: str, rerun: set[str]
) -> None:
    """Snakemake remembers the config and the code of each stage in the folder where it was started."""
    shutil.rmtree(finished.desk / ".snakemake")
    if old:
        finished.edit(path, old, new)
    assert set(finished.planned()) == rerun


@pytest.mark.rest
def test_edits_of_the_config_rerun_the_stages_that_read_it(finished: Project) -> None:
    before = files(finished.results)
    finished.edit("desk/tiny.yaml", "figures: [last_overlaps]", "figures: []")
    assert set(finished.planned()) == ALWAYS
    finished.edit("desk/tiny.yaml", "seeds: 2", "seeds: 3")
    assert set(finished.planned()) == EVERYTHING - {"figure"}
    assert files(finished.results) == before, "a dry run changes nothing"


@pytest.mark.rest
def test_edits_that_change_no_result_and_a_new_plan_rerun_nothing(finished: Project) -> None:
    (finished.results / "plan.json").unlink()
    finished.sweeplib("plan", "tiny.yaml")
    assert (finished.results / "plan.json").exists()
    finished.edit("desk/tiny.yaml", "workers: 1", "workers: 2")
    finished.edit("desk/tiny.yaml", "name: tiny", "name: tiny # a comment")
    finished.append("sweeplib/networks/dynamics/__init__.py", "# a comment")
    finished.append("desk/own/constants.py", "# a comment")
    finished.append("sweeplib/commands/cli.py", "EDITED = True")
    assert finished.planned() == {}


@pytest.mark.slow
def test_a_killed_snakemake_leaves_nothing_to_unlock(project: Project) -> None:
    killed = project.start("--config", "sweep=tiny.yaml", "--until", "plan")
    assert killed.stderr is not None
    assert any(": plan" in line for line in killed.stderr)
    killed.kill()
    killed.communicate()
    done = project.snakemake("--config", "sweep=tiny.yaml", "--until", "plan")
    assert done.returncode == 0, done.stderr
    assert (project.results / "plan.json").exists()


@pytest.mark.slow
def test_snakemake_makes_its_report_of_captioned_figures_and_the_page(finished: Project) -> None:
    done = finished.snakemake("--config", "sweep=tiny.yaml", "--report", "report.html")
    assert done.returncode == 0, done.stderr
    text = (finished.desk / "report.html").read_text()
    for words in (
        "The sweep described by",
        "The last overlaps.",
        '"labels": {"sweep": "tiny", "figure": "last_overlaps"}',
        '"labels": {"sweep": "tiny", "page": "interactive"}',
    ):
        assert words in text
