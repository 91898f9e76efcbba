"""Variables of the environment that other programs set: each does no harm, or is refused in a line that names it."""

import _thread
import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

import sweeplib
from sweeplib import InputError, Sweep
from sweeplib.commands.cli import app
from sweeplib.engine.execution.clusters.dashboard import dashboard_link, page_link
from tests.faults.sweeps import wait_until
from tests.in_process import InProcess
from tests.tiers import slow_but

SWEEP = {
    "name": "small",
    "problem": {"p": 1, "k": 1, "d": 40, "Delta": 0, "activation": "square", "gamma": 0.1},
    "seeds": 2,
    "dynamics": ["sgd_chain"],
    "times": [0, 1],
}
SOURCES = Path(sweeplib.__file__).parent
PROGRAM = str(Path(sys.executable).with_name("sweeplib"))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NUMBA_DISABLE_JIT", "1", "must be compiled"),
        ("NUMBA_NUM_THREADS", "0", "not a number of threads"),
        ("NUMBA_NUM_THREADS", "-2", "not a number of threads"),
        ("BASH_ENV", "ends", "exit status 3"),
        ("PYTHONPATH", "/nonexistent:mine", "mine/numba.py would be imported in the place of the package numba"),
    ],
)
def test_a_variable_with_which_no_sweep_can_run_is_named(
    name: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends").write_text("exit 3\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "numba.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["sweep", "absent.yaml"])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"environment variable {name}: ") and len(done.stderr.splitlines()) == 1
    assert said in done.stderr and f"got '{value}'" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"), [("NUMBA_DISABLE_JIT", "0"), ("NUMBA_NUM_THREADS", "many"), ("BASH_ENV", "absent")]
)
def test_a_variable_that_does_no_harm_is_not_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert "got 'absent.yaml'" in CliRunner().invoke(app, ["sweep", "absent.yaml"]).stderr


def test_a_user_who_may_start_few_processes_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `ulimit -u 40`, with which a cluster would wait for its workers for ever; root has no such limit."""
    start, before, started = _thread.start_new_thread, _thread._count(), []

    def start_some(*call: Any) -> None:
        if len(started) == 40:
            raise RuntimeError("can't start new thread")
        started.append(start(*call))

    monkeypatch.setattr(_thread, "start_new_thread", start_some)
    done = CliRunner().invoke(app, ["sweep", "absent.yaml"])
    assert done.exit_code == 2
    assert done.stderr.startswith("ulimit -u: too few processes may run; ") and len(done.stderr.splitlines()) == 1
    wait_until(lambda: _thread._count() <= before)


def test_colours_that_are_forced_make_no_terminal_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = CliRunner().invoke(app, ["sweep", "absent.yaml"])
    assert "absent.yaml" in done.stderr and "\x1b" not in done.output


@pytest.mark.slow
def test_an_unknown_backend_of_matplotlib_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "qt4agg")
    code = "from matplotlib import pyplot; from sweeplib import FIGURES; print(list(FIGURES))"
    code = f"from sweeplib.engine.process.command import command\nwith command():\n    {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "learning_rate_scan" in done.stdout, done.stderr


@pytest.mark.rest
@pytest.mark.parametrize("template", ["{JUPYTERHUB_SERVICE_PREFIX}/proxy/{port}", "{}", "{", "{port.absent}"])
def test_a_link_for_another_place_becomes_the_address_of_the_dashboard(template: str) -> None:
    with InProcess().client() as client, dask.config.set({"distributed.dashboard.link": template}):
        assert dashboard_link(client).startswith("http://") and dashboard_link(client).endswith("/status")


def test_an_asynchronous_client_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        options = {"processes": False, "n_workers": 0, "dashboard_address": ":0", "asynchronous": True}
        async with LocalCluster(**options) as cluster, Client(cluster, asynchronous=True) as client:
            Sweep(**SWEEP, results=tmp_path).run(client)

    with pytest.raises(
        InputError,
        match=r"client: not a client of Dask that waits for its results; got .* expected .*asynchronous=False",
    ):
        asyncio.run(run())


@pytest.mark.rest
@pytest.mark.parametrize("module", slow_but(["os", "posix"], "os"))
def test_a_plugin_that_ends_the_process_is_no_success(tmp_path: Path, module: str) -> None:
    (tmp_path / "ends.py").write_text(f"import {module}\n{module}._exit(0)\n")
    done = subprocess.run(
        [PROGRAM, "test-plugin", "ends.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "a plugin ended this process with os._exit(0); nothing that comes after it was done"
    ]


@pytest.mark.parametrize(
    ("link", "page"),
    [
        ("http://127.0.0.1:8787/status", "http://127.0.0.1:8787/sweep"),
        ("https://hub.org/user/me/proxy/8787/status", "https://hub.org/user/me/proxy/8787/sweep"),
    ],
)
def test_the_page_of_a_sweep_is_beside_the_status_of_the_dashboard(link: str, page: str) -> None:
    assert page_link(link) == page


@pytest.mark.slow
def test_bytecode_is_kept_in_the_users_cache_where_none_may_be_written(tmp_path: Path) -> None:
    """Else each process of a sweep compiles what it imports. Bytecode beside the sources is used, and is written."""
    package, cache = tmp_path / "site" / "sweeplib", tmp_path / "cache"
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "wrong.yaml").write_text("wrong: 1\n")
    variables = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(cache)}
    own = {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in own} | variables

    def refused(**others: str) -> None:
        command = [sys.executable, "-P", "-m", "sweeplib", "plan", "wrong.yaml"]
        done = subprocess.run(command, cwd=tmp_path, env=environment | others, capture_output=True, check=False)
        assert done.returncode == 2 and b"unknown key" in done.stderr, done.stderr

    refused(PYTHONDONTWRITEBYTECODE="1")
    kept = list((cache / "sweeplib" / "bytecode").rglob("*.pyc"))
    assert any(path.name.startswith("models.") for path in kept), "the models of a config"
    assert not list(package.rglob("*.pyc"))
    assert (cache / "sweeplib" / "bytecode").stat().st_mode & 0o777 == 0o700

    times = {path: path.stat().st_mtime_ns for path in kept}
    refused(PYTHONDONTWRITEBYTECODE="1")
    assert {path: path.stat().st_mtime_ns for path in kept} == times, "it is read again"
    shutil.rmtree(cache / "sweeplib")
    refused()
    assert list(package.rglob("*.pyc"))
    refused(PYTHONDONTWRITEBYTECODE="1")
    assert not (cache / "sweeplib" / "bytecode").exists()
