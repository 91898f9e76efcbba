"""Ctrl-C and SIGTERM: the end comes soon, in one line with the way to continue, and no process is left."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sweeplib.engine.process.command import INTERRUPTED
from sweeplib.engine.storage.records.stage_records import stage_records
from tests.faults.commands import LONGEST, SWEEP, SWEEPLIB, Started, started
from tests.faults.sweeps import wait_until

ROOT = Path(__file__).parents[2]
WORKFLOW = ("--snakefile", str(ROOT / "Snakefile"), "--profile", str(ROOT / "workflow/profiles/local"))
SNAKEMAKE = [str(Path(sys.executable).with_name("snakemake")), *WORKFLOW, "--config", "sweep=slow.yaml"]
MAKE = ["make", "-C", str(ROOT), "sweep", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.run"]
STUCK = SWEEP.replace("[troubled]", "[stuck]").replace(", block_size: 8", "")

NOTEBOOK = """
import subprocess, threading
import psutil
from sweeplib import Sweep
from sweeplib.engine.process.children import descendants

def start_another():
    while not psutil.Process().children():
        pass
    subprocess.Popen(["sleep", "60"])
    print("a process of another thread", flush=True)

threading.Thread(target=start_another).start()
try:
    Sweep.from_yaml("slow.yaml").run()
except KeyboardInterrupt:
    print("left:", *[process.name() for process in descendants() if process.status() != "zombie"], flush=True)
"""

TERMINAL = """
import sys, time
from pathlib import Path
from sweeplib.engine.process.interrupts import interruptible

with interruptible(lambda: None, patience=10.0):
    try:
        print("begun", flush=True)
        time.sleep(60)
    finally:
        print("the last line", flush=True)
        Path(sys.argv[1]).touch()
"""


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[list[Started]]:
    """Start commands for a test; the remaining ones are killed at its end."""
    (tmp_path / "slow.yaml").write_text(SWEEP)
    found: list[Started] = []
    yield found
    for each in found:
        each.killed()


def run(command: list[str], folder: Path, commands: list[Started]) -> Started:
    commands.append(started(command, folder))
    return commands[-1]


def check(lines: list[str]) -> None:
    """Only the one line follows the earlier output."""
    assert [line for line in lines if not line.startswith("make:")][-1].endswith(INTERRUPTED)
    assert sum(INTERRUPTED in line for line in lines) == 1
    assert not [line for line in lines if "Traceback" in line or "Error" in line or "Warning" in line]


@pytest.mark.slow
def test_ctrl_c_while_workers_run(tmp_path: Path, commands: list[Started]) -> None:
    command = run([SWEEPLIB, "run", "slow.yaml"], tmp_path, commands)
    command.until_it_says("dashboard")
    check(command.interrupted(signal.SIGINT, whole_session=True))
    assert command.process.returncode == -signal.SIGINT
    assert not list((tmp_path / "results/slow/locks").glob("*.holder.json"))


ADAPTIVE = """
import time
from dask.distributed import Client, LocalCluster
from sweeplib import Sweep

if __name__ == "__main__":
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=2)
        try:
            Sweep.from_yaml("slow.yaml").run(client)
        except KeyboardInterrupt:
            until = time.monotonic() + 5
            count = lambda dask_scheduler: len(dask_scheduler.tasks)
            while (tasks := client.run_on_scheduler(count)) and time.monotonic() < until:
                time.sleep(0.05)
            print("tasks left:", tasks, flush=True)
