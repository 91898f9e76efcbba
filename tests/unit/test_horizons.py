"""Runs that go on from where they ended: a longer horizon has the bits of a run of that length."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweeplib.commands.upkeep.prune import stale
from sweeplib.commands.upkeep.verify import verify
from sweeplib.config.values import up_to, values
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution import horizons, plan, work
from sweeplib.engine.execution.calibration import Calibration, Pilot
from sweeplib.engine.execution.child import TimeUpError
from sweeplib.engine.execution.estimates import Plan
from sweeplib.engine.execution.guard import Allowance, computed_here
from sweeplib.engine.execution.horizons import Outcome, tried
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.records import Begun, Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.other_stores import COMPUTE_ALL
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording, cases
from sweeplib.networks.simulation.labels import time_attributes
from tests.in_process import computed
from tests.tiers import slow_but
from tests.unit.test_other_stores import GAMMAS, alone, cut_after, damage_of, needed, planned, ran, sweep_of, version

SHORT = Recording((0.0, 1.0, 2.0), (0.1, 0.4), ("risk",), "exit", keep_ends=True)
LONG = replace(SHORT, times=(0.0, 1.0, 2.0, 3.0, 4.0))


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMPUTE_ALL)
    monkeypatch.setattr(work, "dispatched", computed)


@pytest.mark.parametrize("count", [1, 2])
def test_cases_that_cannot_go_on_are_computed_from_the_start(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: Any, group: Any, begun: Begun | None = None, **others: Any) -> Records:
        if begun is not None:
            raise ValueError("not an end to go on from")
        return Records({"x": np.ones(len(group))}, np.ones(len(group), np.uint8))

    group = [case for _, case in sweep_of("a").cases("sgd_chain")][:count]
    monkeypatch.setattr(type(group[0].simulator), "run", run)
    assert computed_here(group, Allowance(), pytest.fail, Begun({}, 1)).status.tolist() == [Status.ok] * count


@pytest.mark.parametrize(("count", "timeout"), [(3, 4.0), (12, 1.0)])
def test_a_few_cases_may_take_as_long_as_a_group_of_lanes_wherever_they_run(
    count: int, timeout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve cases are computed in about the time of three: no case is stopped because its block was short."""
    group = [case for _, case in sweep_of("a").cases("sgd_chain")][:1] * count
    limits = []

    def run(_: Any, group: Any, timeout: float | None = None, **others: Any) -> Records:
        limits.append(timeout)
        return Records({"x": np.ones(len(group))}, np.ones(len(group), np.uint8))

    monkeypatch.setattr(type(group[0].simulator), "run", run)
    monkeypatch.setattr(type(group[0].simulator), "lanes", lambda *_: (4, 12))
    computed_here(group, Allowance(1.0), pytest.fail)
    assert limits == [timeout]


def begun_elsewhere(sweep: Design, directory: Path) -> dict[str, int]:
    """Return how many cases of a plan go on, by where their runs ended."""
    return needed(sweep, directory).beginnings


def begun(directory: Path) -> int:
    """Return the number of cases that went on, by what segments say of their tasks."""
    return sum(segment.header.get("begun", 0) for segment in RunStore(directory, "sgd_chain").segments)


@pytest.mark.rest
def test_a_longer_horizon_goes_on(tmp_path: Path) -> None:
    sweep = sweep_of("a", recording=SHORT)
    ran(sweep, tmp_path)
    longer = replace(sweep, recording=LONG)
    assert planned(longer, tmp_path) == (30, {}, 0)
    assert ran(longer, tmp_path) == {"sgd_chain": 30}
    assert begun(tmp_path / "a") == 28, "two runs have diverged: they are computed again"
    assert version(longer, tmp_path) == alone(longer, tmp_path)


