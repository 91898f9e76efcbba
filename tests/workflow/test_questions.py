"""Questions that users have, from a YAML file alone by `sweeplib sweep`, and from Python: each ends in its figure."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from sweeplib import Sweep
from sweeplib.engine.storage.records.stage_records import stage_records
from tests.plugged import nothing_left

PLUGIN = '''
"""An activation, an analysis and a figure of one's own."""

import math

import xarray as xr
from matplotlib.figure import Figure as Drawing

from sweeplib.analysis import ANALYSES, Analysis
from sweeplib.statistics.labelled import labelled
from sweeplib.pictures.figures import FIGURES, Figure
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation


def value(x):
    return math.atan(x)


def derivative(x):
    return 1.0 / (1.0 + x * x)


def last_risk(ds):
    """Return the mean risk at the last time."""
    return xr.Dataset({"last_risk": labelled(ds.risk.isel(time=-1).mean("seed"), "mean risk at the end")})


def last_risks(ds, analyses):
    """Return the last risks against the learning rate."""
    drawing = Drawing(figsize=(4, 3))
    axes = drawing.subplots()
    for name in ds.dynamics.values:
        found = analyses["last_risk"].last_risk.sel(dynamics=name).squeeze()
        axes.plot(ds.gamma, found, "o-", label=name)
    axes.set(xlabel="learning rate γ", ylabel="mean risk at the end", xscale="log")
    axes.legend()
    return drawing


ACTIVATIONS.register("atan", Activation("atan", r"\\arctan", value, derivative, 1))
ANALYSES.register("last_risk", Analysis("last_risk", last_risk, "Mean risk at the end"))
FIGURES.register("last_risks", Figure("last_risks", last_risks, "Risk at the end.", needs=("last_risk",)))
'''

QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "the best learning rate of a relu student of a tanh teacher, at two widths": (
        {
            "problem": {"k": 1, "activation": "relu", "teacher_activation": "tanh", "Delta": 0, "d": 200},
            "grid": {"gamma": {"geomspace": [0.1, 10, 9]}, "p": [2, 8]},
            "seeds": 16,
            "dynamics": {"sgd_chain": {}, "ode": {"where": {"p": [2], "seed": [0]}}},
            "times": [0, 1, 2, 4],
            "thresholds": [0.1],
        },
        "learning_rate_scan",
    ),
    "exit times against the overlap at the start": (
        {
            "problem": {
                "p": 1, "k": 1, "activation": "square", "spherical": True, "Delta": 0, "d": 1000, "gamma": 0.08
            },
            "grid": {"m0": [0.02, 0.03, 0.05, 0.08, 0.12, 0.2]},
            "seeds": 24,
            "dynamics": ["sgd_chain", "ode"],
            "times": {"linspace": [0, 2.5, 6]},
            "thresholds": [0.1, 0.5],
        },
        "exit_steps",
    ),
    "the deviation from the ODE where the learning rate falls as a power of the dimension": (
        {
            "problem": {"p": 2, "k": 1, "Delta": 0.1, "activation": "erf", "gamma0": 1},
            "grid": {"d": [50, 100, 200, 400, 800], "delta": [0, 0.5]},
            "derive": {"gamma": "gamma0 * d**-delta"},
            "seeds": 24,
            "dynamics": ["sgd_chain", "ode"],
            "times": {"linspace": [0, 2, 9]},
            "analyses": {"deviation": {"reference": "ode"}},
            "figures": {"from_the_ode": {"kind": "line", "y": "risk_sup_deviation", "x": "d", "hue": "delta"}},
        },
        "from_the_ode",
    ),
    "an activation, an analysis and a figure of one's own": (
        {
            "problem": {"p": 2, "k": 1, "d": 100, "Delta": 0, "activation": "atan"},
            "grid": {"gamma": {"geomspace": [0.1, 4, 6]}},
            "seeds": 8,
            "dynamics": ["sgd_chain"],
            "times": [0, 1, 2],
            "figures": ["last_risks"],
            "plugins": ["mine.py"],
        },
        "last_risks",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGIN)
    return tmp_path


def swept(folder: Path, content: dict[str, Any], *overrides: str) -> str:
    """Run `sweeplib sweep` on a file with this content; return what it wrote at the end."""
    (folder / "sweep.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    command = [sys.executable, "-m", "sweeplib", "sweep", "sweep.yaml", *overrides]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def from_python(folder: Path, content: dict[str, Any]) -> Sweep:
    """Run the same sweep from Python."""
    sweep = Sweep(name="python", results=folder / "results", folder=folder, **content)
    sweep.run(progress=False)
    return sweep


def nothing_is_cut_off(picture: Path) -> bool:
    """Whether the edge of a picture is white: what reaches it is cut off."""
    pixels = np.asarray(Image.open(picture).convert("L"))
    return all((edge == 255).all() for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]))


@pytest.mark.long
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_by_a_file_and_from_python(question: str, folder: Path) -> None:
    content, figure = QUESTIONS[question]
    said = swept(folder, content)
    assert "ended ok" in said
    for suffix in ("png", "pdf"):
        assert (folder / "results" / "sweep" / "figures" / f"{figure}.{suffix}").stat().st_size > 5000
    assert nothing_is_cut_off(folder / "results" / "sweep" / "figures" / f"{figure}.png")
    assert not any(record.failures for record in stage_records(folder / "results" / "sweep").values())
    assert figure in (folder / "results" / "sweep" / "report" / "index.html").read_text()
    with nothing_left():
        drawing = from_python(folder, content).figure(figure)
        assert any(line.get_xdata().size > 1 for axes in drawing.axes for line in axes.lines)


@pytest.mark.long
def test_more_seeds_and_finer_rates_near_the_optimum_of_a_finished_sweep(folder: Path) -> None:
    content, _ = QUESTIONS["exit times against the overlap at the start"]
    content = content | {"grid": {"gamma": {"linspace": [0.03, 0.14, 6]}}, "stop": "exit", "thresholds": [0.01]}
    content["problem"] = {name: value for name, value in content["problem"].items() if name != "gamma"}
    assert "optimal learning rate: known at none of 2 points" in swept(folder, content)  # too early for the best ones
    content |= {"times": {"linspace": [0, 12, 7]}}
    assert "optimal learning rate 0." in swept(folder, content)
    coarse = Sweep.from_yaml(folder / "sweep.yaml", results=folder / "results")
    best = float(coarse.analyse("optimal_learning_rate").gamma_opt.sel(dynamics="sgd_chain").squeeze())
    finer = sorted({*coarse.dataset.gamma.values.tolist(), *np.linspace(0.8 * best, 1.2 * best, 5).round(4).tolist()})
    more = Sweep(
        name="sweep",
        results=folder / "python",
        **content | {"seeds": 48, "grid": {"gamma": finer}},
    )
    assert more.run(progress=False).sizes["gamma"] == len(finer)
    grid = f"grid.gamma={','.join(map(str, finer))}"
    said = swept(folder, content, "seeds=48", grid)
    assert f"all {2 * 48 * len(finer):,} cases ended ok" in said
    grown = Sweep.from_yaml(folder / "sweep.yaml", "seeds=48", grid, results=folder / "results")
    assert grown.dataset.exit_steps.identical(more.dataset.exit_steps)
