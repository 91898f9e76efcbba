"""Configs that start from another one: what they change, where errors are, and that an edit of the other is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

from sweeplib.config import from_mapping, load
from sweeplib.config.inherited import merged_config
from sweeplib.config.overrides import Override, with_overrides
from sweeplib.engine.files.strict_yaml import parsed, written
from sweeplib.errors import InputError

BASE = """\
name: base
problem: {p: 1, k: 1, Delta: 0.5, activation: square, spherical: true}
grid: {gamma: [0.05, 0.1], d: [100, 300]}
seeds: 8
dynamics: [sgd_chain]
times: {linspace: [0, 1, 11]}
thresholds: [0.1]
figures: {risks: {kind: line, y: risk, x: gamma}, trajectories: {}}
"""


GAMMA = {"problem.gamma": 1}


def config(folder: Path, **texts: str) -> Path:
    """Write configs into a folder, beside the base; return the first one."""
    for name, text in {"base": BASE, **texts}.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / f"{next(iter(texts))}.yaml"


@pytest.mark.parametrize(
    ("own", "differing"),
    [
        ("seeds: 3", {"seeds": 3}),
        ("problem: {gamma: 0.2}", {"problem.gamma": 0.2, "grid.gamma": None}),
        ("grid: {Delta: [0, 1]}", {"grid.Delta": [0, 1], "problem.Delta": None}),
        ("grid: {zip: [{p: [1, 2], Delta: [0, 1]}]}", {"problem.p": None, "problem.Delta": None}),
        ("problem: {gamma: 1}\nderive: {d: 10*p}", {"grid.d": None, "grid.gamma": None, "derive.d": "10*p"} | GAMMA),
        ("problem: {spherical: null}", {"problem.spherical": None}),
        ("dynamics: {ode: {rtol: 1e-8}}", {"dynamics": {"sgd_chain": None, "ode": {"rtol": 1e-8}}}),
        ("dynamics: [ode]", {"dynamics": ["ode"]}),
        ("figures: {risks: {x: d}}", {"figures.risks": {"kind": "line", "y": "risk", "x": "d"}}),
        ("figures: []", {"figures": []}),
        ("times: {values: [0, 1], scale: p}", {"times": {"values": [0, 1], "scale": "p"}}),
    ],
)
def test_a_config_changes_keys_of_another(own, differing):
    """All else is as in the other one, but for its name."""
    data, base = merged_config(parsed(BASE), parsed(own)), parsed(BASE)
    del base["name"]
    for key, value in differing.items():
        section, _, name = key.partition(".")
        if name:
            assert data.get(section, {}).pop(name, None) == value
            base.get(section, {}).pop(name, None)
        else:
            assert data.pop(section) == value
            base.pop(section, None)
    data.get("grid", {}).pop("zip", None)
    assert {key: value for key, value in data.items() if value} == {key: value for key, value in base.items() if value}


def test_a_linked_name_is_replaced_and_taken_out() -> None:
    base = {"grid": {"zip": [{"bias": [0, 1], "n": [5, 6]}, {"a": [1], "b": [2], "c": [3]}]}}
    others = {"grid": {"n": None, "bias": [0, 1, 2], "c": None}}
    assert merged_config(base, others) == {"grid": {"zip": [{"a": [1], "b": [2]}], "bias": [0, 1, 2]}}
    assert merged_config(base, {"grid": {"n": None}})["grid"] == {"zip": base["grid"]["zip"][1:], "bias": [0, 1]}
    assert with_overrides(base, [Override("grid.n=7,8")])["grid"] == {
        "zip": base["grid"]["zip"][1:],
        "bias": [0, 1],
        "n": [7, 8],
    }
    assert len(base["grid"]["zip"][0]) == 2


def test_it_is_the_sweep_that_is_written_out(tmp_path):
    """A chain of two, from another folder, with files that are relative to the config that names them."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "table.csv").write_text("Delta\n0\n1\n")
    config(tmp_path / "below", middle="from: base.yaml\npoints: table.csv\nproblem: {Delta: null}\n")
    path = config(tmp_path, mine="from: below/middle.yaml\nseeds: 2\n")
    sweep = load(path)
    whole = parsed(BASE) | {"name": "mine", "seeds": 2, "points": {"Delta": [0, 1]}}
    del whole["problem"]["Delta"]
    assert sweep.name == "mine"
    assert [file.name for file in sweep.files()] == ["middle.yaml", "base.yaml", "table.csv"]
    assert [case.identity() for _, case in sweep.cases("sgd_chain")] == [
        case.identity() for _, case in from_mapping(whole).cases("sgd_chain")
    ]
    assert parsed(sweep.source)["points"] == "table.csv"


@pytest.mark.rest
def test_a_config_from_a_pipe_starts_from_a_file_in_the_working_folder(tmp_path):
    config(tmp_path, mine="from: base.yaml\n")
    command = [sys.executable, "-m", "sweeplib", "plan", "/dev/stdin"]
    text = "name: piped\nfrom: base.yaml\nseeds: 2\nfigures: []\n"
    said = subprocess.run(command, input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert parsed((tmp_path / "results/piped/config.yaml").read_text())["seeds"] == 2


def test_overrides_are_of_the_whole(tmp_path):
    sweep = load(config(tmp_path, mine="from: base.yaml\nseeds: 2\n"), ["grid.d=50", "dynamics.ode.rtol=1e-8"])
    assert parsed(sweep.source)["grid"] == {"gamma": [0.05, 0.1], "d": [50]}
    assert list(sweep.runs) == ["sgd_chain", "ode"]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("from: base.yaml\ngrid: {gamma: [x]}", "mine.yaml:2: grid.gamma[0]"),
        ("from: base.yaml\nproblem: {k: 2}\ndynamics:\n  sgd: {at: 2}", "mine.yaml:4: dynamics.sgd.at"),
        ("seeds: 1\nfrom: wrong.yaml", "wrong.yaml:3: problem.Dleta: unknown name"),
        ("from: bsae.yaml", "mine.yaml: from: no such file; got"),
        ("from: bsae.yaml", "did you mean"),
        ("from: [base.yaml]", "mine.yaml: from: not a path"),
        ("from: mine.yaml", "mine.yaml: from: too many files to start from"),
        ("from: list.yaml", "list.yaml: not a sweep"),
    ],
)
def test_errors_name_the_file_that_has_the_key(tmp_path, monkeypatch, own, said):
    monkeypatch.chdir(tmp_path)
    others = {"wrong": "from: base.yaml\n\nproblem: {Dleta: 1}\n", "list": "- 1\n"}
    config(Path(), mine=own, **others)
    with pytest.raises(InputError) as refused:
        load("mine.yaml")
    assert said in str(refused.value)


def test_keys_without_a_file_have_no_base():
    with pytest.raises(InputError, match=r"from: only a file starts from another one"):
        from_mapping(parsed(BASE) | {"from": "base.yaml"})


def test_an_edit_of_the_base_is_something_to_do(tmp_path, monkeypatch):
    from sweeplib.commands.up_to_date import made_from

    monkeypatch.chdir(tmp_path)
    path = config(Path(), mine="from: base.yaml\n")
    before = made_from(path, [], load(path).files())
    assert made_from(path, [], load(path).files()) == before
    Path("base.yaml").write_text(written(parsed(BASE) | {"seeds": 9}))
    assert made_from(path, [], load(path).files()) != before
