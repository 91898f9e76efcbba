"""The run store: rows survive an append that is interrupted anywhere, results are stored at their rows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.layout import Layout, cost_class, layout_name
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem import Problem
from sweeplib.networks.rows import cases_of, index_of, shared_fields
from sweeplib.networks.simulation import Case, Cases, Recording, case_work

load_plugins(["tests.faults.troubled"])

BLOCK = 4


def cases(count: int, gamma: float = 0.1) -> list[Case]:
    problem = Problem(gamma=gamma, p=2, k=1, d=20, Delta=0.5, activation="square", a=(1.0, -1.0))
    recording = Recording(times=(0.5, 1.0), thresholds=(0.1,), observables=("overlap_M",))
    return [Case(problem, "calm", seed, recording, clock=1 / 3) for seed in range(count)]


def identities(some: list[Case]) -> np.ndarray:
    return np.array([case.identity() for case in some], dtype="S16")


def append(layout: Layout, some: list[Case]) -> None:
    ids, columns = identities(some), Cases.of(some)
    layout.append(ids, columns.at)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    some = cases(1)
    return RunStore(tmp_path, "calm").create(layout_name(some[0], case_work(some[0])), some[0], BLOCK)


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


class CrashError(Exception):
    pass


def crashing(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[int]:
    """Let renames of files, by which chunks and metadata appear, fail from number `after` on."""
    count, replace_file = 0, Path.replace

    def failing(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count > after:
            raise CrashError
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", failing)


def test_append_cut_short_anywhere_is_repaired(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many writes of an append succeeded, all its rows are there or none, and the next append adds them."""
    everything = cases(9)
    append(layout, everything[:3])
    crashes = 0
    for after in range(100):
        with monkeypatch.context() as patched:
            crashing(patched, after)
            try:
                append(Layout(layout.path), everything[len(Layout(layout.path)) :])
            except CrashError:
                crashes += 1
            else:
                break
        known = Layout(layout.path).ids
        assert 3 <= len(known) <= len(everything)
        assert (known == identities(everything)[: len(known)]).all()
        if crashes == 3:  # another order next time: what the crash left must not be taken for rows
            everything = everything[:3] + everything[:2:-1]
    assert crashes > 4
    done = Layout(layout.path)
    assert (done.ids == identities(everything)).all()
    assert list(done.cases(slice(None))) == everything
    assert (done.status() == Status.missing).all()


def test_results_are_merged_into_a_block(layout: Layout) -> None:
    append(layout, cases(6))
    first, second = np.array([0, 2]), np.array([1])
    for positions, value in ((first, 1.0), (second, 2.0)):
        data = {name: np.full_like(layout.empty(name, len(positions)), value) for name in layout.variables}
        layout.write(
            1,
            positions[positions < 2],
            {name: values[positions < 2] for name, values in data.items()},
            ok(positions < 2),
        )
    again = Layout(layout.path)
    assert again.status().tolist() == [0, 0, 0, 0, 1, 1]
    assert again.data("end_steps")[4:].tolist() == [1.0, 2.0]
    assert np.isnan(again.data("overlap_M")[:4]).all()


def ok(chosen: np.ndarray) -> np.ndarray:
    return np.full(int(chosen.sum()), Status.ok, np.uint8)


def test_chunk_of_nothing_but_nan_is_written(layout: Layout) -> None:
    append(layout, cases(BLOCK))
    positions = np.arange(BLOCK)
    data = {name: layout.empty(name, BLOCK) for name in layout.variables}
    layout.write(0, positions, data, np.full(BLOCK, Status.diverged, np.uint8))
    for name in layout.variables:
        assert any(path.is_file() for path in (layout.path / name / "c").rglob("*")), name


def test_rows_are_found_by_identity(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "calm")
    for gamma in (0.1, 0.0001):
        some = cases(5, gamma)
        append(store.create(layout_name(some[0], case_work(some[0])), some[0], BLOCK), some)
    store = store.refreshed()
    assert len(store.layouts) == 2
    unknown = cases(6)[5:]
    layout, row = store.locate(identities([*cases(5, 0.0001)[::-1], *unknown]))
    assert row.tolist() == [4, 3, 2, 1, 0, -1]
    name, [first] = list(store.layouts)[layout[0]], cases(1, 0.0001)
    assert name == layout_name(first, case_work(first))
    assert layout[-1] == -1


def test_reset_rows_are_missing(layout: Layout) -> None:
    append(layout, cases(6))
    for block in (0, 1):
        positions = np.arange(layout.block(block).stop - layout.block(block).start)
        data = {name: layout.empty(name, len(positions)) for name in layout.variables}
        layout.write(block, positions, data, np.full(len(positions), Status.failed, np.uint8))
    layout.reset(np.array([1, 5]))
    assert Layout(layout.path).status().tolist() == [3, 0, 3, 3, 3, 0]
