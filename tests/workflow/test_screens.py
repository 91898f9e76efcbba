"""What commands show: on terminals of 100 and 60 columns, without colours, without a terminal."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from sweeplib.commands.screen import LONG_STEP
from tests.faults.commands import SWEEP, SWEEPLIB
from tests.workflow.terminals import ESCAPE, Shown, on_a_terminal

LONGEST_SILENCE = 5.0
COLOUR = re.compile(r"\x1b\[(?:\d+;)*[349][0-7]m")
BOX = re.compile("[\u2500-\u257f]")
SEEDS = 400
COMMANDS = (
    ["plan", "slow.yaml", f"seeds={SEEDS}"],
    ["status", "results/slow"],
    ["verify", "results/slow"],
    ["reproduce", "results/slow", "gamma=0.1,seed=3"],
    ["finalise", "slow.yaml", "--set", f"seeds={SEEDS}"],
    ["analyse", "slow.yaml", "--set", f"seeds={SEEDS}"],
    ["figures", "slow.yaml", "--set", f"seeds={SEEDS}"],
    ["report", "results/slow"],
    ["summary", "results/slow"],
    ["prune", "results/slow"],
    ["list"],
    ["list", "figures"],
)


def check(shown: Shown, columns: int) -> None:
    """The command succeeds, is never silent for long, and no line is wider than the terminal."""
    assert shown.status == 0, shown.text
    assert shown.silence < LONGEST_SILENCE
    assert max(map(len, shown.lines)) <= columns, max(shown.lines, key=len)


@pytest.mark.long
@pytest.mark.parametrize(("columns", "variables"), [(100, {}), (60, {}), (60, {"NO_COLOR": "1"})])
def test_commands_on_a_terminal(columns: int, variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SWEEP)
    whole = on_a_terminal([SWEEPLIB, "sweep", "slow.yaml", f"seeds={SEEDS}"], tmp_path, columns, **variables)
    check(whole, columns)
    text = ESCAPE.sub("", whole.text)
    assert f"{2 * SEEDS} of {2 * SEEDS} cases, 0 failed" in " ".join(text.split())
    for stage in ("plan", "simulations", "dataset", "analyses", "figures", "report"):
        assert re.search(rf"✓ {stage} +\d+ s", text), stage
    assert bool(COLOUR.search(whole.text)) is not bool(variables)
    for command in COMMANDS:
        shown = on_a_terminal([SWEEPLIB, *command], tmp_path, columns, **variables)
        assert shown.status == 0, shown.text
        assert shown.silence < LONGEST_SILENCE, command
        assert not (variables and COLOUR.search(shown.text)), command


@pytest.mark.slow
def test_a_sweep_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SWEEP)
    done = subprocess.run(
        [SWEEPLIB, "sweep", "slow.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    both = done.stdout + done.stderr
    assert not ESCAPE.search(both)
    assert not BOX.search(both)
    for stage in ("plan", "simulations", "dataset", "analyses", "figures", "report"):
        assert f"slow: {stage}: done in" in done.stderr
    assert "slow: all 400 cases ended ok" in done.stdout


@pytest.mark.slow
def test_a_sweep_of_many_shapes_says_what_takes_its_time(tmp_path: Path) -> None:
    """Of 300 shapes, 20 s passed in silence before the first block; the plan named neither these nor the dataset's."""
    (tmp_path / "shapes.yaml").write_text(
        "name: shapes\n"
        "problem: {d: 200, Delta: 0, activation: square, gamma: 0.01}\n"
        "grid: {p: {range: [1, 51]}, k: [1, 2, 3, 4]}\n"
        "dynamics: [sgd_chain]\ntimes: [0, 1.0e-4]\nanalyses: []\nfigures: []\n"
    )
    done = subprocess.run([SWEEPLIB, "sweep", "shapes.yaml"], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = " ".join(done.stderr.split())
    assert "200 shapes and costs: the store and the dataset take about 6 s more" in said
    assert "simulations: done in " in said and "200 of 200 cases" in said and "dataset: done in " in said


FIRST = """\
name: first
problem: {p: 1, k: 1, d: 40, Delta: 0, activation: square, spherical: true, gamma: 0.1}
dynamics: [sgd_chain]
times: [0, 1]
analyses: []
figures: []
"""


@pytest.mark.slow
def test_a_first_run_says_that_it_compiles(tmp_path: Path) -> None:
    """With an empty cache of kernels: at once on a terminal, and in the second line of a log, while it compiles."""
    (tmp_path / "first.yaml").write_text(FIRST)
    command, cache = [SWEEPLIB, "sweep", "first.yaml"], str(tmp_path / "cache")
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "first: started; log: results/first/journal/snakemake.log\n"
        assert not (tmp_path / "results/first/stages/plan.json").exists()
        assert process.stderr.readline() == "first: compiling sgd_chain (square, p = 1, k = 1) ...\n"
        job = json.loads((tmp_path / "results/first/stages/plan.json").read_text())
        assert (
            "ended" not in job
            and job["doing"].startswith("compiling")
            and time.time() - job["doing_since"] < LONG_STEP + 1.0
        )
        process.terminate()
    shown = on_a_terminal(command, tmp_path, 100, NUMBA_CACHE_DIR=cache)
    check(shown, 100)
    text = ESCAPE.sub("", shown.text)
    assert text.index("reading first.yaml") < text.index("Snakemake starts") < text.index("compiling sgd_chain")
