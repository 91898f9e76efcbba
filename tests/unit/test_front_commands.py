"""The commands around a sweep: status, list, open, new, the version, completion; overrides; headlines."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from click.testing import CliRunner

from sweeplib import __version__
from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.headlines import headline, rounded_interval, undecided_ends
from sweeplib.commands.cli import app
from sweeplib.commands.named_sweeps import folder_of
from sweeplib.commands.starter import write_new
from sweeplib.commands.status import _last_error, state, status_by_records
from sweeplib.commands.sweep import _at_the_end, _prepared
from sweeplib.config import from_mapping, load
from sweeplib.config.catalogue import catalogue, explanation, registry_of
from sweeplib.config.function_models import FunctionConfig, FunctionSections
from sweeplib.config.kinds import EVERY_KIND, KINDS
from sweeplib.config.models import SweepConfig
from sweeplib.config.options import cluster_settings, run_options
from sweeplib.config.overrides import Override
from sweeplib.config.reference import key_rows
from sweeplib.engine.execution.plan import write_plan
from sweeplib.engine.execution.run import DynamicsSummary, run_sweep
from sweeplib.engine.files.strict_yaml import document
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.engine.storage.records.config_files import READ, check_origin, record_origin, write_complete_config
from sweeplib.engine.storage.records.files import read_json, write_json
from sweeplib.engine.storage.records.provenance import version
from sweeplib.engine.storage.records.stage_records import (
    DIED,
    INTERRUPTED,
    WHOLE,
    StageRecord,
    forget_record,
    recorded_stage,
    tell,
)
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from tests.datasets import sweep_dataset
from tests.in_process import InProcess
from tests.plugged import nothing_left

RUNNER = CliRunner()
OF_ODE = {"name": "simulate.ode"}
PLAN = {"name": "plan", "counts": {"ode": 1200}, "made_from": {"settings": ""}, "ended": 1.0}
REFERENCE = Path(__file__).parents[2] / "config" / "README.md"
TEXT = """\
name: tiny
problem: {p: 1, k: 1, Delta: 0, activation: square, spherical: true, d: 50}
grid: {gamma: [0.05, 0.1]}
dynamics: [sgd_chain, ode]
times: [0, 1]
thresholds: [0.01]
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.yaml"
    path.write_text(TEXT)
    return Path("tiny.yaml")


def invoked(*arguments: Any, status: int = 0) -> str:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result.output


def test_the_version() -> None:
    assert invoked("--version") == f"sweeplib {version()}\n"
    assert version().partition("+")[0] == __version__


def test_status_of_an_unfinished_and_of_a_running_sweep(config: Path) -> None:
    directory = Path("results/tiny")
    idle = json.loads(invoked("status", config, "--json", status=3))
    assert (idle["state"], idle["running"], idle["report"], idle["last_error"]) == ("unfinished", [], None, None)
    assert idle["cases"]["ode"] == {
        "missing": 2,
        "ok": 0,
        "diverged": 0,
        "failed": 0,
        "killed": 0,
        "timeout": 0,
        "inaccurate": 0,
    }
    assert (idle["done"], idle["total"], idle["failed"]) == (0, 4, 0)
    with pytest.raises(KeyboardInterrupt), recorded_stage(directory, "plan"):
        raise KeyboardInterrupt
    interrupted = json.loads(invoked("status", config, "--json", status=3))
    assert (interrupted["state"], interrupted["last_error"]) == ("unfinished", "plan: interrupted")
    with pytest.raises(ValueError, match="no good"), recorded_stage(directory, "plan"):
        raise ValueError("no good")
    with recorded_stage(directory, "sweep"), recorded_stage(directory, "simulate"):
        tell(
            doing="compiling ode",
            done=1,
            total=4,
            cases={"killed": 1},
            seconds_left=90.0,
            dashboard="http://127.0.0.1:1/status",
            page="http://127.0.0.1:1/sweep",
        )
        running = json.loads(invoked("status", config, "--json", status=4))
        text = invoked("status", config)
    assert (running["state"], running["running"]) == ("running", ["simulate"])
    assert (running["done"], running["total"], running["failed"]) == (1, 4, 1)
    assert running["seconds_left"] == pytest.approx(90.0, abs=5.0)
    assert (running["dashboard"], running["page"]) == ("http://127.0.0.1:1/status", "http://127.0.0.1:1/sweep")
    assert running["last_error"] == "plan: ValueError: no good"
    assert text.startswith("tiny: running (simulate); 1 of 4 cases, 1 failed, 0:01:")
    links = "dashboard: http://127.0.0.1:1/status\nthis sweep: http://127.0.0.1:1/sweep"
    assert f"\ncompiling ode\n{links}\nlast error: plan: ValueError: no good\n" in text


