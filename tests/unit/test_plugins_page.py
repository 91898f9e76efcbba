"""The example of docs/plugins.md does what the page says."""

import re
from pathlib import Path

from sweeplib.analysis import ANALYSES
from sweeplib.config import load
from sweeplib.figures import FIGURES
from sweeplib.maths.activations import ACTIVATIONS
from tests.datasets import sweep_dataset
from tests.plugged import nothing_left

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


def test_the_example_is_a_sweep_whose_figure_is_drawn(tmp_path: Path) -> None:
    files = re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    for name, text in files:
        (tmp_path / name).write_text(text)
    assert [name for name, _ in files] == ["bent.yaml", "bent.py", "slopes.py", "final_risks.py"]
    ds = sweep_dataset(seeds=2).isel(gamma_ratio=slice(4), d=0, Delta=0)
    with nothing_left():
        sweep = load(tmp_path / "bent.yaml")
        assert ACTIVATIONS["bent"].value(0.0) == 0.0
        assert list(sweep.analyses) == ["final_risk"]
        analyses = {"final_risk": ANALYSES["final_risk"](ds)}
        [axes] = FIGURES["final_risks"](ds, analyses, **sweep.figures["final_risks"]).axes
        assert len(axes.lines) == ds.sizes["dynamics"]
