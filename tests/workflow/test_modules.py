"""A workflow of somebody else that has sweeps as modules, as docs/how-to/snakemake.md shows it."""

import re
from pathlib import Path

import pytest

from tests.faults.sweeps import files
from tests.workflow.project import Project

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "snakemake.md"
SWEEP = """\
problem: {p: 1, k: 1, d: 40, Delta: 0, spherical: true, activation: square}
grid: {gamma: [0.05, 0.08]}
seeds: %d
dynamics: [sgd_chain]
times: [0, 2]
thresholds: [0.01]
figures: []
cluster: {kind: local, workers: 1, dashboard_address: ":0"}
"""
SCRIPT = """\
import xarray as xr

sizes = [xr.open_zarr(f"results/{name}/dataset.zarr").sizes["seed"] for name in ("relu", "erf")]
with open(snakemake.output[0], "w") as file:
    file.write(f"{sizes} {[path.split('/')[1] for path in snakemake.input]} {snakemake.config}")
"""


@pytest.fixture
def foreign(project: Project) -> Project:
    [snakefile] = [
        code for code in re.findall(r"```snakemake\n(.*?)```", PAGE.read_text(), re.DOTALL) if "module" in code
    ]
    own = 'config = {"results": "mine", "seeds": 7}\n\n\nonsuccess:\n    print("all is compared")\n'
    (project.desk / "Snakefile").write_text(snakefile + own)
    (project.desk / "compare.py").write_text(SCRIPT)
    for seeds, name in enumerate(("relu", "erf"), start=1):
        (project.desk / f"{name}.yaml").write_text(SWEEP % seeds)
    return project


def run(project: Project, *arguments: str) -> tuple[str, str]:
    done = project.ended("snakemake", "--cores", "2", "--quiet", "host", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.mark.slow
def test_two_sweeps_are_combined_and_a_change_of_one_is_noticed(foreign: Project) -> None:
    compared = foreign.desk / "compared.csv"
    shown, said = run(foreign)
    assert compared.read_text() == "[1, 2] ['relu', 'erf'] {'results': 'mine', 'seeds': 7}"
    assert ": relu: simulations\n" in said and ": erf: dataset\n" in said and "all is compared" in shown
    assert not (foreign.desk / "results/relu/report").exists(), "only what the rule needs"
    assert "Nothing to be done" in run(foreign)[1]

    (foreign.desk / "erf.yaml").write_text(SWEEP % 3)
    before = files(foreign.desk / "results")
    planned = run(foreign, "--dry-run")
    assert re.search(r"^erf_simulate +1$", planned[0], re.MULTILINE) and "relu_simulate" not in planned[0]
    assert files(foreign.desk / "results") == before, "a dry run changes nothing"
    run(foreign)
    assert compared.read_text().startswith("[1, 3]")

    run(foreign, "--report", "report.html")
    assert "The sweep described by" not in (foreign.desk / "report.html").read_text(), "the start page of a sweep alone"


@pytest.mark.slow
def test_keys_of_a_sweep_have_no_effect_in_a_module_and_are_refused(foreign: Project) -> None:
    foreign.edit("desk/Snakefile", '{"sweep": "relu.yaml"}', '{"sweep": "relu.yaml", "cutoff": 3, "seeds": 64}')
    done = foreign.ended("snakemake", "--cores", "2", "--dry-run")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("not a key of the workflow; got 'seeds'; expected --config sweep=FILE")
