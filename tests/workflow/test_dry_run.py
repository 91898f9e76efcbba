"""A dry run of a million points costs what one of ten costs."""

import json
import os
import subprocess
import sys

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
SECONDS, MEGABYTES = 3.0, 300.0
MEASURED = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.perf_counter() - start
megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps([done.returncode, done.stdout + done.stderr, seconds, megabytes]))
"""


def test_a_million_points_dry_run_in_seconds(project: Project) -> None:
    (project.root / "million.yaml").write_text(MILLION)
    for _ in range(4):  # another process may slow one run down, the first one compiles the bytecode
        code, output, seconds, megabytes = _dry_run(project)
        assert code == 0, output
        assert "simulate" in output and "finalise" in output
        assert megabytes < MEGABYTES
        if seconds < SECONDS:
            return
    raise AssertionError(f"no dry run took less than {SECONDS} s; the last took {seconds:.2f} s")


def _dry_run(project: Project) -> tuple[int, str, float, float]:
    """Exit status, output, seconds and peak memory, by way of a small process: a child's peak counts its parent's."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--config", "sweep=million.yaml"]
    environment = os.environ | {"PYTHONPATH": str(project.root), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], cwd=project.root, env=environment, capture_output=True, check=True
    )
    code, output, seconds, megabytes = json.loads(done.stdout)
    return code, output, seconds, megabytes