@pytest.mark.slow
def test_a_plan_says_what_goes_on_and_what_does_not_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the pilots before the run, by the stored runs after it; with the horizon by which nearly all exit.

    Where only the seeds have changed, no case is tried again.
    """
    sweep = sweep_of("a", (0.1,), 20, recording=replace(SHORT, times=(0.0, 0.1), thresholds=(0.3,)))
    shown = plan.write_plan(sweep, tmp_path / "a", progress=False)
    assert [line for line in shown.advice if "pilots do not exit by the horizon 0.1" in line and "`horizon=" in line]
    ran(sweep, tmp_path)
    with monkeypatch.context() as patched:
        patched.delattr(horizons, "_trial")
        [line] = plan.write_plan(sweep, tmp_path / "a", progress=False).advice
        more_seeds = replace(sweep, seeds=tuple(range(30)))
        assert plan.write_plan(more_seeds, tmp_path / "a", progress=False).advice == (line,)
    assert " % of the stored runs did not exit by the horizon 0.1" in line and "nearly all do by `horizon=" in line
    longer = plan.write_plan(
        replace(sweep, recording=replace(SHORT, times=(0.0, 0.1, 0.4), thresholds=(0.3,))),
        tmp_path / "a",
        progress=False,
    )
    assert "sgd_chain: 40 cases go on from time 0.1 in a" in repr(longer)
    assert [layout.share for layout in longer.dynamics["sgd_chain"].layouts.values()] == [0.75]
    assert Plan.of(longer.record()).dynamics == longer.dynamics


def test_the_horizon_is_doubled_until_few_have_not_exited() -> None:
    recording = Recording((0.0, 0.1), (0.3,))
    problem = Problem(gamma=0.1, p=2, k=1, d=20, Delta=0.0, activation="square")
    first, left, factor = tried([Case(problem, "sgd_chain", seed, recording) for seed in range(20)])
    assert len(first.late) > 1 >= left and factor in {2, 4, 8, 16, 32} and first[1:] == (0, 0)
    never = replace(recording, thresholds=(1 - 1e-12,))
    noisy = replace(problem, Delta=0.5)
    assert tried([Case(noisy, "sgd_chain", seed, never) for seed in range(4)])[:2] == (([0, 1, 2, 3], 0, 0), 4)


@pytest.mark.rest
def test_pilots_that_take_too_long_or_diverge_are_told_beside_those_that_do_not_exit() -> None:
    """A batch that takes longer than there is time says nothing of the others, which are cheaper and tried first."""
    problem = Problem(gamma=0.1, p=2, k=1, d=20, Delta=0.5, activation="square")
    never, long = Recording((0.0, 0.1), (1 - 1e-12,)), Recording((0.0, 1e9), (1 - 1e-12,))
    quick = [Case(problem, "sgd_chain", seed, never) for seed in range(2)]
    slow = [Case(replace(problem, p=3), "sgd_chain", 0, long)]
    wild = [Case(replace(problem, p=4, gamma=200.0), "sgd_chain", 0, Recording((0.0, 1e4), (1 - 1e-12,)))]
    first, _, factor = tried([*slow, *wild, *quick])
    assert first == ([2, 3], 1, 1) and factor == 1


def test_a_trial_is_used_again_if_it_says_who_does_not_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without time is none; one of pilots that all exit says nothing of the stored runs that do not."""
    problem = Problem(gamma=0.1, p=2, k=1, d=20, Delta=0.0, activation="square")
    cases = [Case(problem, "sgd_chain", seed, Recording((0.0, 0.1), (0.3,))) for seed in range(40)]
    none, two = Outcome([], 0, 0), Outcome([0, 1], 0, 0)
    answers: list[Any] = [(Outcome([], 3, 0), 0, 1), (none, 0, 1), (two, 1, 4), (none, 0, 1), TimeUpError(Trouble("x"))]

    class Answers(Calibration):
        def compile(self, pilot: Pilot) -> None: ...

        def result(self, pilot: Pilot, seconds: float, task: Any, *args: Any) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    told = partial(horizons.horizon_lines, "sgd_chain", cases, calibration=Answers())
    late = "pilots take too long to tell whether they exit by the horizon 0.1"
    assert told(stored=((), 0.0))[0] == [f"sgd_chain: 3 of 32 {late}"]
    lines, none_late = told(stored=((), 0.0))
    assert (lines, none_late and none_late.late) == ([], 0)
    [line], trial = told(stored=(tuple(cases[:2]), 0.01), earlier=none_late)
    assert "1 % of the stored runs did not exit by the horizon 0.1; of 2 of these 1 do not by 0.4 either" in line
    assert told(stored=(tuple(cases[:2]), 0.01), earlier=trial) == ([line], trial)
    assert told(stored=((), 0.0), earlier=trial)[0] == [], "a trial of late runs is none of pilots"
    assert told(stored=((), 0.0), unit=time_attributes("samples", "d"))[0] == [f"sgd_chain: 32 of 32 {late} d samples"]
    assert not answers


