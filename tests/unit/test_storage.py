"""The run store: a segment is there whole or not at all, and gives back what was written, or says that it cannot."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.groups import group_name
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.store import run_store
from sweeplib.engine.storage.store.inventory import cost_class, layout_name
from sweeplib.engine.storage.store.origins import append_origin, taken_cases
from sweeplib.engine.storage.store.run_store import RunStore, segment_paths
from sweeplib.engine.storage.store.segment import (
    Segment,
    empty_values,
    merged,
    segment_header,
    write_content,
    write_segment,
)
from sweeplib.errors import SweeplibError
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import Problem
from sweeplib.networks.rows import cases_of, index_of, shared_fields
from sweeplib.networks.simulation import Case, Cases, Recording, case_work

load_plugins(["tests.faults.troubled"])


def cases(count: int, gamma: float = 0.1) -> list[Case]:
    problem = Problem(gamma=gamma, p=2, k=1, d=20, Delta=0.5, activation="square", a=(1.0, -1.0))
    recording = Recording(times=(0.5, 1.0), thresholds=(0.1,), observables=("overlap_M",))
    return [Case(problem, "calm", seed, recording, clock=1 / 3) for seed in range(count)]


def identities(some: list[Case]) -> np.ndarray:
    return np.array([case.identity() for case in some], dtype="S16")


def write(directory: Path, some: list[Case], status: Status = Status.ok, value: float = np.nan) -> Path:
    """Write a segment of cases with one value in all variables."""
    columns, simulator = Cases.of(some), some[0].simulator
    variables = simulator.variables(some[0])
    data = {name: np.where(True, value, empty_values(variable, len(some))) for name, variable in variables.items()}
    own = {"case_id": identities(some), "status": np.full(len(some), status, np.uint8)} | simulator.index(columns)
    header = segment_header(
        columns, layout_name(some[0], case_work(some[0])), group_name(simulator.group(some[0])), 1.0
    )
    return write_segment(directory, "calm", header | {"computed": {status.name: len(some)}}, variables, own | data)


def test_case_comes_back_from_its_row() -> None:
    for case in cases(2):
        (again,) = cases_of(shared_fields(case), index_of(Cases.of([case])))
        assert again == case
        assert again.identity() == case.identity()


@pytest.mark.parametrize(("work", "expected"), [(0.3, 0), (1.0, 0), (3.99, 0), (4.0, 1), (4.0**12, 12), (5e9, 16)])
def test_cost_class_is_the_logarithm_to_base_four(work: float, expected: int) -> None:
    assert cost_class(work) == expected


def test_a_variable_of_other_dims_belongs_to_another_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example after an edit of a plugin's observable: its arrays would not have the shape of the results."""
    [case] = cases(1)
    before = layout_name(case, case_work(case))
    other = replace(OBSERVABLES["overlap_M"], dims=("teacher", "student"))
    monkeypatch.setitem(OBSERVABLES._things, "overlap_M", other)
    assert layout_name(case, case_work(case)) != before
    monkeypatch.setitem(OBSERVABLES._things, "overlap_M", replace(other, dims=("student", "teacher")))
    assert layout_name(case, case_work(case)) == before


def test_a_segment_gives_back_what_was_written(tmp_path: Path) -> None:
    """Cases, values of nothing but NaN, and, for a reader without sweeplib, plain arrays and texts."""
    some = cases(5)
    path = write(tmp_path, some)
    segment = Segment(path)
    assert (segment.ids == identities(some)).all() and (segment.status == Status.ok).all()
    assert list(segment.cases()) == some and list(segment.cases(np.array([3, 1]))) == [some[3], some[1]]
    assert segment.group == "p2_k1" and segment.simulator is some[0].simulator and segment.is_whole()
    assert segment.recording == some[0].recording
    assert {name: segment.data(name).shape for name in segment.variables} == {
        name: (5, *variable.shape) for name, variable in some[0].simulator.variables(some[0]).items()
    }
    assert all(np.isnan(segment.data(name)).all() for name in segment.variables)
    with np.load(path) as plain:
        assert plain["seed"].tolist() == [0, 1, 2, 3, 4] and json.loads(plain["header.json"])["computed"] == {"ok": 5}
        assert [json.loads(plain["problems.json"])[at] for at in plain["problem"]] == [some[0].problem.text] * 5


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    assert write(tmp_path, cases(3)) == write(tmp_path, cases(3))
    assert write(tmp_path, cases(3), value=1.0) != write(tmp_path, cases(3))
    assert len(segment_paths(tmp_path, "calm")) == 2


def test_a_write_that_is_cut_short_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(path: Path, target: Path) -> Path:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", cut)
        with pytest.raises(OSError, match="killed"):
            write(tmp_path, cases(3))
    assert not RunStore(tmp_path, "calm").segments


