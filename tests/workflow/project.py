"""A copy of the project, and a folder elsewhere with a sweep and plugins, in which the tests run Snakemake."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.workflow.forks import Forks

ROOT = Path(__file__).parents[2]
OWN = Path(__file__).parent / "own"
SWEEP = """\
name: tiny
problem: {p: 1, k: 1, d: 40, Delta: 0, spherical: true, start: opposed}
grid: {gamma: [0.05, 0.08], zip: [{activation: [square, scaled], target: [committee, mean]}]}
seeds: 2
dynamics:
  sgd_chain: {where: {activation: [square]}}
  read_off: {where: {activation: [scaled]}}
  cloud: {where: {activation: [square]}, particles: 5}
times: [0, 2, 4]
thresholds: [0.01]
stop: exit
observables: [mean_overlap]
analyses: [exit_times]
figures: [last_overlaps]
plugins:
  - own/dynamics.py
  - own/figures.py
  - own/particles.py
  - own/mean_target.py
  - own/opposed_start.py
  - own/mean_overlap.py
cluster: {kind: local, workers: 1, dashboard_address: ":0"}
"""


WORKFLOW = ("--snakefile", "../Snakefile", "--profile", "../workflow/profiles/local")


@dataclass(frozen=True)
class Project:
    """The copy in `root`, and beside it the user's own folder, in which Snakemake is started."""

    root: Path
    forks: Forks

    @property
    def desk(self) -> Path:
        """Return the user's own folder."""
        return self.root / "desk"

    @property
    def results(self) -> Path:
        """Return the folder of the sweep's results."""
        return self.desk / "results" / "tiny"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run Snakemake in the user's folder, with its own copy of sweeplib."""
        return self._started("snakemake", *WORKFLOW, *arguments)

    def sweeplib(self, *arguments: str) -> None:
        """Run the command `sweeplib` in the user's folder; it must succeed."""
        done = self.ended("sweeplib", *arguments)
        assert done.returncode == 0, done.stderr

    def ended(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a module in the user's folder to its end."""
        process = self._started(module, *arguments)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `make` in the tree, with the installed environment."""
        installed = Path(sys.prefix) / ".run"
        command = ["make", "--no-print-directory", f"--old-file={installed}", f"VENV={sys.prefix}", *arguments]
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)

    def _started(self, module: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", module, *arguments]
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        return subprocess.Popen(
            command, cwd=self.desk, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake to its end, in a process that need not import the libraries."""
        return self.forks.snakemake(self.desk, self.root, [*WORKFLOW, *arguments])

    def planned(self, sweep: str = "tiny.yaml") -> dict[str, int]:
        """Return the number of jobs of each rule in a dry run."""
        done = self.snakemake("--dry-run", "--quiet", "host", "--config", f"sweep={sweep}")
        assert done.returncode == 0, done.stderr
        stats = done.stdout.rpartition("Job stats:")[2].partition("total")[0]
        return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", stats, flags=re.MULTILINE)}

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the only occurrence of `old` in a file of the tree."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{path} says {old!r} {text.count(old)} times"
        (self.root / path).write_text(text.replace(old, new))

    def append(self, path: str, line: str) -> None:
        """Add a line to a file of the tree."""
        with (self.root / path).open("a") as file:
            file.write(f"\n{line}\n")


def copied(source: str | Path, target: str | Path) -> None:
    """Copy a file; compiled code, which is replaced and never modified, is linked instead if possible."""
    if Path(source).suffix in {".pyc", ".nbc", ".nbi"}:
        with contextlib.suppress(OSError):
            os.link(source, target)
            return
    shutil.copy2(source, target)


def project_in(root: Path, forks: Forks) -> Project:
    """Copy the project to `root`, with its compiled kernels."""
    for part in ("sweeplib", "workflow"):
        shutil.copytree(ROOT / part, root / part, copy_function=copied)
    for file in ("Snakefile", "Makefile"):
        shutil.copy(ROOT / file, root)
    shutil.copytree(OWN, root / "desk" / "own")
    (root / "desk" / "tiny.yaml").write_text(SWEEP)
    return Project(root, forks)
