"""The command line: fast, one stage per command, errors in one line."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.storage.records.attempts import Attempt
from sweeplib.errors import InputError, SweeplibError
from sweeplib.pictures.report import Summary
from tests.tiers import slow_but

RUNNER = CliRunner()
CONFIG = """\
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50}
grid: {gamma: [0.05, 0.1]}
dynamics: [sgd_chain, ode]
times: [0, 1]
thresholds: [0.01]
analyses: [exit_times]
figures: [exited_fraction, risk_curves]
"""
COMMANDS = (
    *("sweep", "plan", "run", "status", "list", "open", "new", "retry"),
    *("finalise", "analyse", "figures", "report", "summary", "schema"),
)
COUNTS = {"missing": 0, "ok": 3, "failed": 1}
FIGURE_ATTEMPTS = {
    "exited_fraction": Attempt("figure", "exited_fraction", (Path("a.pdf"),), "ValueError: nothing"),
    "risk_curves": Attempt("figure", "risk_curves", (Path("b.pdf"), Path("b.png"))),
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Record the calls of every stage instead of executing them."""
    import_module("sweeplib.engine.execution.run")  # imported later, it would keep the replaced names
    seen: list[tuple[Any, ...]] = []

    def stage(module: str, name: str, result: Callable[..., Any]) -> None:
        def called(*arguments: Any, **options: Any) -> Any:
            named = (
                argument if isinstance(argument, str | Path | dict | list) else argument.name for argument in arguments
            )
            seen.append((name, *named))
            return result(*arguments)

        monkeypatch.setattr(f"{module}.{name}", called)

    from rich.table import Table

    stage("sweeplib.engine.execution.plan", "write_plan", lambda *_: SimpleNamespace(table=Table))
    stage("sweeplib.engine.execution.plan", "write_missing_plan", lambda *_: None)
    stage(
        "sweeplib.engine.execution.run",
        "run_sweep",
        lambda _, __, names: {name: SimpleNamespace(cases=COUNTS, computed=4) for name in names},
    )
    stage(
        "sweeplib.engine.storage.store.inventory", "counts_of_cases", lambda sweep, _: dict.fromkeys(sweep.runs, COUNTS)
    )
    stage("sweeplib.engine.storage.dataset.finalise", "finalise", lambda _, directory: directory / "dataset.zarr")
    stage("sweeplib.analysis", "write_analysis", lambda _, name, directory: Attempt("analysis", name, (directory,)))
    stage("sweeplib.pictures.figures", "write_figure", lambda _, name, directory: FIGURE_ATTEMPTS[name])
    stage("sweeplib.pictures.report", "write_report", lambda _, directory: directory / "report")
    stage("sweeplib.pictures.report", "summary", lambda *_: Summary("all is well", failed=False, directory=Path()))
    return seen


HELP = """
import sys
heavy, sys.argv = sys.argv[1:], ["sweeplib", "--help"]
from sweeplib.commands.cli import app
import sweeplib.commands.screen, sweeplib.commands.sweep  # what `sweep` has while Snakemake runs
try:
    app()
finally:
    assert not set(heavy) & set(sys.modules), set(heavy) & set(sys.modules)
"""


def invoked(*arguments: Any) -> Any:
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def test_help_names_every_command() -> None:
    result = invoked("--help")
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.output for command in COMMANDS)


def test_help_says_what_every_command_does_in_80_columns() -> None:
    """A line that does not fit would end with dots, in the middle of what the command does."""
    lines = RUNNER.invoke(app, ["--help"], terminal_width=80).output.partition("Commands:\n")[2].splitlines()
    assert len(lines) == len(app.commands) > len(COMMANDS)
    assert [line for line in lines if not line.endswith(".") or line.endswith("..")] == []


def test_the_page_of_commands_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()
    table = page.partition("| command |")[2].partition("\n\n")[0]
    commands = " ".join(row.split(" | ")[0] for row in table.splitlines())
    assert set(re.findall(r"`(?:sweeplib )?([a-z-]+)", commands)) == set(app.commands)


