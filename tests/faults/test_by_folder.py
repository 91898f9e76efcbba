"""Commands named in the reference take a sweep's folder in the place of its file, as that says."""

import re
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from tests.faults.finished import Done

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()
OF_FILES = {"sweep", "plan", "answer", "new", "test-plugin"}
"""Those that take no folder; a plugin has none."""
STAGES = {"run", "finalise", "analyse", "figures"}
"""Those that no table names."""
FURTHER = {
    "verify": ["--sample", "0"],
    "export": ["--output", "tables"],
    "retry": ["failed"],
    "reproduce": ["gamma=0.1,p=1,seed=0,dynamics=calm"],
    "explore": ["--no-show"],
}
TAKE_FOLDERS = sorted({*re.findall(r"^\| `sweeplib ([\w-]+) FILE", REFERENCE, re.MULTILINE), *STAGES} - OF_FILES)


def test_the_reference_says_which_take_none() -> None:
    [sentence] = re.findall(r"^In all but (.*), FILE may be the sweep's folder", REFERENCE, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", sentence)) == OF_FILES
    assert len(TAKE_FOLDERS) >= 15


@pytest.mark.parametrize("command", TAKE_FOLDERS)
def test_a_command_takes_a_folder(command: str, done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(done.config.parent)
    monkeypatch.setattr(webbrowser, "open", lambda *_: True)
    if command == "explore":  # it would serve the dataset until Ctrl-C
        (done.directory / "dataset.zarr").rename("dataset.zarr")
    result = CliRunner().invoke(app, [command, "results/verified", *FURTHER.get(command, [])])
    expected = {"explore": (2,), "open": (2,), "reproduce": (0,)}  # there is no dataset, no report
    assert result.exit_code in expected.get(command, (0, 1)), result.output
    assert "YAML file" not in result.output and "an error in sweeplib" not in result.output


@pytest.mark.parametrize("command", sorted(OF_FILES - {"new", "test-plugin"}))
def test_others_say_what_they_take(command: str, done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(done.config.parent)
    result = CliRunner().invoke(app, [command, "results/verified"])
    assert result.exit_code == 2 and result.output.startswith("results/verified: ")
    assert result.output.endswith("expected a sweep's YAML file\n")
