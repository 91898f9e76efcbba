"""The log of a stage: what it prints goes to its streams and into a file."""

import logging
import sys
from pathlib import Path

import pytest

from sweeplib.engine.process.stage_log import log_path, output_copy
from sweeplib.engine.process.terminal import echo


def test_what_is_printed_is_in_the_log_as_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "it.log"
    log.write_text("of the run before\n")
    with output_copy(log):
        sys.stdout.write("\x1b[1mplan\x1b[0m, γ\n")
        echo("a file is damaged", errors=True)
        handler = logging.StreamHandler()
        assert not sys.stdout.isatty() and sys.stdout.encoding.lower() == "utf-8"
    handler.emit(logging.makeLogRecord({"msg": "later"}))
    assert capsys.readouterr() == ("\x1b[1mplan\x1b[0m, γ\n", "a file is damaged\nlater\n")
    assert log.read_text() == "plan, γ\na file is damaged\n"


@pytest.mark.parametrize("place", ["link", "folder", "none"])
def test_a_log_that_cannot_be_written_changes_nothing(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written through a link, which is replaced."""
    log, other = tmp_path / "it.log", tmp_path / "other"
    other.write_text("mine")
    if place == "link":
        log.symlink_to(other)
    elif place == "folder":
        log.mkdir()
    else:
        log = tmp_path / "nowhere" / "it.log"
    with output_copy(log):
        echo("a line")
    assert capsys.readouterr().out == "a line\n" and other.read_text() == "mine"
    assert log.is_file() == (place == "link")


def test_a_stage_has_a_log_of_its_name() -> None:
    assert log_path(Path("results/it"), "figure.scan") == Path("results/it/journal/figure.scan.log")
