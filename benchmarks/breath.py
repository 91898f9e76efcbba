"""Short commands: new processes, and a sweep of sixteen cases from its file to its report, from Python, and repeated.

The baseline of a sweep is a loop in NumPy with xyzpy's Harvester and plots, where xyzpy is installed, or where the
environment variable SWEEPLIB_XYZPY names a Python that has it. With `--checkout FOLDER` the commands of another
checkout, such as the commit before, are the floor.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.timing import Benchmark, Work

CHECKOUT = "SWEEPLIB_CHECKOUT"
"""The environment variable with the folder of another checkout."""
XYZPY = os.environ.get("SWEEPLIB_XYZPY") or (sys.executable if find_spec("xyzpy") else None)
"""The Python that has xyzpy, None if none is known."""
HERE = Path(__file__).parents[1]
SWEEP = """\
name: breath
problem: {p: 1, k: 1, d: 100, Delta: 0.5, activation: square, spherical: true}
grid: {gamma: [0.05, 0.1]}
seeds: 8
dynamics: [sgd_chain]
times: {linspace: [0, 1, 11]}
thresholds: [0.1]
analyses: [exit_times]
figures: [risk_curves, trajectories, exit_time_distributions]
"""
IN_PYTHON = """
import time
from sweeplib import Sweep
sweep = Sweep.from_yaml("breath.yaml", {overrides!r})
{before}
started = time.perf_counter()
{timed}
print(time.perf_counter() - started)
"""
PLAIN = """
import matplotlib
matplotlib.use("agg")
import numpy as np, xyzpy

TIMES, D, DELTA = np.linspace(0, 1, 11), 100, .5

def risks(gamma, seed):
    numbers = np.random.default_rng(seed)
    W, W_star = numbers.normal(size=(2, D))
    W, W_star = (each * np.sqrt(D) / np.linalg.norm(each) for each in (W, W_star))
    found, steps = [], np.rint(TIMES * D / gamma).astype(int)
    for step in range(steps[-1] + 1):
        if step == steps[len(found)]:
            found.append(2 * (1 - (W @ W_star / D) ** 2))
        x = numbers.normal(size=D)
        lam, lam_star = W @ x / np.sqrt(D), W_star @ x / np.sqrt(D)
        E = lam_star**2 + np.sqrt(DELTA) * numbers.normal() - lam**2
        W = W + gamma * 2 * lam * E * x / np.sqrt(D)
        W *= np.sqrt(D) / np.linalg.norm(W)
    return found

runner = xyzpy.Runner(risks, ["risk"], var_dims={"risk": ["time"]}, var_coords={"time": TIMES})
harvester = xyzpy.Harvester(runner, data_name="risks.h5")

def harvest(seeds):
    harvester.harvest_combos({"gamma": [.05, .1], "seed": seeds}, verbosity=0)

def plot(name, **options):
    figure, _ = harvester.full_ds.xyz.infiniplot("time", "risk", color="gamma", show_and_close=False, **options)
    figure.savefig(f"{name}.png")

def plots():
    plot("curves", aggregate="seed")
    plot("runs", col="seed")
    plot("rates", row="gamma")
