"""Cases of a sweep that other sweeps of the same results folder have: taken to the bit, or computed, never mixed up."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from struct import unpack_from
from typing import Any
from zipfile import ZipFile

import pytest

from sweeplib.commands.upkeep.stored_cases import stored_cases
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution import plan, run, work
from sweeplib.engine.execution.blocks import run_block
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.versions import name_of
from sweeplib.engine.storage.records.files import read_json
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.origins import (
    append_forgotten,
    forgotten_cases,
    origin_paths,
    taken_cases,
    taken_from,
)
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL, Demand, demand_of, take
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import merged, write_content
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


def needed(sweep: Design, directory: Path, dynamics: str = "sgd_chain") -> Demand:
    """Return the cases that a sweep needs of a dynamics, and what is found of them in other stores."""
    return demand_of(inventory(sweep, dynamics, RunStore(directory, dynamics)))


def planned(sweep: Design, results: Path, dynamics: str = "sgd_chain") -> tuple[int, dict[str, int], int]:
    """Return how many cases a plan computes, how many it takes from where, and how many are done."""
    demand = needed(sweep, results / sweep.name, dynamics)
    taken = demand.counts
    return demand.todo, taken, sum(demand.wanted.counts().values()) - demand.todo - sum(taken.values())


@pytest.mark.slow
def test_the_overlap_of_two_grids_is_taken(tmp_path: Path) -> None:
    """Seeds, values and block sizes differ; the journal says where each segment comes from."""
    first, second = sweep_of("a"), sweep_of("b", (0.2, 0.4, 0.1), 7, size=3)
    ran(first, tmp_path)
    assert planned(second, tmp_path) == (22, {"a": 20}, 0)
    shown = repr(plan.write_plan(second, tmp_path / "b", progress=False))
    assert "sgd_chain: 20 cases are taken from a" in shown
    assert ran(second, tmp_path) == {"sgd_chain": 22}
    assert version(second, tmp_path) == alone(second, tmp_path)
    assert planned(second, tmp_path) == (0, {}, 42)
    store, origins = RunStore(tmp_path / "b", "sgd_chain"), taken_from(tmp_path / "b", "sgd_chain")
    common = inventory(first, "sgd_chain", store)
    for number, _, _ in common.by_segment():
        assert origins[store.segments[number].name] == "a"
    assert taken_cases(tmp_path / "b", "sgd_chain") == {"a": 20}
    assert sum(len(segment) for segment in store.segments if segment.name not in origins) == 22
    assert all(segment.path.stat().st_nlink == 2 for segment in store.segments if segment.name in origins)


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


def test_a_segment_whose_numbers_are_damaged_is_computed_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its identities can be read, so that the plan counts its cases as those of the other sweep."""
    ran(sweep_of("a"), tmp_path)
    segment = RunStore(tmp_path / "a", "sgd_chain").segments[1]
    damage_of(segment.path, "risk.npy")
    second = sweep_of("b")
    assert planned(second, tmp_path) == (0, {"a": 30}, 0)
    summary = run_sweep(second, tmp_path / "b")["sgd_chain"]
    assert summary.computed == len(segment)
    assert str(segment.path) in capsys.readouterr().err
    assert version(second, tmp_path) == alone(second, tmp_path)


def damage_of(path: Path, part: str) -> None:
    """Flip a bit in a part of a segment."""
    with ZipFile(path) as file:
        header = file.getinfo(part).header_offset
    content = bytearray(path.read_bytes())
    content[header + 30 + sum(unpack_from("<HH", content, header + 26)) + 10] ^= 4  # after the name and more
    path.write_bytes(content)


