"""The process that forks: a fork has the streams, folder and environment of the one that asks, and ends with it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from sweeplib.engine.process.fork_apart import fork_of
from sweeplib.engine.process.forks import MEANWHILE, WAIT, fork_server
from sweeplib.engine.process.job import ADDRESS, command, ran

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("unforked")


def shown(*arguments: str) -> None:
    words = *arguments, Path.cwd().name, os.environ.get("ASKED"), os.getppid(), "sweeplib.errors" in sys.modules
    sys.stdout.write(" ".join(map(str, words)))
    sys.stderr.write("to the errors\n")
    raise SystemExit(7)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def waiting(file: str) -> None:
    Path(file).write_text(str(os.getpid()))
    time.sleep(60)


def draws() -> None:
    """Compile a kernel that was imported before the fork."""
    assert "sweeplib.networks.numerics.random" in sys.modules
    from sweeplib.networks.numerics.random import normals

    assert len(normals(1, 2, 3, 5)) == 5


def waiting_for(file: str, go: str) -> None:
    Path(file).touch()
    while not Path(go).exists():
        time.sleep(0.02)
    raise SystemExit(5)


def writes(descriptor: int) -> None:
    os.write(descriptor, f"{os.getsid(0) == os.getpid()}".encode())


def servers() -> set[psutil.Process]:
    """Return the processes that fork for this one; other tests of it may have left theirs."""
    children = (child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
    return {child for child in children if "sweeplib.engine.process.forks" in child.cmdline()}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    others = servers()
    with fork_server(["sweeplib.errors"]):
        assert ran("builtins:len", "until the import is done, requests come first") == 0
        [process] = servers() - others
        yield process


def asked(task: str, *arguments: str, **options) -> "subprocess.Popen[str]":
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command(f"{__name__}:{task}"), *arguments], **pipes | options)


def eventually(condition) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_fork_is_like_a_process_of_its_own(tmp_path, server):
    process = asked("shown", "a b", "", cwd=tmp_path, env=os.environ | {"ASKED": "yes"})
    output, errors = process.communicate()
    assert process.returncode == 7
    assert output.split() == ["a", "b", tmp_path.name, "yes", str(server.pid), "True"]
    assert errors == "to the errors\n"


@pytest.mark.parametrize("letters", [pytest.param(85, id="too long for one of two"), 120])
def test_a_long_path_of_temporary_files_has_its_sockets_elsewhere(tmp_path, monkeypatch, letters):
    """With more than about 100 letters there were no forks, without a word: each stage imported for itself."""
    long = tmp_path / ("n" * max(1, letters - len(str(tmp_path))))
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with fork_server(["-snakemake", "sweeplib.errors", MEANWHILE]):
        folder_of_sockets = Path(os.environ[ADDRESS]).parent
        assert ran("builtins:len", "is answered") == 0
    assert not folder_of_sockets.exists() and ADDRESS not in os.environ and list(long.iterdir()) == []


def test_without_forks_the_process_does_the_work_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    process = asked("shown", cwd=tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 7
    assert output.split()[-2] == str(os.getpid())


def test_a_fork_that_is_killed(server):
    assert ran(f"{__name__}:killed") == 128 + signal.SIGKILL
    assert ran("sweeplib.errors:InputError", "a later request is answered") == 0


def test_a_fork_ends_with_the_one_that_asked(tmp_path, server):
    process = asked("waiting", str(tmp_path / "pid"))
    assert eventually((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    process.kill()
    assert eventually(lambda: not psutil.pid_exists(pid))
    assert server.is_running()


def test_forks_end_with_the_sweep(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with fork_server([]):
        process = asked("waiting", str(tmp_path / "pid"))
        assert eventually((tmp_path / "pid").exists)
    assert eventually(lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())))
    assert process.wait(10) != 0
    assert ADDRESS not in os.environ


def test_where_a_fork_cannot_begin_the_process_does_the_work_itself(tmp_path, server):
    """A folder that was deleted: the fork ends, and the process that forks goes on."""
    folder = tmp_path / "gone"
    folder.mkdir()
    script = f"""