@pytest.mark.parametrize(
    ("counts", "said", "status"),
    [
        (
            {"timeout": 3, "inaccurate": 2, "diverged": 1},
            "6 of 6 cases, 0 failed, 1 diverged, 3 timeout, 2 inaccurate",
            0,
        ),
        ({"ok": 1, "killed": 1, "failed": 2, "diverged": 1}, "5 of 5 cases, 3 failed, 1 diverged", 1),
    ],
)
def test_what_fails_and_what_is_an_outcome_is_the_same_for_all_commands(
    config: Path, monkeypatch: pytest.MonkeyPatch, counts: dict[str, int], said: str, status: int
) -> None:
    all_of = dict.fromkeys(("missing", "ok", "diverged", "failed", "killed", "timeout", "inaccurate"), 0) | counts
    monkeypatch.setattr("sweeplib.engine.storage.store.inventory.counts_of_cases", lambda *_: {"ode": all_of})
    monkeypatch.setattr("sweeplib.engine.execution.run.run_sweep", lambda *_, **__: {"ode": DynamicsSummary(all_of, 0)})
    stored = {"ode": counts, "sgd_chain": {}}
    summary = importlib.import_module("sweeplib.pictures.report.summary")
    monkeypatch.setattr(summary, "inventory", lambda _, name, __: SimpleNamespace(counts=lambda: stored[name]))
    state = "failed" if status else "finished"
    counted = said.partition(" cases, ")[2]
    assert invoked("status", config).startswith(f"tiny: {state}; {said}\n")
    assert json.loads(invoked("status", config, "--json", status=status))["outcomes"] == counted
    last = f"in all {counted}, of {sum(counts.values())} cases: see results/tiny/outcomes\n"
    assert invoked("run", config, status=status).endswith(last)
    assert "results/tiny/outcomes lists them" in invoked("summary", config, status=status)


@pytest.mark.rest
def test_an_inaccurate_case_says_when_and_which_bound_it_exceeded(config: Path) -> None:
    text = TEXT.replace("[sgd_chain, ode]", "{mean_field: {largest_drift_error: 1.0e-300}}")
    config.write_text(text.replace("activation: square", "activation: erf"))
    sweep = replace(load(config), cluster=InProcess(block_size=16))
    run_sweep(sweep, Path("results/tiny"), progress=False)
    [table] = Path("results/tiny/outcomes").iterdir()
    found = pd.read_csv(table)
    assert list(found.status) == ["inaccurate"] * 2 and list(found.gamma) == [0.05, 0.1]
    assert set(found.quantity) == {"drift_error"} and (found.bound == 1e-300).all() and (found.value > 0).all()
    why = f"at time 0, drift_error = {found.value[0]:.3g} was above its bound 1e-300"
    assert f"case {found.identity[0][:8]}: {why}" in invoked("status", config)
    said = invoked("reproduce", config, found.identity[0])
    assert f"in the store: inaccurate, {why}" in said and f"here: inaccurate, {why}" in said
    assert [path.name for path in Path("results/tiny/journal").glob("*reasons*")] == ["mean_field.reasons.jsonl"]


@pytest.mark.parametrize("cases", [{"ok": 2}, {"ok": 1, "missing": 1}])
def test_a_stage_that_was_stopped_is_unfinished_and_none_of_it_failed(cases: dict[str, int]) -> None:
    ended, stopped = StageRecord("plan", ended=1.0), StageRecord("figure.line", ended=1.0, problem=INTERRUPTED)
    died, failed = (
        StageRecord("simulate", host=os.uname().nodename, born=1.0),
        StageRecord("report", ended=1.0, problem="no good"),
    )
    for last in (stopped, died):
        assert state({"plan": ended, "last": last}, [cases]) == "unfinished"
    assert state({"plan": ended, "died": died, "report": failed}, [cases]) == "failed"
    assert state({"plan": ended}, [cases]) == ("unfinished" if "missing" in cases else "finished")


@pytest.mark.parametrize(("problem", "said"), [(INTERRUPTED, f"sweep: {INTERRUPTED}"), ("a bug", f"plan: {DIED}")])
def test_the_last_error_of_an_interrupted_sweep_is_the_interrupt(problem: str, said: str) -> None:
    """It ends the processes of stages before they can tell."""
    died = StageRecord("plan", host=os.uname().nodename, born=1.0)
    assert _last_error({"plan": died, WHOLE: StageRecord(WHOLE, ended=2.0, problem=problem)}) == said