def test_a_damaged_segment_stops_no_other_sweep(tmp_path: Path) -> None:
    """Its cases are computed, those of others are taken."""
    ran(sweep_of("a"), tmp_path)
    segment = RunStore(tmp_path / "a", "sgd_chain").segments[0]
    damage_of(segment.path, "case_id.npy")
    second = sweep_of("b")
    assert planned(second, tmp_path) == (len(segment), {"a": 30 - len(segment)}, 0)
    [line] = needed(second, tmp_path / "b").unread
    assert line.startswith(f"sgd_chain: no cases are taken from {tmp_path / 'a'}: {segment.path}: damaged")
    assert ran(second, tmp_path) == {"sgd_chain": len(segment)}


def test_a_store_of_another_version_is_left_alone(tmp_path: Path) -> None:
    ran(sweep_of("a"), tmp_path)
    for segment in RunStore(tmp_path / "a", "sgd_chain").segments:
        del segment.header["shared"]["recording"]
        write_content(tmp_path / "a", "sgd_chain", merged([segment]))
        segment.path.unlink()
    second = sweep_of("b")
    [line] = needed(second, tmp_path / "b").unread
    assert line.endswith("it is of another version of sweeplib")
    assert ran(second, tmp_path) == {"sgd_chain": 30}


def test_a_damaged_segment_is_named_in_the_advice(tmp_path: Path) -> None:
    ran(sweep_of("a", seeds=2), tmp_path)
    segment = RunStore(tmp_path / "a", "sgd_chain").segments[0]
    segment.path.write_bytes(segment.path.read_bytes()[:-1])
    second = sweep_of("b", seeds=2)
    plan.write_plan(second, tmp_path / "b", progress=False)
    advice = (read_json(tmp_path / "b" / "plan.json") or {})["advice"]
    [line] = [line for line in advice if "no cases are taken" in line]
    assert line.startswith(f"sgd_chain: no cases are taken from {tmp_path / 'a'}: {segment.path}: damaged")
    (tmp_path / "c").write_text("a file beside the results")
    (tmp_path / "d" / "runs").mkdir(parents=True)
    assert ran(second, tmp_path) == {"sgd_chain": len(segment)}


def cut_after(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let segments of stores appear until there are as many, then fail."""
    calls, replace_file, link = itertools.count(1), Path.replace, Path.hardlink_to

    def next_one(path: Path) -> None:
        if path.suffix == ".npz" and "runs" in path.parts and next(calls) > last:
            raise RuntimeError("killed")

    def cut(path: Path, target: Path) -> Path:
        next_one(target)
        return replace_file(path, target)

    def cut_link(path: Path, target: Path) -> None:
        next_one(path)
        link(path, target)

    monkeypatch.setattr(Path, "replace", cut)
    monkeypatch.setattr(Path, "hardlink_to", cut_link)


def test_taking_that_is_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever segment is the last."""
    ran(sweep_of("a"), tmp_path)
    second = sweep_of("b", size=8)
    for last in (0, 3, 2):
        with monkeypatch.context() as patched:
            cut_after(last, patched)
            with pytest.raises(RuntimeError, match="killed"):
                ran(second, tmp_path)
    assert len(RunStore(tmp_path / "b", "sgd_chain").segments) == 5
    assert ran(second, tmp_path) == {"sgd_chain": 0}
    assert version(second, tmp_path) == alone(second, tmp_path)


def test_where_there_are_no_links_segments_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(sweep_of("a"), tmp_path)

    def refused(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    second = sweep_of("b")
    assert ran(second, tmp_path) == {"sgd_chain": 0}
    assert all(segment.path.stat().st_nlink == 1 for segment in RunStore(tmp_path / "b", "sgd_chain").segments)
    assert version(second, tmp_path) == alone(second, tmp_path)


def _retried(store: RunStore) -> None:
    store.forget(store.segments[0].ids[:3])


def _deleted(store: RunStore) -> None:
    store.segments[0].path.unlink()


@pytest.mark.parametrize("change", [_retried, _deleted])
def test_what_changes_after_it_was_found_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[RunStore], None]
) -> None:
    ran(sweep_of("a"), tmp_path)
    store = RunStore(tmp_path / "a", "sgd_chain")

    def late(*others: Any) -> Demand:
        change(store)
        return take(*others)

    monkeypatch.setattr(run, "take", late)
    second = sweep_of("b")
    assert ran(second, tmp_path)["sgd_chain"] == len(store.segments[0])
    assert version(second, tmp_path) == alone(second, tmp_path)


