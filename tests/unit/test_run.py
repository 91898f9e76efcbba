"""A run of several dynamics."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from sweeplib import InputError, Sweep
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution.blocks import Block
from sweeplib.engine.execution.estimates import DynamicsPlan, LayoutPlan, Plan
from sweeplib.engine.execution.queue import Queue
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.language import Expression
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.records.files import write_json
from sweeplib.engine.storage.records.locks import driver_lock
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store import inventory as inventory_module
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.errors import BusyError
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Recording
from sweeplib.networks.simulation import cases as cases_module
from sweeplib.networks.simulation.numerics_version import numerics_version
from tests.in_process import InProcess

SEEDS = 6


@pytest.fixture
def sweep() -> Design:
    """Return a sweep of a chain that is cheap at one d and expensive at another, and the ODE."""
    return Design(
        "mixed",
        Grid((Axis("d", (40, 4000)),), {"p": 1, "k": 1, "gamma": 0.05, "Delta": 0.0, "activation": "square"}),
        tuple(range(SEEDS)),
        {"ode": Run("ode"), "sgd_chain": Run("sgd_chain")},
        Recording(times=(1.0,), thresholds=(), observables=("risk",)),
        cluster=InProcess(block_size=SEEDS),
        source="name: mixed\n",
    )


@pytest.mark.rest
def test_every_dynamics_is_run_and_recorded_in_its_own_file(sweep: Design, tmp_path: Path) -> None:
    summaries = run_sweep(sweep, tmp_path, progress=False)
    assert list(summaries) == ["ode", "sgd_chain"]
    for name, summary in summaries.items():
        assert summary.computed == summary.cases["ok"] == 2 * SEEDS
        assert stage_record(tmp_path, f"simulate.{name}").counts == {"ok": 2 * SEEDS}


@pytest.mark.rest
def test_only_the_dynamics_named_are_run(sweep: Design, tmp_path: Path) -> None:
    assert list(run_sweep(sweep, tmp_path, ["sgd_chain"], progress=False)) == ["sgd_chain"]
    assert not (tmp_path / "stages/simulate.ode.done").exists()
    counts = {name: summary.computed for name, summary in run_sweep(sweep, tmp_path, progress=False).items()}
    assert counts == {"ode": 2 * SEEDS, "sgd_chain": 0}


@pytest.mark.rest
def test_a_run_with_nothing_to_do_starts_no_cluster(
    sweep: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sweep(sweep, tmp_path, progress=False)
    monkeypatch.delattr(InProcess, "client")
    assert all(summary.computed == 0 for summary in run_sweep(sweep, tmp_path, progress=False).values())


@pytest.mark.rest
def test_one_dynamics_under_another_driver_leaves_all_alone(
    sweep: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeplib.engine.storage.records.holders.Holder.is_orphan", False)
    with driver_lock(tmp_path, "sgd_chain"), pytest.raises(BusyError, match=r"process .* runs sgd_chain here"):
        run_sweep(sweep, tmp_path, progress=False)
    assert not (tmp_path / "runs").exists()
    assert list(run_sweep(sweep, tmp_path, ["ode"], progress=False)) == ["ode"]


@pytest.mark.rest
def test_the_costliest_blocks_of_all_dynamics_go_first(
    sweep: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan knows the costly dynamics: here the chain, which the sweep names last."""
    run_sweep(sweep, tmp_path / "first", progress=False)
    plan = {}
    for name, seconds in {"ode": 1.0, "sgd_chain": 10.0}.items():
        layout = LayoutPlan(2 * SEEDS, SEEDS, seconds, 1)
        layouts = {some.layout: layout for some in RunStore(tmp_path / "first", name).segments}
        plan[name] = DynamicsPlan(2, 2 * SEEDS, 0, layouts)
    directory = tmp_path / "second"
    directory.mkdir()
    write_json(directory / "plan.json", Plan("any", 1, plan).record())

    seen: list[Block] = []
    block = Queue.block

    def watched(queue: Queue, workers: int) -> Block:
        seen.append(block(queue, workers))
        return seen[-1]

    monkeypatch.setattr(Queue, "block", watched)
    run_sweep(replace(sweep, cluster=InProcess()), directory, progress=False)
    found = [(block.dynamics, block.seconds_a_case) for block in seen]
    assert list(dict.fromkeys(found)) == [("sgd_chain", 10.0), ("ode", 1.0)] and found == sorted(found, reverse=True)


