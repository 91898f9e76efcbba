"""The wheel has all that a sweep needs, and runs one in an empty folder."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from sweeplib import __version__

ROOT = Path(__file__).parents[2]
FILES = [
    "Snakefile",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "workflow").rglob("*.*")) if path.is_file()),
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the content of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(folder))
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    return folder / "site"


@pytest.mark.rest
def test_it_has_the_workflow_and_nothing_generated(unpacked: Path) -> None:
    shipped = unpacked / "sweeplib" / "workflow_files"
    for name in FILES:
        if "__pycache__" not in name:
            assert (shipped / name).read_bytes() == (ROOT / name).read_bytes(), name
    suffixes = {path.suffix for path in unpacked.rglob("*") if path.is_file()}
    assert not suffixes & {".pyc", ".nbi", ".nbc", ".zarr"}
    assert (unpacked / "sweeplib" / "py.typed").exists()
    for template in (ROOT / "sweeplib" / "commands" / "templates").iterdir():
        assert (unpacked / template.relative_to(ROOT)).read_bytes() == template.read_bytes()
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    telling = "from sweeplib.engine.storage.records.provenance import git_commit; print(git_commit())"
    told = subprocess.run([sys.executable, "-c", telling], cwd=unpacked, env=os.environ | {"PYTHONPATH": str(unpacked)},
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    assert told.removesuffix("-dirty") == (commit.stdout.strip() or "None")
    assert not (unpacked / "tests").exists() and not (unpacked / "workflow").exists()
    assert "sweeplib = sweeplib.__main__:main" in next(unpacked.glob("*.dist-info/entry_points.txt")).read_text()


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout, of which a release is built")
def test_two_builds_of_a_release_are_the_same_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two clones with other rights; they leave nothing else, and datasets that they make name the release."""
    built: dict[str, dict[str, bytes]] = {}
    for name, mask in (("one", 0o022), ("other", 0o077)):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
        before = os.umask(mask)
        try:
            git("clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(tmp_path / name))
            git("-C", str(tmp_path / name), "tag", "--force", f"v{__version__}")
            for builder in (WheelBuilder, SdistBuilder):
                list(builder(str(tmp_path / name)).build(directory=str(tmp_path / name / "dist")))
        finally:
            os.umask(before)
        built[name] = {path.name: path.read_bytes() for path in (tmp_path / name / "dist").iterdir()}
    assert built["one"] == built["other"]
    assert sorted(built["one"]) == [f"sweeplib-{__version__}-py3-none-any.whl", f"sweeplib-{__version__}.tar.gz"]
    with zipfile.ZipFile(tmp_path / "one" / "dist" / f"sweeplib-{__version__}-py3-none-any.whl") as wheel:
        wheel.extractall(tmp_path / "site")
    telling = "from sweeplib.engine.storage.records.provenance import version; print(version())"
    command, path = [sys.executable, "-P", "-c", telling], {"PYTHONPATH": str(tmp_path / "site")}
    told = subprocess.run(command, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == __version__


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


@pytest.mark.long
def test_it_has_types_for_programs_that_use_it(unpacked: Path, tmp_path: Path) -> None:
    """mypy, which is one of the tools of `make check`, sees the types of an installed sweeplib."""
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    lines = ["import sweeplib", "from sweeplib.plugins import Activation"]
    program.write_text("\n".join([*lines, "reveal_type(sweeplib.Problem)", "reveal_type(Activation.label)\n"]))
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports", str(program)]
    environment = os.environ | {"MYPYPATH": str(unpacked)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "sweeplib.networks.problem.problem.Problem" in done.stdout, done.stdout
    assert done.stdout.count('Revealed type is "Any"') == 0


@pytest.mark.slow
def test_a_source_distribution_makes_the_same_wheel(unpacked: Path, tmp_path: Path) -> None:
    """And has what the site, the tests and the workflow need."""
    [source] = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(source) as file:
        file.extractall(tmp_path / "source", filter="data")
    [folder] = (tmp_path / "source").iterdir()
    [wheel] = WheelBuilder(str(folder)).build(directory=str(tmp_path))
    with zipfile.ZipFile(wheel) as file:
        made = {name for name in file.namelist() if not name.endswith("RECORD")}
    assert made == {
        path.relative_to(unpacked).as_posix()
        for path in unpacked.rglob("*")
        if path.is_file() and path.name != "RECORD" and path.suffix != ".pyc"
    }
    for name in ("docs/conf.py", "docs/theory.md", "Dockerfile", "environment.yaml", "Makefile", "constraints.txt"):
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes(), name


@pytest.mark.slow
def test_it_runs_a_new_sweep_in_an_empty_folder(unpacked: Path, tmp_path: Path) -> None:
    sweeplib(unpacked, tmp_path, "new", "mine.yaml")
    done = sweeplib(unpacked, tmp_path, "sweep", "mine.yaml", "seeds=4", "grid.d=100")
    assert done.stdout.splitlines()[0] == "mine: all 56 cases ended ok"
    assert (tmp_path / "results/mine/report/index.html").exists()
    log = (tmp_path / "results/mine/journal/snakemake.log").read_text()
    assert str(unpacked / "sweeplib/workflow_files/Snakefile") in log


def sweeplib(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "sweeplib", *arguments]
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done
