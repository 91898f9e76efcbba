"""Two finished sweeps to compare: without noise, and with noise at two d and a figure less."""

from pathlib import Path
from typing import Any

import sweeplib
from tests.in_process import InProcess

CONTENT: dict[str, Any] = {
    "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "d": 50},
    "grid": {"gamma": [0.02, 0.05, 0.08, 0.11, 0.14]},
    "seeds": 8,
    "cluster": {"kind": "local", "block_size": 64},
    "dynamics": {"sgd_chain": {}},
    "times": [0, 4, 8],
    "thresholds": [0.05],
    "analyses": ["exit_times", "optimal_learning_rate"],
    "figures": {"line": {"y": "exit_steps", "x": "gamma"}, "exited_fraction": {}},
}


def finished_pair(results: Path) -> list[Path]:
    """Run both sweeps, which have one figure of the same name and kind, and return their folders."""
    noisy = {
        "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "Delta": 4},
        "grid": CONTENT["grid"] | {"d": [50, 70]},
        "figures": {"line": {"y": "exit_steps", "x": "gamma", "where": {"d": 50}}},
    }
    quiet = {"problem": CONTENT["problem"] | {"Delta": 0}}
    sweeps = [
        sweeplib.Sweep(name=name, results=results, **(CONTENT | changed))
        for name, changed in (("quiet", quiet), ("noisy", noisy))
    ]
    with InProcess().client() as client:
        for sweep in sweeps:
            sweep.run(client, progress=False)
    for sweep in sweeps:
        sweep.report()
    return [sweep.directory for sweep in sweeps]
