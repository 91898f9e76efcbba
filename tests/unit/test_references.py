"""Published values: read from files, drawn into figures through the command line, refused in one line where wrong."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.files.published import known_references, reference, references_digest
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.errors import InputError
from sweeplib.pictures import figures
from sweeplib.pictures.figures.kit.style import DIM
from tests.datasets import sweep_dataset
from tests.in_process import InProcess

CONFIG = """\
problem: {p: 1, k: 1, d: 100, m0: 0.9, activation: square, spherical: true}
grid: {Delta: [0.1, 1], gamma: [0.04, 0.05]}
seeds: 2
dynamics: [sgd_chain]
times: [0, 1, 2]
figures:
  risk_floor: {reference: [FILES]}
"""
CURVE = "# source: a paper, figure 3\n# drawn: curve\nDelta,gamma,risk_floor\n0.1,0.04,0.01\n0.1,0.05,0.02\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "own.csv").write_text(CURVE)
    return tmp_path


def config(project: Path, files: str) -> Path:
    path = project / "sweep.yaml"
    path.write_text(CONFIG.replace("FILES", files))
    return path


def grey(axes):
    return [line for line in axes.lines if line.get_color() == DIM]


@pytest.mark.parametrize("name", known_references())
def test_every_file_says_where_it_comes_from(name):
    found = reference(name)
    assert found.source != name and found.how
    assert len({len(values) for values in found.columns.values()}) == 1


@pytest.mark.rest
def test_a_sweep_draws_them_beside_its_runs(project, monkeypatch):
    """From the config to the picture through the command line; the complete config finds the file from its folder."""
    drawn = []

    def kept(drawing, stem):
        drawn.append(drawing)
        stem.parent.mkdir()
        stem.touch()
        return {stem: b""}

    monkeypatch.setattr("sweeplib.pictures.figures.kit.style.save", kept)
    path = config(project, "phase_retrieval_floors, own.csv")
    results = ["--results", str(project / "results")]
    run_sweep(replace(load(path), cluster=InProcess(block_size=8)), project / "results" / "sweep", progress=False)
    for command in ("finalise", "analyse", "figures"):
        done = CliRunner().invoke(app, [command, str(path), *results])
        assert done.exit_code == 0, done.output
    [drawing] = drawn
    above = drawing.axes[0]
    points, curve = (
        [line for line in grey(above) if (line.get_linestyle() == "None") is hollow] for hollow in (True, False)
    )
    np.testing.assert_allclose(sorted(line.get_ydata()[0] for line in points), [0.00714, 0.0714])
    np.testing.assert_allclose(curve[0].get_xydata(), [[0.04, 0.01], [0.05, 0.02]])
    labels = [text.get_text() for text in drawing.legends[0].texts]
    assert {"floor of SGD, arXiv 2305.18502", "a paper, figure 3"} <= set(labels)
    said = CliRunner().invoke(app, ["summary", str(path), *results]).output
    assert "figure risk_floor: SGD (overlap chain) over a paper, figure 3: ratio " in said
    assert "at 2 of 2 points" in said
    complete = load(project / "results" / "sweep" / "config.yaml")
    assert complete.figures["risk_floor"]["reference"] == ["phase_retrieval_floors", str(project / "own.csv")]


@pytest.mark.rest
@pytest.mark.parametrize(
    ("files", "text", "said"),
    [
        ("missing.csv", None, "reference[0]: no such file: "),
        (
            "phase_retrieval_flors",
            None,
            "got 'phase_retrieval_flors'; expected a file's path that ends in .csv",
        ),
        ("phase_retrieval_flors", None, "did you mean 'phase_retrieval_floors'?"),
        ("regimes", None, "regimes has no numbers to draw in this figure; got ['delta', 'kappa', 'regime', "),
        ("regimes", None, "expected the columns gamma and risk_floor"),
        ("own.csv", "gamma,risk_floor,Dleta\n1,2,0.1\n", "got 'Dleta'; did you mean 'Delta'?"),
        ("own.csv", "gamma,risk_floor,Delta\n1,2,0.7\n", "its Delta is another; got '0.7'; expected Delta = 0.1, 1"),
        ("own.csv", "gamma,risk_floor\n1,x\n", "own has no numbers to draw in this figure"),
        ("own.csv", "gamma,risk_floor\n1\n", "line 2 of own: 1 value; got '1'; expected 2, one per column"),
        ("own.csv", "gamma,gamma\n1,2\n", "line 1 of own: not the names of columns; got ['gamma', 'gamma']"),
        (
            "own.csv",
            "# x\n\ngamma,risk_floor\n0,04,1\n",
            "line 4 of own: 3 values; got '0,04,1'; expected 2, one per column: a",
        ),
        ("own.csv", "gamma;risk_floor\n0,04;1\n", "line 2 of own: a comma or another sign in a number; got '0,04'"),
        ("own.csv", "", "no table; got 'own'"),
        ("own.csv", "# legend: none\ngamma,risk_floor\n1,2\n", "own: not what a legend can say; got 'none'"),
        ("own.csv", "# drawn: bars\ngamma,risk_floor\n1,2\n", "own: not a way to be drawn; got 'bars'"),
        ("3", None, "reference[0]: not a valid option of the figure 'risk_floor'; got 3; expected a text"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(files, text, said, project):
    if text is not None:
        (project / "own.csv").write_text(text)
    path = config(project, files)
    done = CliRunner().invoke(app, ["plan", str(path)])
    message = done.output.strip()
    assert done.exit_code == 2
    assert message.replace("\n", " ").startswith(f"{path}:7: figures.risk_floor.reference[0]: "), message
    with pytest.raises(InputError) as refusal:
        load(path)
    assert said in str(refusal.value)


@pytest.mark.rest
@pytest.mark.parametrize("name", ["OWN.CSV", "own.tsv", "own.txt"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_file_is_read_as_what_it_is(name, separator, project):
    (project / name).write_text("\ufeff" + CURVE.replace(",", separator).replace(f"paper{separator}", "paper,"))
    read = reference(str(project / name))
    assert (read.source, read.look) == ("a paper, figure 3", "curve")
    assert read.columns == {"Delta": (0.1, 0.1), "gamma": (0.04, 0.05), "risk_floor": (0.01, 0.02)}
    assert load(config(project, name)).figures["risk_floor"]["reference"] == [str(project / name)]


def test_figures_without_such_columns_have_no_such_option(project):
    path = config(project, "").with_name("other.yaml")
    path.write_text(CONFIG.replace("risk_floor: {reference: [FILES]}", "risk_fans: {reference: [own.csv]}"))
    with pytest.raises(InputError, match=r"figures\.risk_fans\.reference: unknown option of the figure 'risk_fans'"):
        load(path)


def test_a_digest_changes_with_the_file_and_not_with_its_place(project):
    before = references_digest([str(project / "own.csv"), "regimes"])
    (project / "below").mkdir()
    (project / "below" / "own.csv").write_text(CURVE)
    assert references_digest([str(project / "below" / "own.csv"), "regimes"]) == before
    (project / "own.csv").write_text(CURVE + "1,0.05,0.2\n")
    assert references_digest([str(project / "own.csv"), "regimes"]) != before
    assert references_digest(["gone.csv"]) != references_digest([])


@pytest.mark.rest
def test_rows_stand_where_all_their_columns_agree(tmp_path):
    """Values are in units of the axes; a row with another noise is only in the panel of that noise."""
    path = tmp_path / "steps.csv"
    path.write_text("Delta,gamma,d,exit_steps_mean,exit_steps_mean_error\n1,0.05,3000,30000,600\n7,0.05,3000,1,1\n")
    drawing = figures.learning_rate_scan(sweep_dataset(seeds=4), reference=[str(path)])
    found = [[line for line in grey(axes) if line.get_marker() == "D"] for axes in drawing.axes]
    [line] = [line for lines in found for line in lines]
    np.testing.assert_allclose(line.get_xydata(), [[0.05 * 13, 10.0]])


def test_a_complete_config_names_files_from_where_it_stands(project):
    written = write_complete_config(load(config(project, "own.csv")), project / "results" / "sweep").read_text()
    assert "reference: [../../own.csv]" in written
