"""Conventions for the tests themselves, and for every file of the library."""

import statistics
from pathlib import Path
from typing import Literal

import pytest
from beartype.roar import BeartypeCallHintViolation
from runtime_types import checked, jaxtyped

from sweeplib import __version__
from sweeplib.storage.records.files import digest

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


def test_one_version_is_cited_and_has_its_changes() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## [{__version__}] - " in changes
