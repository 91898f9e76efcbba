"""Cases of a sweep that other sweeps of the same results folder have: taken to the bit, or computed, never mixed up."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution import plan, row_copies, run, work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.versions import name_of
from sweeplib.engine.storage.records.files import read_json, read_lines
from sweeplib.engine.storage.store import run_store
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.journal import journal, taken_from
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.layout_files import read_metadata, write_metadata
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL, other_cases
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.networks.simulation import Recording, cases
from tests.in_process import Here, computed
from tests.tiers import slow_but

load_plugins(["tests.faults.troubled"])

WHOLE = Recording((0.0, 0.5, 1.0, 2.0), (0.01, 0.02, 0.5), ("risk", "overlap_M"))
GAMMAS = (0.1, 0.2, 0.3)


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMPUTE_ALL)
    monkeypatch.setattr(work, "dispatched", computed)


def sweep_of(
    name: str,
    gammas: tuple[float, ...] = GAMMAS,
    seeds: int = 5,
    recording: Recording = WHOLE,
    dynamics: tuple[str, ...] = ("sgd_chain",),
    size: int = 4,
    **fields: Any,
) -> Design:
    axes = (Axis("gamma", gammas), Axis("Delta", (0.0, 0.25)))
    grid = Grid(axes, {"p": 2, "k": 1, "d": 20, "activation": "square"} | fields)
    runs = {each: Run(each) for each in dynamics}
    return Design(name, grid, tuple(range(seeds)), runs, recording, cluster=Here(block_size=size), source="name: x")


def ran(sweep: Design, results: Path) -> dict[str, int]:
    """Run a sweep in its folder; return the number of cases that were computed, by dynamics."""
    return {name: done.computed for name, done in run_sweep(sweep, results / sweep.name, progress=False).items()}


def version(sweep: Design, results: Path) -> str:
    return name_of(finalise(sweep, results / sweep.name))


def alone(sweep: Design, results: Path) -> str:
    """Return the version of the dataset of a sweep that computed all of its cases."""
    apart = results / f"alone_{sweep.name}"
    assert ran(sweep, apart) == {name: sweep.size_of(name) for name in sweep.runs}
    return version(sweep, apart)


def planned(sweep: Design, results: Path, dynamics: str = "sgd_chain") -> tuple[int, dict[str, int], int]:
    """Return how many cases a plan computes, how many it takes from where, and how many are done."""
    demand = plan._demand(sweep, dynamics, results / sweep.name)
    todo = sum(demand.todo.values())
    taken = demand.others.counts
    return todo, taken, sum(demand.wanted.counts().values()) - todo - sum(taken.values())


@pytest.mark.slow
def test_the_overlap_of_two_grids_is_taken(tmp_path: Path) -> None:
    """Seeds, values and block sizes differ; the journal says where each row comes from."""
    first, second = sweep_of("a"), sweep_of("b", (0.2, 0.4, 0.1), 7, size=3)
    ran(first, tmp_path)
    assert planned(second, tmp_path) == (22, {"a": 20}, 0)
    shown = repr(plan.write_plan(second, tmp_path / "b", progress=False))
    assert "sgd_chain: 20 cases are taken from a" in shown
    assert ran(second, tmp_path) == {"sgd_chain": 22}
    assert version(second, tmp_path) == alone(second, tmp_path)
    assert planned(second, tmp_path) == (0, {}, 42)
    store = RunStore(tmp_path / "b", "sgd_chain")
    known = inventory(first, "sgd_chain", store)
    for ids, numbers, rows in [(known.ids, known.layout, known.row)]:
        for identity, number, row in zip(ids.tolist(), numbers.tolist(), rows.tolist(), strict=True):
            if number >= 0:
                layout = list(store.layouts.values())[number]
                block = f"{layout.name}/{row // layout.block_size}"
                origin = taken_from(tmp_path / "b", "sgd_chain", block, row % layout.block_size)
                assert (origin or "").startswith("a/sgd_chain/p2_k1_"), identity
    lines = read_lines(journal(tmp_path / "b", "sgd_chain"))
    assert sum(sum(line["computed"].values()) for line in lines if "from" in line) == 20
    assert sum(sum(line["computed"].values()) for line in lines if "from" not in line) == 22


def test_under_another_name_nothing_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sweep_of("a", dynamics=("calm", "gradient_flow"))
    ran(first, tmp_path)
    before = version(first, tmp_path)
    monkeypatch.delattr(Here, "client")
    renamed = replace(first, name="z", cluster=Here())
    assert planned(renamed, tmp_path, "gradient_flow") == (0, {"a": 15}, 0), "Δ is not read: points share their cases"
    assert ran(renamed, tmp_path) == {"calm": 0, "gradient_flow": 0}
    assert name_of(finalise(first, tmp_path / "z")) == before


FEWER: dict[str, Recording] = {
    "thresholds in another order": replace(WHOLE, thresholds=(0.5, 0.01, 0.02)),
    "fewer thresholds": replace(WHOLE, thresholds=(0.02,)),
    "no thresholds": replace(WHOLE, thresholds=()),
    "fewer times": replace(WHOLE, times=(0.5, 2.0)),
    "observables in another order": replace(WHOLE, observables=("overlap_M", "risk")),
    "fewer observables": replace(WHOLE, observables=("risk",)),
    "fewer of all": Recording((2.0,), (0.5, 0.01), ("overlap_M",)),
}
MORE: dict[str, Recording] = {
    "a time": replace(WHOLE, times=(0.0, 0.5, 1.0, 1.5, 2.0)),
    "another last time": replace(WHOLE, times=(0.0, 0.5, 1.0)),
    "a threshold": replace(WHOLE, thresholds=(0.01, 0.02, 0.5, 0.6)),
    "an observable": replace(WHOLE, observables=("risk", "overlap_M", "student_norm")),
    "a stop at exits": replace(WHOLE, stop="exit"),
}


@pytest.mark.parametrize("change", slow_but(FEWER, "fewer of all"))
def test_what_records_less_is_taken(tmp_path: Path, change: str) -> None:
    """From another sweep, and from the same sweep before its config changed."""
    ran(sweep_of("a"), tmp_path)
    edited = sweep_of("a", recording=FEWER[change])
    assert ran(edited, tmp_path) == {"sgd_chain": 0}
    assert version(edited, tmp_path) == alone(edited, tmp_path)
    second = sweep_of("b", seeds=6, recording=FEWER[change], size=3)
    assert planned(second, tmp_path) == (6, {"a": 30}, 0)
    assert ran(second, tmp_path) == {"sgd_chain": 6}
    assert version(second, tmp_path) == alone(second, tmp_path)


@pytest.mark.parametrize("change", MORE)
def test_what_records_more_is_computed(tmp_path: Path, change: str) -> None:
    ran(sweep_of("a", GAMMAS[:1], 1), tmp_path)
    assert planned(sweep_of("b", GAMMAS[:1], 1, MORE[change]), tmp_path) == (2, {}, 0)


def test_stops_at_exits_are_those_of_the_same_thresholds(tmp_path: Path) -> None:
    stopping = replace(WHOLE, stop="exit")
    ran(sweep_of("a", recording=stopping), tmp_path)
    assert planned(sweep_of("b", recording=replace(stopping, thresholds=(0.01,))), tmp_path) == (30, {}, 0)
    second = sweep_of("b", recording=replace(stopping, thresholds=(0.5, 0.02, 0.01)))
    assert ran(second, tmp_path) == {"sgd_chain": 0}
    assert version(second, tmp_path) == alone(second, tmp_path)


def test_runs_on_weights_depend_on_their_times(tmp_path: Path) -> None:
    ran(sweep_of("a", dynamics=("sgd",)), tmp_path)
    fewer = {"times": FEWER["fewer times"], "exits": FEWER["fewer thresholds"]}
    assert planned(sweep_of("b", dynamics=("sgd",), recording=fewer["times"]), tmp_path, "sgd") == (30, {}, 0)
    second = sweep_of("b", dynamics=("sgd",), recording=fewer["exits"])
    assert ran(second, tmp_path) == {"sgd": 0}
    assert version(second, tmp_path) == alone(second, tmp_path)


@pytest.mark.slow
def test_errors_over_the_recording_times_are_those_of_all_times(tmp_path: Path) -> None:
    """`drift_error` is the largest at a recording time: with fewer times it is another number."""
    ran(sweep_of("a", dynamics=("sde",), seeds=1, activation="relu"), tmp_path)
    second = sweep_of("b", dynamics=("sde",), seeds=1, recording=FEWER["fewer times"], activation="relu")
    assert planned(second, tmp_path, "sde") == (6, {}, 0)
    second = replace(second, recording=FEWER["fewer observables"])
    assert planned(second, tmp_path, "sde") == (0, {"a": 6}, 0)


def test_nothing_is_taken_from_other_code_or_from_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sweep_of("a", (0.1, 101.0, 104.0), dynamics=("calm",))
    done = run_sweep(first, tmp_path / "a", progress=False)["calm"].cases
    assert done["failed"] and done["diverged"] and done["ok"]
    second = replace(first, name="b")
    assert planned(second, tmp_path, "calm") == (done["failed"], {"a": 30 - done["failed"]}, 0)
    assert ran(second, tmp_path) == {"calm": done["failed"]}
    assert name_of(finalise(first, tmp_path / "b")) == version(first, tmp_path)
    tables = [(tmp_path / name / "outcomes" / "calm.csv").read_text() for name in "ab"]
    assert tables[0] == tables[1] and tables[0].count("\n") == 1 + done["failed"] + done["diverged"]
    monkeypatch.setattr(cases, "numerics_version", lambda *_: "edited")
    cases.shared_values.cache_clear()
    try:
        assert planned(replace(first, name="c"), tmp_path, "calm") == (30, {}, 0)
    finally:
        cases.shared_values.cache_clear()


def test_damaged_rows_are_computed_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(sweep_of("a"), tmp_path)
    layout = next(iter(RunStore(tmp_path / "a", "sgd_chain").layouts.values()))
    chunk = layout.files(1)[2]
    content = bytearray(chunk.read_bytes())
    content[8] ^= 4
    chunk.write_bytes(content)
    second = sweep_of("b")
    summary = run_sweep(second, tmp_path / "b")["sgd_chain"]
    assert summary.computed == 4
    assert str(chunk) in capsys.readouterr().err
    assert version(second, tmp_path) == alone(second, tmp_path)


@pytest.mark.parametrize("part", ["status/c/0", "problem/c/0"])
def test_a_damaged_status_or_problem_stops_no_other_sweep(tmp_path: Path, part: str) -> None:
    """Damage in any layout that would be read; its cases are computed."""
    ran(sweep_of("a"), tmp_path)
    for layout in RunStore(tmp_path / "a", "sgd_chain").layouts.values():
        chunk = layout.path / part
        chunk.write_bytes(chunk.read_bytes()[:-1])
    second = sweep_of("b")
    assert planned(second, tmp_path) == (30, {}, 0)
    unread = plan._demand(second, "sgd_chain", tmp_path / "b").others.unread
    assert unread and all("no cases are taken from" in line and part in line for line in unread)
    assert ran(second, tmp_path) == {"sgd_chain": 30}


def test_a_store_of_another_version_is_left_alone(tmp_path: Path) -> None:
    ran(sweep_of("a"), tmp_path)
    path = next((tmp_path / "a").rglob("p2_*/zarr.json"))
    metadata = read_metadata(path, "")
    del metadata["attributes"]["shared"]["recording"]
    write_metadata({path: metadata})
    second = sweep_of("b")
    [line] = plan._demand(second, "sgd_chain", tmp_path / "b").others.unread
    assert line.endswith("it is of another version of sweeplib")
    assert ran(second, tmp_path) == {"sgd_chain": 30}


def test_a_damaged_folder_is_left_alone_and_named(tmp_path: Path) -> None:
    ran(sweep_of("a"), tmp_path)
    index = next((tmp_path / "a").rglob("case_id/c/0/0"))
    index.write_bytes(index.read_bytes()[:-1])
    second = sweep_of("b")
    assert planned(second, tmp_path) == (30, {}, 0)
    plan.write_plan(second, tmp_path / "b", progress=False)
    advice = (read_json(tmp_path / "b" / "plan.json") or {})["advice"]
    [line] = [line for line in advice if "no cases are taken" in line]
    assert line.startswith(f"sgd_chain: no cases are taken from {tmp_path / 'a'}: ") and str(index) in line
    (tmp_path / "c").write_text("a file beside the results")
    (tmp_path / "d" / "runs.zarr").mkdir(parents=True)
    assert ran(second, tmp_path) == {"sgd_chain": 30}


def cut_after(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let chunks of stores appear until there are as many, then fail."""
    calls, replace_file = itertools.count(1), Path.replace

    def cut(path: Path, target: Path) -> Path:
        if "c" in target.parts[-4:-1] and next(calls) > last:
            raise OSError("killed")
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", cut)


