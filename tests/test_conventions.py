"""Conventions for the tests themselves, and for every file of the library."""

import ast
import re
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from beartype.roar import BeartypeCallHintViolation
from runtime_types import checked, jaxtyped

from sweeplib import __version__
from sweeplib.engine.storage.records.files import digest
from tests.tiers import QUICKER

ROOT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT): path.read_text().count("\n") for path in (ROOT / "sweeplib").rglob("*.py")}


def test_types_are_checked_while_the_tests_run() -> None:
    with pytest.raises(BeartypeCallHintViolation):
        digest("text")  # type: ignore[arg-type]


def test_names_that_exist_for_static_checks_alone_are_not_checked() -> None:
    def joined(one: "Lacking", other: "list[str] | None") -> "Literal['a', 'b']":  # noqa: F821
        return "".join([one, *other])

    function = jaxtyped(joined, typechecker=checked)
    assert function("a", []) == "a"
    for wrong in (("a", "b"), ("c", [])):
        with pytest.raises(BeartypeCallHintViolation):
            function(*wrong)
    assert function.__annotations__ == joined.__annotations__


def test_files_are_short() -> None:
    assert max(FILES.values()) <= 400
    assert statistics.median(FILES.values()) <= 120


def test_yaml_has_one_reader() -> None:
    """Only the start of Snakemake asks how Snakemake reads a setting."""
    files = [*(ROOT / "sweeplib").rglob("*.py"), *(ROOT / "workflow").rglob("*.*")]
    users = {path.name for path in files if path.suffix in (".py", ".smk") and "import yaml" in path.read_text()}
    assert users == {"strict_yaml.py", "snakemake.py"}


def test_no_file_is_named_after_nothing() -> None:
    names = {part for path in FILES for part in (*path.parts, path.stem)}
    assert not {"utils", "helpers", "core", "common", "misc"} & names


REFUSED_NAMES = (
    "asked drawn each found given it kept known left made one own part rest said seen shown taken told two what"
)
"""Participles and pronouns, which say that something happened, not what a thing is."""

ALLOWED_NAMES = {
    "analysis/answers/answer.py": {"given"},  # the state of an answer, as users read it
    "networks/dynamics/dynamics.py": {"part"},  # of a problem
    "pictures/figures/write.py": {"drawn"},  # called by the scripts beside figures
    "networks/problem/parameters.py": {"part"},
    "networks/problem/parts.py": {"part"},
    "networks/problem/problem.py": {"part"},
}


def _names(code: str) -> Iterator[str]:
    """Yield the names that code gives to variables, parameters, functions, classes and attributes."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name


@pytest.mark.rest
def test_names_are_nouns_that_say_what_a_thing_is() -> None:
    """`left` is one beside `right`."""
    refused, text = [], re.compile(r'""".*?"""|#[^\n]*|"[^"\n]*"', re.DOTALL)
    word = re.compile(
        rf"(?<![.\w])_*(?:{'|'.join(REFUSED_NAMES.split())})_*\b|self\._*(?:{'|'.join(REFUSED_NAMES.split())})\b"
    )
    for path in FILES:
        code = (ROOT / path).read_text()
        if word.search(text.sub("", code)):  # it takes less time than to read all trees
            names = {name.strip("_") for name in _names(code)}
            sides = {"left"} if "right" in names else set()
            allowed = ALLOWED_NAMES.get(path.relative_to("sweeplib").as_posix(), set()) | sides
            refused += [f"{path}: {name}" for name in names.intersection(REFUSED_NAMES.split()) - allowed]
    assert not refused


def test_the_changes_of_a_release_can_be_read_at_once() -> None:
    """Below those of the next one; which release brought what stands in a table above."""
    text = (ROOT / "CHANGELOG.md").read_text()
    table, *releases = text.split("\n## [")
    assert [release.partition("]")[0] for release in releases][:2] == ["Unreleased", __version__]
    assert len(releases[1].strip().splitlines()) <= 80
    assert f"[{__version__}](#" in table
    page = f"changes-{__version__}"
    assert f"](docs/{page}.md)" in releases[1] and (ROOT / "docs" / f"{page}.md").exists()
    assert f"\n{page}\n" in (ROOT / "docs" / "changes.md").read_text()


GENERATED = (
    *("results/mine/dataset.zarr/zarr.json", "locks/sweep.lock", "x.lock", "runs/sgd/0c962c4e.npz", ".x.partial"),
    *(".snakemake/log/x.log", "sweeplib/__pycache__/x.pyc", "sweeplib.egg-info/PKG-INFO", "dist/x.whl", "build/x"),
    *("caches/kernel.nbi", "caches/kernel.1.nbc"),
)
"""Files that runs, tests and builds leave."""


def test_no_file_that_something_generated_is_in_git() -> None:
    """What `.gitignore` names, which has all kinds of them."""

    def listed(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 128:
            pytest.skip("needs a clone")
        return done.stdout.splitlines()

    assert listed("check-ignore", "--no-index", *GENERATED) == [*GENERATED]
    assert listed("ls-files", "--cached", "--ignored", "--exclude-from=.gitignore") == []


@pytest.mark.rest
def test_what_make_test_leaves_out_has_something_quicker_that_it_runs() -> None:
    tests = Path(__file__).parent
    assert all((tests / path).exists() for pair in QUICKER.items() for path in pair)
    assert not QUICKER.keys() & {*QUICKER.values()}
    for path in QUICKER.values():
        text = (tests / path).read_text(encoding="utf-8")
        assert text.count("@pytest.mark.rest") < len(re.findall(r"^def test_", text, re.MULTILINE)), path
