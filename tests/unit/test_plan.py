"""The plan: cases to do, cases done, and costs."""

import json
import math
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.config import load
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.execution import calibration
from sweeplib.engine.execution import plan as plan_module
from sweeplib.engine.execution.calibration import Calibration, Pilot, beside_others
from sweeplib.engine.execution.child import DiedError, TimeUpError
from sweeplib.engine.execution.estimates import GUESSED, Cost, DynamicsPlan, LayoutPlan, Plan, Range
from sweeplib.engine.execution.plan import plan_of_rest, write_missing_plan, write_plan
from sweeplib.engine.execution.queue import block_size, even
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.process import work_time
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.process.work_time import seconds_at_work, seconds_compiled, slowdown
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.files import read_json, write_json
from sweeplib.engine.storage.records.locks import driver_lock
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_record
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.other_stores import demand_of
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.errors import BusyError
from sweeplib.networks import pilots
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.kernels.lanes import LANES, group_width
from sweeplib.networks.pilots import measured, shortened
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording, run_cases
from tests.faults.sweeps import troubled_sweep
from tests.faults.troubled import HANGS, KILLS
from tests.in_process import InProcess
from tests.plugged import nothing_left

WAITS = """
import os, time
from pathlib import Path
from sweeplib.networks.dynamics.dynamics import DYNAMICS
from tests.faults.troubled import Calm
for name in ("first", "later"):
    class Waits(Calm):
        def __init__(self, replicas, options):
            super().__init__(replicas, options)
            Path({folder!r}, self.name).touch()
            until = time.monotonic() + 20
            while not Path({folder!r}, "later").exists() and time.monotonic() < until:
                time.sleep(.01)
            if self.name == "first" and time.monotonic() < until:
                Path({folder!r}, "met").touch()
    Waits.name, Waits.label = name, name
    DYNAMICS.register(name, Waits)
"""


@pytest.mark.parametrize(
    ("seconds", "nbytes", "expected"),
    [(1e-6, 100, 2**15), (0.01, 100, 200), (0.5, 100, 4), (10.0, 100, 1), (1000.0, 100, 1), (1e-6, 2**20, 64)],
)
def test_block_takes_two_seconds_within_limits(seconds: float, nbytes: int, expected: int) -> None:
    assert block_size(seconds, nbytes) == expected


@pytest.mark.parametrize(("size", "cases", "expected"), [(189, 192, 96), (200, 100, 100), (16, 160, 16), (16, 0, 16)])
def test_blocks_are_even(size: int, cases: int, expected: int) -> None:
    assert even(size, cases) == expected


@pytest.mark.parametrize(
    ("seconds", "nbytes", "expected"),
    [(1e-6, 100, 2**15), (0.01, 100, 128), (0.0071, 100, 256), (0.4, 100, 128), (0.7, 100, 80), (10.0, 100, 6)],
)
def test_a_block_fills_the_lanes(seconds: float, nbytes: int, expected: int) -> None:
    assert block_size(seconds, nbytes, LANES) == expected


@pytest.mark.parametrize(
    ("size", "cases", "expected"), [(128, 65, 80), (128, 130, 80), (256, 300, 256), (2048, 2100, 1152), (6, 100, 6)]
)
def test_even_blocks_fill_the_lanes(size: int, cases: int, expected: int) -> None:
    assert even(size, cases, LANES) == expected


def test_lanes_are_those_of_the_kernels() -> None:
    """A group of 65 replicas has 80 lanes, so it takes as long as 80."""
    assert [group_width.py_func(left) for left in (1, 65, 10_000)] == [LANES[0], 80, LANES[1]]
    assert {name: kind.lanes for name, kind in DYNAMICS.items() if kind.lanes != (1, 1)} == {
        "sgd_chain": LANES,
        "sde": LANES,
    }


@pytest.fixture
def calm() -> Design:
    sweep = troubled_sweep(seeds=4)
    return replace(sweep, runs={"calm": Run("calm")}, cluster=InProcess())


