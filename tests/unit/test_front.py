"""The screen of a sweep: at 100 and 60 columns, without colours, and as lines where there is no terminal."""

import io
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sweeplib.commands.screen import PlainLines, Screen, view
from sweeplib.commands.snakemake import (
    profile_folder,
    refuse_read_only_folder,
    run_snakemake,
    snakemake_command,
    workflow_folder,
)
from sweeplib.commands.stages import settings
from sweeplib.commands.state import RunState, Stage
from sweeplib.engine.execution.estimates import DynamicsPlan, LayoutPlan, Plan
from sweeplib.engine.process.terminal import WIDEST, clock_time, console, counted, counts_table, duration, show, table
from sweeplib.engine.storage.records.stage_records import DIED, StageRecord
from sweeplib.errors import InputError, SweeplibError

BOX = re.compile("[\u2500-\u257f]")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*[349][0-7]m")
STAGES = (
    Stage("plan", ("plan",)),
    Stage("simulations", ("simulate",)),
    Stage("dataset", ("finalise",)),
    Stage("analyses", ("analyse.exit_times", "analyse.averages")),
    Stage("report", ("report",)),
)
PLAN = Plan(
    "wide",
    64,
    {
        "sgd_chain": DynamicsPlan(108, 1_382_400, 12_345, {"a": LayoutPlan(1_370_055, 128, 0.01, 5000)}),
        "gradient_flow": DynamicsPlan(108, 1_080_000, 0, {"a": LayoutPlan(1_080_000, 128, 0.01, 5000)}),
    },
    ("ode takes 98 % of the time",),
)
LINK = "http://127.0.0.1:8787/status"
PAGE = LINK.replace("status", "sweep")
COMPUTING = StageRecord(
    "simulate",
    started=1010.0,
    last_news=1100.0,
    done=1_234_567,
    total=2_450_055,
    cases={"failed": 1_234, "diverged": 56_789},
    rate=13_717.4,
    seconds_left=7384.0,
    dashboard=LINK,
    page=PAGE,
    table=PLAN.cells(),
)
NUMBERS = ("1,234,567 of 2,450,055", "1,234 failed", "56,789 diverged", "13,717.4 cases/s", "2:03:00 left", LINK, PAGE)


def state(*jobs: StageRecord, now: float = 1104.0, over: str = "") -> RunState:
    return RunState(STAGES, {job.name: job for job in jobs}, now, over)


PLANNED = StageRecord("plan", started=1000.0, ended=1009.0)


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard", highlight=False)


def screen(shown: RunState, width: int) -> list[str]:
    """Return the lines of the stages, without the codes of a terminal."""
    target = terminal(width)
    target.print(Screen("wide", target)._stages(shown))
    return [ESCAPE.sub("", line) for line in target.file.getvalue().splitlines()]


def test_numbers_of_things_agree_with_their_nouns():
    assert [counted(1), counted(2000), counted(1, "process"), counted(2, "process")] == [
        "1 case",
        "2,000 cases",
        "1 process",
        "2 processes",
    ]


@pytest.mark.parametrize("width", [100, 60])
def test_no_number_is_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = terminal(width)
    live = Screen("wide", target)
    monkeypatch.setattr("sweeplib.commands.screen.time.time", lambda: 1104.0)
    live.update(state(PLANNED, COMPUTING))
    target.print(live.render())
    text = ESCAPE.sub("", target.file.getvalue())
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for number in (*NUMBERS, "1,370,055", "1,080,000", "9 s", "0:01:34"):
        assert number in words, (number, text)
    assert "…" not in text


@pytest.mark.parametrize("width", [100, 60])
def test_a_table_of_all_statuses_fits(width: int) -> None:
    counts = dict.fromkeys(("missing", "ok", "diverged", "failed", "killed", "timeout"), 123_456)
    target = terminal(width)
    show(counts_table({"gradient_flow": counts}), target)
    text = target.file.getvalue()
    assert text.count("123,456") == 6
    assert max(len(ESCAPE.sub("", line)) for line in text.splitlines()) <= width


def test_statuses_that_no_case_has_are_left_out() -> None:
    headers = [column.header for column in counts_table({"ode": {"missing": 0, "ok": 3, "killed": 0}}).columns]
    assert headers == ["dynamics", "missing", "ok"]


