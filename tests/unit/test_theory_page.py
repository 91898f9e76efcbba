"""docs/theory.md names only functions that exist, and all functions of the theory; pages beside it files that exist."""

import re
from pathlib import Path

import pytest

from sweeplib import OBSERVABLES, analysis
from sweeplib.networks import theory

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text()
NAMED = {"numerics": 1, "statistics": 1, "architecture": 20, "theory": 20}
"""Pages about the code, and how many files of it each names at least."""
NAMES = "|".join(["Problem", *theory.__all__, *analysis.ANALYSES, *OBSERVABLES])
FUNCTION = re.compile(rf"`(?:[\w/]+\.py`|sweeplib\.\w+`|(?:{NAMES}|exit_times\.\w+)[`(])")
"""What names a function: a file, or a public name, of the package, the theory, an analysis or an observable."""


def text(page):
    return (ROOT / "docs" / f"{page}.md").read_text()


@pytest.mark.parametrize("page", NAMED)
def test_every_file_it_names_exists(page):
    """Files of rooms, such as `networks/kernels/chain.py`; what stands for any name is in capitals."""
    rooms = "|".join(path.name for path in (ROOT / "sweeplib").iterdir() if path.is_dir())
    named = {name for name in re.findall(rf"`((?:{rooms})/[\w/]+\.py)`", text(page)) if not re.search("[A-Z]", name)}
    assert len(named) >= NAMED[page]
    assert not [name for name in named if not (ROOT / "sweeplib" / name).exists()]


def test_every_equation_names_a_function_and_a_test_that_exists():
    """In the tables of three columns; `make docs` makes links of all of them, so that none is "the same"."""
    tests = [path.name for path in ROOT.glob("tests/*/test_*.py")]
    for file in ROOT.glob("tests/*/test_*.py"):
        tests += re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    tables = re.findall(r"^\|[^|\n]+\|[^|\n]+\| test \|\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = [re.split(r"(?<!\\)\|", row.strip("|")) for table in tables for row in table.splitlines()]
    assert len(rows) > 140
    assert [equation for equation, function, _ in rows if not FUNCTION.search(function)] == []
    named = [re.findall(r"`(test_[\w.]+)`", cell) for *_, cell in rows]
    assert [equation for (equation, *_), names in zip(rows, named, strict=True) if not names] == []
    every = {name for names in named for name in names}
    assert {name: tests.count(name) for name in every if tests.count(name) != 1} == {}


@pytest.mark.parametrize("page", ["theory", "numerics", "statistics"])
def test_stars_of_the_teacher_do_not_become_emphasis(page):
    """Outside of code a star is ∗: between two `*` a page would show italics in place of both."""
    words = re.sub(r"`[^`\n]+`|^    .*$", "", text(page), flags=re.MULTILINE)
    left = re.sub(r"(?<![\w∗*])(\*{1,2})(?=\S)[^*]+?\1(?!\w)", "", words)
    assert [left[max(0, match.start() - 30) :][:50] for match in re.finditer(r"\*", left)] == []


def test_it_names_every_function_of_the_theory():
    assert not [name for name in theory.__all__ if not re.search(rf"`{name}[`(]", PAGE)]


def test_every_function_it_calls_exists():
    section = PAGE.split("## Phase retrieval")[1].split("\n*")[0]
    called = {name.removeprefix("exit_times.") for name in re.findall(r"`([\w.]+)\(", section)}
    assert called
    assert not [name for name in called if not hasattr(theory, name) and not hasattr(theory.exit_times, name)]
    for name in re.findall(r"\| `(\w+)`(?:, `(\w+)`)? \|", PAGE.split("## From SGD to its limits")[1].split("\n*")[0]):
        assert {part for part in name if part} <= set(analysis.ANALYSES)