"""
PLAIN_TIMED = """
import time
{before}
started = time.perf_counter()
{timed}
print(time.perf_counter() - started)
"""
FIRST_CALL = """
import time
import dask.array, numba, xarray
from sweeplib import Problem, simulate
problem = Problem(gamma=.1, p=1, k=1, d=100, Delta=0, activation="square", spherical=True)
started = time.perf_counter()
simulate(problem, "sgd_chain", times=[0, .01])
print(time.perf_counter() - started)
"""


def process(*arguments: str) -> Work:
    """Return work that starts a new Python."""

    def work() -> float:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return 1.0

    return work


def first_call() -> float:
    """Return the number of processes whose time equals that of the first call in a new process, imports left out."""
    started = time.perf_counter()
    return (time.perf_counter() - started) / float(_output(HERE, Path.cwd(), "-c", FIRST_CALL))


def _output(checkout: Path, folder: Path, *arguments: str, python: str = sys.executable) -> str:
    """Return what a new Python prints that finds sweeplib in a checkout."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])}
    command = [python, "-P", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


@cache
def finished(checkout: Path) -> "tempfile.TemporaryDirectory[str]":
    """Return a folder in which a checkout has run the sweep in `used`, with a copy of that in `kept`."""
    folder = tempfile.TemporaryDirectory(prefix="breath-")
    used = Path(folder.name, "used")
    used.mkdir()
    (used / "breath.yaml").write_text(SWEEP)
    _output(checkout, used, "-m", "sweeplib", "sweep", "breath.yaml")
    shutil.copytree(used, Path(folder.name, "kept"))
    return folder


Timed = Callable[[Path, Path], float]
"""Does something with a checkout in a folder, and returns the seconds that it took."""


def command(*words: str, new: bool = False, before: Sequence[str] = ()) -> Timed:
    """Return the timing of a command on the finished sweep, or on one that has no results yet if `new`.

    The words of another command, which is not timed, may come before.
    """

    def timed(checkout: Path, folder: Path) -> float:
        if new:
            shutil.rmtree(folder / "results")
        if before:
            _output(checkout, folder, "-m", "sweeplib", *before)
        started = time.perf_counter()
        _output(checkout, folder, "-m", "sweeplib", *words)
        return time.perf_counter() - started

    return timed


def in_python(timed: str, overrides: str, before: str = "") -> Timed:
    """Return the timing of a statement after another, in a new Python that has imported `sweeplib`."""
    code = IN_PYTHON.format(timed=timed, overrides=overrides, before=before)
    return lambda checkout, folder: float(_output(checkout, folder, "-c", code).split()[-1])


def timed_in(checkout: Path, timed: Timed) -> Work:
    """Return work of a checkout in the folder of the finished sweep, which is as it was each time."""

    def work() -> float:
        started = time.perf_counter()
        kept, used = (Path(finished(checkout).name, name) for name in ("kept", "used"))
        shutil.rmtree(used)
        shutil.copytree(kept, used)
        seconds = timed(checkout, used)
        return (time.perf_counter() - started) / seconds

    return work


def plain(timed: str, before: str = "", *, whole: bool = False) -> Work | None:
    """Return work of a loop with xyzpy after other work, None without xyzpy.

    If it is the `whole` process, its imports are timed too, and the work before is done by another one.
    """
    if XYZPY is None:
        return None

    def work() -> float:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            for code in [before] if whole and before else []:
                _output(HERE, Path(folder), "-c", PLAIN + code, python=XYZPY)
            begun = time.perf_counter()
            first = "" if whole else before
            code = PLAIN + PLAIN_TIMED.format(before=first, timed=timed)
            inside = float(_output(HERE, Path(folder), "-c", code, python=XYZPY).split()[-1])
            seconds = time.perf_counter() - begun if whole else inside
        return (time.perf_counter() - started) / seconds

    return work


def breath(name: str, reach: float, timed: Timed, baseline: Work | None = None) -> Benchmark:
    """Return the benchmark of a command or call, paired with another checkout if there is one."""
    other = os.environ.get(CHECKOUT)
    floor = timed_in(Path(other).resolve(), timed) if other else None
    beside = "NumPy and xyzpy" if baseline else ""
    return Benchmark(name, "", timed_in(HERE, timed), baseline, beside, floor, other or "", reach)


if XYZPY is None:
    sys.stderr.write("xyzpy is not installed (pip install .[bench]): no sweep is compared with it\n")

PLAN = ("plan", "breath.yaml")
RUN = "sweep.run(progress=False)"
BENCHMARKS = [
    Benchmark(
        "import sweeplib",
        "a process",
        process("-c", "import sweeplib"),
        process("-c", "import xarray, numba"),
        "import xarray, numba",
        process("-c", "pass"),
        "an empty process",
        0.6,
    ),
    Benchmark("sweeplib --help", "a process", process("-m", "sweeplib", "--help"), reach=0.4),
    Benchmark("first cached kernel call", "a process", first_call, reach=0.5),
    breath(
        "16 cases, file to report",
        5.0,
        command("sweep", "breath.yaml", new=True),
        plain("harvest(range(8)); plots()", whole=True),
    ),
    breath(
        "8 seeds more",
        3.5,
        command("sweep", "breath.yaml", "seeds=16"),
        plain("harvest(range(8, 16)); plots()", "harvest(range(8))", whole=True),
    ),
    breath("nothing to do", 0.8, command("sweep", "breath.yaml")),
    breath("sweeplib plan, which tries runs without an exit again", 2.5, command(*PLAN)),
    breath("sweeplib plan once more", 0.5, command(*PLAN, before=PLAN)),
    *(breath(f"sweeplib {word}", 0.5, command(word, "breath.yaml", before=PLAN)) for word in ("status", "summary")),
    breath("sweeplib list", 0.5, command("list", before=PLAN)),
    breath("Python: first run", 2.0, in_python(RUN, "root_seed=2"), plain("harvest(range(8))")),
    breath(
        "Python: 8 seeds more",
        0.3,
        in_python("Sweep.from_yaml('breath.yaml', 'root_seed=2', 'seeds=16').run()", "root_seed=2", RUN),
        plain("harvest(range(8, 16))", "harvest(range(8))"),
    ),
    breath(
        "Python: a figure",
        0.5,
        in_python("sweep.figure('risk_curves')", "seeds=8", RUN),
        plain("plot('curves', aggregate='seed')", "harvest(range(8))"),
    ),
]
