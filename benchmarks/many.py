"""The overhead of whole sweeps of trivial work: python -m benchmarks.many [--points N] [--seeds N] [--block-size N].

Each stage is a process of its own, as in a workflow. Printed are its wall-clock seconds, the processor seconds of it
and of its workers, its largest memory, and the number of files in the end; then the same for one seed more.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.driver import grid_of
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.execution.clusters import CLUSTERS
from sweeplib.networks.simulation import Recording

DYNAMICS = "trivial"
PLUGIN = str(Path(__file__).with_name("trivial.py"))
TIMES = 10


def sweep_of(points: int, seeds: int, block_size: int | None = None) -> Design:
    """Return a sweep over points and over seeds."""
    grid = grid_of(points)
    recording = Recording(tuple(np.linspace(0.0, 1.0, TIMES).tolist()), (0.01,), ("risk",))
    cluster = CLUSTERS["local"](block_size=block_size)
    given: dict[str, Any] = {"cluster": cluster, "plugins": (PLUGIN,), "source": "name: many\n"}
    return Design("many", grid, tuple(range(seeds)), {DYNAMICS: Run(DYNAMICS)}, recording, **given)


def planned(sweep: Design, directory: Path, _: int) -> None:
    from sweeplib.engine.execution.plan import write_plan

    write_plan(sweep, directory, progress=False)


def ran(sweep: Design, directory: Path, workers: int) -> None:
    from sweeplib.engine.execution.run import run_sweep

    run_sweep(sweep, directory, workers=workers, progress=False)


def counted(sweep: Design, directory: Path, _: int) -> None:
    from sweeplib.engine.storage.store.inventory import counts_of_cases

    [counts] = counts_of_cases(sweep, directory).values()
    if counts["ok"] != sweep.size:
        raise SystemExit(f"{counts} of {sweep.size}")


def finalised(sweep: Design, directory: Path, _: int) -> None:
    from sweeplib.engine.storage.dataset.finalise import finalise

    finalise(sweep, directory)


def started(sweep: Design, directory: Path, workers: int) -> None:
    """Start and end the cluster alone."""
    from sweeplib.engine.execution.clusters import cluster_of

    with cluster_of(sweep).in_results(directory).client(workers):
        pass


STAGES: dict[str, Callable[[Design, Path, int], None]] = {
    "plan": planned,
    "run": ran,
    "status": counted,
    "finalise": finalised,
    "cluster": started,
}


def staged(stage: str, directory: str, points: int, seeds: int, block_size: int, workers: int) -> None:
    """Do one stage, and print its seconds and its largest memory in MB."""
    sweep = sweep_of(points, seeds, block_size or None)
    began = time.perf_counter(), time.process_time()
    STAGES[stage](sweep, Path(directory), workers)
    wall, own = time.perf_counter() - began[0], time.process_time() - began[1]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"wall": wall, "own": own, "others": children.ru_utime + children.ru_stime, "MB": peak}))


def measured(stage: str, directory: str, *numbers: int) -> dict[str, float]:
    """Return what a stage takes in a process of its own."""
    began = time.perf_counter()
    words = [stage, directory, *map(str, numbers)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    code = "import sys; from benchmarks.many import staged; staged(*sys.argv[1:3], *map(int, sys.argv[3:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found | {"process": time.perf_counter() - began}


@click.command()
@click.option("--points", default=1000, show_default=True)
@click.option("--seeds", default=100, show_default=True)
@click.option("--block-size", default=0, help="Cases of a block; by default sweeplib's choice.")
@click.option("--workers", default=2, show_default=True)
@click.option("--grow/--no-grow", default=True, help="Go on with one seed more.")
@click.option("--into", default="", help="Folder of the results; a temporary one by default.")
def main(points: int, seeds: int, block_size: int, workers: int, grow: bool, into: str) -> None:
    """Run a sweep of trivial cases, stage by stage."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = into or temporary
        for count in (seeds, seeds + 1)[: 1 + grow]:
            rows = {}
            for stage in ("plan", "run", "status", "finalise", "cluster"):
                rows[stage] = measured(stage, folder, points, count, block_size, workers)
                row = " ".join(f"{name} {value:7.2f}" for name, value in rows[stage].items())
                print(f"{points} points x {count} seeds, {stage:9} {row}", flush=True)
            files = sum(len(names) for _, _, names in os.walk(folder))
            total = sum(row["wall"] for stage, row in rows.items() if stage != "cluster")
            print(f"{points} points x {count} seeds: {total:.1f} s in all, {files} files", flush=True)


if __name__ == "__main__":
    main()