@pytest.mark.rest
def test_points_that_differ_in_what_a_dynamics_does_not_read_are_one_case(sweep: Design, tmp_path: Path) -> None:
    """Gradient flow does not depend on the label noise: it runs once for all values, and has its result at each."""
    fixed = {name: value for name, value in sweep.grid.fixed.items() if name != "Delta"}
    flow = replace(sweep, grid=Grid((Axis("d", (40,)), Axis("Delta", (0.0, 0.5, 1.0))), fixed), runs={})
    flow = replace(flow, runs={name: Run(name) for name in ("gradient_flow", "ode")}, cluster=InProcess())
    summaries = run_sweep(flow, tmp_path, progress=False)
    assert {name: summary.computed for name, summary in summaries.items()} == {"gradient_flow": SEEDS, "ode": 3 * SEEDS}
    dataset = xr.open_zarr(finalise(flow, tmp_path), chunks=None)
    assert (dataset.status == Status.ok).all()
    apart = dataset.risk.max("Delta") - dataset.risk.min("Delta")
    assert (apart.sel(dynamics="gradient_flow") == 0).all()
    assert (apart.sel(dynamics="ode") > 0).all()
    more = replace(flow, grid=replace(flow.grid, axes=(Axis("d", (40,)), Axis("Delta", (0.0, 0.25, 0.5, 1.0)))))
    assert run_sweep(more, tmp_path, ["gradient_flow"], progress=False)["gradient_flow"].computed == 0


def test_the_numerics_of_a_sweep_are_what_its_identities_are_made_of(sweep: Design) -> None:
    chain = sweep.numerics("sgd_chain")
    assert replace(sweep, seeds=(0, 1), source="", timeout=3.0).numerics("sgd_chain") == chain
    runs = {"sgd_chain": Run("sgd_chain"), "ode": Run("ode", options={"rtol": 1e-5})}
    other = replace(sweep, runs=runs)
    assert other.numerics("sgd_chain") == chain
    assert other.numerics("ode") != sweep.numerics("ode")
    assert replace(sweep, root_seed=1).numerics("sgd_chain") != chain


def test_the_code_of_each_pair_counts_that_some_case_has(sweep: Design, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes of a large grid meet the pairs (erf, erf) and (square, square) alone where `when` leaves corners out."""
    names = ("erf", "square")
    axes = Axis("activation", names), Axis("teacher_activation", names), Axis("gamma", tuple(np.linspace(0.01, 1, 300)))
    fixed = {name: value for name, value in sweep.grid.fixed.items() if name not in ("activation", "gamma")}
    runs = {"ode": Run("ode", when=Expression("gamma > 0.02 and gamma < 0.98"))}
    design = replace(sweep, grid=Grid(axes, fixed | {"d": 40}), runs=runs)
    before, key = design.numerics("ode"), inventory_module._key(design, "ode")

    def version_of_new_code(problem: Problem, *of: Any) -> str:
        """Return the version of the code of a problem, which is new for one pair of activations."""
        return "new" if (problem.activation, problem.teacher) == names else numerics_version(problem, *of)

    monkeypatch.setattr(cases_module, "numerics_version", version_of_new_code)
    cases_module.shared_values.cache_clear()
    assert (design.numerics("ode") != before, inventory_module._key(design, "ode") != key) == (True, True)
    cases_module.shared_values.cache_clear()


def test_an_edit_of_a_plugin_makes_the_file_of_identities_anew(sweep: Design, monkeypatch: pytest.MonkeyPatch) -> None:
    before = inventory_module._key(sweep, "ode")
    monkeypatch.setattr(inventory_module, "plugins_digest", lambda plugins, stage: f"{plugins} of {stage} in new code")
    assert inventory_module._key(sweep, "ode") != before


@pytest.mark.parametrize("workers", [-2, 0, 1.5, True])
def test_a_number_of_workers_that_is_none_is_refused(workers: Any, tmp_path: Path) -> None:
    problem = {"p": 1, "k": 1, "d": 20, "gamma": 0.1, "Delta": 0, "activation": "square"}
    sweep = Sweep(name="few", problem=problem, dynamics=["ode"], times=[0, 1], results=tmp_path)
    with pytest.raises(InputError, match=re.escape(f"workers: not a number of workers; got {workers}")):
        sweep.run(workers=workers)