def test_the_state_of_each_stage_is_visible() -> None:
    finalised = StageRecord("finalise", started=1110.0, ended=1112.0)
    one = StageRecord("analyse.exit_times", started=1112.0, ended=1115.0, problem="ZeroDivisionError: by zero")
    other = StageRecord("analyse.averages", started=1113.0)
    simulated = StageRecord("simulate", started=1010.0, ended=1020.0, done=4, total=4, rate=0.4)
    lines = screen(state(simulated, finalised, one, other, now=1120.0), 100)
    assert [" ".join(line.split()[1:]) for line in lines[-5:]] == [
        "plan up to date",
        "simulations 10 s 4 of 4 cases, 0 failed; 0.4 cases/s",
        "dataset 2 s",
        "analyses 8 s 1 of 2; exit_times: ZeroDivisionError: by zero",
        "report",
    ]
    assert [line[0] for line in lines[-5:-2]] == ["✓", "✓", "✓"]
    ended = screen(state(simulated, finalised, one, other, now=1120.0, over="failed"), 100)
    assert f"averages: {DIED}" in " ".join(" ".join(ended).split())
    assert sum(line.startswith("✗") for line in ended) == 1


def test_a_stage_of_which_one_job_is_up_to_date_ends() -> None:
    analyses = STAGES[3]
    one = StageRecord("analyse.averages", started=1113.0, ended=1115.0)
    now = state(one)
    assert not now.ended(analyses) and now.counts(analyses) == "1 of 2"
    later = state(one, StageRecord("report", started=1116.0))
    assert later.ended(analyses) and later.counts(analyses) == "1 of 2, 1 up to date"
    assert later.up_to_date(STAGES[0]) and not later.up_to_date(analyses)


def test_an_estimate_that_is_over_before_the_first_case_is_not_shown() -> None:
    simulations = STAGES[1]
    job = StageRecord("simulate", started=1000.0, last_news=1001.0, total=10, seconds_left=5.0)
    assert state(job, now=1002.0).pace(simulations) == "4 s left"
    assert state(job, now=1010.0).pace(simulations) == ""


def test_the_present_step_has_its_time() -> None:
    job = StageRecord("plan", started=1000.0, doing="compiling sgd_chain", doing_since=1001.0)
    assert state(job, now=1031.0).doing() == "compiling sgd_chain (30 s)"
    assert state(PLANNED).doing() == ""


def test_between_stages_the_time_is_that_since_the_last_job() -> None:
    live = Screen("wide", terminal(80))
    live.started = 1000.0
    assert live._step(state(now=1003.0)).endswith("Snakemake starts (3 s)")
    later = StageRecord("finalise", started=1010.0, ended=1020.0)
    assert live._step(state(PLANNED, later, now=1022.0)).endswith("Snakemake looks for what is left to do (2 s)")


def test_lines_come_at_ends_of_stages_at_long_steps_and_each_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = PlainLines("wide", console(errors=True), lambda: now[0])
    started = StageRecord("plan", started=1000.0, doing="compiling ode", doing_since=1002.0)
    for seconds in range(0, 130, 10):
        now[0] = float(seconds)
        lines.update(state(started, now=1000.0 + seconds))
    assert capsys.readouterr().err.splitlines() == [
        "wide: compiling ode ...",
        "wide: plan: running for 0:01:10; compiling ode (0:01:08)",
    ]
    lines.update(state(PLANNED, COMPUTING))
    done = StageRecord("simulate", started=1010.0, ended=1130.0, done=9, total=9, rate=0.075, table=PLAN.cells())
    lines.update(state(PLANNED, done))
    lines.update(state(PLANNED, done))
    said = capsys.readouterr().err
    assert not BOX.search(said) and "\x1b" not in said
    first, *table, link, page, plan, simulations = [line.rstrip() for line in said.splitlines()]
    assert first.startswith("wide: ") and table[0].split()[:3] == ["dynamics", "points", "cases"]
    assert (link, page) == (f"wide: dashboard: {LINK}", f"wide: this sweep: {PAGE}")
    assert plan == "wide: plan: done in 9 s"
    assert simulations == "wide: simulations: done in 0:02:00, 9 of 9 cases, 0 failed, 0.1 cases/s"
    lines.update(state(over="ok"))
    assert capsys.readouterr().err == "wide: nothing to compute: all is up to date\n"


