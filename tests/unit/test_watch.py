"""`sweeplib watch`: a sweep that another process runs, until it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.storage.records.stage_records import stage_records

ROOT = Path(__file__).parents[2]
TEXT = """
name: watched
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50}
grid: {gamma: [0.05, 0.1]}
dynamics: [ode]
times: [0, 1]
"""
RUNNING = """
import time
from pathlib import Path
from sweeplib.engine.storage.records.stage_records import recorded_stage, tell

directory = Path("results/watched")
"""
WHOLE = """
with recorded_stage(directory, "sweep"):
    with recorded_stage(directory, "plan"):
        pass
    with recorded_stage(directory, "simulate"):
        tell(done=1, total=4)
        time.sleep(SECONDS)
        END
"""
BY_HAND = """
with recorded_stage(directory, "simulate"):
    tell(done=1, total=4)
    time.sleep(SECONDS)
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("watched.yaml").write_text(TEXT)
    return Path("results/watched")


@pytest.fixture
def started(directory: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Return a list for processes that end with the test."""
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def running(directory: Path, code: str, seconds: float = 2.0, end: str = "pass") -> subprocess.Popen[bytes]:
    """Return a process that does jobs of the sweep, when it does them."""
    text = RUNNING + code.replace("SECONDS", str(seconds)).replace("END", end)
    process = subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL)
    while not (directory / "stages" / "simulate.json").exists():
        time.sleep(0.05)
    return process


def watched(status: int) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["watch", "watched.yaml"])
    assert result.exit_code == status, result.output
    return result.stdout, result.stderr


@pytest.mark.slow
def test_it_ends_when_the_sweep_ends(directory: Path, started: list[subprocess.Popen[bytes]]) -> None:
    started.append(running(directory, WHOLE, seconds=5.0))
    page = directory / "report" / "index.html"
    page.parent.mkdir()
    page.touch()
    out, err = watched(status=0)
    assert started[0].wait() == 0
    assert out == f"watched: ended\nreport: {page}\n"
    assert [line.partition(" in ")[0] for line in err.splitlines()] == [
        "watched: plan: done",
        "watched: simulations: done",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["raise ValueError('no good')", "import os; os.kill(os.getpid(), 9)"])
def test_it_tells_that_a_stage_failed(end: str, directory: Path, started: list[subprocess.Popen[bytes]]) -> None:
    started.append(running(directory, WHOLE, seconds=4.0, end=end))
    out, err = watched(status=1)
    problem = "ValueError: no good" if "good" in end else "its process has ended without a word"
    assert out == f"watched: failed\nsimulations: {problem}\n"
    assert f"failed after 4 s, 1 of 4 cases, 0 failed, 0.0 cases/s, {problem}" in err


@pytest.mark.slow
def test_stages_that_snakemake_runs_by_itself_end_when_none_follows(
    directory: Path, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeplib.commands.watch.SECONDS_BETWEEN_STAGES", 1.0)
    started.append(running(directory, BY_HAND, seconds=4.0))
    began = time.monotonic()
    assert watched(status=0)[0] == "watched: ended\n"
    assert started[0].wait() == 0 and time.monotonic() - began > 2.0


def test_a_sweep_that_does_not_run_has_its_status(directory: Path) -> None:
    assert watched(status=0) == ("watched: unfinished; 0 of 2 cases, 0 failed\n", "")
    assert not directory.exists()


@pytest.mark.rest
def test_ctrl_c_ends_the_view_and_not_the_sweep(directory: Path, started: list[subprocess.Popen[bytes]]) -> None:
    started.append(running(directory, WHOLE, seconds=60.0))
    command = [str(Path(sys.executable).with_name("sweeplib")), "watch", "watched.yaml"]
    view = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    started.append(view)
    assert view.stderr is not None and "plan: done" in view.stderr.readline()
    began = time.monotonic()
    view.send_signal(signal.SIGINT)
    assert view.wait() == -signal.SIGINT
    assert time.monotonic() - began < 2.0
    assert "Traceback" not in view.stderr.read()
    assert started[0].poll() is None and stage_records(directory)["simulate"].running