def test_a_copy_that_is_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write is the last; one thread copies, so that the same one is."""
    ran(sweep_of("a"), tmp_path)
    second = sweep_of("b", size=8)
    monkeypatch.setattr(row_copies, "THREADS", 1)
    for last in (0, 3, 8, 20):
        with monkeypatch.context() as patched:
            cut_after(last, patched)
            with pytest.raises(OSError, match="killed"):
                ran(second, tmp_path)
    assert ran(second, tmp_path) == {"sgd_chain": 0}
    assert version(second, tmp_path) == alone(second, tmp_path)


def _retried(layout: Layout) -> None:
    layout.reset(layout.status().nonzero()[0][:3])


def _forgotten(layout: Layout) -> None:
    layout.forget([0])


@pytest.mark.parametrize("change", [_retried, _forgotten])
def test_rows_that_change_after_they_were_found_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Layout], None]
) -> None:
    ran(sweep_of("a"), tmp_path)
    layout = next(iter(RunStore(tmp_path / "a", "sgd_chain").layouts.values()))

    def late(*others: Any) -> None:
        change(layout)
        row_copies.take(*others)

    monkeypatch.setattr(run, "take", late)
    second = sweep_of("b")
    assert ran(second, tmp_path)["sgd_chain"] == (layout.status() == Status.missing).sum() > 0
    assert version(second, tmp_path) == alone(second, tmp_path)


def test_a_sweep_can_be_told_to_compute_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(sweep_of("a", GAMMAS[:1], 1), tmp_path)
    monkeypatch.setenv(COMPUTE_ALL, "1")
    second = sweep_of("b", GAMMAS[:1], 1)
    store = RunStore(tmp_path / "b", "sgd_chain")
    wanted = inventory(second, "sgd_chain", store)
    assert other_cases(wanted, store).wanted is wanted
    assert ran(second, tmp_path) == {"sgd_chain": 2}


def test_the_journal_of_another_sweep_is_read_once_for_all_its_layouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = Grid((Axis("p", (1, 2, 3)),), {"k": 1, "d": 20, "gamma": 0.1, "Delta": 0.0, "activation": "square"})
    first = replace(sweep_of("a"), grid=grid)
    ran(first, tmp_path)
    assert len(RunStore(tmp_path / "a", "sgd_chain").layouts) == 3
    read: list[Path] = []
    monkeypatch.setattr(run_store, "processors", lambda directory, name: read.append(directory) or {})
    assert ran(replace(first, name="b"), tmp_path) == {"sgd_chain": 0}
    assert [directory.name for directory in read] == ["a"]
