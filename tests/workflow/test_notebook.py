"""The questions of test_questions.py, asked in a notebook that Jupyter executes from its first cell to its last."""

from pathlib import Path

import nbclient
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.workflow.test_questions import PLUGIN, QUESTIONS

RUN = """\
sweep = sweeplib.Sweep(name="{name}", **{content!r})
ds = sweep.run()
sweep"""
FINER = """\
best = float(sweep.analyse("optimal_learning_rate").gamma_opt.sel(dynamics="sgd_chain", p=8).squeeze())
content = {content!r}
content["grid"]["gamma"] = sorted({{*ds.gamma.values, *np.linspace(0.8 * best, 1.25 * best, 4)}})
finer = sweeplib.Sweep(name="{name}", **content | {{"seeds": 24}})
assert finer.run().sizes["seed"] == 24
finer.figure("{figure}")"""


@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.slow), pytest.param(len(QUESTIONS), marks=pytest.mark.long)]
)
def test_a_notebook_answers_the_questions(count: int, tmp_path: Path) -> None:
    """Each question is a cell that runs a sweep and one that shows its figure; the last refines the first sweep."""
    (tmp_path / "mine.py").write_text(PLUGIN)
    cells = ["import numpy as np\nimport sweeplib"]
    questions = list(QUESTIONS.values())[:count]
    for number, (content, figure) in reversed(list(enumerate(questions))):
        cells += [RUN.format(name=f"question_{number}", content=content), f'sweep.figure("{figure}")']
    content, figure = questions[0]
    cells += [FINER.format(name="question_0", content=content, figure=figure)]
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    executed = client.execute()
    shown = [cell for cell in executed.cells if cell.source.splitlines()[-1].partition(".figure(")[1]]
    assert len(shown) == count + 1
    for cell in shown:
        [output] = [one for one in cell.outputs if one.output_type == "execute_result"]
        assert "image/png" in output.data
        assert len(output.data["image/png"]) > 5000
    described = [one.data["text/plain"] for cell in executed.cells for one in cell.outputs if "data" in one]
    assert sum(text.startswith("Sweep question_") for text in described) == count