def test_help_loads_nothing_heavy() -> None:
    heavy = ("numpy", "numba", "scipy", "xarray", "zarr", "matplotlib", "distributed", "pydantic")
    subprocess.run([sys.executable, "-c", HELP, *heavy], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["plan"], [("write_plan",)]),
        (["run"], [("write_missing_plan", ["sgd_chain", "ode"]), ("run_sweep", ["sgd_chain", "ode"])]),
        (["status"], [("counts_of_cases",)]),
        (["finalise"], [("finalise",)]),
        (["analyse"], [("write_analysis", "exit_times")]),
        (["report"], [("write_report",)]),
        (["summary"], [("summary",)]),
    ],
)
def test_command_calls_its_stage(
    command: list[str], expected: list[tuple[Any, ...]], config: Path, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    result = invoked(*command, config, "--results", tmp_path / "out")
    assert result.exit_code == (command == ["run"]), result.output  # 1: a case failed
    directory = tmp_path / "out" / "tiny"
    with_sweep = {
        "write_missing_plan": lambda call: ("write_missing_plan", "tiny", directory, call[1]),
        "run_sweep": lambda call: ("run_sweep", "tiny", directory, call[1]),
        "write_analysis": lambda call: ("write_analysis", "tiny", call[1], directory),
    }
    assert calls == [with_sweep.get(call[0], lambda call: (*call, "tiny", directory))(call) for call in expected]


def test_run_takes_the_dynamics_named(config: Path, calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    result = invoked("run", config, "ode", "--results", tmp_path, "--no-progress")
    assert result.exit_code == 1
    assert [call[3] for call in calls] == [["ode"], ["ode"]], "the plan and the run"


def test_run_with_failed_cases_says_how_many(config: Path, calls: list[Any], tmp_path: Path) -> None:
    result = invoked("run", config, "--results", tmp_path)
    assert result.exit_code == 1
    assert "8 cases computed now; in all 2 failed, of 8 cases: see" in result.output
    assert [call[0] for call in calls] == ["write_missing_plan", "run_sweep"]


def test_a_failing_figure_stops_no_other_and_is_an_error(config: Path, calls: list[Any], tmp_path: Path) -> None:
    result = invoked("figures", config, "--results", tmp_path)
    assert result.exit_code == 1
    assert result.stdout == "b.pdf\nb.png\n"
    first, problem, second = result.stderr.splitlines()
    assert [re.sub(r"\d+\.\d s$", "", line) for line in (first, second)] == [
        "tiny: exited_fraction ... ",
        "tiny: risk_curves ... ",
    ]
    assert problem == "failed: figure exited_fraction: ValueError: nothing"
    assert [call[2] for call in calls] == list(FIGURE_ATTEMPTS)


def test_set_changes_the_sweep(config: Path, calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    result = invoked("run", config, "--set", "name=other", "--set", "dynamics=[ode]", "--results", tmp_path)
    assert result.exit_code == 1
    stages = ("write_missing_plan", "run_sweep")
    assert calls == [(stage, "other", tmp_path / "other", ["ode"]) for stage in stages]


@pytest.mark.parametrize(("command", "name"), [("run", "odes"), ("analyse", "exit_tims")])
def test_unknown_name_is_refused_with_a_suggestion(command: str, name: str, config: Path, tmp_path: Path) -> None:
    result = invoked(command, config, name, "--results", tmp_path / "out")
    assert result.exit_code == 2
    assert "did you mean" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("error", "status"), [(InputError("no"), 2), (SweeplibError("no"), 1)])
def test_refusals_are_one_line(
    error: SweeplibError, status: int, config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refusing(*_: Any) -> None:
        raise error

    monkeypatch.setattr("sweeplib.engine.storage.store.inventory.counts_of_cases", refusing)
    result = invoked("status", config, "--results", tmp_path)
    assert (result.exit_code, result.stderr, result.stdout) == (status, "no\n", "")


@pytest.mark.rest
def test_schema_says_when_it_is_stale(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# The keys of a config\n")
    stale = invoked("schema", "--directory", tmp_path, "--check")
    assert (stale.exit_code, stale.stderr.count("is stale")) == (1, 3)
    assert invoked("schema", "--directory", tmp_path).exit_code == 0
    assert invoked("schema", "--directory", tmp_path, "--check").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "function-schema.json", "schema.json"]


TOLD = """\
import os
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.process.command import whole_process
with whole_process(), open("data", "w") as data:
    with Steps("tiny").step("writing"):
        data.write("numbers")
        for number in (1, 2):
            os.write(number, b"a message of a library")
"""


@pytest.mark.rest
@pytest.mark.parametrize("closed", slow_but(["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-"], "<&- >&- 2>&-"))
def test_closed_streams_take_what_is_written_and_files_do_not(closed: str, tmp_path: Path) -> None:
    for command in (["-c", TOLD], ["-m", "sweeplib", "list", "plugins"]):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, *command]
        done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        assert "Traceback" not in done.stderr
    assert (tmp_path / "data").read_text() == "numbers"


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "\\xb5\\u03b3"), ("latin-1", "µ\\u03b3"), ("utf-8", "µγ")])
def test_what_a_stream_of_another_alphabet_cannot_show_is_spelled(encoding: str, shown: str) -> None:
    lines = (
        "from sweeplib.engine.process import command, terminal",
        "with command.whole_process():",
        "  terminal.echo('µγ')",
    )
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, check=True, env=environment)
    assert done.stdout.decode(encoding) == f"{shown}\n"


def test_what_a_plugin_wrote_to_a_file_that_it_left_open_arrives(tmp_path: Path) -> None:
    (tmp_path / "noting.py").write_text('LOG = open("log", "w")\n\n\ndef note():\n    LOG.write("noted")\n')
    code = "from sweeplib.engine.process import command as c\nimport noting\nwith c.whole_process():\n    noting.note()"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)
    assert (tmp_path / "log").read_text() == "noted"