def test_what_was_made_missing_is_computed_and_taken_from_nobody(tmp_path: Path) -> None:
    """As by `retry`; a segment of the other sweep that has more than is missing here is not linked as a whole."""
    ran(sweep_of("a"), tmp_path)
    second = sweep_of("b")
    assert ran(second, tmp_path) == {"sgd_chain": 0}
    store = RunStore(tmp_path / "b", "sgd_chain")
    store.forget(store.ids[:3])
    assert planned(second, tmp_path) == (3, {}, 27)
    assert ran(second, tmp_path) == {"sgd_chain": 3}
    lost = RunStore(tmp_path / "b", "sgd_chain")
    fewer = min(lost.segments, key=len)
    fewer.path.unlink()
    assert ran(second, tmp_path)["sgd_chain"] <= len(fewer)
    store = RunStore(tmp_path / "b", "sgd_chain")
    assert sum(map(len, store.segments)) == len(store.ids) == 30
    assert version(second, tmp_path) == alone(second, tmp_path)


def test_a_block_that_a_lost_worker_has_stored_names_its_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the driver waits until it sees them, too."""
    reports = []

    def twice(_: Any, queue: Any, *_others: Any, **_named: Any) -> Iterator[Any]:
        while queue:
            block = queue.block(1)
            reports.append((run_block(block), run_block(block)))
            yield block, reports[-1][1]

    monkeypatch.setattr(work, "dispatched", twice)
    ran(sweep_of("a", (0.1,), seeds=1), tmp_path)
    assert reports
    for first, second in reports:
        assert first.segment and not first.stored_in
        assert (second.segment, second.stored_in, second.computed) == ("", {first.segment}, {})


def test_a_damaged_line_of_where_cases_come_from_is_found(tmp_path: Path) -> None:
    append_forgotten(tmp_path, "sgd_chain", [b"0" * 16])
    append_forgotten(tmp_path, "sgd_chain", [b"1" * 16])
    [_, path] = origin_paths(tmp_path, "sgd_chain")
    path.write_bytes(path.read_bytes().replace(b"3030", b"3130", 1))
    stored = stored_cases(sweep_of("a"), "sgd_chain", tmp_path)
    [finding] = stored.findings()
    assert (finding.path, finding.problem) == (path, "1 damaged lines, of where cases come from")
    stored.forget([finding])
    assert not list(stored.findings()) and forgotten_cases(tmp_path, "sgd_chain") == {b"1" * 16}


def test_a_link_brings_back_nothing_that_was_made_missing(tmp_path: Path) -> None:
    """Neither segment has a case that is stored, but one has what was made missing."""
    ran(sweep_of("b", (0.1,), seeds=1), tmp_path)
    RunStore(tmp_path / "b", "sgd_chain").forget(RunStore(tmp_path / "b", "sgd_chain").ids)
    ran(sweep_of("a", (0.1,), size=100), tmp_path)
    assert ran(sweep_of("b", (0.1,)), tmp_path) == {"sgd_chain": 2}


def test_a_sweep_can_be_told_to_compute_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(sweep_of("a", GAMMAS[:1], 1), tmp_path)
    monkeypatch.setenv(COMPUTE_ALL, "1")
    second = sweep_of("b", GAMMAS[:1], 1)
    store = RunStore(tmp_path / "b", "sgd_chain")
    wanted = inventory(second, "sgd_chain", store)
    assert demand_of(wanted).wanted is wanted
    assert ran(second, tmp_path) == {"sgd_chain": 2}