def plain(text: str) -> Any:
    """Return what JSON says; it has no NaN, which other readers refuse."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


@pytest.mark.rest
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_names_are_listed_for_programs(kind: str) -> None:
    """All that the list for people has, each name with the meaning and the default of each option."""
    records = plain(invoked("list", kind, "--json"))
    lines = invoked("list", kind).splitlines()
    for record in records:
        assert {"name", "meaning", "options"} == record.keys() and record["meaning"]
        assert all({"name", "default", "meaning"} == option.keys() for option in record["options"])
        assert any(line.startswith(record["name"]) for line in lines), record["name"]
    if records and records[0]["name"].isidentifier():
        assert plain(invoked("list", kind, records[0]["name"], "--json")) == records[:1]


def test_a_folder_is_listed_for_programs_as_for_people(config: Path) -> None:
    directory = Path("results/tiny")
    assert plain(invoked("list", "--json")) == []
    record_origin(config, directory)
    record = {"sweep": "tiny", "state": "unfinished", "done": None, "cases": None, "report": None}
    assert plain(invoked("list", "--json")) == [record], "without a plan"
    write_json(directory / "stages/plan.json", PLAN)
    write_json(
        directory / "stages/simulate.ode.json",
        OF_ODE | {"counts": {"ok": 1100, "failed": 1}, "ended": 1.0},
    )
    (directory / "report").mkdir()
    (page := directory / "report" / "index.html").write_text("")
    record |= {"state": "failed", "done": 1101, "cases": 1200, "report": str(page)}
    assert plain(invoked("list", "--json")) == [record]


def test_a_folder_with_a_line_in_its_name_is_one_row(config: Path) -> None:
    record_origin(config, Path("results/two\nlines"))
    assert invoked("list").splitlines()[1].split() == ["two\\nlines", "unfinished", "-", "-"]


def test_the_sweeps_in_a_folder(config: Path) -> None:
    assert invoked("list") == "no sweeps in results\n"
    record_origin(config, Path("results/tiny"))
    write_json(Path("results/tiny/stages/plan.json"), PLAN)
    write_json(
        Path("results/tiny/stages/simulate.ode.json"),
        OF_ODE | {"counts": {"ok": 1100, "failed": 1}, "ended": 1.0},
    )
    heading, line = invoked("list").splitlines()
    assert heading.split() == ["sweep", "state", "cases", "report"]
    assert line.split() == ["tiny", "failed", "1,101", "of", "1,200", "-"], "a case failed"
    write_json(Path("results/tiny/stages/simulate.ode.json"), OF_ODE | {"counts": {"ok": 1100}, "ended": 1.0})
    assert invoked("list").splitlines()[1].split()[:4] == ["tiny", "unfinished", "1,100", "of"]
    write_json(
        Path("results/tiny/stages/simulate.ode.json"),
        OF_ODE | {"counts": {"ok": 1199, "timeout": 1}, "ended": 1.0},
    )
    assert invoked("list").splitlines()[1].split()[:4] == ["tiny", "finished", "1,200", "of"]
    write_json(Path("results/tiny/stages/plan.json"), PLAN | {"counts": {"ode": 600}})
    counted = invoked("list").splitlines()[1].split()[:5]
    assert counted == ["tiny", "finished", "1,200", "of", "1,200"], "a later plan, of a smaller grid, changes no result"
    Path("results/tiny/stages/simulate.ode.json").unlink()
    assert invoked("list").splitlines()[1].split()[:4] == ["tiny", "unfinished", "0", "of"]
    Path("results/tiny/stages/plan.json").unlink()
    assert invoked("list").splitlines()[1].split() == ["tiny", "unfinished", "-", "-"]


@pytest.mark.rest
def test_the_list_counts_the_cases_of_an_interrupted_sweep(config: Path) -> None:
    """Its marker is written at the end of a run; the store has the cases."""
    directory = Path("results/tiny")
    sweep = replace(load(config), cluster=InProcess(block_size=16))
    write_plan(sweep, directory, progress=False)
    run_sweep(sweep, directory, ["ode"], progress=False)
    forget_record(directory, "simulate.ode")
    assert invoked("list").splitlines()[1].split()[:5] == ["tiny", "unfinished", "2", "of", "4"]
    for named in (config, directory):
        assert json.loads(invoked("status", named, "--json", status=3))["done"] == 2
    assert "the same bits" in invoked("reproduce", directory, "gamma=0.1,dynamics=ode")
    assert "computing 2 cases again" in invoked("verify", directory)
    assert invoked("retry", directory, "gamma=0.1,dynamics=ode") == "ode: 1 case to run again\n"
    run_sweep(replace(sweep, runs={"ode": sweep.runs["ode"]}), directory, progress=False)
    assert invoked("list").splitlines()[1].split()[:5] == ["tiny", "finished", "2", "of", "2"], "no plan but the run's"


@pytest.mark.rest
@pytest.mark.parametrize("marked", [True, False])
def test_results_of_an_earlier_version_are_unfinished_in_the_list_and_by_the_status(marked: bool, config: Path) -> None:
    """All their cases are computed again, also those of a run that had not ended; these are the records of 0.2.0."""
    directory = Path("results/tiny")
    sweep = replace(load(config), cluster=InProcess(block_size=16))
    write_plan(sweep, directory, progress=False)
    run_sweep(sweep, directory, ["ode"], progress=False)
    write_complete_config(sweep, directory)
    changed = config.read_text().replace("times: [0, 1]", "times: [0, 2]")  # other identities, as by other code
    assert changed != config.read_text()
    config.write_text(changed)
    shutil.rmtree(directory / "stages")
    write_json(directory / "plan.done.json", dict.fromkeys(sweep.runs, 2))
    if marked:
        write_json(directory / "ode.done.json", {"sweep": "tiny", "dynamics": "ode", "cases": {"ok": 2}, "digest": "0"})
    assert invoked("list").splitlines()[1].split()[:5] == ["tiny", "unfinished", "0", "of", "4"]
    assert json.loads(invoked("status", config, "--json", status=3))["done"] == 0
    by_records = status_by_records(directory)
    assert (by_records.state, by_records.done, by_records.total) == ("unfinished", 0, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_of_a_kind_has_a_meaning_and_its_options(kind: str) -> None:
    text, page = invoked("list", kind), REFERENCE.read_text()
    assert max(map(len, text.splitlines())) <= 100
    for entry in catalogue(kind):
        assert f"{entry.name}: " in text and len(entry.meaning) > 5, entry
        assert all(option.meaning for option in entry.options)
        assert all(f"`{option.name}`" in page or kind in ("clusters", "dynamics") for option in entry.options)


def test_the_kinds_are_those_of_the_catalogue() -> None:
    assert len(invoked("list", "figures").splitlines()) <= 50
    assert "did you mean 'figures'" in invoked("list", "figure", status=2)
    assert invoked("list", "dynamics", "sde").startswith("sde: The diffusion")
    assert "hermite(c0, c1, ...): " in invoked("list", "activations") and "a formula: " in invoked("list", "targets")
    assert "did you mean 'sde'" in invoked("list", "dynamics", "sdee", status=2)


def test_places_that_cannot_hold_results(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, before any work; `~` is the home folder, which some shells leave to the command."""
    Path("nowhere").symlink_to("absent")
    Path("link.yaml").symlink_to("absent.yaml")
    monkeypatch.setenv("HOME", str(config.resolve().parent / "home"))
    said = "a folder of results"
    assert invoked("plan", config, "--results", "nowhere", status=2).startswith(
        "nowhere: a link to absent, which does not"
    )
    assert invoked("plan", config, "--results", config, status=2).startswith(f"{config}: a file; expected {said}")
    assert invoked("plan", "link.yaml", status=2).startswith("a link to absent.yaml, which does not exist; got 'link")
    assert "braces in the folder of results; got 'a{b}'" in invoked("sweep", config, "--results", "a{b}", status=2)
    assert json.loads(invoked("status", config, "--json", "--results=~/runs", status=3))["results"].endswith(
        "home/runs/tiny"
    )
    assert {path.name for path in Path().iterdir()} == {"nowhere", "link.yaml", "tiny.yaml"}