@pytest.mark.rest
def test_plan_counts_what_is_left(calm: Design, tmp_path: Path) -> None:
    plan = write_plan(calm, tmp_path)
    part = plan.dynamics["calm"]
    assert (part.points, part.cases, part.done, part.todo) == (3, 12, 0, 12)
    assert part.bytes > 12 * 8 * 8
    assert 0 < plan.cpu_seconds < 60
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["dynamics"]["calm"]["todo"] == 12

    sizes = {name: layout.block_size for name, layout in part.layouts.items()}
    run_sweep(calm, tmp_path, progress=False)
    assert {segments[0].layout: len(segments[0]) for segments in RunStore(tmp_path, "calm").alike()} == sizes
    grown = write_plan(replace(calm, seeds=tuple(range(6))), tmp_path).dynamics["calm"]
    assert (grown.cases, grown.done, grown.todo) == (18, 12, 6)
    assert write_plan(calm, tmp_path).dynamics["calm"].blocks == 0


@pytest.mark.rest
def test_pilot_outlives_a_case_that_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = replace(troubled_sweep(gammas=(0.1, KILLS), seeds=4), cluster=InProcess())
    layouts = write_plan(sweep, tmp_path).dynamics["troubled"].layouts.values()
    assert sorted(layout.measured for layout in layouts) == [False, True]
    assert all(math.isfinite(layout.seconds) for layout in layouts)
    assert "its process died (SIGKILL); the cost of its cases is extrapolated" in capsys.readouterr().err


@pytest.mark.rest
def test_with_more_seeds_alone_costs_are_not_measured_again(
    calm: Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write_plan(calm, tmp_path).dynamics["calm"].layouts
    assert "measuring" in capsys.readouterr().err
    more = replace(calm, seeds=tuple(range(6)))
    after = write_plan(more, tmp_path).dynamics["calm"].layouts
    assert "measuring" not in capsys.readouterr().err
    assert {name: layout.seconds for name, layout in after.items()} == {n: la.seconds for n, la in before.items()}
    (tmp_path / "plan.json").write_text("{")
    write_plan(more, tmp_path)
    assert "measuring" in capsys.readouterr().err
    write_plan(replace(more, source="pair_by: [seed]"), tmp_path)  # another config
    assert "measuring" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [pytest.param(0.1, marks=pytest.mark.long), HANGS])