"""


@pytest.mark.slow
def test_an_interrupted_run_on_an_adaptive_cluster_leaves_no_task(tmp_path: Path, commands: list[Started]) -> None:
    """55 to 108 tasks went on, and the end of the script printed 1,400 lines."""
    (tmp_path / "script.py").write_text(ADAPTIVE)
    command = run([sys.executable, "script.py"], tmp_path, commands)
    command.until_it_says("[1-9][0-9]*/400 cases")
    command.process.send_signal(signal.SIGINT)
    command.until_it_says("tasks left: 0")
    assert command.process.wait(30) == 0
    lines = command.said.read_text().splitlines()
    assert len(lines) - lines.index("tasks left: 0") < 5 and not [line for line in lines if "Traceback" in line], lines


@pytest.mark.slow
def test_an_interrupted_run_of_a_notebook_ends_its_workers_alone(tmp_path: Path, commands: list[Started]) -> None:
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    command = run([sys.executable, "notebook.py"], tmp_path, commands)
    command.until_it_says("dashboard")
    command.until_it_says("of another thread")
    command.process.send_signal(signal.SIGINT)
    command.until_it_says("left")
    assert command.said.read_text().splitlines()[-1] == "left: sleep"


@pytest.mark.slow
def test_sigint_to_snakemake_alone_while_it_measures(tmp_path: Path, commands: list[Started]) -> None:
    (tmp_path / "slow.yaml").write_text(STUCK)
    command = run([*SNAKEMAKE, "--until", "plan"], tmp_path, commands)
    command.until_it_says("measuring")
    check(command.interrupted(signal.SIGINT))


@pytest.mark.rest
def test_ctrl_c_of_a_whole_sweep_while_workers_run(tmp_path: Path, commands: list[Started]) -> None:
    command = run([SWEEPLIB, "sweep", "slow.yaml"], tmp_path, commands)
    command.until_it_says("dashboard")
    check(command.interrupted(signal.SIGINT, whole_session=True))
    assert command.process.returncode in (-signal.SIGINT, 130)
    [job] = [job for job in stage_records(tmp_path / "results/slow").values() if job.name == "simulate"]
    assert not job.running


@pytest.mark.slow
@pytest.mark.parametrize("second", [None, 0.2])
def test_a_second_ctrl_c_ends_a_sweep_at_once(second: float | None, tmp_path: Path, commands: list[Started]) -> None:
    """Snakemake is stopped, so that it cannot end itself: without a second signal it is given its time."""
    (tmp_path / "slow.yaml").write_text(STUCK)
    command = run([SWEEPLIB, "sweep", "slow.yaml"], tmp_path, commands)
    wait_until(lambda: "measuring" in log(tmp_path))
    forks = next(each for each in command.left() if "sweeplib.engine.process.forks" in each.cmdline())
    min(forks.children(), key=lambda fork: fork.create_time()).suspend()  # the first fork is Snakemake
    started_at = time.monotonic()
    command.process.send_signal(signal.SIGINT)
    if second:
        time.sleep(second)
        command.process.send_signal(signal.SIGINT)
    command.process.wait(10)
    taken = time.monotonic() - started_at
    assert taken < (1.0 if second else 2.0)
    wait_until(lambda: not command.left())
    check(command.said.read_text().splitlines())


@pytest.mark.slow
def test_a_killed_sweep_leaves_no_process(tmp_path: Path, commands: list[Started]) -> None:
    command = run([SWEEPLIB, "sweep", "slow.yaml"], tmp_path, commands)
    command.until_it_says("dashboard")
    command.process.kill()
    wait_until(lambda: not command.left(), LONGEST)


@pytest.mark.slow
def test_a_terminal_that_is_closed_leaves_no_process(tmp_path: Path, commands: list[Started]) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    words = ["setsid", "--ctty", SWEEPLIB, "sweep", "slow.yaml"]
    process = subprocess.Popen(words, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    commands.append(Started(process, tmp_path / "said"))

    def says_where_the_dashboard_is() -> bool:
        with suppress(BlockingIOError):
            os.read(ours, 2**16)
        return "dashboard" in log(tmp_path)

    wait_until(says_where_the_dashboard_is)
    os.close(ours)
    process.wait(LONGEST)
    wait_until(lambda: not commands[-1].left(), LONGEST)


def log(folder: Path) -> str:
    """Return Snakemake's log of the sweep so far."""
    path = folder / "results/slow/journal/snakemake.log"
    return path.read_text() if path.exists() else ""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_session", [False, True])