def test_a_pipe_that_nobody_writes_into_is_no_config(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeplib.config.PATIENCE", 0.2)
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        assert invoked("status", name, status=2).startswith(f"{name}: cannot be read: nobody writes into this pipe; ")


def test_a_config_from_a_pipe_is_read_once_and_named(config: Path) -> None:
    os.mkfifo("pipe")

    def status_of(text: str, status: int) -> str:
        writer = threading.Thread(target=Path("pipe").write_text, args=[text])
        writer.start()
        said = invoked("status", "pipe", status=status)
        writer.join()
        return said

    assert status_of(TEXT, 0).startswith("tiny: unfinished; 0 of 4 cases")
    assert "name: this key is needed" in status_of(TEXT.replace("name: tiny", ""), 2)
    record_origin(config, Path("results/tiny"))
    assert "has the results of" in status_of(TEXT, 2)


@pytest.mark.rest
@pytest.mark.parametrize(
    "name", ["origin.json", "stages/plan.json", "stages/simulate.ode.json", "journal/attempts.jsonl"]
)
def test_a_pipe_in_place_of_a_record_is_damage_and_nothing_waits_for_it(config: Path, name: str) -> None:
    path = Path("results/tiny", name)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    write_complete_config(load(config), Path("results/tiny"))
    if name == "origin.json":
        assert "origin.json: damaged" in invoked("status", config, status=1)
    for arguments in (["list"], ["verify", "results/tiny"], ["summary", "results/tiny"]):
        result = RUNNER.invoke(app, arguments)
        assert result.exit_code in (0, 1) and "an error in sweeplib" not in result.output


def test_a_working_folder_that_was_deleted(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Path("gone")
    gone.mkdir()
    monkeypatch.chdir(gone)
    Path("../gone").rmdir()
    for arguments in (["list"], ["plan", "../tiny.yaml"], ["new", "x.yaml"]):
        assert invoked(*arguments, status=2) == "the working folder was deleted; expected one that exists: `cd` to it\n"


def test_plugins_of_an_edited_folder_or_of_a_copy_are_not_executed(config: Path) -> None:
    """The sweep's own file names what is executed for its folder, and a line says it."""
    for name in ("mine", "other"):
        Path(f"{name}.py").write_text(f"open('{name}.executed', 'w').close()\n")
    config.write_text(f"{TEXT}plugins: [mine.py]\n")
    directory = Path("results/tiny")
    record_origin(config, directory)
    with nothing_left():
        written = write_complete_config(load(config), directory)
        said = f"results/tiny: executing its plugins, {Path('mine.py').resolve()}\n"
        assert said in invoked("status", directory)
    shutil.copytree(directory, "copies/of/tiny")
    refused = "plugins: not executed: the sweep's own file, "
    for command in ("verify", "retry", "prune", "watch", "report"):
        assert f"copies/of/tiny: {refused}which is not there" in invoked(command, "copies/of/tiny", status=2)
    written.write_text(written.read_text().replace("mine.py", "other.py"))
    for command in ("verify", "report"):
        assert f"{refused}{config.resolve()}, does not name" in invoked(command, directory, status=2)
    assert f"{refused}/" in invoked("reproduce", directory, "gamma=.05", status=2)
    assert not Path("other.executed").exists()


BASE = """\
problem: {p: 2, k: 1, activation: erf, m0: 0.1}
grid: {gamma: {linspace: [0.1, 0.7, 7]}, d: [100, 300], Delta: [0, 1]}
seeds: 4
dynamics: [sgd_chain, ode]
times: [0, 1, 2]
thresholds: [0.1]
figures: []
"""
"""A sweep in which the examples of options make sense."""
KEYS = [*key_rows()]
NAMES = [f"{kind}.{name}" for kind in KINDS for name in registry_of(kind)]


@pytest.mark.parametrize("address", [*KEYS, *NAMES])
def test_an_example_is_a_valid_part_of_a_config(address: str) -> None:
    """As a part of a sweep; a figure or an analysis that fits the sweep with its defaults fits with the example."""
    text = invoked("explain", address)
    meaning, _, example = text.partition("\n\n")
    assert meaning.startswith(f"{address if address in KEYS else address.partition('.')[2]}: ")
    part = document(example).data
    if (
        address in FunctionSections.model_fields
        or address in FunctionConfig.model_fields.keys() - SweepConfig.model_fields
    ):
        FunctionConfig.model_validate({"simulator": "own.py", "name": "any", **part})
    else:
        SweepConfig.model_validate({"dynamics": ["ode"], "times": [0], "name": "any", **part})
    for section in ("figures", "analyses") if "." in address else ():
        for name, options in part.get(section, {}).items():
            by_default, refused = refusal({section: [name]}), refusal(part)
            assert (refused is None) == (by_default is None), (options, refused)
            assert by_default is None or "option" not in str(refused)
    for name, value in part.get("problem", {}).items():
        PARAMETERS[name].adapter.validate_python(tuple(value) if isinstance(value, list) else value, strict=True)
    for name, options in part.get("dynamics", {}).items() if address in NAMES else ():
        run_options(name, options)
    assert "cluster" not in part or cluster_settings(part["cluster"])
    assert address.partition(".")[0] not in ("activations", "observables", "starts") or "unknown" not in str(
        refusal(part)
    )


def refusal(part: dict[str, Any]) -> InputError | None:
    content = document(BASE).data
    problem = content["problem"] | part.get("problem", {})
    try:
        from_mapping({"name": "any", **content, **part, "problem": problem})
    except InputError as error:
        return error
    return None


def test_what_cannot_be_explained() -> None:
    assert "did you mean 'line'" in invoked("explain", "figures.lin", status=2)
    assert "did you mean 'seeds'" in invoked("explain", "sedes", status=2)
    assert "did you mean 'gamma'" in invoked("explain", "gama", status=2)
    owners = invoked("explain", "rtol", status=2)
    assert "an option; got 'rtol'; expected one of those that have it: dynamics.gradient_flow" in owners
    assert "NAME.refine = seeds: " in invoked("explain", "answers")
    assert "'square'; expected one of activations.square, losses.square" in invoked("explain", "square", status=2)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_is_explained_by_its_name_alone(name: str) -> None:
    """As what it is below `problem`, and may be below `grid` and `derive`."""
    assert explanation(name) == explanation(f"grid.{name}") == explanation(f"problem.{name}")


def test_one_option_of_a_name_is_explained_as_errors_name_it() -> None:
    assert [option.name for option in explanation("dynamics.ode.rtol")[0].options] == ["rtol"]
    with pytest.raises(InputError, match=r"^figures\.line: no such option; got 'hu'; .* did you mean 'hue'\?"):
        explanation("figures.line.hu")


@pytest.mark.rest
def test_the_schema_for_an_editor_is_written_outside_of_a_clone(config: Path) -> None:
    Path("README.md").write_text("mine")
    assert invoked("schema") == "schema.json\nfunction-schema.json\n" and invoked("schema") == ""
    assert "$schema=schema.json" in invoked_new("mine.yaml")
    properties = json.loads(Path("schema.json").read_text())["properties"]
    assert set(properties) == {name.removesuffix("_") for name in SweepConfig.model_fields}
    Path("schema.json").write_text('{"title": "another"}')
    made = Path("new", "folder")  # as other commands make folders that they write into
    assert invoked("schema", "--directory", str(made)).splitlines()[0] == str(made / "schema.json")
    assert "not a schema of sweeplib" in invoked("schema", status=2)
    assert (Path("README.md").read_text(), Path("schema.json").read_text()) == ("mine", '{"title": "another"}')


def invoked_new(file: str) -> str:
    invoked("new", file)
    return Path(file).read_text()


def test_open_shows_the_report(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert "no report yet" in invoked("open", config, status=2) and not opened
    page = Path("results/tiny/report/index.html")
    page.parent.mkdir(parents=True)
    page.touch()
    assert invoked("open", config) == f"{page}\n"
    assert opened == [page.resolve().as_uri()]


def test_a_new_sweep_loads_and_is_never_written_over(config: Path) -> None:
    assert invoked("new", "mine.yaml") == "mine.yaml\n"
    sweep = load("mine.yaml")
    assert sweep.name == "mine" and "optimal_learning_rate" in sweep.analyses
    before = Path("mine.yaml").read_text()
    assert "there is such a file" in invoked("new", "mine.yaml", status=2)
    assert Path("mine.yaml").read_text() == before
    assert "NAME.yaml" in invoked("new", "mine.txt", status=2)


def test_completion_of_a_shell(tmp_path: Path) -> None:
    environment = os.environ | {"_SWEEPLIB_COMPLETE": "bash_complete", "COMP_WORDS": "sweeplib sw", "COMP_CWORD": "1"}
    command = [str(Path(sys.executable).with_name("sweeplib"))]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "plain,sweep" in done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("grid.d=300", [300]),
        ("grid.d=300,1000", [300, 1000]),
        ("grid.d=[300]", [300]),
        ("grid.gamma={linspace: [0, 1, 3]}", {"linspace": [0, 1, 3]}),
        ("grid.activation=erf, hermite(0, 1)", ["erf", "hermite(0, 1)"]),
        ("problem.activation=hermite(0, 1)", "hermite(0, 1)"),
        ("problem.a=[1, -1]", [1, -1]),
        ("seeds=64", 64),
        ("dynamics=ode", ["ode"]),
        ("dynamics.ode.rtol=1e-8", 1e-8),
        ('grid.target="a, b",c', ["a, b", "c"]),
        ("timeout=null", None),
    ],
)
def test_values_of_overrides(text: str, value: Any) -> None:
    assert Override(text).value == value


def test_a_field_moves_between_the_grid_and_the_problem(config: Path) -> None:
    sweep = load(config, ["grid.Delta=0,1", "problem.gamma=0.3"])
    assert sweep.grid.dims == ("Delta",)
    assert set(sweep.points("ode").cases.field("gamma").tolist()) == {0.3}


def test_a_config_with_overrides_is_its_folders_own(config: Path) -> None:
    """It loads the same sweep, keeps the origin, and another file with the same name is still refused."""
    directory = Path("results/tiny")
    sweep = load(config, ["grid.gamma=0.1,0.2", "seeds=3"])
    record_origin(config, directory)
    written = write_complete_config(sweep, directory, READ)
    again = load(written)
    assert again.source == sweep.source and yaml.safe_load(sweep.source)["seeds"] == 3
    check_origin(written, directory)
    record_origin(written, directory)
    assert read_json(directory / "origin.json") == {"config": "../../tiny.yaml"}


def test_a_key_given_twice_on_the_command_line_is_refused(config: Path) -> None:
    with pytest.raises(InputError, match=r"seeds: given twice; got \['seeds=4', 'seeds=9'\]"):
        load(config, ["seeds=4", "grid.gamma=0.1", "seeds=9"])


@pytest.mark.rest
@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("grid.d", "not an override"),
        ("grid.dd=3", "grid.dd"),
        ("seeds=-1", "override seeds=-1"),
        ("d=100,200", "expected grid.d=100,200"),
        ("p=3", "expected problem.p=3"),
    ],
)
def test_a_wrong_override_is_refused_before_any_work(override: str, said: str, config: Path) -> None:
    assert said in invoked("sweep", config, override, status=2)
    assert "no such profile" in invoked("sweep", config, "--profile", "slrum", status=2)
    assert not Path("results").exists()


