"""The cases that a sweep needs of a run store; the time per case does not depend on the case."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution.calibration import pilots_of
from sweeplib.engine.language import Expression
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording, case_work, driver, run_cases

FIXED: dict[str, Any] = {"p": 1, "k": 1, "d": 1000, "activation": "square", "spherical": True}


def sweep_of(points: int = 1, seeds: int = 1, times: int = 10, dynamics: str = "sgd_chain") -> Design:
    """Return a sweep over points that differ in γ, which is derived, and in Δ."""
    axes = (
        Axis("ratio", tuple(np.linspace(0.3, 1.7, -(-points // 5)).tolist())),
        Axis("Delta", tuple(np.linspace(0.0, 1.0, min(points, 5)).tolist())),
    )
    grid = Grid(axes, FIXED, {"gamma": Expression("ratio / (12 + Delta)")})
    recording = Recording(tuple(np.linspace(0.0, 1.0, times).tolist()))
    return Design("many", grid, tuple(range(seeds)), {dynamics: Run(dynamics)}, recording, source="name: many\n")


def wanted(sweep: Design, directory: Path) -> Inventory:
    [dynamics] = sweep.runs
    return inventory(sweep, dynamics, RunStore(directory, dynamics))


@pytest.mark.rest
@pytest.mark.parametrize("sweep", [sweep_of(35, 3), sweep_of(1, 7), sweep_of(35, 3, dynamics="gradient_flow")])
def test_it_is_that_of_the_cases_one_by_one(sweep: Design, tmp_path: Path) -> None:
    found, [dynamics] = wanted(sweep, tmp_path), sweep.runs
    cases = dict(sweep.cases(dynamics))
    flat = np.ravel_multi_index(np.array(list(cases)).T, sweep.shape)
    assert found.flat.tolist() == flat.tolist()
    assert found.ids.tolist() == np.array([case.identity() for case in cases.values()], "S16").tolist()
    different = {case.identity(): case for case in cases.values()}
    rows = [(case.problem.text, case.seed, case.clock) for new in found.missing.values() for case in found.cases(new)]
    assert len(rows) == len(different) == found.counts()["missing"]
    assert set(rows) <= {(case.problem.text, case.seed, case.clock) for case in cases.values()}
    for new in found.missing.values():
        assert (np.diff([case_work(case) for case in found.cases(new)]) <= 0).all()


def test_cases_of_one_solution_stand_side_by_side_and_cost_that_of_one(tmp_path: Path) -> None:
    """`mean_field` was solved again for each γ, on which it does not depend: a block had one γ and many seeds."""
    sweep = sweep_of(4, 3, dynamics="gradient_flow")
    sweep = replace(sweep, grid=replace(sweep.grid, derived={"gamma": Expression("ratio / (12 + p + 10 * Delta)")}))
    found = wanted(sweep, tmp_path)
    [places] = found.missing.values()
    # four points that differ in γ alone, as a flow does not read Δ, of three seeds
    assert [(case.seed, case.problem.gamma) for case in found.cases(places)] == [
        (seed, pytest.approx(0.3 / (13 + 10 * Delta))) for seed in range(3) for Delta in np.linspace(0.0, 1.0, 4)
    ]
    assert [case.seed for case in found.cases(found.solved(places))] == [0, 1, 2]
    [pilot] = pilots_of(found, None).values()
    assert (len(pilot.cases), pilot.solutions) == (3, 0.25)
    # noise of the labels is of order γ/p
    noisy = replace(sweep, runs={"mean_field": Run("mean_field", options={"noise": "labels"})})
    assert all(pilot.solutions == 1.0 for pilot in pilots_of(wanted(noisy, tmp_path), None).values())


@pytest.mark.parametrize(
    ("dynamics", "observables", "solved"),
    [
        ("gradient_flow", ("risk",), 2),
        pytest.param("gradient_flow", ("risk", "sharpness"), 4, id="γ λ_max"),
        ("ode", ("risk",), 4),
    ],
)
def test_cases_of_one_solution_are_solved_once(
    monkeypatch: pytest.MonkeyPatch, dynamics: str, observables: tuple[str, ...], solved: int
) -> None:
    replicas_of, counts = driver.replicas_of, []
    monkeypatch.setattr(driver, "replicas_of", lambda *args: counts.append(len(args[0])) or replicas_of(*args))
    problem = Problem(gamma=0.3, p=1, k=1, d=30, Delta=0.0, activation="square")
    recording = Recording((0.0, 2.0), (0.1,), observables)
    rates_and_seeds = (0.03, 0), (0.05, 0), (0.03, 1), (0.07, 1)
    cases = [Case(replace(problem, gamma=gamma), dynamics, seed, recording) for gamma, seed in rates_and_seeds]
    steps = run_cases(cases).data["end_steps"]
    assert counts == [solved]
    assert steps == pytest.approx([2.0 * 30 / gamma for gamma, _ in rates_and_seeds])


def seconds(sweep: Design, directory: Path) -> float:
    """Return the processor time of an inventory, the best of three."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        wanted(sweep, directory)
        taken.append(time.process_time() - began)
    return min(taken)


