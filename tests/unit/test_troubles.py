"""An error that ends a command is reported in one line: place, problem, remedy."""

import errno
import json
import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.process.command import command
from sweeplib.engine.process.messages import Messages
from sweeplib.engine.process.troubles import TRACEBACK, in_one_line
from sweeplib.engine.storage.records.files import partial
from sweeplib.errors import InputError, SweeplibError

CONFIG = """\
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50, gamma: 0.1}
dynamics: [ode]
times: [0, 1]
"""


def damaged() -> json.JSONDecodeError:
    with pytest.raises(json.JSONDecodeError) as error:
        json.loads("{")
    return error.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), ("where the output goes: no room", "free", "same command")),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), ("quota", "free some space")),
        (OSError(errno.EROFS, "Read-only file system", "/there/file"), ("/there/file", "--results")),
        (PermissionError(errno.EACCES, "Permission denied", b"/there/file"), ("/there/file", "--results")),
        (OSError("a text alone"), ("a text alone", "same command")),
        (MemoryError(), ("memory", "fewer workers")),
        (SweeplibError("two\nlines"), ("two lines",)),
        (damaged(), ("damaged",)),
    ],
)
def test_what_was_foreseen(error: Exception, words: tuple[str, ...], tmp_path: Path) -> None:
    said = in_one_line(error, tmp_path)
    assert "\n" not in said
    assert all(word in said for word in words)
    assert isinstance(error, SweeplibError) or str(tmp_path) in said or "/there" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["mine.csv", "config.yaml", ".hidden"])
def test_a_file_that_cannot_be_written_has_its_own_name(name: str, tmp_path: Path) -> None:
    """It is written under another one."""
    for number in (errno.EACCES, errno.ENOSPC):
        error = OSError(number, os.strerror(number), str(partial(tmp_path / name)))
        assert in_one_line(error).startswith(f"{tmp_path / name}: ")


def test_the_cause_is_told_where_it_was_foreseen(tmp_path: Path) -> None:
    error = RuntimeError("Nanny failed to start.")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert "free some space" in in_one_line(error, tmp_path)
    error.__cause__ = error
    assert "Nanny failed" in in_one_line(error, tmp_path)


def test_a_bug_leaves_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as raised:
        raise KeyError("a\nbug")
    said = in_one_line(raised.value, tmp_path)
    log = tmp_path / "journal" / "errors.log"
    assert "KeyError" in said and str(log) in said and "\n" not in said
    assert "test_a_bug_leaves_its_traceback" in log.read_text()
    assert TRACEBACK in in_one_line(raised.value, tmp_path / "absent")


@pytest.mark.parametrize(("error", "status"), [(InputError("no"), 2), (SweeplibError("no"), 1), (KeyError("no"), 1)])
def test_the_exit_status(error: Exception, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, command():
        raise error
    assert ended.value.code == status
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_environment_asks_for_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(KeyError), command():
        raise KeyError("no")


@pytest.mark.parametrize(
    "content", [b"{", b"", b"[]", b"\xff", b'{"dynamics": {"ode": {"layouts": {"a": {}}}}}', b"{}"]
)
def test_a_damaged_plan_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    plan = tmp_path / "results" / "tiny" / "plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_bytes(content)
    result = CliRunner().invoke(app, ["run", str(tmp_path / "tiny.yaml"), "--results", str(tmp_path / "results")])
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert str(plan) in result.stderr and f"delete {plan}" in result.stderr


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sweeplib.engine.storage.records.files import write_text

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_text(tmp_path / "file", "text")
    assert not list(tmp_path.iterdir())


def record(text: str, event: str | None = None) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": text})
    made.event = None if event is None else SimpleNamespace(value=event)
    return made


FAILED = """RuleException:
CalledProcessError in file "/project/workflow/rules/simulate.smk", line 15:
Command 'set -euo pipefail; trap '' INT;  python script.py' {}."""


@pytest.mark.parametrize(
    ("text", "event", "said"),
    [
        (FAILED.format("returned non-zero exit status 1"), "error", ""),
        (FAILED.format("returned non-zero exit status 2"), "error", ""),
        (FAILED.format("died with <Signals.SIGKILL: 9>"), "error", "simulate: its process was ended by SIGKILL"),
        (FAILED.format("returned non-zero exit status 137"), "error", "simulate: its process was ended by SIGKILL"),
        (FAILED.format("returned non-zero exit status 77"), "error", "simulate: its process ended with exit status 77"),
        ("Error in rule simulate", "job_error", ""),
        ("WorkflowError:\nAt least one job did not complete successfully.", "error", ""),
        ("Exiting because a job execution failed. Look below for error messages", None, ""),
    ],
)
def test_snakemakes_noise_is_not_shown(text: str, event: str | None, said: str, capsys: pytest.CaptureFixture) -> None:
    assert not Messages().filter(record(text, event))
    shown = capsys.readouterr().err
    assert shown.startswith(said) and len(shown.splitlines()) == bool(said)


@pytest.mark.parametrize("text", ["MissingInputException in rule plan", "Nothing to be done", "Job 3: simulations"])
def test_what_says_something_is_shown(text: str) -> None:
    assert Messages().filter(record(text, "job_info"))
