"""One case computed here, one case computed again by the next run, and what a config no longer uses."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.commands.upkeep.cases import CasesByName
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import partial, write_json
from sweeplib.engine.storage.store import inventory as inventory_module
from sweeplib.engine.storage.store.outcomes import append_reasons
from sweeplib.engine.storage.store.run_store import whole
from tests.faults.finished import CONFIG, Done
from tests.faults.persons import missing, put
from tests.unit.test_other_stores import damage_of


def identity(done: Done, status: Status) -> str:
    """Return the identity of a case that ended with this status."""
    ids = [each for segment in done.segments for each in segment.ids[segment.status == status].tolist()]
    return whole(ids[0]).hex()


def test_a_case_is_reproduced_to_the_bit_by_its_coordinates_or_its_identity(done: Done) -> None:
    status, said = done.told("reproduce", "gamma=1e-1, p=2,seed=3")
    assert status == 0
    case, stored, here, outcome = said.splitlines()
    assert case.endswith(": dynamics=calm,gamma=0.1,p=2,seed=3")
    assert (stored, here) == ("in the store: ok", "here: ok")
    assert outcome.startswith("the same bits: ") and "overlap_M" in outcome
    assert done.told("reproduce", case.split()[1][:8]) == (0, said)


def test_identities_that_end_with_zeros_are_found() -> None:
    """One in 256 does; numpy drops these bytes from its texts."""
    identities = [bytes(range(1, 15)) + end for end in (b"\1\1", b"\1\0", b"\0\0")]
    found = CasesByName(SimpleNamespace(ids=np.array(identities, "S16"), distinct=np.arange(3)))
    assert found.places(identities).tolist() == [0, 1, 2]
    assert found.places(np.array(identities, "S16").tolist()).tolist() == [0, 1, 2]
    assert found.places([bytes(16)]).tolist() == []


def test_other_bits_are_shown(done: Done) -> None:
    segment = done.segments[0]
    row, steps = int(np.flatnonzero(segment.status == Status.ok)[0]), segment.data("end_steps")
    before = float(steps[row])
    steps[row] = before + 1
    done.replace_values(segment, end_steps=steps)
    status, said = done.told("reproduce", whole(segment.ids[row]).hex())
    assert status == 1
    shown = f"1 of 1 values of end_steps differ: end_steps is {before + 1!r} in the store, {before!r} here"
    assert said.splitlines()[-1] == shown


def test_a_failure_is_reproduced_with_its_traceback(done: Done, capfd: pytest.CaptureFixture[str]) -> None:
    status, said = done.told("reproduce", identity(done, Status.failed))
    assert status == 0
    assert "in the store: failed, ArithmeticError: a case that raises" in said
    assert "here: failed, ArithmeticError: a case that raises" in said
    assert 'raise ArithmeticError("a case that raises")' in said + capfd.readouterr().err
    assert done.told("reproduce", identity(done, Status.diverged))[0] == 0


def test_stored_text_gives_no_command_to_a_terminal(done: Done) -> None:
    """Of whoever wrote the folder: an escape sequence can hide what was printed, or type into the terminal."""
    case = identity(done, Status.failed)
    trouble = Trouble("Error: \x1b[2J\x9b2J\rgone")
    append_reasons(done.directory, "calm", [(bytes.fromhex(case), Status.failed, trouble)])
    said = done.told("reproduce", case)[1]
    assert "failed, Error: \\x1b[2J\\x9b2J\\rgone" in said
    assert not set(said) & {"\x1b", "\x9b", "\r"}
    job = done.directory / "stages" / "simulate.json"
    write_json(job, {"name": "simulate", "started": 1.0, "ended": 2.0, "problem": "\x1b]0;title\a"})
    assert "\\x1b]0;title\\x07" in done.told("status")[1]


def test_a_case_runs_in_the_debugger(done: Done) -> None:
    status, said = done.told("reproduce", "gamma=.1,p=2,seed=3", "--debug", typed="p 'at the', 'start'\ncontinue\n")
    assert status == 0 and "('at the', 'start')" in said and "the same bits" in said
    status, said = done.told("reproduce", identity(done, Status.failed), "--debug", typed="c\np type(self)\nq\n")
    assert status == 0 and "troubled.Calm" in said, "it stops where the exception is raised"
    status, said = done.told("reproduce", "gamma=.1,p=2,seed=3", "--debug", typed="quit\n")
    assert status == 1 and "the debugger was left before the case ended" in said


def test_the_debugger_executes_no_file_that_others_wrote(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's debugger executes .pdbrc of the working folder, which may be that of a stranger's results."""
    monkeypatch.chdir(done.config.parent)
    commands = Path(".pdbrc")
    commands.write_text("p 'of', 'pdbrc'\n")
    for case in ("gamma=.1,p=2,seed=3", identity(done, Status.failed)):
        for mode, is_executed in ((0o600, True), (0o666, False)):
            commands.chmod(mode)
            said = done.told("reproduce", case, "--debug", typed="c\nq\n")[1]
            assert ("('of', 'pdbrc')" in said) == is_executed, said
            assert (".pdbrc: not executed: all users may write there" in said) != is_executed