def test_a_new_file_where_none_can_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for kind, name in (("sweep", "mine.yaml"), ("dynamics", "mine.py")):
        with pytest.raises(InputError, match=r"cannot be written .* a folder that you may write"):
            write_new(kind, tmp_path / "file" / name)
    with pytest.raises(InputError, match=r"not the name of a sweep's file.*first a letter or digit, and .yaml"):
        write_new("sweep", tmp_path / "my sweep.yaml")


@pytest.mark.rest
def test_headlines_of_the_optimal_learning_rate() -> None:
    """Interior optima in words, of stochastic dynamics first; those at the edge of the scan are counted."""
    ratios = np.linspace(0.3, 1.7, 10)
    ds = sweep_dataset(ratios=ratios, d=[300, 3000], Delta=[0.0, 1.0], seeds=64, dynamics=["ode", "sgd_chain"])
    analysis = ANALYSES["optimal_learning_rate"]
    found = analysis(ds)
    lines = headline(found, "gamma_opt").lines
    one = found.sel(dynamics="sgd_chain", d=3000, Delta=0.0).squeeze()
    assert analysis.headline == "gamma_opt"
    assert lines[0].startswith("optimal learning rate 0.09") and lines[0].endswith(
        " at d = 3000, Delta = 0 (sgd_chain)"
    )
    shown = [float(number.strip("[,]")) for number in lines[0].split()[3:6]]
    computed = [one[f"gamma_opt{end}"].item() for end in ("", "_low", "_high")]
    assert shown == pytest.approx(computed, abs=6e-4)
    edges = int(found.at_edge.sum())
    assert 0 < edges < 8 and len(lines) == 5
    assert lines[-2] == f"optimal learning rate: {8 - edges - 3} more points in the report"
    assert lines[-1] == f"optimal learning rate: at {edges} of 8 points the interval ends at the edge of the scan"
    text = headline(found, "gamma_opt", most=2).text
    quiet = found.gamma_opt.sel(dynamics="ode").values
    first, second = (line.removeprefix("optimal learning rate ").partition(" (")[0] for line in lines[:2])
    assert text == (
        f"The optimal learning rate of sgd_chain is {first}; and {second} (brackets: 95 % interval). For ode it is "
        f"between {quiet.min():.3f} and {quiet.max():.3f} at {8 - edges - 2} points. At {edges} of 8 points of all "
        "dynamics the interval ends at the edge of the scan: the truth may lie beyond."
    )
    apart = headline(found, "gamma_opt", most=3).text
    assert (
        f" at d = 3000, Delta = 0 for sgd_chain; {lines[1].split()[3]} [" in apart and " for ode; and between " in apart
    )