@pytest.mark.parametrize("words", ["Using profile", "Job", "measuring", "simulations", "dashboard"])
def test_sweep(words: str, number: int, whole_session: bool, tmp_path: Path, commands: list[Started]) -> None:
    """An interrupt at each stage: Snakemake starts, plans, measures, simulates."""
    if words == "measuring":
        (tmp_path / "slow.yaml").write_text(STUCK)
    command = run([SWEEPLIB, "sweep", "slow.yaml"], tmp_path, commands)
    wait_until(lambda: words in log(tmp_path))
    check(command.interrupted(number, whole_session=whole_session))
    assert command.process.returncode in (-number, 128 + number)


STAGES = ("plan", "simulate", "finalise", "analyse.exit_times", "figure.line", "report")


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_at_each_stage_and_the_same_command_goes_on(stage: str, tmp_path: Path, commands: list[Started]) -> None:
    (tmp_path / "slow.yaml").write_text(SWEEP.replace("seeds: 200", "seeds: 40") + "figures: {line: {y: exit_steps}}\n")
    directory, sweep = tmp_path / "results/slow", [SWEEPLIB, "sweep", "slow.yaml"]

    def ran() -> dict[str, int]:
        """Return the process of each stage that has begun, in order."""
        return {job.name: job.pid for job in stage_records(directory).values() if job.name in STAGES}

    command = run(sweep, tmp_path, commands)
    wait_until(lambda: (job := stage_records(directory).get(stage)) is not None and job.running)
    check(command.interrupted(signal.SIGINT, whole_session=True))
    assert command.process.returncode in (-signal.SIGINT, 130)
    before = ran()
    assert list(STAGES[: STAGES.index(stage) + 1]) == sorted(before, key=STAGES.index)
    again = run(sweep, tmp_path, commands)
    assert again.process.wait(60) == 0, again.said.read_text()
    assert "slow: all 80 cases ended ok" in again.said.read_text()
    now = ran()
    assert list(STAGES) == sorted(now, key=STAGES.index)
    assert [name for name in before if now[name] == before[name]] == list(STAGES[: STAGES.index(stage)])


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_session", [False, True])
@pytest.mark.parametrize("words", ["block", "dashboard"])
def test_run(words: str, number: int, whole_session: bool, tmp_path: Path, commands: list[Started]) -> None:
    """An interrupt while the cluster starts, and while it computes."""
    command = run([SWEEPLIB, "run", "slow.yaml"], tmp_path, commands)
    command.until_it_says(words)
    check(command.interrupted(number, whole_session=whole_session))
    assert command.process.returncode in (-number, 128 + number)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_session", [False, True])
@pytest.mark.parametrize("words", ["measuring", "simulations", "dashboard"])
def test_snakemake(words: str, number: int, whole_session: bool, tmp_path: Path, commands: list[Started]) -> None:
    if words == "measuring":
        (tmp_path / "slow.yaml").write_text(STUCK)
    command = run(SNAKEMAKE, tmp_path, commands)
    command.until_it_says(words)
    check(command.interrupted(number, whole_session=whole_session))


@pytest.mark.long
@pytest.mark.parametrize(("number", "whole_session"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_make(number: int, whole_session: bool, tmp_path: Path, commands: list[Started]) -> None:
    command = run([*MAKE, f"CONFIG={tmp_path}/slow.yaml", f"RESULTS={tmp_path}/results"], tmp_path, commands)
    command.until_it_says("dashboard")
    check(command.interrupted(number, whole_session=whole_session))


def test_a_terminal_that_is_closed_is_an_interrupt(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if not pid:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, also by children
        os.execv(sys.executable, [sys.executable, "-c", TERMINAL, str(tmp_path / "ended")])
    assert b"begun" in os.read(terminal, 100)
    os.close(terminal)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGHUP
    assert (tmp_path / "ended").exists()
