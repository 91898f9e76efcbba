"""The records in which the stages of a sweep tell other processes what they do."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sweeplib.commands.status import state
from sweeplib.engine.execution.blocks import BlockReport
from sweeplib.engine.execution.progress import RunProgress, Steps
from sweeplib.engine.storage.records import holders
from sweeplib.engine.storage.records.files import write_json
from sweeplib.engine.storage.records.locks import part_lock, sweep_lock
from sweeplib.engine.storage.records.stage_records import (
    DIED,
    INTERRUPTED,
    SILENCE_ELSEWHERE,
    StageRecord,
    recorded_stage,
    stage_record,
    stage_records,
    tell,
)
from sweeplib.errors import BusyError, InputError
from tests.blocks import block_of
from tests.faults.sweeps import wait_until


def test_a_job_tells_its_step_and_its_cases_and_ends(tmp_path: Path) -> None:
    with recorded_stage(tmp_path, "simulate"):
        with Steps().step("compiling ode"):
            assert stage_records(tmp_path)["simulate"].doing == "compiling ode"
        block = block_of(10, seconds_a_case=10.0)
        shown = RunProgress(10, [block])
        shown.run_begins("no cluster is started")
        shown.task_ended(block, BlockReport({"killed": 2, "diverged": 1, "ok": 2}, 5, 100.0))
        told = stage_records(tmp_path)["simulate"]
        assert (told.done, told.total, told.share, told.seconds_left) == (10, 10, 1.0, 0.0)
        assert told.cases == {"killed": 2, "diverged": 1, "ok": 2}
        assert told.running and told.here and told.pid == os.getpid() and told.doing is None
    ended = stage_records(tmp_path)["simulate"]
    assert not ended.running and ended.outcome is None
    assert ended.ended is not None and ended.ended >= ended.started


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("no such thing", key="grid.d"), "grid.d: no such thing"),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
)
def test_why_a_job_failed_is_one_line(error: BaseException, said: str, tmp_path: Path) -> None:
    with pytest.raises(type(error)), recorded_stage(tmp_path, "plan"):
        raise error
    assert stage_records(tmp_path)["plan"].outcome == said


KILLED = """
import os, pathlib, sys
from sweeplib.engine.storage.records.stage_records import recorded_stage
entered = recorded_stage(pathlib.Path(sys.argv[1]), "plan")
entered.__enter__()
os.kill(os.getpid(), 9)
"""


def test_a_killed_job_does_not_run(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    killed = stage_records(tmp_path)["plan"]
    assert not killed.running and killed.outcome == DIED


WORKING = """
import pathlib, sys
from sweeplib.engine.storage.records.stage_records import recorded_stage, tell
from sweeplib.engine.storage.records.locks import sweep_lock
sys.argv = ["sweeplib", "sweep", sys.argv[1]]
folder = pathlib.Path(sys.argv[2])
with sweep_lock(folder), recorded_stage(folder, "sweep"), recorded_stage(folder, "simulate"):
    print("working", flush=True)
    sys.stdin.readline()
    tell(done=3, total=4)
"""


@pytest.mark.rest
def test_a_second_command_is_refused_and_leaves_what_the_first_tells(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKING, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdin is not None and first.stdout is not None
        assert first.stdout.readline() == "working\n"
        said = f"process {first.pid} of .* on .* runs all stages here since ..:.. .`sweeplib sweep .*`.; expected one"
        for lock in (sweep_lock(tmp_path), part_lock(tmp_path, "draws figures")):
            with pytest.raises(BusyError, match=said), lock:
                pytest.fail("two commands at once")
        with pytest.raises(InputError, match="locked"), recorded_stage(tmp_path, "simulate"):
            raise InputError("locked")
        assert stage_records(tmp_path)["simulate"].pid == first.pid and stage_records(tmp_path)["simulate"].running
        with recorded_stage(tmp_path, "simulate"):
            first.communicate("\n")
            tell(done=2)
            assert stage_records(tmp_path)["simulate"].done == 2, "the first has ended"
    with sweep_lock(tmp_path):
        pass


def test_a_process_with_the_number_of_a_dead_one_is_another(tmp_path: Path) -> None:
    assert not StageRecord("plan", pid=os.getpid(), host=os.uname().nodename, born=1.0).running


@pytest.mark.rest
def test_a_job_of_another_host_runs_while_it_gives_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of a job is touched; one that was killed there has ended, and a newer one takes its place."""
    path = tmp_path / "stages" / "simulate.json"
    monkeypatch.setattr(holders, "BEAT", 0.05)
    with recorded_stage(tmp_path, "simulate"):
        os.utime(path, (1.0, 1.0))
        wait_until(lambda: path.stat().st_mtime > time.time() - 10, seconds=10)
    write_json(path, {"name": "simulate", "pid": os.getpid(), "host": "elsewhere", "last_sign": time.time() + 1e9})
    assert stage_records(tmp_path)["simulate"].running
    assert state(stage_records(tmp_path), []) == "running"
    os.utime(path, (time.time() - 2 * SILENCE_ELSEWHERE,) * 2)
    assert not stage_records(tmp_path)["simulate"].running
    assert stage_records(tmp_path)["simulate"].outcome == DIED
    assert state(stage_records(tmp_path), []) == "unfinished"


def test_jobs_of_earlier_runs_and_damaged_files_are_left_out(tmp_path: Path) -> None:
    with recorded_stage(tmp_path, "plan"):
        pass
    (tmp_path / "stages" / "report.json").write_text("{")
    write_json(tmp_path / "stages" / "finalise.json", {"name": "finalise", "of_another_version": 1})
    assert set(stage_records(tmp_path)) == {"plan", "finalise"}
    assert not stage_records(tmp_path, since=time.time() + 1)


@pytest.mark.parametrize("name", ["mine", "plan", 3, None])
def test_the_record_of_something_else_is_that_of_no_stage(name: object, tmp_path: Path) -> None:
    """As after a copy over it: a plan has a name too, and no end."""
    write_json(tmp_path / "stages" / "report.json", {"name": name, "cases": {}})
    write_json(tmp_path / "stages" / "analyse.mine.json", {"name": "analyse.mine"})
    assert stage_records(tmp_path).keys() == {"analyse.mine"}


def test_without_a_job_nothing_is_told(tmp_path: Path) -> None:
    tell(done=3)
    assert not list(tmp_path.iterdir())


def test_threads_tell_of_their_own_stages(tmp_path: Path) -> None:
    begun = threading.Barrier(2)

    def run(name: str) -> None:
        with recorded_stage(tmp_path / name, "simulate"):
            begun.wait()
            tell(news=f"news of {name}")
            begun.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, "ab"))
    assert {name: stage_record(tmp_path / name, "simulate").news for name in "ab"} == {
        "a": "news of a",
        "b": "news of b",
    }


def test_a_job_that_cannot_write_goes_on(tmp_path: Path) -> None:
    (tmp_path / "stages").write_text("")
    with recorded_stage(tmp_path, "plan"):
        tell(done=3)