ODE = "For ode it is between 7.1 and 7.4 at 4 points."
SENTENCES = {
    1: "and between 0.20 and 0.40 at 3 more points (brackets: 95 % interval). For sde it is between 1.1 and 1.4 at 4",
    3: "and 0.40 at 1 more point (brackets: 95 % interval). For sde it is between 1.1 and 1.4 at 4 points.",
    5: "[1.090, 1.110] at d = 1 for sde; and between 1.2 and 1.4 at 3 more points for sde (brackets: 95 % interval).",
    8: "1.300 [1.290, 1.310] at d = 3 for sde; and 1.400 [1.390, 1.410] at d = 4 for sde (brackets: 95 % interval).",
}


@pytest.mark.parametrize("most", SENTENCES)
def test_each_range_of_a_headline_is_of_what_its_sentence_speaks_of(most: int) -> None:
    """With three dynamics of other optima, however many points are in words."""
    values = {"sgd_chain": [0.1, 0.2, 0.3, 0.4], "sde": [1.1, 1.2, 1.3, 1.4], "ode": [7.1, 7.2, 7.3, 7.4]}
    dims, grid = ("dynamics", "d"), np.array(list(values.values()))
    result = xr.Dataset(
        {"x": (dims, grid, {"long_name": "optimum"}), "x_low": (dims, grid - 0.01), "x_high": (dims, grid + 0.01)},
        coords={"dynamics": list(values), "d": [1, 2, 3, 4]},
        attrs={"confidence": 0.95},
    )
    text = headline(result, "x", most=most).text
    assert SENTENCES[most] in text and text.endswith(ODE)
    assert text.startswith("The optimum of sgd_chain is 0.100" if most < 4 else "The optimum is 0.100")
    bare = headline(result.assign(x_low=result.x_low.where(result.d > 1)), "x", most=1).text
    assert bare.endswith("At 3 of 12 points of all dynamics it has no interval.")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.0, 2.0], "between 0.0 and 2.0"),
        ([0.0, 0.0], "0 at 2 points"),
        ([1000.0, 1000.4], "between 1000.0 and 1000.4"),
        ([0.112, 0.114], "between 0.112 and 0.114"),
    ],
)
def test_the_digits_of_a_range_tell_its_ends_apart(values: list[float], text: str) -> None:
    column = np.array([5.0, *values])
    dims = ("dynamics", "d")
    result = xr.Dataset(
        {
            "x": (dims, column[None], {"long_name": "x"}),
            "x_low": (dims, column[None] - 1),
            "x_high": (dims, column[None] + 1),
        },
        coords={"dynamics": ["sgd"], "d": [1, 2, 3]},
    )
    assert f"; and {text}".replace(" at 2 points", " at 2 more points") in headline(result, "x", most=1).text


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ((1e-13, 0.9e-13, 1.1e-13), ["1e-13", "9e-14", "1.1e-13"]),
        ((1e20, 0.9e20, 1.2e20), ["1e+20", "9e+19", "1.2e+20"]),
        ((0.0, -1e-12, 1e-12), ["0", "-1e-12", "1e-12"]),
        ((1e-4, 0.9e-4, 1.1e-4), ["0.000100", "0.000090", "0.000110"]),
        ((0.5, 0.2, np.inf), ["0.50", "0.20", "inf"]),
        ((np.inf, 3.2, np.inf), ["inf", "3", "inf"]),
    ],
)
def test_very_small_and_large_numbers_have_an_exponent(numbers: tuple[float, ...], texts: list[str]) -> None:
    assert list(rounded_interval(*numbers)) == texts


