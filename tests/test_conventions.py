"""What holds for the tests themselves, and for every file of the library."""

import statistics
from pathlib import Path

import jaxtyping
import pytest

from sweeplib.storage.provenance import floors_digest

FILES = {path: path.read_text().count("\n") for path in (Path(__file__).parents[1] / "sweeplib").rglob("*.py")}


def test_types_are_checked_while_the_tests_run() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        floors_digest(3)  # type: ignore[arg-type]


def test_files_are_short() -> None:
    assert max(FILES.values()) <= 400
    assert statistics.median(FILES.values()) <= 120


def test_no_file_is_named_after_nothing() -> None:
    names = {part for path in FILES for part in (*path.parts, path.stem)}
    assert not {"utils", "helpers", "core", "common", "misc"} & names
