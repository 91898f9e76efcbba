"""A driver whose parent was killed continues, and a second one waits; one whose parent lives is not disturbed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sweeplib.engine.storage.records.locks import driver_lock
from sweeplib.errors import BusyError

HOLD = """
import pathlib, sys, time
from sweeplib.engine.storage.records.locks import driver_lock
with driver_lock(pathlib.Path(sys.argv[1]), "ode"):
    time.sleep(float(sys.argv[2]))
"""
START = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


@pytest.fixture
def parent(tmp_path):
    """Return a process whose child holds the driver's lock for four seconds."""
    process = subprocess.Popen([sys.executable, "-c", START, HOLD, str(tmp_path), "4"])
    while not (tmp_path / "locks" / "ode.holder.json").exists():
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


@pytest.mark.rest
def test_a_driver_with_a_parent_refuses_a_second_one(parent, tmp_path):
    with pytest.raises(BusyError, match=r"process .* runs ode here"), driver_lock(tmp_path, "ode"):
        pytest.fail("two drivers at once")


@pytest.mark.slow
def test_an_orphaned_driver_is_waited_for(parent, tmp_path, capsys):
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    started = time.monotonic()
    with driver_lock(tmp_path, "ode"):
        assert time.monotonic() - started > 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "waiting for process" in said and "runs ode" in said and str(tmp_path) in said