def test_a_case_takes_no_longer_for_more_recording_times(tmp_path: Path) -> None:
    few, many = (seconds(sweep_of(2000, times=times), tmp_path) for times in (10, 1000))
    assert many < 3 * few


@pytest.mark.rest
def test_a_case_takes_no_longer_among_more_seeds(tmp_path: Path) -> None:
    few, many = (seconds(sweep_of(1, seeds=seeds), tmp_path) for seeds in (4_000, 32_000))
    assert many < 24 * few


def axis_of(name: str, values: tuple[float, ...], **fixed: float) -> Grid:
    others = {"gamma": 0.1, "Delta": 0.1, **FIXED, "d": 1000, **fixed}
    return Grid((Axis(name, values),), {key: value for key, value in others.items() if key != name})


@pytest.mark.rest
@pytest.mark.parametrize("name", ["weight_decay", "second_layer_rate", "second_layer_decay"])
def test_any_parameter_is_an_axis_as_fast_as_the_learning_rate(name: str, tmp_path: Path) -> None:
    """Its values do not make problems of another kind."""
    values = tuple(np.linspace(0.01, 1.0, 4000).tolist())
    sweeps = [replace(sweep_of(), grid=axis_of(each, values, second_layer_rate=0.1)) for each in ("gamma", name)]
    of_gamma, of_other = (seconds(sweep, tmp_path) for sweep in sweeps)
    assert of_other < 3 * of_gamma


def test_a_parameter_that_is_an_axis_for_one_run_is_fixed_for_another(tmp_path: Path) -> None:
    runs = {"sgd_chain": Run("sgd_chain"), "ode": Run("ode", {"weight_decay": (0.0,)}, {"finite_d": True})}
    sweep = replace(sweep_of(seeds=2), grid=axis_of("weight_decay", (0.0, 0.1, 0.2)), runs=runs)
    found = {name: inventory(sweep, name, RunStore(tmp_path, name)) for name in runs}
    assert [len(each.ids) for each in found.values()] == [6, 2]
    decays = [each.cases(slice(None)).field("weight_decay").tolist() for each in found.values()]
    assert decays == [[0.0, 0.0, 0.1, 0.1, 0.2, 0.2], [0.0, 0.0]]
    for each in found.values():
        each.cases(slice(None)).check()


@pytest.mark.parametrize("axes", [(), (Axis("gamma", (0.1,)),)])
def test_no_axis_and_an_axis_of_one_value_are_the_same_cases(axes: tuple[Axis, ...], tmp_path: Path) -> None:
    fixed = {"Delta": 0.1, **FIXED} | ({} if axes else {"gamma": 0.1})
    found = wanted(replace(sweep_of(seeds=3), grid=Grid(axes, fixed)), tmp_path)
    [case] = {case.problem.text for case in found.cases(slice(None))}
    assert case == Problem(gamma=0.1, Delta=0.1, **FIXED).text
    assert found.column("seed").tolist() == [0, 1, 2]
    assert found.column("gamma").tolist() == [0.1] * 3
    assert [len(places) for places in found.missing.values()] == [3]