@pytest.mark.slow
def test_new_seeds_and_other_sweeps_go_on_too(tmp_path: Path) -> None:
    """From the longest run that another folder has; what has not begun is computed from the start."""
    ran(sweep_of("a", recording=SHORT), tmp_path)
    ran(sweep_of("b", seeds=2, recording=replace(SHORT, times=(0.0, 1.0, 2.0, 2.5))), tmp_path)
    assert begun(tmp_path / "b") == 11
    longer = sweep_of("c", seeds=7, recording=replace(LONG, observables=("risk",), keep_ends=False), size=3)
    assert begun_elsewhere(longer, tmp_path / "c") == {"time 2.5 in b": 11, "time 2 in a": 17}
    assert ran(longer, tmp_path) == {"sgd_chain": 42}
    assert begun(tmp_path / "c") == 28
    assert version(longer, tmp_path) == alone(longer, tmp_path)
    assert not any(
        segment.variables.keys() & {"end_state"} for segment in RunStore(tmp_path / "c", "sgd_chain").segments
    )


@pytest.mark.slow
def test_a_run_that_goes_on_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = sweep_of("a", recording=replace(SHORT, stop="end"))
    longer = replace(sweep, recording=replace(LONG, stop="end"))
    ran(sweep, tmp_path)
    for last in (0, 1, 3):
        with monkeypatch.context() as patched:
            cut_after(last, patched)
            with pytest.raises(RuntimeError, match="killed"):
                ran(longer, tmp_path)
    ran(longer, tmp_path)
    store = RunStore(tmp_path / "a", "sgd_chain")
    store.forget(inventory(longer, "sgd_chain", store).ids[5:9])
    assert ran(longer, tmp_path) == {"sgd_chain": 4}
    assert version(longer, tmp_path) == alone(longer, tmp_path)
    verification = verify(longer, tmp_path / "a.yaml", tmp_path / "a", sample=30)
    assert verification.exit_status == 0 and verification.cases == {"sgd_chain": 30}
    old = [each for each in stale(longer, tmp_path / "a") if each.cases]
    assert sum(each.cases or 0 for each in old) == 30, "the earlier runs are stale: `prune` deletes them"


@pytest.mark.rest
@pytest.mark.parametrize("part", slow_but(["end_state", "risk", "status"], "end_state"))
def test_what_is_damaged_is_computed_from_the_start(tmp_path: Path, part: str) -> None:
    sweep = sweep_of("a", recording=SHORT)
    ran(sweep, tmp_path)
    longer = replace(sweep, recording=LONG)
    for segment in RunStore(tmp_path / "a", "sgd_chain").segments:
        damage_of(segment.path, f"{part}.npy")
    renamed = replace(longer, name="b")
    assert ran(renamed, tmp_path) == {"sgd_chain": 30}
    assert version(renamed, tmp_path) == alone(renamed, tmp_path)


def test_other_code_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = sweep_of("a", GAMMAS[:1], 1, recording=SHORT)
    ran(sweep, tmp_path)
    longer = replace(sweep, recording=LONG)
    assert begun_elsewhere(longer, tmp_path / "a") == {"time 2 in a": 2}
    monkeypatch.setattr(cases, "numerics_version", lambda *_: "edited")
    cases.shared_values.cache_clear()
    try:
        assert begun_elsewhere(longer, tmp_path / "a") == {}
    finally:
        cases.shared_values.cache_clear()


@pytest.mark.rest
@pytest.mark.parametrize("change", [{"thresholds": (0.1, 0.5)}, {"stop": "end"}, {"times": (0.0, 1.5, 4.0)}])
def test_what_the_earlier_run_does_not_have_is_computed_from_the_start(tmp_path: Path, change: dict[str, Any]) -> None:
    """A threshold that is deeper, what comes after an exit, a time before the earlier last one."""
    sweep = sweep_of("a", GAMMAS[:1], 1, recording=SHORT)
    ran(sweep, tmp_path)
    longer = replace(sweep, recording=replace(LONG, **change))
    assert begun_elsewhere(longer, tmp_path / "a") == {}


@pytest.mark.parametrize(
    "spec",
    [{"linspace": [0, 10, 101]}, {"linspace": [0, 1, 4]}, {"geomspace": [0.01, 10, 31]}, {"range": [0, 8]}, [0, 8]],
)
def test_times_up_to_another_horizon(spec: Any) -> None:
    """A longer horizon has all times of a shorter one, but for the horizon itself where it is none of the spacing."""
    times = values(spec, "times")
    assert up_to(None, times, spec) == up_to(times[-1], times, spec) == tuple(times)
    horizons = [factor * times[-1] for factor in (0.5, 1.0, 2.0, 4.0, 4.3)]
    grown = [up_to(horizon, times, spec) for horizon in horizons]
    for horizon, shorter, longer in zip(horizons, grown, grown[1:], strict=False):
        assert shorter[-1] == horizon and list(longer) == sorted(set(longer))
        assert set(shorter) - {horizon} <= set(longer)
        assert {time for time in longer if time < horizon * (1 - 1e-9)} == set(shorter) - {horizon}
