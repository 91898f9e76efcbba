"""The workflow defines what runs when; the work is done in the library."""

import re
from pathlib import Path

import pytest

from sweeplib import stages

ROOT = Path(__file__).parents[2]
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))


def test_the_snakefile_is_short() -> None:
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 40


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.stem)
def test_rules_call_the_library(rules: Path) -> None:
    text = rules.read_text()
    assert "run:" not in text and "script:" not in text
    calls = re.findall(r'^    shell:\n        sweeplib\.stages\.call\("(\w+)"\)', text, flags=re.MULTILINE)
    assert len(re.findall("^rule ", text, flags=re.MULTILINE)) == text.count("shell:") == len(calls)
    assert all(callable(getattr(stages, call)) for call in calls)
    assert len(text.splitlines()) <= 32
