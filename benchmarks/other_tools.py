"""Tools for sweeps beside each other, on one function: python -m benchmarks.other_tools --python PYTHON [TOOL ...].

Each tool runs a program of its own below, as its documentation would have it: 10⁴ calls of 1 ms on two workers, then
again with ten seeds more, then from the start, killed in the middle and started again. PYTHON has the other tools.
xsweep has one worker: its executor of processes took 125 ms of processors a call where there were 10⁴.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parents[1]
POINTS, SEEDS, MORE = 100, 100, 110
FUNCTION = """
import os, time
import numpy as np

def noisy(x, seed):
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass
    with open(os.environ["CALLS"], "ab", buffering=0) as file:
        file.write(b".")
    return x + np.random.default_rng(seed).standard_normal()
"""
"""The function: 1 ms of a processor, a mark in a file that counts calls, a random number."""
PROGRAMS = {
    "joblib": """
import sys
import pandas as pd
from joblib import Memory, Parallel, delayed
from work import noisy

kept = Memory("kept", verbose=0).cache(noisy)
cases = [(x, seed) for x in range(100) for seed in range(int(sys.argv[1]))]
values = Parallel(n_jobs=2)(delayed(kept)(*case) for case in cases)
table = pd.DataFrame(cases, columns=["x", "seed"]).assign(value=values)
table.to_csv("table.csv")
print(table.groupby("x").value.agg(["mean", "sem"]))
""",
    "xyzpy": """
import sys
import xyzpy
from work import noisy

harvester = xyzpy.Harvester(xyzpy.Runner(noisy, ["value"]), data_name="values.h5")
combos = {"x": range(100), "seed": range(int(sys.argv[1]))}
harvester.harvest_combos(combos, num_workers=2, missing_only=True, verbosity=0)
value = harvester.full_ds.value
print(value.mean("seed"), value.std("seed", ddof=1) / value.sizes["seed"] ** 0.5)
""",
    "xyzpy, Crop": """
import sys
import xyzpy
from work import noisy

harvester = xyzpy.Harvester(xyzpy.Runner(noisy, ["value"]), data_name="values.h5")
combos = {"x": range(100), "seed": range(int(sys.argv[1]))}
crop = harvester.Crop(name="crop", batchsize=100)
if not crop.is_prepared():
    crop.sow_combos(combos, verbosity=0)
crop.grow_missing(num_workers=2, verbosity=0)
value = crop.reap().value
print(value.mean("seed"), value.std("seed", ddof=1) / value.sizes["seed"] ** 0.5)
""",
    "pipefunc": """
import sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
from pipefunc import Pipeline, pipefunc
from pipefunc.map import load_xarray_dataset
from work import noisy

pipeline = Pipeline([pipefunc("value", mapspec="x[i], seed[j] -> value[i, j]")(noisy)])
run = f"run_{sys.argv[1]}"
inputs = {"x": np.arange(100), "seed": np.arange(int(sys.argv[1]))}
with ProcessPoolExecutor(2) as pool:
    pipeline.map(inputs, run_folder=run, executor=pool, resume=True, show_progress=False)
value = load_xarray_dataset("value", run_folder=run).value.astype(float)
print(value.mean("j"), value.std("j", ddof=1) / value.sizes["j"] ** 0.5)
""",
    "adaptive": """
import sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
from adaptive import AsyncRunner, SequenceLearner
from work import noisy

def called(case):
    return noisy(*case)

cases = [(x, seed) for seed in range(int(sys.argv[1])) for x in range(100)]
learner = SequenceLearner(called, cases)
learner.load("values.pickle")
runner = AsyncRunner(learner, goal=SequenceLearner.done, executor=ProcessPoolExecutor(2))
runner.start_periodic_saving({"fname": "values.pickle"}, interval=1)
runner.ioloop.run_until_complete(runner.task)
learner.save("values.pickle")
value = np.reshape(learner.result(), (-1, 100))
print(value.mean(0), value.std(0, ddof=1) / len(value) ** 0.5)
""",
    "xsweep": """
import sys
import xarray as xr
from xsweep import sweep
from work import noisy

@sweep("loop(x, seed) -> value()", store=f"{sys.argv[1]}.zarr", force_unlock=True)
def called(x, seed):
    return noisy(x, seed)

if __name__ == "__main__":
    value = called(xr.Dataset(coords={"x": range(100), "seed": range(int(sys.argv[1]))}))
    print(value.mean("seed"), value.std("seed", ddof=1) / value.sizes["seed"] ** 0.5)
""",
    "sweeplib": """
