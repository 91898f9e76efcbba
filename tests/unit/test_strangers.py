"""Folders of other users, or in which others can write: commands read them, and execute and overwrite nothing there."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.files.owners import BY_ALL, BY_GROUP, is_private, others_in, private_folder
from sweeplib.engine.storage.records.config_files import record_origin, write_complete_config
from sweeplib.engine.storage.records.stage_records import add_to_record
from tests.plugged import nothing_left

NOBODY = 65534
SWEEP = """\
name: tiny
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50}
grid: {gamma: [0.05, 0.1]}
dynamics: [ode]
times: [0, 1]
plugins: [mine.py, kit.py]
"""
PLUGIN = "import slopes\nopen('executed', 'w').close()\n"
NEED_PLUGINS = {
    "verify": ["verify", "results/tiny", "--sample", "0"],
    "retry": ["retry", "results/tiny"],
    "prune": ["prune", "results/tiny"],
    "watch": ["watch", "results/tiny"],
    "report": ["report", "results/tiny"],
    "reproduce": ["reproduce", "results/tiny", "gamma=.05"],
}
NEED_NONE = {
    "status": ["status", "results/tiny"],
    "status of a file": ["status", "tiny.yaml"],
    "summary": ["summary", "results/tiny"],
    "summary of a file": ["summary", "tiny.yaml"],
    "list": ["list"],
    "open": ["open", "results/tiny"],
    "open of a file": ["open", "tiny.yaml"],
    "export": ["export", "results/tiny", "--to", "csv"],
    "explore": ["explore", "results/tiny", "--no-show"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with a sweep that has plugins and records of a run."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SWEEP)
    for name, text in {"mine.py": PLUGIN, "slopes.py": "SLOPE = 2\n", "kit.py": "import package.inner\n"}.items():
        Path(name).write_text(text)
    Path("package").mkdir()
    for name in ("__init__", "inner"):
        Path(f"package/{name}.py").write_text("")
    directory = Path("results/tiny")
    record_origin(Path("tiny.yaml"), directory)
    with nothing_left():
        write_complete_config(load("tiny.yaml"), directory)
    add_to_record(directory, "plan", counts={"ode": 2}, made_from={"settings": ""})
    add_to_record(directory, "simulate.ode", counts={"ok": 2}, ended=1.0)
    Path("executed").unlink()
    return tmp_path


def told(*words: str) -> tuple[int, str]:
    """Return the exit status and the output of a command, none of whose plugins stays loaded."""
    with nothing_left():
        result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


def given_away(*paths: Path, user: int = NOBODY) -> None:
    if os.geteuid():
        pytest.skip("needs root, who can give files away")
    for path in paths:
        os.chown(path, user, user)


OTHERS: dict[str, Callable[[], None]] = {
    "all files of another user": lambda: given_away(*Path().rglob("*")),
    "the plugin of another user": lambda: given_away(Path("mine.py")),
    "a file that it imports of another user": lambda: given_away(Path("slopes.py")),
    "a file of its package of another user": lambda: given_away(Path("package/inner.py")),
    "the config of another user": lambda: given_away(Path("results/tiny/config.yaml")),
    "a plugin that all may write": lambda: Path("mine.py").chmod(0o666),
    "a folder that all may write": lambda: Path().chmod(0o1777),
    "bytecode that all may write": lambda: Path("__pycache__").chmod(0o777),
    "a package that all may write": lambda: Path("package").chmod(0o777),
    "a config that all may write": lambda: Path("results/tiny/config.yaml").chmod(0o666),
}


@pytest.mark.rest
@pytest.mark.parametrize("how", OTHERS)
def test_nothing_is_executed_that_others_can_have_written(how: str, folder: Path) -> None:
    Path("__pycache__").mkdir(exist_ok=True)
    OTHERS[how]()
    every = how == "all files of another user"
    for name, words in NEED_PLUGINS.items() if every else [("verify", NEED_PLUGINS["verify"])]:
        status, said = told(*words)
        assert (status, said.count("\n")) == (2, 1), (name, said)
        assert "plugins: not executed: " in said and "--results" in said, (name, said)
        assert ("belongs to nobody" if "user" in how else "all users may write there") in said
    for name, words in NEED_NONE.items() if every else [("status", NEED_NONE["status"])]:
        status, said = told(*words)
        assert "Traceback" not in said and "an error in sweeplib" not in said, (name, said)
        if name.startswith(("status", "summary")):
            assert status == 0, (name, said)
            assert "results/tiny: by its records alone; plugins " in said
        if name.startswith("summary"):
            assert "tiny: all 2 cases ended ok" in said
        if name.startswith("status"):
            said = told(*words, "--json")[1]
            assert json.loads(said[said.index("{") : said.rindex("}") + 1])["cases"]["ode"]["ok"] == 2
    assert not Path("executed").exists()


def test_ones_own_are_executed_as_always_and_so_is_what_is_named(folder: Path) -> None:
    status, said = told(*NEED_NONE["status"])
    assert status in (0, 3) and "executing its plugins" in said
    assert Path("executed").exists()
    Path("executed").unlink()
    Path("mine.py").chmod(0o666)
    for words in (["verify", "tiny.yaml"], ["prune", "results/tiny/config.yaml"]):
        assert told(*words)[0] in (0, 1)
        assert Path("executed").exists(), words
        Path("executed").unlink()


def test_a_folder_that_came_with_a_record_of_trust_is_a_strangers(folder: Path) -> None:
    """The record, its own YAML file and the plugin are all of the thing to be trusted."""
    copy = folder / "sent"
    shutil.copytree(folder / "results", copy / "results")
    for name in ("tiny.yaml", "mine.py", "slopes.py", "kit.py"):
        shutil.copy(name, copy / name)
    given_away(copy, *copy.rglob("*"))
    status, said = told("verify", "sent/results/tiny")
    assert status == 2 and "belongs to nobody" in said
    assert not Path("executed").exists()


def test_whose_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch(0o644)
    assert others_in(path) is None and is_private(path) and not is_private(tmp_path / "none")
    path.chmod(0o646)
    assert others_in(path) == BY_ALL and not is_private(path)
    given_away(path)
    assert others_in(path) == "it belongs to nobody"
    os.chown(path, os.geteuid(), 4321)
    path.chmod(0o664)
    assert others_in(path) == BY_GROUP
    path.chmod(0o644)
    assert others_in(path) is None
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    assert others_in(path) is None and not is_private(path), "root can write all files"


def test_a_private_folder_of_a_shared_one_is_not_what_others_put_there(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    own = private_folder(tmp_path)
    assert own == tmp_path / f"sweeplib-{os.geteuid()}"
    given_away(own)
    assert private_folder(tmp_path) is None
    own.rmdir()
    own.touch(0o600)
    assert private_folder(tmp_path) is None
    own.unlink()
    tmp_path.chmod(0o777)
    assert private_folder(tmp_path) is None, "others may rename it"


REPAIR = ["verify", "tiny.yaml", "--repair", "--sample", "0"]
LINKED = {
    "report": ["report", "tiny.yaml"],
    "figures": REPAIR,
    "analysis": ["finalise", "tiny.yaml"],
    "runs": ["run", "tiny.yaml"],
    "runs/ode": ["run", "tiny.yaml"],
    "journal": ["run", "tiny.yaml"],
    "locks": ["plan", "tiny.yaml"],
    "stages": ["sweep", "tiny.yaml"],
}


@pytest.mark.rest
@pytest.mark.parametrize("name", LINKED)
def test_nothing_is_written_through_a_link_in_a_folder_of_results(name: str, folder: Path) -> None:
    Path("tiny.yaml").write_text(SWEEP.replace("plugins: [mine.py, kit.py]\n", "analyses: []\nfigures: []\n"))
    outside = folder / "outside"
    outside.mkdir()
    (outside / "index.html").write_text("of a person")
    link = Path("results/tiny", name)
    link.parent.mkdir(exist_ok=True)
    if link.is_dir():
        link.rename(folder / "before")
    link.symlink_to(outside)
    for words in (LINKED[name], *([REPAIR] if "/" not in name else [])):
        status, said = told(*words)
        lines = [line for line in said.splitlines() if "a link to " in line]
        assert status == 2 and len(lines) == 1, (words, said)
        assert f"{link}: a link to '{outside}'" in lines[0] and "nothing is written through it" in lines[0]
    assert [path.name for path in outside.iterdir()] == ["index.html"]
    assert (outside / "index.html").read_text() == "of a person"


@pytest.mark.rest
def test_a_whole_folder_of_results_may_be_a_link(folder: Path) -> None:
    Path("tiny.yaml").write_text(SWEEP.replace("plugins: [mine.py, kit.py]\n", "analyses: []\nfigures: []\n"))
    Path("results/tiny").rename("elsewhere")
    Path("results/tiny").symlink_to(folder / "elsewhere")
    (folder / "elsewhere" / "plan.json").symlink_to(folder / "mine.py")
    status, said = told("plan", "tiny.yaml")
    assert status == 2 and "plan.json: a link to " in said
    (folder / "elsewhere" / "plan.json").unlink()
    assert told("plan", "tiny.yaml")[0] == 0
    assert Path("mine.py").read_text() == PLUGIN