@pytest.mark.parametrize("step", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_no_changed_bit_is_read_as_another_value(tmp_path: Path, step: int) -> None:
    """Of a segment's bits some say nothing (times, versions of the archive): these too are seen by its name."""
    path = write(tmp_path, cases(3), value=1.5)
    good, names = path.read_bytes(), [*Segment(path).variables]
    true = {name: Segment(path).data(name).tobytes() for name in names}
    problems = {case.problem.text for case in cases(3)}
    for bit in range(0, 8 * len(good), 977 // step):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        with suppress(DamageError):
            segment = Segment(path)
            assert not segment.is_whole(), bit
            assert (segment.ids == identities(cases(3))).all() and (segment.status == Status.ok).all()
            assert set(segment.index["problem"]) == problems
            assert {name: segment.data(name).tobytes() for name in names} == true


def test_rows_are_found_by_identity(tmp_path: Path) -> None:
    for gamma in (0.1, 0.0001):
        write(tmp_path, cases(5, gamma))
    store = RunStore(tmp_path, "calm")
    unknown = cases(6)[5:]
    segment, row = store.locate(identities([*cases(5, 0.0001)[::-1], *unknown]))
    assert row.tolist() == [4, 3, 2, 1, 0, -1]
    assert store.segments[segment[0]].cases(slice(1))[0] == cases(1, 0.0001)[0]
    assert segment[-1] == -1 and store.status_at(segment, row).tolist() == [1] * 5 + [0]


def test_of_two_writers_of_a_case_the_better_end_counts(tmp_path: Path) -> None:
    """Of failures nothing is known, of runs that were stopped something."""
    for status in (Status.killed, Status.failed, Status.timeout, Status.inaccurate, Status.diverged, Status.ok):
        write(tmp_path, cases(2), status)
        store = RunStore(tmp_path, "calm")
        assert store.status_at(*store.locate(identities(cases(2)))).tolist() == [status] * 2
        assert len(store.ids) == 2


def test_forgotten_cases_are_missing_and_others_stay(tmp_path: Path) -> None:
    write(tmp_path, cases(4), value=2.0)
    write(tmp_path, cases(2, 0.2))
    RunStore(tmp_path, "calm").forget(identities([cases(4)[1], *cases(2, 0.2)]))
    store = RunStore(tmp_path, "calm")
    assert [list(segment.cases()) for segment in store.segments] == [[cases(4)[at] for at in (0, 2, 3)]]
    assert store.segments[0].is_whole() and store.segments[0].data("end_steps").tolist() == [2.0] * 3


def test_many_small_segments_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_store, "MANY", 4)
    some = cases(8)
    for at, case in enumerate(some):
        write(tmp_path, [case], value=float(at))
    write(tmp_path, cases(1, 0.0001))
    RunStore(tmp_path, "calm").merge()
    store = RunStore(tmp_path, "calm")
    assert sorted(map(len, store.segments)) == [1, 8]
    numbers, rows = store.locate(identities(some))
    values = [store.segments[number].data("end_steps")[row] for number, row in zip(numbers, rows, strict=True)]
    assert values == [float(at) for at in range(8)]
    whole = max(store.segments, key=len)
    assert whole.is_whole() and whole.header["computed"] == {"ok": 8}


def test_segments_that_differ_in_what_their_rows_share_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as their recording times; nor those that were taken from another sweep, which would become one's own."""
    monkeypatch.setattr(run_store, "MANY", 4)
    later = [replace(case, recording=replace(case.recording, times=(0.5, 2.0))) for case in cases(2)]
    assert layout_name(cases(1)[0], 4.0) != layout_name(later[0], 4.0)
    monkeypatch.setattr("tests.unit.test_storage.layout_name", lambda *_: "all_w0-000000000000")  # as of functions once
    for case in (*cases(3), *later):
        path = write(tmp_path, [case])
    append_origin(tmp_path, "calm", path.stem, "b", 1)
    RunStore(tmp_path, "calm").merge()
    store = RunStore(tmp_path, "calm")
    assert sorted(map(len, store.segments)) == [1, 1, 3]
    assert all(
        case.recording.times in ((0.5, 1.0), (0.5, 2.0)) for segment in store.segments for case in segment.cases()
    )
    assert taken_cases(tmp_path, "calm") == {"b": 1}


def test_a_part_of_the_rows_has_that_part_of_the_seconds(tmp_path: Path) -> None:
    write(tmp_path, cases(4))
    [segment] = RunStore(tmp_path, "calm").segments
    segment.header["seconds"] = 2.0
    half = Segment(write_content(tmp_path, "calm", merged([segment], np.array([0, 3]))))
    assert (half.header["seconds"], half.header["computed"]) == (1.0, {"ok": 2})


def test_remembered_numbers_of_segments_are_of_those_that_were_listed(tmp_path: Path) -> None:
    """A segment that comes later, and before them by its name, shifts none."""
    for case in cases(6):
        write(tmp_path, [case])
    first, *others = segment_paths(tmp_path, "calm")
    first.rename(tmp_path / first.name)
    store = RunStore(tmp_path, "calm")
    names = store.names
    store.pin()
    (tmp_path / first.name).rename(first)
    assert store.names == names == [segment.name for segment in store.segments] == [path.stem for path in others]
    others[0].unlink()
    again = RunStore(tmp_path, "calm")
    assert again.names and again.pin() is None
    others[1].unlink()
    with pytest.raises(DamageError, match=f"{others[1].name}: lost"):
        _ = again.segments


def test_a_store_is_opened_while_segments_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in cases(3):
        write(tmp_path, [case])
    opened = Segment.__init__

    def late(segment: Segment, path: Path) -> None:
        monkeypatch.setattr(Segment, "__init__", opened)
        store = RunStore(tmp_path, "calm")
        monkeypatch.setattr(run_store, "MANY", 2)
        store.merge()
        opened(segment, path)

    monkeypatch.setattr(Segment, "__init__", late)
    assert list(map(len, RunStore(tmp_path, "calm").segments)) == [3]


def test_a_variable_of_the_name_of_a_column_is_refused(tmp_path: Path) -> None:
    [case] = cases(1)
    variables = {"problem": case.simulator.variables(case)["end_steps"]}
    with pytest.raises(SweeplibError, match="problem: a variable has the name of a column of the run store"):
        write_segment(tmp_path, "calm", {}, variables, {})
