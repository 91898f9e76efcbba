"""A child process: the effects of its tasks on it, none of which affects the next task."""

import ctypes
import os
import re
import signal
import time
from pathlib import Path

import numba
import psutil
import pytest
from numba.core import event

from sweeplib.engine.execution.child import Child, DiedError, Limits, MemoryUpError, RaisedError, TimeUpError
from sweeplib.engine.process.work_time import COMPILATION, seconds_but_compilation
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics import Dynamics

pytestmark = pytest.mark.usefixtures("unforked")


@pytest.fixture(scope="module")
def child(unforked):
    child = Child()
    yield child
    child.close()
    assert child.process.returncode is not None


def raises():
    raise SystemExit("the whole \ud800 story")


def crashes():
    ctypes.string_at(0)


def wedged():
    re.match("(a+)+$", 64 * "a" + "b")


def hungry():
    taken = []
    while True:
        taken.append(bytearray(2**26))


def kills_the_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def compiles():
    @numba.njit
    def summed(numbers):
        total = 0.0
        for number in numbers:
            total += number
        return total

    started = time.monotonic()
    summed((1.0, 2.0))
    return time.monotonic() - started


def test_what_a_task_does_to_its_process_is_told_and_the_next_is_computed(child):
    assert child.call(divmod, 7, 2) == (3, 1)
    first = child.call(os.getpid)
    with pytest.raises(RaisedError, match=r"SystemExit: the whole \\ud800 story"):
        child.call(raises)
    assert child.call(os.getpid) == first
    with pytest.raises(DiedError, match="SIGSEGV") as crash:
        child.call(crashes)
    assert "in crashes" in crash.value.trouble.traceback
    with pytest.raises(TimeUpError, match=r"not finished after 0\.2 s") as hang:
        child.call(wedged, limits=Limits(seconds=0.2))
    assert "in wedged" in hang.value.trouble.traceback
    with pytest.raises(MemoryUpError, match="more than 1024 MiB"):
        child.call(hungry, limits=Limits(memory=2**30))
    server = child.process.pid
    with pytest.raises(DiedError):
        child.call(kills_the_parent)
    assert child.call(divmod, 7, 2) == (3, 1)
    assert child.process.pid != server


def test_the_clock_of_deadlines_stands_still_while_numba_compiles():
    """A run in a process that has to compile had less time than others, or none."""
    before = seconds_but_compilation()
    with event.trigger_event(COMPILATION, {}), event.trigger_event(COMPILATION, {}):
        time.sleep(0.2)
    assert seconds_but_compilation() - before < 0.1
    assert Dynamics.clock() - before < 0.1


def test_no_time_passes_while_numba_compiles(child):
    """The first compilation of a process takes .3 s; what numba does before it, .02 s, and garbage take time too."""
    assert child.call(compiles, limits=Limits(seconds=0.15)) > 0.15


def test_a_child_ends_with_its_asker(child):
    other = Child()
    fork = psutil.Process(other.call(os.getpid))
    other._connection.close()
    fork.wait(20)
    assert other.process.wait(20) == 0


def test_a_child_whose_imports_do_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sweeplib.engine.execution.child.START_SECONDS", 0.5)
    plugin = tmp_path / "endless.py"
    plugin.write_text("import time\ntime.sleep(3600)\n")
    child = Child([str(plugin)])
    with pytest.raises(SweeplibError, match=r"imports take over 0\.5 s"):
        child.call(os.getpid)
    child.close()


def test_a_child_that_cannot_start_is_no_fault_of_a_task(tmp_path: Path):
    plugin = tmp_path / "broken.py"
    plugin.write_text("raise ImportError('not here')\n")
    child = Child([str(plugin)])
    with pytest.raises(SweeplibError, match=r"a process for the cases does not start \(exit status 1\): .*not here"):
        child.call(os.getpid)
    child.close()
