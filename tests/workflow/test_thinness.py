"""The workflow defines what runs when; the work is done in the library."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
LOGIC = (ast.For, ast.While, ast.Try, ast.With, ast.FunctionDef, ast.ClassDef, ast.IfExp, ast.comprehension, ast.BinOp)


def test_the_snakefile_is_short() -> None:
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 40


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_one_call(script: Path) -> None:
    tree = ast.parse(script.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, LOGIC)]
    statements = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(statements) == 2, "a docstring and a call"


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.stem)
def test_rules_run_scripts(rules: Path) -> None:
    text = rules.read_text()
    assert "run:" not in text and "shell:" not in text
    assert len(re.findall("^rule ", text, flags=re.MULTILINE)) == text.count("script:")
    assert len(text.splitlines()) <= 32
