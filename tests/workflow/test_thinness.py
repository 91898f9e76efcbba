"""The workflow defines what runs when; the work is done in the library."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sweeplib.commands import stages

ROOT = Path(__file__).parents[2]
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))


def test_the_snakefile_is_short() -> None:
    assert len((ROOT / "workflow/Snakefile").read_text().splitlines()) <= 40
    lines = [line.partition("#")[0].strip() for line in (ROOT / "Snakefile").read_text().splitlines()]
    assert [line for line in lines if line] == [
        'include: "workflow/Snakefile"',
        "if len(workflow.modifier_stack) == 1:",
        'workflow.default_target = "all"',
    ]


def test_a_container_runs_stages_by_its_own_python() -> None:
    words = ["sh", "-c", stages.call("plan").replace("{{", "{").replace("}}", "}") + " results/it"]
    environment = {"PATH": "/usr/bin:/bin", stages.PYTHON: "echo"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "-P -m sweeplib.engine.process.job sweeplib.commands.stages:plan results/it\n"
    assert shlex.quote(sys.executable) in stages.call("plan")


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.stem)
def test_rules_call_the_library(rules: Path) -> None:
    text = rules.read_text()
    assert "run:" not in text and "script:" not in text
    calls = re.findall(r'^    shell:\n        sweeplib\.commands\.stages\.call\("(\w+)"\)', text, flags=re.MULTILINE)
    assert len(re.findall("^rule ", text, flags=re.MULTILINE)) == text.count("shell:") == len(calls)
    assert all(callable(getattr(stages, call)) for call in calls)
    assert len(text.splitlines()) <= 32