import os
from sweeplib.engine.process.job import ran
os.getcwd = lambda: {str(folder)!r}
os.rmdir({str(folder)!r})
print(ran("builtins:len", "x"))
"""
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout == "None\n", done.stderr
    assert ran("builtins:len", "x") == 0


def test_a_fork_compiles_what_was_imported_before(tmp_path, monkeypatch):
    """On a machine without compiled code: a lock that was made before a fork cannot be taken in it."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with fork_server(["sweeplib.networks.numerics.random"]):
        assert ran("builtins:len", "until the import is done, requests come first") == 0
        assert ran(f"{__name__}:draws") == 0
    assert list(tmp_path.rglob("*.nbi"))


def test_a_dead_process_is_not_asked(server):
    server.kill()
    assert eventually(lambda: server.status() == psutil.STATUS_ZOMBIE)
    assert ran(f"{__name__}:shown") is None
    assert fork_of(f"{__name__}:writes", 1) is None


def test_a_job_tells_its_end_without_the_process_that_forked_it(tmp_path, server):
    process = asked("waiting_for", str(tmp_path / "pid"), str(tmp_path / "go"))
    assert eventually((tmp_path / "pid").exists)
    server.kill()
    (tmp_path / "go").touch()
    assert process.wait(10) == 5


def test_a_fork_apart(server):
    reading, writing = os.pipe()
    fork = fork_of(f"{__name__}:writes", writing)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read() == "True"
    fork.wait()
    fork.kill()


def test_others_are_not_answered(server):
    """A job that a batch system starts on this machine is no descendant of the sweep."""
    words = command(f"{__name__}:shown")
    script = f"import os, sys, time\nif os.fork(): os._exit(0)\ntime.sleep(.3)\nos.execv(sys.executable, {words!r})"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate()
    assert output.split()[-2] != str(server.pid)


@pytest.fixture
def own_task(monkeypatch, tmp_path):
    """Let `shown` be a task of a process of its own, which has the modules of a folder."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{tmp_path}")
    monkeypatch.setattr("sweeplib.engine.process.job.PROCESSES", {f"{__name__}:shown": "-own"})
    return tmp_path


def answers() -> int | None:
    """Return the number of the process whose fork is `shown`, None if there is none."""
    with tempfile.TemporaryFile() as output:
        if ran(f"{__name__}:shown", output=output.fileno()) is None:
            return None
        output.seek(0)
        return int(output.read().split()[-2])


def test_a_task_waits_for_its_own_process_to_import(own_task):
    """Otherwise each of its forks would import the same again, while that process does."""
    (own_task / "long.py").write_text("import time\ntime.sleep(0.2)\n")
    (own_task / "last.py").write_text(f"open({str(own_task / 'done')!r}, 'w')\n")
    others = servers()
    number = own_task / "number"
    (own_task / "first.py").write_text(f"import os\nopen({str(number)!r}, 'w').write(str(os.getpid()))\n")
    with fork_server(["sweeplib.errors", "-own", "long", "last", MEANWHILE, "first"]):
        assert ran("builtins:len", "other tasks do not wait") == 0
        [first] = servers() - others
        assert not (own_task / "done").exists()
        following = psutil.Process(answers())
        assert (own_task / "done").exists()
        assert following in first.children()
        assert number.read_text() == str(first.pid)
        following.kill()
        assert eventually(lambda: not psutil.pid_exists(following.pid))
        assert answers() is None
        assert ran("builtins:len", "other tasks are still answered") == 0
    assert not first.is_running() and not following.is_running()


def test_a_process_that_dies_while_it_imports_leaves_its_task_to_those_that_ask(own_task):
    (own_task / "deadly.py").write_text("import os, time\ntime.sleep(0.1)\nos._exit(1)\n")
    with fork_server([WAIT, "-own", "deadly", "sweeplib.errors", MEANWHILE]):
        assert answers() is None
        assert ran("builtins:len", "x") == 0


def test_without_room_for_a_process_the_first_one_has_its_task(own_task):
    (own_task / "full.py").write_text(
        "import errno, os\nfork = os.fork\ndef full():\n    os.fork = fork\n    raise OSError(errno.EAGAIN, 'full')\n"
        "os.fork = full\n"
    )
    others = servers()
    with fork_server(["full", "-own", "sweeplib.errors", MEANWHILE]):
        [first] = servers() - others
        assert answers() == first.pid