def test_a_value_whose_interval_has_no_width_is_said() -> None:
    """As of deterministic dynamics, or of passages that all are at one recorded time."""
    dims = ("dynamics", "d")
    result = xr.Dataset(
        {name: (dims, [[2.0, 0.0]], {"long_name": "mean time"}) for name in ("x", "x_low", "x_high")},
        coords={"dynamics": ["ode"], "d": [1, 2]},
    )
    assert headline(result, "x").lines == ["mean time 2.0000 at d = 1 (ode)", "mean time 0 at d = 2 (ode)"]
    unknown = result.assign(x_low=result.x_low * np.nan, x_high=result.x_high * np.nan)
    assert headline(unknown, "x").text == "The mean time has no interval. At 2 of 2 points it has no interval."


def test_runs_that_end_at_their_error_are_counted() -> None:
    ds = sweep_dataset(seeds=3)
    error = xr.full_like(ds.risk, 1e-9).where(ds.dynamics == "ode").assign_attrs(error_of="risk")
    assert undecided_ends(ds.assign(risk_error=error.rename("risk_error"))) == []
    error[{"time": -1, "seed": 1}] = 10.0
    runs = int((ds.risk.sel(dynamics="ode").isel(time=-1)).notnull().sum())
    [line] = undecided_ends(ds.assign(risk_error=error.where(ds.dynamics == "ode").assign_attrs(error_of="risk")))
    assert line == f"population risk: {runs // 3} of {runs} runs end at or below its error, risk_error"


def test_a_number_without_an_interval_is_no_headline() -> None:
    ds = sweep_dataset(ratios=np.linspace(0.3, 1.7, 10), d=[3000], Delta=[0.0], seeds=64, dynamics=["ode"])
    found = ANALYSES["optimal_learning_rate"](ds)
    unknown = found.assign({name: found[name] * np.nan for name in ("gamma_opt", "gamma_opt_low", "gamma_opt_high")})
    main = headline(unknown.assign(gamma_opt=unknown.gamma_opt.assign_attrs(found.gamma_opt.attrs)), "gamma_opt")
    assert main.text == (
        f"The optimal learning rate is known at none of {unknown.gamma_opt.size} points, "
        "which needs 5 learning rates at which three runs or more exited."
    )
    assert main.lines == [
        f"optimal learning rate: known at none of {unknown.gamma_opt.size} points; "
        "it needs 5 learning rates at which three runs or more exited"
    ]


