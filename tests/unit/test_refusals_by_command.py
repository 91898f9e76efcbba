"""Input that no sweep can have, as a user meets it: a command ends with a line and status 2, and writes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from tests.plugged import nothing_left

SWEEP = """\
name: mine
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true}
dynamics: [ode]
times: [0, 1]
thresholds: [0.1]
analyses: []
figures: []
"""
POINTS = f"{SWEEP}points: rows.csv\n"
GRID = f"{SWEEP}grid: {{gamma: [0.1], d: [50]}}\n"


def named(**keys: str) -> str:
    """Return the text of a sweep with other values of keys."""
    lines = [line for line in GRID.splitlines() if line.partition(":")[0] not in keys]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in keys.items())])


TABLES = {
    "decimal commas": ("gamma,d\n1,5,300\n2,5,300\n", "rows.csv:2: 3 values; got '1,5,300'; expected 2"),
    "quotes for thousands": ("gamma,d\n0.1,1'000\n", 'rows.csv:2: a comma or another sign in a number; got "1\'000"'),
    "the minus of a text processor": ("gamma,d\n0.1,−50\n", "rows.csv:2: d[0]: not a value of d; got '−50'"),
    "a unit in a cell": ("gamma,d\n0.1,50 m\n", "rows.csv:2: d[0]: not a value of d; got '50 m'"),
}
NAMES = {
    "a run": (named(dynamics=f"[ode-{'w' * 230}]"), "dynamics: too long a name for files"),
    "a sweep": (named(name="n" * 300), "name: "),
    "a sweep in another alphabet": (named(name="é" * 130), "name: "),
    "a figure with a folder": (named(figures="{a/b: {kind: line, y: risk}}"), "figures"),
    "an analysis that leads out": (named(analyses="{../x: {}}"), "analyses"),
}
PLUGINS = {
    "no object": "from sweeplib.plugins import TARGETS\nTARGETS.add(None)\n",
    "print": "import builtins\nbuiltins.print = None\n",
    "an end": "import sys\nsys.exit(0)\n",
    "a name twice": "from sweeplib.plugins import ACTIVATIONS\nACTIVATIONS.register('erf', ACTIVATIONS['erf'])\n",
}


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what runs a command on a config and files beside it; that returns the line of its refusal."""
    monkeypatch.chdir(tmp_path)

    def refused(config: str, **files: str) -> str:
        Path("mine.yaml").write_text(config, encoding="utf-8")
        for name, text in files.items():
            Path(name.replace("_", ".")).write_text(text, encoding="utf-8")
        before = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
        with nothing_left():
            result = CliRunner().invoke(app, ["plan", "mine.yaml"])
        assert result.exit_code == 2 and "Traceback" not in result.output, result.output
        assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == before
        [line] = result.output.splitlines()
        return line

    return refused


@pytest.mark.parametrize("name", TABLES)
def test_a_table_with_numbers_of_another_country(name: str, refusal: Callable[..., str]) -> None:
    text, said = TABLES[name]
    assert said in refusal(POINTS, rows_csv=text)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_can_be_no_files(name: str, refusal: Callable[..., str]) -> None:
    config, said = NAMES[name]
    line = refusal(config)
    assert line.startswith("mine.yaml:") and said in line and len(line.encode()) < 700


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_that_registers_nothing_or_breaks_python(name: str, refusal: Callable[..., str]) -> None:
    line = refusal(f"{GRID}plugins: [own.py]\n", own_py=PLUGINS[name])
    assert "plugins: cannot be imported: " in line and "(own.py, line 2)" in line
