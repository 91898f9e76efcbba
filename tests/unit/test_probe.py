"""Workers that cannot take part in a sweep are named, one line each, before they get a block."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client

from sweeplib.engine.design.design import Run
from sweeplib.engine.execution import probe, work
from sweeplib.engine.execution.probe import Probe, Probes, answered
from sweeplib.engine.execution.run import run_sweep
from sweeplib.errors import SweeplibError
from sweeplib.networks.simulation import Case
from tests.faults.sweeps import tasks, troubled_sweep
from tests.in_process import InProcess


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with InProcess().client() as found:
        yield found


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "SECONDS_TO_SEE", 0.5)


@pytest.fixture
def case() -> Case:
    return troubled_sweep().probed("troubled")[0]


def said(client: Client, asked: Probe) -> list[str]:
    """Return the lines about the worker of the client, which the error repeats."""
    lines: list[str] = []
    probes = Probes(client, asked, lines.append)
    with pytest.raises(SweeplibError, match=r"1 of 1 workers cannot take part: .*; repair or end them, and run again"):
        probes.look(client.nthreads())
    return lines


def test_a_worker_that_can_take_part_is_asked_once(client: Client, case: Case, tmp_path: Path) -> None:
    probes = Probes(client, Probe.of(str(tmp_path), (), ((case, case.identity()),)), pytest.fail)
    probes.look(client.nthreads())
    tmp_path.rmdir()
    probes.look(client.nthreads())


def test_a_worker_without_the_folder(client: Client, tmp_path: Path) -> None:
    [line] = said(client, Probe.of(str(tmp_path / "elsewhere"), (), ()))
    assert line.startswith("worker inproc://") and line.endswith(f"has no folder {tmp_path / 'elsewhere'}")


def test_a_worker_that_cannot_reach_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An OSError that came back would be that of a lost worker."""

    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    reason = asyncio.run(answered(Probe.of(str(tmp_path), (), [])))
    assert reason is not None and reason.endswith(f": PermissionError: [Errno 13] Permission denied: '{tmp_path}'")


def test_a_worker_without_a_plugin(client: Client, tmp_path: Path) -> None:
    [line] = said(client, Probe.of(str(tmp_path), (str(tmp_path / "mine.py"),), ()))
    assert "plugins: no such file" in line


def test_a_worker_of_another_version(client: Client, case: Case, tmp_path: Path) -> None:
    [line] = said(client, Probe.of(str(tmp_path), (), ((case, b"of another version"),)))
    assert "another version of sweeplib or of the plugins" in line


@pytest.mark.rest
def test_a_sweep_ends_before_such_a_worker_gets_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = work._probe
    monkeypatch.setattr(work, "_probe", lambda *args: replace(asked(*args), folder="/none/such"))
    sweep = replace(troubled_sweep(seeds=6), runs={"calm": Run("calm")}, cluster=InProcess(block_size=2))
    with pytest.raises(SweeplibError, match=r"1 of 1 workers cannot take part: .* has no folder /none/such"):
        run_sweep(sweep, tmp_path)
    assert capsys.readouterr().err.count("has no folder /none/such") == 1
    assert not tasks(tmp_path, "calm")
    monkeypatch.setattr(work, "_probe", asked)
    assert run_sweep(sweep, tmp_path, progress=False)["calm"].cases["ok"] == sweep.size
