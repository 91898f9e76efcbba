"""Of two files whose sweeps have the same name the second is refused; one file may change, grow and move."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.storage.records.config_files import ORIGIN, check_origin, is_lasting, record_origin
from sweeplib.errors import InputError

TEXT = "name: scan\ngrid: {gamma: [0.1]}\n"
OTHER = TEXT.replace("0.1", "0.2")
SWEEP = """\
name: scan
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50, gamma: 0.1}
dynamics: [ode]
times: [0, 1]
"""


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Return the file of a sweep that has results."""
    path = tmp_path / "config" / "first.yaml"
    path.parent.mkdir()
    path.write_text(TEXT)
    record_origin(path, tmp_path / "results" / "scan")
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "results" / "scan"


def beside(first: Path, name: str, text: str) -> Path:
    path = first.with_name(name)
    path.write_text(text)
    return path


def test_another_file_is_refused_and_told_what_to_do(first: Path, directory: Path) -> None:
    with pytest.raises(InputError) as refused:
        check_origin(beside(first, "second.yaml", OTHER), directory)
    said = str(refused.value)
    assert "second.yaml" in said and str(first.resolve()) in said and ORIGIN in said
    assert "\n" not in said


def test_names_that_differ_in_case_alone_are_one_where_the_file_system_has_one_folder(first: Path) -> None:
    """As on macOS, where the folder of `scan` is found under this name, too."""
    config = beside(first, "second.yaml", OTHER.replace("scan", "Scan"))
    found = first.parent.parent / "results" / "Scan"
    check_origin(config, found)
    found.symlink_to("scan")
    with pytest.raises(InputError, match=r"has the results of .*first\.yaml"):
        check_origin(config, found)


def test_a_name_that_is_the_files_own_counts(first: Path, directory: Path) -> None:
    first.write_text("grid: {gamma: [0.1]}\n")
    check_origin(beside(first, "second.yaml", OTHER), directory)
    named = first.rename(first.with_name("scan.yaml"))
    (directory / ORIGIN).unlink()
    record_origin(named, directory)
    with pytest.raises(InputError):
        check_origin(beside(first, "second.yaml", OTHER), directory)


def test_the_same_file_may_say_anything_else(first: Path, directory: Path) -> None:
    first.write_text(OTHER)
    check_origin(first, directory)


def test_a_copy_that_says_the_same_is_the_same_sweep(first: Path, directory: Path) -> None:
    check_origin(beside(first, "copy.yaml", TEXT), directory)


def test_a_file_that_was_renamed_or_has_another_name_now_is_no_other(first: Path, directory: Path) -> None:
    second = beside(first, "second.yaml", OTHER)
    first.write_text(TEXT.replace("scan", "elsewhere"))
    check_origin(second, directory)
    first.unlink()
    check_origin(second, directory)
    record_origin(second, directory)
    check_origin(second, directory)


def test_a_copy_does_not_take_over(first: Path, directory: Path) -> None:
    copy = beside(first, "copy.yaml", TEXT)
    record_origin(copy, directory)
    first.write_text(OTHER)
    check_origin(first, directory)
    with pytest.raises(InputError, match=r"first\.yaml"):
        check_origin(copy, directory)


def test_a_file_that_is_being_edited_keeps_its_results(first: Path, directory: Path) -> None:
    first.write_text("name: scan\ngrid: {gamma: [0.1")
    with pytest.raises(InputError, match=r"first\.yaml"):
        check_origin(beside(first, "second.yaml", OTHER), directory)


def test_a_file_in_memory_lasts_and_a_stream_does_not(first: Path) -> None:
    assert is_lasting(first) and not is_lasting(Path("/dev/stdin"))
    assert is_lasting(Path("/dev/shm/none.yaml")) and not is_lasting(Path("/dev/fd/63"))


def test_a_project_moves_with_its_results(first: Path, directory: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for part in ("config", "results"):
        shutil.move(tmp_path / part, moved / part)
    config, results = moved / "config", moved / "results" / "scan"
    check_origin(config / first.name, results)
    with pytest.raises(InputError):
        check_origin(beside(config / first.name, "second.yaml", OTHER), results)


def test_the_config_beside_the_results_is_theirs(first: Path, directory: Path) -> None:
    own = directory / "config.yaml"
    own.write_text(OTHER)
    check_origin(own, directory)
    before = (directory / ORIGIN).read_text()
    record_origin(own, directory)
    assert (directory / ORIGIN).read_text() == before


@pytest.mark.rest
@pytest.mark.parametrize(
    ("command", "name"), [("plan", "scan"), ("run", "off"), ("status", "0123"), ("finalise", "1e-8"), ("sweep", "on")]
)
def test_every_command_refuses_it(command: str, name: str, tmp_path: Path) -> None:
    """Names that are a truth value or a number in YAML 1.1 are names; a number in 1.2 has quotes."""
    text = SWEEP.replace("scan", repr(name) if name[0].isdigit() else name)
    record_origin(_written(tmp_path / "first.yaml", text), tmp_path / "results" / name)
    second = _written(tmp_path / "second.yaml", text.replace("gamma: 0.1", "gamma: 0.2"))
    result = CliRunner().invoke(app, [command, str(second), "--results", str(tmp_path / "results")])
    assert result.exit_code == 2
    assert "first.yaml" in result.stderr and len(result.stderr.splitlines()) == 1
    assert [path.name for path in (tmp_path / "results" / name).iterdir()] == [ORIGIN]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
