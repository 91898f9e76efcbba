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
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, done.stdout + done.stderr, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def test_a_million_points_dry_run_in_seconds(project: Project) -> None:
    (project.root / "million.yaml").write_text(MILLION)
    runs = [_dry_run(project) for _ in range(4)]  # the first compiles the bytecode, a neighbour on the core slows some
    for code, output, _, megabytes in runs:
        assert code == 0, output
        assert "simulate" in output
        assert "finalise" in output
        assert megabytes < MEGABYTES
    assert min(seconds for _, _, seconds, _ in runs) < SECONDS


def _dry_run(project: Project) -> tuple[int, str, float, float]:
    """Exit status, output, processor seconds (other processes do not count) and peak memory of a dry run.

    A small process starts and measures it, because a child's peak counts that of its parent.
    """
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--config", "sweep=million.yaml"]
    environment = os.environ | {"PYTHONPATH": str(project.root), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], cwd=project.root, env=environment, capture_output=True, check=True
    )
    code, output, seconds, megabytes = json.loads(done.stdout)
    return code, output, seconds, megabytes