def test_a_case_that_is_not_computed_yet_is_computed_here(done: Done) -> None:
    done.config.write_text(CONFIG.replace("seeds: 6", "seeds: 8"))
    status, said = done.told("reproduce", "gamma=.1,p=1,seed=7")
    assert (status, said.splitlines()[-1]) == (0, "nothing to compare with: the case is not computed yet")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("seed=3,p=1", "4 cases have these coordinates; got 'seed=3,p=1'; expected also gamma (0.1|0.2|101.0|104.0)"),
        ("p=7,gamma=.1,seed=1", "p: no case has this value; got '7'; expected one of 1, 2"),
        ("gama=.1", "gama: not a coordinate of this sweep; got 'gama'; "),
        ("dynamics=calmer,seed=1", "dynamics: not a dynamics of this sweep; got 'calmer'; expected one of calm"),
        ("zz", "not a case; got 'zz'; expected an identity (4 to 32 hexadecimal digits), or coordinates such as"),
        ("0000000000", "no case of this config has this identity; got '0000000000'"),
        ("p=1,p=2,seed=1", "a coordinate is given twice"),
    ],
)
def test_a_name_of_no_case_is_refused_in_a_line(finished: Done, case: str, said: str) -> None:
    status, lines = finished.told("reproduce", case)
    assert (status, lines.count("\n")) == (2, 1)
    assert lines.startswith(said)


def test_one_case_is_retried(done: Done) -> None:
    assert done.told("retry", "p=2,gamma=101,seed=3") == (0, "calm: 1 case to run again\n")
    assert done.told("retry", "p=2,gamma=101,seed=3") == (0, "calm: 0 cases to run again\n")
    assert not (done.directory / "outcomes" / "calm.csv").exists(), "it is written when all cases are done"
    assert done.told("retry", "all") == (0, "calm: 3 cases to run again\n")
    status, said = done.told("retry", "failde")
    assert status == 2 and "did you mean 'failed'?" in said
    assert done.told("retry", "failed", "p=1,seed=2")[0] == 2


def test_status_tells_scripts_how_a_sweep_stands(done: Done) -> None:
    assert done.told("status")[0] == 0
    assert done.told("status", "--json")[0] == 1, "two cases failed"
    done.told("retry", "failed")
    assert done.told("status", "--json")[0] == 3, "cases are missing"
    done.config.write_text(CONFIG.replace(", 101, 104", ""))
    assert done.told("status", "--json")[0] == 0


def sizes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def test_nothing_stale(finished: Done) -> None:
    status, said = finished.told("prune")
    assert status == 0 and said.splitlines()[-1] == "nothing is stale"


def test_what_a_smaller_config_does_not_use_is_listed_and_deleted_only_if_asked(done: Done) -> None:
    smaller = CONFIG.replace(", 101, 104", "").replace("analyses: [exit_times]", "analyses: []")
    done.config.write_text(smaller.replace("seeds: 6", "seeds: 2"))
    assert done.told("finalise")[0] == 0
    left = partial(done.directory / "dataset.zarr")
    left.mkdir()
    (left / "zarr.json").write_text("{}")
    log = done.directory / "journal" / "analyse.exit_times.log"
    log.write_text("what it printed\n")
    foreign = [done.directory / "failures" / name for name in ("notes.json", f"{'1' * 32}.json")]
    write_json(done.directory / "failures" / f"{'0' * 32}.json", {"problem": {}, "seed": 0, "status": "diverged"})
    for path in foreign:
        path.write_text("{}")
    before, size = done.dataset, sizes(done.directory)
    status, said = done.told("prune")
    assert status == 0 and sizes(done.directory) == size
    for what in (
        "cases of other configs or of other code: calm/p1_k1_w",
        "the version of the dataset before the present one: ",
        "analysis exit_times, which is not in the config",
        "descriptions of 1 case, by an earlier version of sweeplib",
        "temporary files of writers that were killed",
        "in all ",
    ):
        assert what in said, (what, said)
    assert done.told("prune", "--delete")[1].splitlines()[-1].endswith(" deleted")
    assert sizes(done.directory) < size / 2
    assert all(path.read_text() == "{}" for path in foreign), "files of a person"
    assert not log.exists()
    assert done.told("prune")[1].splitlines()[-1] == "nothing is stale"
    assert done.dataset == before
    assert done.verified()[0] == 0
    assert done.told("finalise")[0] == 0 and done.dataset == before


