"""docs/theory.md names only functions that exist, and all functions of the theory."""

import re
from pathlib import Path

import pytest

from sweeplib import analysis, theory

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:dynamics|maths|problem)/[\w/]+\.py)`", PAGE))))
def test_every_file_it_names_exists(path):
    assert (ROOT / "sweeplib" / path).exists()


def test_it_names_every_function_of_the_theory():
    assert not [name for name in theory.__all__ if not re.search(rf"`{name}[`(]", PAGE)]


def test_every_function_it_calls_exists():
    section = PAGE.split("## Phase retrieval")[1].split("\n*")[0]
    called = {name.removeprefix("exit_times.") for name in re.findall(r"`([\w.]+)\(", section)}
    assert called
    assert not [name for name in called if not hasattr(theory, name) and not hasattr(theory.exit_times, name)]
    for name in re.findall(r"\| `(\w+)`(?:, `(\w+)`)? \|", PAGE.split("## From SGD to its limits")[1].split("\n*")[0]):
        assert {part for part in name if part} <= set(analysis.ANALYSES)