def test_a_pilot_that_hangs_is_given_up_once_and_the_others_are_measured(
    gamma: float,
    calm: Design,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    """At its start, where memory is taken, or later: a time limit is no death, and the pilot is not repeated."""
    monkeypatch.setattr(calibration, "HANG_SECONDS", 1.0)
    monkeypatch.setattr(calibration, "SETUP_SECONDS", 2.0)
    axis = replace(calm.grid.axes[0], values=(0.01, gamma))
    sweep = replace(
        calm, grid=replace(calm.grid, axes=(axis,)), runs={"stuck": Run("stuck"), "troubled": Run("troubled")}
    )
    started = time.monotonic()
    plan = write_plan(sweep, tmp_path)
    assert time.monotonic() - started < 30
    assert all(layout.measured for layout in plan.dynamics["troubled"].layouts.values())
    assert len(plan.dynamics["stuck"].layouts) == 2
    assert not any(layout.measured for layout in plan.dynamics["stuck"].layouts.values())
    said = capsys.readouterr().err
    assert said.count("not finished after") == 1 and "died" not in said
    plan.show()
    assert "stuck: the cost of 8 cases is extrapolated" in capsys.readouterr().err


def test_a_calibration_without_anything_to_measure_starts_no_process() -> None:
    """A sweep that grew by seeds waited for a process that was asked nothing."""
    with Calibration() as idle:
        assert idle.costs([]) == {}
    assert "child" not in vars(idle)
    with Calibration() as measuring:
        process = measuring.child
    with Calibration() as again:
        assert again.child is process


def test_of_many_shapes_a_few_are_measured_and_others_lie_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 shapes were measured for half a minute, 5,000 for ten. What may end its process is not interpolated."""
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="square")
    cases = [Case(replace(problem, p=p), "sgd_chain", 0, Recording((0.0, 4.0))) for p in range(1, 301)]
    several, asked = [Pilot(f"p{case.problem.p}", (case,)) for case in cases], []

    def cost(self: Calibration, pilot: Pilot, seconds: float) -> Cost:
        asked.append(pilot.name)
        if len(asked) == 16:
            raise DiedError(Trouble("died"))
        return Cost(1.0 + 2.0 * pilot.work_a_case, factor=2.0 if len(asked) == 1 else 1.5)

    monkeypatch.setattr(Calibration, "compile", lambda *_: None)
    monkeypatch.setattr(Calibration, "cost", cost)
    costs = Calibration().costs(several)
    assert len(asked) == calibration.MOST_PILOTS and {"p1", "p300"} <= set(asked)
    assert (costs["p2"].factor, costs["p299"].factor) == (2.0, 1.5)
    beside = [int(asked[at][1:]) for at in (14, 16)]
    for pilot in several:
        known = costs[pilot.name]
        assert known.measured is not (beside[0] < int(pilot.name[1:]) < beside[1])
        assert not known.measured or known.seconds == pytest.approx(1.0 + 2.0 * pilot.work_a_case)


@pytest.mark.parametrize("shapes", [99, 300])
def test_the_cost_of_many_shapes_is_named(shapes: int) -> None:
    part = DynamicsPlan(shapes, 2 * shapes, 0, {f"p{at}": LayoutPlan(2, 2, 1e-3, 100) for at in range(shapes)})
    said = "300 shapes and costs: the store and the dataset take about 9 s more"
    assert (said in repr(Plan("any", 2, {"sgd": part}))) is (shapes == 300)


@pytest.mark.rest
def test_what_is_needed_later_is_compiled_beside(calm: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dynamics, of which the first waits for the other before it begins."""
    plugin = tmp_path / "waits.py"
    plugin.write_text(WAITS.format(folder=str(tmp_path)))
    monkeypatch.setattr(calibration, "HELP_SECONDS", 0.05)
    monkeypatch.setattr(calibration, "places", lambda: 2)
    with nothing_left():
        load_plugins([str(plugin)])
        runs = {name: Run(name) for name in ("first", "later")}
        write_plan(replace(calm, runs=runs, plugins=(*calm.plugins, str(plugin))), tmp_path / "results")
    assert (tmp_path / "met").exists()


@pytest.mark.slow
def test_what_is_done_is_told_as_it_begins(calm: Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(calm, tmp_path / "loud")
    said = capsys.readouterr().err
    for step in (
        "planning 12 cases",
        *(f"{doing} calm (square, p = 2, k = 1)" for doing in ("compiling", "measuring")),
    ):
        assert re.search(rf"^troubled: {re.escape(step)}.* \.\.\. [0-9.]+ s$", said, re.MULTILINE), step
    write_plan(calm, tmp_path / "silent", progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.rest
def test_a_run_shows_what_is_left_of_the_plan(calm: Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_sweep(calm, tmp_path)
    assert re.search(r"\ncalm +3 +12 +0 +12 ", capsys.readouterr().err)
    run_sweep(replace(calm, seeds=tuple(range(6))), tmp_path)
    assert re.search(r"\ncalm +3 +18 +12 +6 ", capsys.readouterr().err)


def test_what_is_left_costs_what_was_planned_or_what_stored_cases_took(calm: Design, tmp_path: Path) -> None:
    """Advice is that of a plan of as many cases; without plan and cases the cost is a guess."""
    calm = replace(calm, grid=replace(calm.grid, axes=(replace(calm.grid.axes[0], values=(0.1,)),)))
    [layout] = rest_of(calm, tmp_path).dynamics["calm"].layouts.values()
    assert not layout.measured and not layout.suspect
    run_sweep(replace(calm, seeds=(0, 1)), tmp_path, progress=False)
    [layout] = rest_of(calm, tmp_path).dynamics["calm"].layouts.values()
    store = RunStore(tmp_path, "calm")
    assert layout.measured and (layout.todo, layout.factor) == (2, GUESSED)
    rate = sum(segment.header["seconds"] for segment in store.segments) / (2 * store.segments[0].work)
    assert layout.seconds == pytest.approx(rate * store.segments[0].work)

    of_few = {"calm": DynamicsPlan(1, 4, 2, {store.segments[0].layout: LayoutPlan(1, 5, 7.0, 8, measured=False)})}
    write_json(tmp_path / "plan.json", Plan("any", 1, of_few, ("fewer seeds",)).record())
    plan = rest_of(calm, tmp_path)
    [layout] = plan.dynamics["calm"].layouts.values()
    assert (layout.todo, layout.block_size, layout.seconds) == (2, 5, 7.0)
    assert plan.advice == ("fewer seeds",)
    assert rest_of(replace(calm, seeds=tuple(range(6))), tmp_path).advice == ()


def test_no_plan_is_made_while_another_driver_runs(calm: Design, tmp_path: Path) -> None:
    """The command that is refused leaves the plan of the run that goes on."""
    with driver_lock(tmp_path, "calm"), pytest.raises(BusyError, match="runs calm here"):
        write_missing_plan(calm, tmp_path)
    assert not (tmp_path / "plan.json").exists() and not (tmp_path / "stages").exists()


def rest_of(sweep: Design, directory: Path) -> Plan:
    """Return the plan of the cases of `calm` that a run computes now."""
    demand = demand_of(inventory(sweep, "calm", RunStore(directory, "calm")))
    return plan_of_rest(sweep, directory, {"calm": demand}, None)


def test_a_plan_is_made_once_for_the_same_cases(calm: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again for others, or if it was lost; never where the size of blocks is set."""
    made: list[int] = []
    monkeypatch.setattr(plan_module, "write_plan", lambda sweep, *_, **__: made.append(sweep.size))
    write_missing_plan(calm, tmp_path)
    write_missing_plan(replace(calm, cluster=InProcess(block_size=4)), tmp_path)
    assert made == [12]
    write_json(tmp_path / "plan.json", Plan("any", 1).record())
    with recorded_stage(tmp_path, "plan") as record:
        record.write_result(cases_made_from(calm), counts={"calm": 12})
    write_missing_plan(calm, tmp_path)
    assert made == [12]
    write_missing_plan(replace(calm, source="seeds: 3"), tmp_path)
    (tmp_path / "plan.json").unlink()
    write_missing_plan(calm, tmp_path)
    assert made == [12, 12, 12]


@pytest.mark.rest
@pytest.mark.parametrize("step", [1.0, 150.0])
def test_a_shortened_case_takes_a_few_steps_of_its_own(step: float) -> None:
    """Otherwise its kernel would be compiled while it is measured."""
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="square", spherical=True)
    case = Case(problem, "sde", 0, Recording((0.0, 4.0)), options=(("step", step),))
    assert run_cases([shortened(case)]).data["end_steps"] == pytest.approx(3 * step)


@pytest.mark.rest
def test_cases_given_up_count_by_the_part_of_their_way() -> None:
    """Two kinds of cases: of one run length, and a hundred times as long with the same time for the measurement."""
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="square", spherical=True)
    whole = [Case(problem, "sgd_chain", seed, Recording((0.0, 100.0))) for seed in range(16)]
    measured(list(map(shortened, whole)), 1.0)
    seconds, ended, is_whole = measured(whole, 1e3)
    assert ended == 1.0 and is_whole
    longer = [replace(case, clock=1000.0) for case in whole]
    cost = measured(longer, max(0.05, 16 * seconds))
    assert cost.seconds == pytest.approx(1000 * seconds, rel=0.9) and not cost.whole


def test_runs_that_are_too_long_end_where_similar_ones_or_a_few_did() -> None:
    """At an exit, after a small part of their times: 16 of 512 are followed to it, all for a fraction of the time."""
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="square", spherical=True)
    whole = [Case(problem, "sgd_chain", seed, Recording((0.0, 500.0), (0.1,), (), "exit")) for seed in range(512)]
    measured(list(map(shortened, whole)), 1.0)
    seconds, ended, _ = measured(whole, 1e3)
    assert ended < 0.2
    assert measured(whole, 0.1 * 512 * seconds, ended).seconds == pytest.approx(seconds, rel=0.9)
    few = min((measured(whole, 512 * seconds / 4) for _ in range(3)), key=lambda found: found.seconds)
    assert few.ended < 0.2 and few.seconds == pytest.approx(seconds, rel=0.9)


@pytest.mark.parametrize("fixed", [0.0, 3.0])
def test_what_a_group_costs_alone_is_shared_by_a_whole_block(fixed: float) -> None:
    """Cases of .1 s, and what all of a group share: 16 and 32 were measured, 256 run together."""
    fewer, more = (pilots.Timing(fixed + 0.1 * count, count, count, count) for count in (16, 32))
    assert more.a_case_of(256, fewer) == pytest.approx(0.1 + fixed / 256)
    assert more.a_case_of(32, fewer) == more.a_case_of(256, None) == pytest.approx(0.1 + fixed / 32)


def test_pilots_are_rows_that_run_together() -> None:
    """In groups of lanes; of simulators without lanes they are evenly spaced, with the first and the last."""
    assert beside_others(9, 3, 1) == [0, 4, 8]
    assert beside_others(1000, 256, 128) == [*range(218, 346), *range(654, 782)]
    assert beside_others(100, 512, 128) == list(range(100))
    assert beside_others(1000, 64, 128) == list(range(468, 532))


def test_a_range_is_said_in_few_words() -> None:
    said = {(20.2, 45.0): "20 to 45 s", (26.0, 26.2): "26 s", (50.0, 125.0): "50 s to 2.1 min", (0.0, 0.0): "0 s"}
    assert {seconds: str(Range(*seconds)) for seconds in said} == said


def test_a_plan_names_its_range_and_what_loading_and_compilation_take() -> None:
    layouts = {"a": LayoutPlan(100, 10, 1.0, 10, factor=1.5), "b": LayoutPlan(10, 10, 2.0, 10, factor=2.0)}
    plan = Plan("any", 2, {"sgd": DynamicsPlan(1, 110, 0, layouts, loading=3.0)}, compilation=140.0)
    least, most = 100.1 / 1.5 + 20.01 / 2 + 6 / 1.5, 1.5 * 100.1 + 2 * 20.01 + 6 * 1.5
    assert plan.cpu_range == pytest.approx((least, most))
    assert plan.cpu_seconds == pytest.approx(126.11) and plan.wall_seconds == pytest.approx(63.055)
    said = repr(plan)
    assert "any: 81 s to 3.3 min of one processor, 40 s to 1.7 min on 2 workers" in said
    assert "of this, each worker takes up to 3 s to load machine code" in said
    assert DynamicsPlan(1, 110, 100, {"a": layouts["b"]}, loading=3.0).cpu_seconds == pytest.approx(20.01)
    assert "compilation, before this, took 2.3 min of one processor" in said
    assert Plan.of(plan.record()) == replace(plan, compilation=0.0)
    assert "compilation" not in repr(Plan.of(plan.record()))
    nothing_loaded = replace(plan, dynamics={"sgd": DynamicsPlan(1, 110, 0, layouts)})
    assert "machine code" not in repr(nothing_loaded) and nothing_loaded.cpu_seconds == pytest.approx(120.11)


def test_a_compilation_that_is_given_up_says_nothing_of_the_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 cases of .02 s were planned as a minute, that of the limit."""
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="square")
    pilot = Pilot("sgd/a", tuple(Case(problem, "sgd", seed, Recording((0.0, 4.0))) for seed in range(24)))

    def given_up(self: Calibration, pilot: Pilot, seconds: float, task: object, *args: object) -> None:
        raise TimeUpError(Trouble("not finished after 60 s plus 300 s for compilation"))

    monkeypatch.setattr(Calibration, "result", given_up)
    cost = Calibration().costs([pilot])["sgd/a"]
    assert not cost.measured and cost.seconds == pilot.cases[0].simulator.seconds(pilot.cases[0]) < 0.1


COMPILES = """
import numba
from sweeplib import simulator


@numba.njit(cache=False)
def summed(n):
    total = 0.0
    for i in range(n):
        total += (i % 7) ** 0.5
    return total


@simulator(total="1")
def adds(n: int = 10):
    return summed(n)
"""


def test_the_compilation_of_a_function_is_in_no_cost_and_no_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first call compiles for a tenth of a second or more, and each takes microseconds."""
    (tmp_path / "adds.py").write_text(COMPILES)
    config = tmp_path / "adds.yaml"
    config.write_text("simulator: adds.py\ngrid: {n: [10, 20]}\n")
    plan = write_plan(replace(load(config), cluster=InProcess()), tmp_path / "results")
    [layout] = plan.dynamics["adds"].layouts.values()
    assert layout.seconds < 0.01 and plan.compilation > 0.05
    said = capsys.readouterr().err
    assert "measuring adds ..." in said and "compiling" not in said


@pytest.mark.parametrize("dynamics", ["ode", "overlap_map"])
def test_adaptive_steps_that_become_longer_are_noticed(monkeypatch: pytest.MonkeyPatch, dynamics: str) -> None:
    """Runs of 100 √t seconds by adaptive steps, or 100 t by others, are ended after 10 s, beside a start of 3 s."""
    case = Case(Problem(gamma=0.1, p=1, k=1, d=30, Delta=0.0, activation="erf"), dynamics, 0, Recording((0.0, 1.0), ()))
    power = 0.5 if dynamics == "ode" else 1.0

    def taken(cases: list[Case], limit: float, ended: float = 1.0) -> pilots.Timing:
        last = cases[0].clock * cases[0].recording.times[-1]
        if last < 1e-6:
            return pilots.Timing(3.0, 1, 1.0, 1.0)
        done = min(1.0, (limit / 100.0) ** (1.0 / power) / last)
        return pilots.Timing(3.0 + 100.0 * (done * last) ** power, 1, done, done, complete=done == 1.0)

    monkeypatch.setattr(pilots, "_timed", taken)
    monkeypatch.setattr(pilots, "_start", lambda *_: 3.0)
    assert measured([case], 10.0)[0] == pytest.approx(103.0)


@pytest.mark.parametrize("start", [0.0, 500.0])
@pytest.mark.parametrize("times", [np.geomspace(1e-6, 1.0, 60), np.linspace(0.0, 1.0, 61)[1:]])
def test_starts_records_and_steps_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, times: np.ndarray, start: float
) -> None:
    """Steps of 100 s and 61 records of 2 s: in the 40 s after the start, records are made or steps, not both alike."""
    steps, record = 100.0, 2.0
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="square", spherical=True)
    case = Case(problem, "sgd", 0, Recording((0.0, *times.tolist())))

    def taken(cases: list[Case], limit: float, ended: float = 1.0) -> pilots.Timing:
        times = np.array(cases[0].recording.times)
        seconds = steps * cases[0].clock * times + record * np.arange(1, len(times) + 1)
        last = int(np.searchsorted(seconds, limit))
        if last == len(times):
            return pilots.Timing(start + seconds[-1], 1, 1.0, 1.0)
        done = max((limit - record * last) / steps, times[last - 1] if last else 0.0)
        return pilots.Timing(start + limit, 1, done, max(0, last - 1) / max(1, len(times) - 1), complete=False)

    monkeypatch.setattr(pilots, "_timed", taken)
    assert measured([case], 40.0)[0] == pytest.approx(start + steps + 61 * record, rel=0.1)


@pytest.fixture
def starts(tmp_path: Path) -> Design:
    """Return a sweep without a step, `times: [0]`."""
    path = tmp_path / "starts.yaml"
    path.write_text(
        "name: starts\nproblem: {p: 1, k: 1, d: 20, Delta: 0, activation: square}\ngrid: {gamma: [0.1]}\n"
        "seeds: 2\ntimes: [0]\ndynamics: [sgd_chain, ode]\n"
    )
    return replace(load(path), cluster=InProcess())


@pytest.mark.rest
def test_a_sweep_without_a_step_has_a_plan(starts: Design, tmp_path: Path) -> None:
    """A run has no work, so no rate follows from it."""
    assert sum(part.todo for part in write_plan(starts, tmp_path).dynamics.values()) == 4
    run_sweep(starts, tmp_path, progress=False)
    assert sum(part.todo for part in write_plan(starts, tmp_path).dynamics.values()) == 0


@pytest.mark.rest
def test_a_plan_of_what_is_done_keeps_the_files_and_costs_of_the_plan_before(starts: Design, tmp_path: Path) -> None:
    write_plan(starts, tmp_path)
    run_sweep(starts, tmp_path, progress=False)
    names = "plan.json", "stages/plan.done"
    before = [(tmp_path / name).stat().st_mtime_ns for name in names]
    assert write_plan(starts, tmp_path).todo == 0
    assert [(tmp_path / name).stat().st_mtime_ns for name in names] == before
    fewer = replace(starts, runs={"ode": starts.runs["ode"]})
    assert write_plan(fewer, tmp_path).todo == 0
    planned = json.loads((tmp_path / "plan.json").read_text())["dynamics"]
    assert list(planned) == ["ode"], "the plan of other cases is written"
    (tmp_path / "plan.json").write_text("{")
    write_plan(starts, tmp_path)
    assert read_json(tmp_path / "plan.json")


@pytest.mark.rest
def test_a_plan_to_look_at_leaves_the_record_of_the_present_dataset(calm: Design, tmp_path: Path) -> None:
    """What more seeds would cost is shown; results of the seeds before are still those of their plan."""
    calm = replace(calm, cluster=InProcess(block_size=4))
    write_plan(calm, tmp_path, progress=False, to_run=False)
    with recorded_stage(tmp_path, "finalise") as record:
        record.write_result(cases_made_from(calm))
    (tmp_path / "dataset.zarr").mkdir()
    before = (tmp_path / "stages/plan.done").stat().st_mtime_ns
    more = replace(calm, seeds=tuple(range(6)), source="seeds: 6")
    assert write_plan(more, tmp_path, progress=False, to_run=False).cases == {"calm": 6 * calm.size // 4}
    assert stage_record(tmp_path, "plan").is_of(cases_made_from(calm))
    assert (tmp_path / "stages/plan.done").stat().st_mtime_ns == before
    write_plan(more, tmp_path, progress=False)
    assert stage_record(tmp_path, "plan").is_of(cases_made_from(more)), "a run needs one of its own cases"


@pytest.mark.rest
def test_a_run_shows_one_plan_after_a_dynamics_is_added(
    starts: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs in an earlier plan, which lacks a dynamics, are not mixed with those of the new one."""
    write_plan(replace(starts, runs={"sgd_chain": starts.runs["sgd_chain"]}), tmp_path)
    earlier = read_json(tmp_path / "plan.json")
    assert earlier is not None
    for layout in earlier["dynamics"]["sgd_chain"]["layouts"].values():
        layout["seconds"] = 1000.0
    write_json(tmp_path / "plan.json", earlier)
    shown: list[Plan] = []

    def show(plan: Plan) -> None:
        shown.append(plan)

    monkeypatch.setattr(Plan, "show", show)
    write_missing_plan(starts, tmp_path)
    run_sweep(starts, tmp_path)
    [layout] = shown[0].dynamics["sgd_chain"].layouts.values()
    written = json.loads((tmp_path / "plan.json").read_text())["dynamics"]["sgd_chain"]["layouts"]
    assert layout.seconds < 1000.0
    assert layout.seconds == next(iter(written.values()))["seconds"]


def test_a_start_that_no_worker_has_the_memory_for_is_refused_in_one_line(tmp_path: Path) -> None:
    """Steps of the chain cost nothing in d, but its start is drawn as weights."""
    config = tmp_path / "far.yaml"
    config.write_text(
        """\
problem: {p: 2, k: 1, Delta: 0, gamma: 0.1, activation: erf}
grid: {d: [100, 1_000_000_000]}
dynamics: [sgd_chain]
times: [0, 1]
cluster: {kind: local, workers: 1, memory_limit: "2GB"}
"""
    )
    refused = CliRunner().invoke(app, ["plan", str(config), "--results", str(tmp_path)])
    said = "at p=2, k=1, d=1000000000; got 40000000000; expected at most"
    assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_a_plan_says_what_thousands_of_shapes_take_besides_their_cases() -> None:
    layouts = {f"p{p}": LayoutPlan(2, 2, 1e-3, 100) for p in range(3000)}
    plans = [Plan("wide", 2, {"ode": DynamicsPlan(1, 6000, 0, some)}) for some in (layouts, {"p1": layouts["p1"]})]
    assert ["the store and the dataset take about 1.5 min more" in repr(plan) for plan in plans] == [True, False]


def test_time_in_which_others_have_the_processor_is_not_measured(tmp_path, monkeypatch):
    """The record of the system says that the thread waited .4 s in between; without a record all time counts."""
    record = tmp_path / "schedstat"
    record.write_text("500000000 1000000000 2\n")
    monkeypatch.setattr(work_time, "SCHEDULED", record)
    monkeypatch.setattr(work_time.time, "perf_counter", iter([10.0, 11.0, 12.0]).__next__)
    before, compilation = seconds_at_work(), seconds_compiled()
    assert slowdown() == pytest.approx(3.0)
    record.write_text("5 1400000000 3\n")
    assert seconds_at_work() - before == pytest.approx(0.6)
    assert slowdown() == work_time.MOST_SLOWDOWN
    record.unlink()
    assert seconds_at_work() == 12.0 - compilation and slowdown() == 1.0


def test_a_wait_while_the_time_is_read_is_not_taken_off_the_work(tmp_path, monkeypatch):
    """Others have the processor for .4 s as soon as the time is read for the second time."""
    record, times = tmp_path / "schedstat", iter([10.0, 10.1, 10.6])
    record.write_text("500000000 1000000000 2\n")

    def preempted() -> float:
        """Return a time, after which the thread waits."""
        if (now := next(times)) > 10.0:
            record.write_text("500000000 1400000000 3\n")
        return now

    monkeypatch.setattr(work_time, "SCHEDULED", record)
    monkeypatch.setattr(work_time.time, "perf_counter", preempted)
    before = seconds_at_work()
    assert seconds_at_work() - before == pytest.approx(0.2)


def test_what_another_thread_compiles_is_not_taken_off_this_ones_work():
    begins, ends = (SimpleNamespace(is_start=start, is_end=not start) for start in (True, False))
    compilation = work_time._Compilation()

    def compiled() -> float:
        """Compile for a while; return the seconds."""
        compilation.notify(begins)
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        compilation.notify(ends)
        return compilation.seconds

    compilation.notify(ends)  # one that had begun before
    with ThreadPoolExecutor(1) as beside:
        assert beside.submit(compiled).result() >= 0.01
    assert compilation.seconds == 0.0
    assert 0.01 <= compiled() <= time.thread_time()


def test_a_measurement_below_nothing_of_an_earlier_version_is_no_cost():
    record = {"todo": 4, "block_size": 2, "seconds": -0.1, "bytes": 8, "measured": True}
    layouts = {"a": LayoutPlan.of(record), "b": LayoutPlan.of(record | {"seconds": 0.1})}
    plan = Plan("s", 1, {"sgd": DynamicsPlan(1, 8, 0, layouts)})
    assert (layouts["a"].seconds, list(plan.costs)) == (0.0, ["sgd/b"])