def test_remembered_identities_are_checked_and_stale_for_another_config(
    done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory_module, "FEWEST", 1)
    assert done.told("plan")[0] == 0
    path = done.directory / "inventory" / "calm.npz"
    assert done.told("prune")[1].splitlines()[-1] == "nothing is stale"
    damage_of(path, "ids.npy")
    status, found = done.verified("--sample", "0")
    assert status == 1 and [each["file"] for each in found["damaged"]] == [str(path)], found
    done.verified("--sample", "0", "--repair")
    assert not path.exists()
    assert done.told("plan")[0] == 0 and path.exists()
    done.config.write_text(CONFIG.replace("seeds: 6", "seeds: 5"))
    assert "identities of the cases of other configs" in done.told("prune")[1]


@pytest.mark.slow
def test_runs_of_a_dynamics_that_was_taken_out_are_stale(done: Done) -> None:
    done.config.write_text(CONFIG.replace("dynamics: [calm]", "dynamics: [troubled]"))
    status, said = done.told("prune")
    assert status == 0 and "runs of calm, which is not in the config" in said
    status, said = done.told("prune", "--delete")
    assert status == 2 and "the present results are of another config; expected `sweeplib sweep`" in said
    assert (done.directory / "runs" / "calm").exists()
    for command in ("run", "finalise"):
        assert done.told(command)[0] == (command == "run")  # 1: of these cases some fail
    assert done.told("prune", "--delete")[0] == 0
    assert not (done.directory / "runs" / "calm").exists()


def test_cases_of_the_present_dataset_or_of_the_last_run_are_not_pruned_by_another_config(done: Done) -> None:
    """They were made with overrides; the file on the disk says fewer seeds."""
    cases = sum(map(len, done.segments))
    for command in (("run", "--set", "seeds=8"), ("finalise", "--set", "seeds=8")):
        assert done.told(*command)[0] == (command[0] == "run")  # 1: of these cases some fail
        status, said = done.told("prune", "--delete")
        assert status == 2 and "the present results are of another config" in said.splitlines()[-1]
        assert sum(map(len, done.segments)) == cases + 16
    assert done.told("prune", "--delete", "--set", "seeds=8")[0] == 0
    assert sum(map(len, done.segments)) == cases + 16


OF_FAILED_CASES = ("run", "summary")
"""The commands whose exit status is 1 if cases failed."""
OTHERS = {
    "list": ["list"],
    "explain": ["explain", "seeds"],
    "new": ["new", "new.yaml"],
    "schema": ["schema"],
    "test-plugin": ["test-plugin", "new.py"],
    "sweep": [],  # tests/faults/test_places.py
    "explore": [],  # reads the dataset alone: tests/unit/test_explore.py
    "answer": [],  # it is `run`, for a config that has questions
}
"""The commands that do not begin with the file of the sweep, or are those that are tested elsewhere."""


def test_files_that_a_person_put_into_the_results_are_there_after_any_command(
    done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(done.config.parent)
    monkeypatch.setattr("webbrowser.open", lambda _: None)
    Path("new.py").write_text("")
    figures = ("--set", "figures=[risk_curves]")
    assert done.told("finalise", "--set", "seeds=5")[0] == 0
    persons = put(done.directory)
    first = ("plan", "run", "finalise", "analyse", "figures", "report", "open", "watch")
    then = ("retry", "run", "verify", "reproduce", "status", "summary", "export")
    for command in (*first, *then):
        more = {"figures": figures, "reproduce": ("gamma=0.1,p=1,seed=0",), "export": ("--to", "csv")}.get(command, ())
        status, said = done.told(command, *more)
        assert (status, missing(persons)) == (command in OF_FAILED_CASES, []), (command, said)
    for words in filter(None, OTHERS.values()):
        assert CliRunner().invoke(app, words).exit_code in (0, 1, 2) and not missing(persons), words
    assert done.told("verify", "--repair")[0] == 0
    smaller = CONFIG.replace(", 101, 104", "").replace("analyses: [exit_times]", "analyses: []")
    done.config.write_text(smaller.replace("seeds: 6", "seeds: 2"))
    for last in (("run",), ("finalise",), ("prune", "--delete"), ("verify", "--repair")):
        status, said = done.told(*last)
        assert (status, missing(persons)) == (0, []), (last, said)
    assert not (done.directory / "analysis" / "exit_times.zarr" / "zarr.json").exists()
    assert {*first, *then, *OTHERS, "prune"} == set(app.commands), "all commands that `--help` lists"
