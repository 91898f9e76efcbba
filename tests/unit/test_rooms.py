"""The top of the package, and words of physics where nothing knows networks."""

import ast
import re
from pathlib import Path

import pytest

import sweeplib

PACKAGE = Path(sweeplib.__file__).parent
ROOMS = {"analysis", "commands", "config", "engine", "functions", "networks", "pictures", "statistics"}
MODULES = {"__init__", "__main__", "accessor", "errors", "plugins", "sweeps"}
WORDS = re.compile(
    r"\b(activations?|gamma|learning_rates?|ode|overlaps?|(?<!at )risk|sde|sgd\w*|spherical|teachers?|thresholds?)\b",
    re.IGNORECASE,
)
"""Words of two-layer networks and of their dynamics."""
OF_NAMES = {"engine/code/exports.py", "engine/code/numerical_code.py", "engine/files/published.py"}
"""Files that have names of modules, where what plugins import is defined and whose files are ours."""


def files(room: str) -> list[str]:
    """Return the files of a room, by their paths."""
    return sorted(file.relative_to(PACKAGE).as_posix() for file in (PACKAGE / room).rglob("*.py"))


def test_the_top_is_seen_at_once() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert folders == ROOMS | {"contracts"}
    assert {path.stem for path in PACKAGE.glob("*.py")} == MODULES


@pytest.mark.parametrize(
    "folder", sorted(path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py"))
)
def test_a_folder_says_what_is_in_it(folder: str) -> None:
    first = (
        ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    ).splitlines()
    assert first and first[0].endswith("."), folder


@pytest.mark.rest
@pytest.mark.parametrize(
    "file", [file for room in ("engine", "statistics") for file in files(room) if file not in OF_NAMES]
)
def test_engine_and_statistics_do_not_name_physics(file: str) -> None:
    """In no line of code; a docstring may have an example."""
    text = (PACKAGE / file).read_text(encoding="utf-8")
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    assert not [f"{number}: {line}" for number, line in lines if number not in docstrings and WORDS.search(line)]