import sys
from sweeplib import simulator, sweep
from work import noisy

@simulator(value="1")
def called(seed: int, x: float):
    return noisy(x, seed)

if __name__ == "__main__":
    ds = sweep(called, x=list(range(100)), seeds=int(sys.argv[1]))
    print(ds.sweep.averages()[["value", "value_low", "value_high"]])
""",
}
"""A program of each tool, whose argument is the number of seeds."""
PEAK = """
import numpy as np
from adaptive import Learner1D
from adaptive.runner import simple

def peak(x):
    return x + 0.01**2 / (0.01**2 + (x - 0.3) ** 2)

def error(points):
    return abs(np.interp(x, points, peak(points)) - peak(x)).max()

x = np.linspace(-1, 1, 200_001)
learner = Learner1D(peak, (-1, 1))
simple(learner, npoints_goal=100)
chosen = np.sort([point for point in learner.data])
even = next(n for n in range(100, 100_000, 100) if error(np.linspace(-1, 1, n)) <= error(chosen))
print(f"{error(chosen):.4f} with 100 points; {error(np.linspace(-1, 1, 100)):.4f} with even ones, {even:,} for that")
"""
"""The largest error of straight lines between points of a function without noise: those of adaptive, and even ones."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program took: seconds by the clock, of processors, and calls of the function."""

    clock: float
    processor: float
    calls: int


def lines(program: str) -> int:
    """Return the lines of a program that are not empty and import nothing."""
    return sum(bool(line.strip()) and not line.startswith(("import", "from")) for line in program.splitlines())


def started(python: str, folder: Path, seeds: int) -> subprocess.Popen[bytes]:
    """Return the process of a program, which leads a session of its own."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"CALLS": str(folder / "calls"), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}
    (folder / "calls").touch()
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [python, "program.py", str(seeds)],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def calls(folder: Path) -> int:
    """Return how often the function was called in a folder."""
    return (folder / "calls").stat().st_size


def cost(python: str, folder: Path, seeds: int) -> Cost:
    """Return what a program takes from its start to its end, with the processes that it has waited for."""
    before, start = calls(folder) if (folder / "calls").exists() else 0, time.perf_counter()
    process = started(python, folder, seeds)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise click.ClickException((folder / "log").read_text()[-2000:])
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, calls(folder) - before)


def kill_in_the_middle(python: str, folder: Path) -> None:
    """Start a program and kill it, with all of its session, after half of its calls."""
    process = started(python, folder, SEEDS)
    while calls(folder) < POINTS * SEEDS // 2 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(2)


def resumption(python: str, folder: Path) -> tuple[str, str]:
    """Return the seconds of a program after its kill and the calls made twice, or the last line of its error."""
    try:
        resumed = cost(python, folder, SEEDS)
    except click.ClickException as problem:
        return problem.message.strip().splitlines()[-1], ""
    return f"{resumed.processor:.1f}", f"{calls(folder) - POINTS * SEEDS:,}"


def folder_of(tool: str, parent: Path) -> Path:
    """Return a new folder with the program of a tool and the function."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    (folder / "work.py").write_text(FUNCTION)
    (folder / "program.py").write_text(PROGRAMS[tool])
    return folder


@click.command()
@click.argument("tools", nargs=-1)
@click.option("--peak", is_flag=True, help="Only the points that adaptive chooses for a function without noise.")
@click.option("--python", default=sys.executable, help="A Python that has the other tools.")
def main(tools: Sequence[str], python: str, *, peak: bool) -> None:
    """Print what each tool takes for the same calls: seconds of processors but for one column."""
    if peak:
        subprocess.run([python, "-c", PEAK], check=True)
        return
    table = Table("tool", "lines", "10⁴ calls", "by the clock", "10 seeds more", "calls", "after a kill", "made twice")
    parent = Path(tempfile.mkdtemp())
    for tool in tools or PROGRAMS:
        here = sys.executable if tool == "sweeplib" else python
        folder = folder_of(tool, parent)
        first, more = cost(here, folder, SEEDS), cost(here, folder, MORE)
        folder = folder_of(tool, parent)
        kill_in_the_middle(here, folder)
        resumed = resumption(here, folder)
        seconds = [f"{first.processor:.1f}", f"{first.clock:.1f}", f"{more.processor:.1f}"]
        table.add_row(tool, str(lines(PROGRAMS[tool])), *seconds, f"{more.calls:,}", *resumed)
        Console(width=160).print(table)
    shutil.rmtree(parent)


if __name__ == "__main__":
    main()
