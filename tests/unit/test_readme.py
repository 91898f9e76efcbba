"""README.md of a results folder, for a reader who has nothing but the folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import sweeplib
from sweeplib.commands.cli import app
from sweeplib.engine.storage.records.config_files import OWN, write_description
from sweeplib.engine.storage.records.provenance import version
from sweeplib.errors import InputError
from tests.in_process import InProcess

CONTENT = {
    "name": "told",
    "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "d": 50, "Delta": 0},
    "grid": {"gamma": [0.02, 0.08]},
    "seeds": 3,
    "dynamics": ["sgd_chain"],
    "times": [0, 1],
    "figures": [],
}


def run(results: Path, **keys: object) -> Path:
    """Run the sweep; return the README.md of its folder."""
    with InProcess().client() as client:
        sweeplib.Sweep(results=results, **(CONTENT | keys)).run(client, progress=False)
    return results / "told" / "README.md"


@pytest.mark.rest
def test_it_says_what_it_is_who_made_it_and_under_which_licence(tmp_path: Path) -> None:
    """And so do the attributes of the dataset; what the config does not say has its place named."""
    text = run(tmp_path).read_text()
    assert text.splitlines()[:2] == [OWN, "# told"]
    assert "`sgd_chain` over `gamma` (2 values), `seed` (3): at most 6 cases." in text
    assert "key `authors`" in text and "license: CC-BY-4.0" in text and f"sweeplib {version()}" in text
    attributes = sweeplib.open(tmp_path / "told" / "dataset.zarr").attrs
    assert not {"creator_name", "license"} & set(attributes)
    assert attributes["versions"].startswith(f"sweeplib {version()}, ")

    text = run(tmp_path, authors=["Ada Lovelace", "Bo Ba"], license="CC0-1.0").read_text()
    assert "- Authors: Ada Lovelace; Bo Ba\n- Licence of the results: CC0-1.0\n" in text
    dataset = sweeplib.open(tmp_path / "told" / "dataset.zarr")
    assert (dataset.attrs["creator_name"], dataset.attrs["license"]) == ("Ada Lovelace; Bo Ba", "CC0-1.0")
    code = text.partition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {}
    exec(code.replace('"dataset.zarr"', f'"{tmp_path}/told/dataset.zarr"'), names)
    assert dict(names["ds"].sizes) == dict(dataset.sizes)  # type: ignore[attr-defined]


@pytest.mark.rest
def test_its_commands_find_what_is_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the folder is, and from nothing but the folder; `sweep` finds it as `plan` does."""
    text = run(tmp_path / "results").read_text()
    shutil.move(tmp_path / "results" / "told", tmp_path / "told")
    monkeypatch.chdir(tmp_path)
    before = set(Path("told").iterdir())
    plan, reproduce, sweep = re.findall(r"^sweeplib (\w+ told/config.yaml .*?)  +#", text, re.MULTILINE)
    planned = CliRunner().invoke(app, plan.split())
    assert re.search(r"sgd_chain +2 +6 +6 +0", planned.output), planned.output
    again = CliRunner().invoke(app, reproduce.replace("CASE", "gamma=0.02,seed=1").split())
    assert again.exit_code == 0 and "the same bits" in again.output, again.output
    assert sweep.replace("sweep", "plan", 1).split()[:4] == plan.split()
    assert set(Path("told").iterdir()) == before


@pytest.mark.slow
def test_a_sweep_goes_on_in_its_own_folder(tmp_path: Path) -> None:
    """And says nothing of the change of its config, which the run itself has made."""
    folder = run(tmp_path).parent
    words = "-m", "sweeplib", "sweep", "config.yaml", "--results", "..", "seeds=4"
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "told: all 8 cases ended ok" in done.stdout, done.stderr
    assert "was changed" not in done.stderr


@pytest.mark.parametrize("kind", ["text", "bytes", "link", "folder", "pipe"])
def test_what_is_ones_own_stays(kind: str, tmp_path: Path) -> None:
    own = tmp_path / "README.md"
    makes = {
        "text": lambda: own.write_text("mine\n"),
        "bytes": lambda: own.write_bytes(b"\xff"),
        "link": lambda: own.symlink_to("nowhere"),
        "folder": own.mkdir,
        "pipe": lambda: os.mkfifo(own),
    }
    makes[kind]()
    before = own.lstat()
    write_description(sweeplib.Sweep(results=tmp_path, **CONTENT).design, tmp_path)
    after = own.lstat()
    same = [getattr(after, name) == getattr(before, name) for name in ("st_ino", "st_mode", "st_size", "st_mtime_ns")]
    assert all(same) and {path.name for path in tmp_path.iterdir()} == {"README.md", "config.yaml"}


@pytest.mark.parametrize("keys", [{"license": "two\nlines"}, {"authors": [""]}, {"authors": "Ada"}, {"license": " "}])
def test_what_is_no_line_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(InputError) as refused:
        sweeplib.Sweep(**(CONTENT | keys))
    assert next(iter(keys)) in str(refused.value)
