"""The example of docs/plugins.md does what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from sweeplib import Problem, simulate
from sweeplib.analysis import ANALYSES
from sweeplib.config import load
from sweeplib.errors import InputError
from sweeplib.figures import FIGURES
from sweeplib.maths.activations import ACTIVATIONS
from tests.datasets import sweep_dataset
from tests.plugged import nothing_left

REFUSED = [
    ("observables: [risk, alignment]", "observables: [alignment]", "no final risk without the risk"),
    ("gamma: [0.05, 0.1, 0.2]", "gamma: [0.05, 0.1, 0.2], second_layer_rate: [0, 1]", "against gamma alone"),
    ("figures: [final_risks]", "figures: {final_risks: {scale: -1}}", r"figures\.final_risks\.scale: not a scale"),
    ("gamma: [0.05, 0.1, 0.2]", "gamma: [0.05, 0.1, 0.2], spherical: [true]", "not on the sphere"),
    ("{rate: 2}", "{rate: fast}", r"dynamics\.relaxation\.rate"),
]
"""A line of the example, what stands there instead, and what is said of it when the config is loaded."""

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


def test_the_example_is_a_sweep_whose_figure_is_drawn(tmp_path: Path) -> None:
    files = re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    for name, text in files:
        (tmp_path / name).write_text(text)
    assert [name for name, _ in files] == [
        "bent.yaml",
        "bent.py",
        "slopes.py",
        "relaxation.py",
        "alignment.py",
        "final_risks.py",
    ]
    ds = sweep_dataset(seeds=2).isel(gamma_ratio=slice(4), d=0, Delta=0)
    with nothing_left():
        sweep = load(tmp_path / "bent.yaml")
        assert sweep.runs["relaxation"].options == {"rate": 2.0}
        for line, instead, said in REFUSED:
            (tmp_path / "other.yaml").write_text((tmp_path / "bent.yaml").read_text().replace(line, instead))
            with pytest.raises(InputError, match=said):
                load(tmp_path / "other.yaml")
        problem = Problem(p=2, k=1, d=100, Delta=0, activation="bent", gamma=0.1)
        run = simulate(problem, "relaxation", times=[0, 1], observables=["alignment"], options={"rate": 2.0})
        decay = run.alignment.isel(time=1) / run.alignment.isel(time=0)
        assert decay.values.ravel() == pytest.approx(np.exp(-2.0))
        assert ACTIVATIONS["bent"].value(0.0) == 0.0
        assert list(sweep.analyses) == ["final_risk"]
        analyses = {"final_risk": ANALYSES["final_risk"](ds)}
        [axes] = FIGURES["final_risks"](ds, analyses, **sweep.figures["final_risks"]).axes
        assert len(axes.lines) == ds.sizes["dynamics"]