@pytest.mark.parametrize("colours", [True, False])
def test_a_terminal_gets_one_live_screen(
    colours: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    with view("wide") as shown:
        shown.update(state(PLANNED, COMPUTING))
    said = capsys.readouterr().err
    assert bool(COLOUR.search(said)) == colours
    assert "\x1b[?25h" in said, "the cursor is shown again"
    assert "1,234,567 of 2,450,055 cases" in said


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with view("wide") as shown:
        shown.update(state(PLANNED))
    assert capsys.readouterr().err == "wide: plan: done in 9 s\n"
    assert not sys.stderr.isatty()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (61, "0:01:01"), (90061, "1 day, 1:01:01")]
)
def test_clock_times(seconds: float, text: str) -> None:
    assert clock_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (4.2e-7, "0.42 µs"),
        (3e-5, "30 µs"),
        (0.0025, "2.5 ms"),
        (26.2, "26 s"),
        (270.0, "4.5 min"),
        (11520.0, "3.2 h"),
        (7.2e6, "2,000 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_plan_is_read_from_its_record() -> None:
    assert Plan.of(PLAN.record()) == PLAN


def test_the_workflow_and_its_profiles_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (workflow_folder() / "Snakefile").is_file()
    assert profile_folder("local") == workflow_folder() / "workflow" / "profiles" / "local"
    (tmp_path / "config.yaml").write_text("cores: 1\n")
    assert profile_folder(str(tmp_path)) == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert profile_folder(f"~/{tmp_path.name}") == tmp_path, "the shell leaves `--profile=~/mine` as it is"
    with pytest.raises(InputError, match=r"no such profile; got 'slrum'; expected .* local, slurm"):
        profile_folder("slrum")
    (tmp_path / "config.yaml").write_text("cores: 0\n")
    with pytest.raises(InputError, match=r"config\.yaml: cores: no processors for jobs; got 0; expected 1 or more"):
        profile_folder(str(tmp_path))  # Snakemake would wait for ever


@pytest.mark.parametrize(
    "name", ["results", "a b", "/x/1e3", "2024", "1e3", "True", "nan", "[a]b", "[a]", "x.yaml", "ä=b"]
)
def test_snakemake_reads_each_path_as_text(name: str) -> None:
    from snakemake.cli import parse_config

    command = snakemake_command(Path(name), Path("results"), "local")
    read = parse_config(command[command.index("--config") + 1 :])
    assert Path(read["sweep"]) == Path(name) and read["results"] == "results"
    assert command[command.index("--workflow-profile") + 1] == "none"
    assert command[command.index("--directory") + 1] == ".", "the paths are relative to it, whatever a profile says"


def test_more_workers_than_processors_are_as_many_as_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake alone would start one for each processor; a profile that names a number has it."""
    monkeypatch.setattr("sweeplib.commands.snakemake.granted_processors", lambda: 2)
    (tmp_path / "config.yaml").write_text("cores: 1\n")

    def cores(profile: str, workers: int | None) -> list[str]:
        command = snakemake_command(Path("a.yaml"), Path("results"), profile, workers)
        return [word for before, word in pairwise(command) if before == "--cores"]

    assert cores("local", 4) == ["4"]
    assert cores("local", 2) == cores("local", None) == cores(str(tmp_path), 4) == []


@pytest.mark.parametrize("name", ["a: b.yaml", "x #1", "'a'"])
def test_a_path_that_snakemake_would_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a path that Snakemake can be given"):
        snakemake_command(Path(name), Path("results"), "local")


def test_a_stage_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines go to the log, and would fill the disk."""
    monkeypatch.setattr("sweeplib.commands.snakemake.MOST_PRINTED", 10**6)
    monkeypatch.setattr("sweeplib.commands.snakemake.SECONDS_BETWEEN_LOOKS", 0.02)
    words = [sys.executable, "-c", "while True: print(1000 * 'x')"]
    with pytest.raises(SweeplibError, match=r"snakemake\.log: over 1 MB were printed"):
        run_snakemake(words, tmp_path / "snakemake.log", lambda: None)


def test_a_table_that_is_written_to_no_terminal_breaks_no_line_of_its_title_or_caption() -> None:
    stream = io.StringIO()
    target = Console(file=stream, width=WIDEST, force_terminal=False)
    words = "a line that is longer than all cells of the table together"
    show(table(("name", "n"), [("a", "1"), ("longer", "22")], title=words, caption=f"{words}\n{words}"), target)
    assert stream.getvalue().splitlines() == [words, "name     n", "a        1", "longer  22", words, words]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no sweep is named; expected --config sweep=FILE"),
        ({"sweeps": "a.yaml"}, "not a key of the workflow; got 'sweeps'"),
        ({"sweep": ["a.yaml"]}, r"sweep: not a path; got \['a.yaml'\]; expected text"),
        ({"sweep": "a.yaml", "results": 2024}, "results: not a path; got 2024; expected text; `./2024` for a number"),
    ],
)
def test_what_names_no_sweep_is_refused(
    given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        settings(given)


def test_a_working_folder_that_cannot_be_written_is_refused_before_any_folder_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refuse_read_only_folder()
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match=r"cannot be written .* name FILE and --results from there"):
        refuse_read_only_folder()
    assert not list(tmp_path.iterdir())