def test_points_that_never_ran_do_not_count() -> None:
    ds = sweep_dataset(ratios=[0.5, 1.0], d=[300, 3000], Delta=[0.0], seeds=3, dynamics=["ode", "sgd_chain"])
    left_out = (ds.dynamics == "ode") & (ds.d == 300)
    ran = ds.assign(status=xr.where(left_out, 0, ds.status).transpose(*ds.status.dims).assign_attrs(ds.status.attrs))
    found = ANALYSES["optimal_learning_rate"](ran)
    points = [headline(found, "gamma_opt", dataset=dataset).points for dataset in (None, ran)]
    assert points == [4, 3]


def test_an_optimum_without_noise_at_the_edge_is_counted() -> None:
    """Its interval has no width, as all runs of the ODE have one exit."""
    ds = sweep_dataset(ratios=np.linspace(0.3, 0.7, 8), d=[300, 3000], Delta=[0.0], seeds=64, dynamics=["ode"])
    found = ANALYSES["optimal_learning_rate"](ds)
    point = found.assign({f"gamma_opt_{end}": found.gamma_opt for end in ("low", "high")})
    assert bool(found.at_edge.all())
    assert headline(point, "gamma_opt").text == (
        "The optimal learning rate has no interval inside of the scan. "
        "At 2 of 2 points the interval ends at the edge of the scan: the truth may lie beyond."
    )
    assert headline(point, "gamma_opt").lines == [
        "optimal learning rate: at 2 of 2 points the interval ends at the edge of the scan"
    ]


def test_an_interval_below_the_digits_shown_is_left_out() -> None:
    ds = sweep_dataset(ratios=np.linspace(0.3, 1.7, 10), d=[3000], Delta=[0.0], seeds=64, dynamics=["ode"])
    found = ANALYSES["optimal_learning_rate"](ds)
    narrow = found.assign(gamma_opt_low=found.gamma_opt - 1e-12, gamma_opt_high=found.gamma_opt + 1e-12)
    assert headline(narrow, "gamma_opt").lines == [f"optimal learning rate {found.gamma_opt.item():.6f} (ode)"]


@pytest.mark.slow
def test_the_scan_of_a_new_sweep_contains_the_optima(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    invoked("new", "first.yaml")
    sweep = replace(load(Path("first.yaml")), cluster=InProcess(block_size=128))
    run_sweep(sweep, Path("results/first"), progress=False)
    found = ANALYSES["optimal_learning_rate"](open_dataset(finalise(sweep, Path("results/first"))))
    assert found.gamma_opt.notnull().all() and not found.at_edge.any()


def test_what_plugins_print_at_the_end_of_a_sweep_is_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(task: str, directory: str, file: str, output: int) -> int:
        os.write(output, b"a plugin is imported\n")
        Path(file).write_text('{"summary": "all ok"}')
        return 0

    monkeypatch.setattr("sweeplib.commands.sweep.ran", ran)
    assert _at_the_end(tmp_path) == {"summary": "all ok"}


IMPORTED = """
import importlib, sys
from sweeplib.config import load
from sweeplib.commands.sweep import CONFIG_IMPORTS
for module in CONFIG_IMPORTS:
    importlib.import_module(module)
before = set(sys.modules)
load("config/quickstart.yaml")
print(*(name for name in set(sys.modules) - before if name.startswith("sweeplib")))
"""


@pytest.mark.slow
def test_forks_import_nothing_to_read_a_config() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_sweep_reads_its_config_in_a_fork_which_says_what_plugins_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A config of which a fork makes nothing, or which cannot be read twice, is read here, where errors are raised."""
    statuses = [0, 1]

    def ran(task: str, file: str, *arguments: str, output: int, errors: int) -> int:
        os.write(output, b"a plugin is imported\n")
        os.write(errors, b"a plugin warns\n")
        Path(file).write_text('{"name": "by a fork"}')
        return statuses.pop(0)

    monkeypatch.setattr("sweeplib.commands.sweep.ran", ran)
    config = tmp_path / "scan.yaml"
    config.write_text("name: refused\nseed: 3\n")
    asked = partial(_prepared, config, ["seeds=2"], tmp_path, "local")
    assert asked() == {"name": "by a fork"}
    assert capsys.readouterr() == ("a plugin is imported\n", "a plugin warns\n")
    with pytest.raises(InputError, match="did you mean 'seeds'"):
        asked()
    assert capsys.readouterr() == ("", "")
    with pytest.raises(InputError, match="no such file"):
        _prepared(Path("/dev/fd/none"), [], tmp_path, "local")


def test_an_option_that_is_a_key_is_said_to_be_written_without_dashes() -> None:
    asked = RUNNER.invoke(app, ["sweep", "mine.yaml", "--root-seed=4"])
    assert asked.exit_code == 2
    assert "root_seed=VALUE" in asked.output


def test_the_working_folder_has_the_name_of_its_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sweeplib export .` wrote files without a name, and other commands took the sweep for another one."""
    folder = tmp_path / "results" / "mine"
    (folder / "report").mkdir(parents=True)
    (folder / "plan.json").touch()
    monkeypatch.chdir(folder)
    assert folder_of(Path(), (), Path("elsewhere")) == folder
    monkeypatch.chdir(folder / "report")
    assert folder_of(Path(".."), (), Path("elsewhere")) == folder
