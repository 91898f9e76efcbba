"""What Snakemake says without running anything: a dry run of a million points, and its linter."""

import json
import os
import subprocess
import sys

import pytest

from tests.workflow.project import Project

MILLION = """\
problem: {p: 2, k: 1, activation: erf}
grid:
  gamma: {geomspace: [1.0e-3, 1, 100]}
  Delta: {linspace: [0, 1, 100]}
  d: {range: [100, 10100, 100]}
seeds: 10
dynamics: [sgd_chain, ode]
times: {linspace: [0, 10, 11]}
"""
MEGABYTES = 300.0
MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(json.dumps([done.returncode, done.stdout + done.stderr, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""


@pytest.mark.slow
def test_a_million_points_dry_run_in_the_memory_of_two(project: Project) -> None:
    (project.desk / "million.yaml").write_text(MILLION)
    used = {}
    for name in ("tiny", "million"):
        code, output, used[name] = _dry_run(project, name)
        assert code == 0, output
        assert "simulate" in output
        assert "finalise" in output
    assert used["million"] < MEGABYTES
    assert used["million"] < 1.2 * used["tiny"]


@pytest.mark.slow
def test_the_linter_asks_for_nothing(project: Project) -> None:
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", "../Snakefile"]
    command = [*snakemake, "--lint", "--config", "sweep=tiny.yaml"]
    environment = os.environ | {"PYTHONPATH": str(project.root)}
    done = subprocess.run(command, cwd=project.desk, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "your workflow is in a good condition" in done.stderr and "Lints for" not in done.stderr


def _dry_run(project: Project, name: str) -> tuple[int, str, float]:
    """Exit status, output and peak memory of a dry run.

    A small process starts and measures it, because a child's peak counts that of its parent.
    """
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", "../Snakefile"]
    command = [*snakemake, "--dry-run", "--config", f"sweep={name}.yaml"]
    environment = os.environ | {"PYTHONPATH": str(project.root)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], cwd=project.desk, env=environment, capture_output=True, check=True
    )
    code, output, kilobytes = json.loads(done.stdout)
    return code, output, kilobytes / 1024
